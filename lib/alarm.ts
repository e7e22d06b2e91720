// One way to make an alarm: what missing data means, and what to do when it goes off, are never
// left open.

import { Stack } from 'aws-cdk-lib';
import {
  Alarm,
  ComparisonOperator,
  TreatMissingData,
  type IMetric,
} from 'aws-cdk-lib/aws-cloudwatch';
import { SnsAction } from 'aws-cdk-lib/aws-cloudwatch-actions';
import { ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { Construct } from 'constructs';

export interface AlarmProps {
  readonly metric: IMetric;
  /** What has happened, and what to do. */
  readonly description: string;
  /** `good`: silence is no alarm. `bad`: it is one. `same`: it changes nothing. */
  readonly missing: 'good' | 'bad' | 'same';
  /**
   * At or above it.
   * @default 1
   */
  readonly atLeast?: number;
  /**
   * Below it, instead of `atLeast`.
   * @default - not used
   */
  readonly below?: number;
  /**
   * In how many periods, one after the other.
   * @default 1
   */
  readonly periods?: number;
  /**
   * Who is told, also when it is over.
   * @default - nobody
   */
  readonly topic?: ITopic | undefined;
}

const MISSING = {
  good: TreatMissingData.NOT_BREACHING,
  bad: TreatMissingData.BREACHING,
  same: TreatMissingData.IGNORE,
} as const;

export function makeAlarm(scope: Construct, id: string, props: AlarmProps): Alarm {
  const { metric, description, missing, atLeast = 1, below, periods = 1, topic } = props;
  const alarm = new Alarm(scope, id, {
    metric,
    alarmDescription: description,
    treatMissingData: MISSING[missing],
    evaluationPeriods: periods,
    ...(below === undefined
      ? {
          threshold: atLeast,
          comparisonOperator: ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        }
      : { threshold: below, comparisonOperator: ComparisonOperator.LESS_THAN_THRESHOLD }),
  });
  if (topic !== undefined) {
    admitAlarms(topic);
    alarm.addAlarmAction(new SnsAction(topic));
    alarm.addOkAction(new SnsAction(topic));
  }
  return alarm;
}

const admitted = new WeakSet<ITopic>();

/** A topic with a policy of its own admits no service that the policy does not name. */
function admitAlarms(topic: ITopic): void {
  if (admitted.has(topic)) return;
  admitted.add(topic);
  const conditions = { StringEquals: { 'aws:SourceAccount': Stack.of(topic).account } };
  topic.grantPublish(new ServicePrincipal('cloudwatch.amazonaws.com', { conditions }));
}
