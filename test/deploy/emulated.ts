// Fits a stack to the emulator that it is deployed to. The stack itself is not touched: only the
// template of a test's deployment differs from the one that users deploy.

import type { CfnResource } from 'aws-cdk-lib';
import { type IAspect } from 'aws-cdk-lib';
import { CfnAlarm, CfnCompositeAlarm } from 'aws-cdk-lib/aws-cloudwatch';
import { CfnFunction } from 'aws-cdk-lib/aws-lambda';
import type { IConstruct } from 'constructs';

/** A metric that nobody writes, for alarms that the emulator cannot create as they are. */
const NOTHING = {
  Namespace: 'rewritten-for-the-emulator',
  MetricName: 'Nothing',
  Statistic: 'Sum',
  Period: 60,
  EvaluationPeriods: 1,
  ComparisonOperator: 'GreaterThanThreshold',
  Threshold: 0,
};

export class Emulated implements IAspect {
  readonly #proxyUrl: string;

  /** Functions are run by whoever listens at `proxyUrl`. */
  constructor(proxyUrl: string) {
    this.#proxyUrl = proxyUrl;
  }

  visit(node: IConstruct): void {
    if (node instanceof CfnFunction) {
      node.addPropertyOverride('Environment.Variables.MINISTACK_LAMBDA_PROXY_URL', this.#proxyUrl);
    }
    // It knows neither metric math nor composite alarms, and fails a stack that has them. Both
    // become plain alarms with the same names, so that what refers to them stays whole.
    if (node instanceof CfnAlarm && node.metrics !== undefined) {
      node.addPropertyDeletionOverride('Metrics');
      plain(node);
    }
    if (node instanceof CfnCompositeAlarm) {
      node.addOverride('Type', CfnAlarm.CFN_RESOURCE_TYPE_NAME);
      for (const property of SUPPRESSION) node.addPropertyDeletionOverride(property);
      plain(node);
    }
  }
}

const SUPPRESSION = [
  'AlarmRule',
  'ActionsSuppressor',
  'ActionsSuppressorExtensionPeriod',
  'ActionsSuppressorWaitPeriod',
];

function plain(alarm: CfnResource): void {
  for (const [name, value] of Object.entries(NOTHING)) alarm.addPropertyOverride(name, value);
}
