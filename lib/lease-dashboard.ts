// One page for 3 a.m.: which alarms are on, who holds what, and what has been happening.

import { Aws, CfnMapping, Duration, Stack, Token } from 'aws-cdk-lib';
import {
  AlarmStatusWidget,
  CustomWidget,
  Dashboard,
  GraphWidget,
  LogQueryWidget,
  type IMetric,
} from 'aws-cdk-lib/aws-cloudwatch';
import { Grant, type IGrantable } from 'aws-cdk-lib/aws-iam';
import { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { acknowledge, acknowledgeNoTracing } from './acknowledge.ts';
import { bundledParts } from './function-parts.ts';
import type { LeaseAlarms } from './lease-alarms.ts';
import { checkReach, type ILeaseTable } from './lease-table.ts';
import type { LifecycleMonitor } from './lifecycle-monitor.ts';
import type { Singleton } from './singleton-function.ts';

/** What the dashboard shows. */
export interface LeaseDashboardProps {
  /** The table whose leases are shown. */
  readonly table: ILeaseTable;
  /** The monitor whose metrics are shown. */
  readonly monitor: LifecycleMonitor;
  /**
   * Alarms whose status is shown.
   * @default - none
   */
  readonly alarms?: LeaseAlarms;
  /**
   * Jobs whose runs are shown.
   * @default - none
   */
  readonly jobs?: readonly Singleton[];
  /**
   * The dashboard's name, unique in the account.
   * @default - a name that CloudFormation makes
   */
  readonly dashboardName?: string;
}

/** CloudWatch's limit. */
const ALARMS_IN_A_WIDGET = 100;

/** Partition, the domain of its console, and how the names of its Regions begin. */
const CONSOLES = [
  ['aws-cn', 'amazonaws.cn', 'cn-'],
  ['aws-us-gov', 'amazonaws-us-gov.com', 'us-gov-'],
  ['aws', 'aws.amazon.com', ''],
] as const;

/** A dashboard with a live table of the leases in it. */
export class LeaseDashboard extends Construct {
  /** The dashboard itself. */
  readonly dashboard: Dashboard;
  /** Renders the table of leases. It is called with the viewer's own credentials. */
  readonly widgetFunction: LambdaFunction;
  #consoles: CfnMapping | undefined;

  constructor(scope: Construct, id: string, props: LeaseDashboardProps) {
    super(scope, id);
    const { table, alarms, dashboardName } = props;
    this.widgetFunction = makeWidgetFunction(new Construct(this, 'Widget'), table);
    this.dashboard = new Dashboard(this, 'Dashboard', {
      ...(dashboardName === undefined ? {} : { dashboardName }),
      defaultInterval: Duration.hours(3),
    });
    if (alarms !== undefined) {
      const all = [alarms.composite, ...alarms.alarms];
      for (let shown = 0; shown < all.length; shown += ALARMS_IN_A_WIDGET) {
        this.dashboard.addWidgets(
          new AlarmStatusWidget({
            title: 'Alarms',
            alarms: all.slice(shown, shown + ALARMS_IN_A_WIDGET),
            width: 24,
            height: 4,
          }),
        );
      }
    }
    this.dashboard.addWidgets(
      new CustomWidget({
        title: 'Leases',
        functionArn: this.widgetFunction.functionArn,
        width: 24,
        height: 9,
        updateOnRefresh: true,
        updateOnResize: true,
        updateOnTimeRangeChange: false,
      }),
    );
    this.dashboard.addWidgets(...monitorGraphs(props.monitor));
    this.dashboard.addWidgets(...tableGraphs(table), jobGraph(props.jobs ?? []));
    this.dashboard.addWidgets(changes(props.monitor));
  }

  /** Where it is, in the console. */
  get url(): string {
    const region = Stack.of(this).region;
    return (
      `https://${region}.console.${this.#consoleDomain(region)}/cloudwatch/home?region=${region}` +
      `#dashboards/dashboard/${this.dashboard.dashboardName}`
    );
  }

  /** In China and in GovCloud the console is elsewhere. */
  #consoleDomain(region: string): string {
    if (!Token.isUnresolved(region)) {
      const [, domain] = CONSOLES.find(([, , prefix]) => region.startsWith(prefix)) ?? CONSOLES[2];
      return domain;
    }
    this.#consoles ??= new CfnMapping(this, 'Consoles', {
      mapping: Object.fromEntries(CONSOLES.map(([partition, domain]) => [partition, { domain }])),
    });
    return this.#consoles.findInMap(Aws.PARTITION, 'domain');
  }

  /** Lets `grantee` look at the dashboard, the table of leases in it included. */
  grantView(grantee: IGrantable): Grant {
    const grant = (action: string, arn: string) =>
      Grant.addToPrincipal({ grantee, actions: [action], resourceArns: [arn] });
    // The dashboard's own ARN lacks the name that CloudFormation makes.
    const dashboardArn = Stack.of(this).formatArn({
      service: 'cloudwatch',
      region: '',
      resource: 'dashboard',
      resourceName: this.dashboard.dashboardName,
    });
    return grant('cloudwatch:GetDashboard', dashboardArn).combine(
      grant('lambda:InvokeFunction', this.widgetFunction.functionArn),
    );
  }
}

/** It reads, and nothing else. */
function makeWidgetFunction(scope: Construct, table: ILeaseTable): LambdaFunction {
  const fn = new LambdaFunction(scope, 'Function', {
    ...bundledParts(scope, 'lease-widget'),
    description: 'Shows a table of leases on a dashboard',
    timeout: Duration.seconds(15),
    memorySize: 256,
    environment: { LEASE_TABLE_NAME: table.tableName },
  });
  checkReach(scope, fn, table);
  Grant.addToPrincipal({
    grantee: fn,
    actions: ['dynamodb:Scan'],
    resourceArns: [table.tableArn],
  });
  table.encryptionKey?.grantDecrypt(fn);
  acknowledgeNoTracing(fn);
  acknowledge(fn, 'The dashboard waits for its answer.', 'Serverless-LambdaDLQ');
  return fn;
}

function graph(title: string, left: IMetric[]): GraphWidget {
  return new GraphWidget({ title, left, width: 8, height: 6, leftYAxis: { min: 0 } });
}

function monitorGraphs(monitor: LifecycleMonitor): GraphWidget[] {
  const most = (name: string) => monitor.metric(name, { statistic: 'Maximum' });
  const sum = (name: string) => monitor.metric(name);
  return [
    graph('Leases that want attention', [
      most('LeasesNotReady'),
      most('LeasesLeaderless'),
      most('LeasesUnusable'),
      most('ZonesPartiallySilent'),
      most('ZonesSilent'),
    ]),
    graph('Changes', [sum('LeaderChanges'), sum('LeasesEvicted'), sum('SchedulesMissed')]),
    graph('Lifecycle monitor', [
      sum('MonitorPass'),
      sum('MonitorBlind'),
      most('EventsUnpublished'),
      most('LeasesScanned'),
      monitor.metric('MonitorPassDuration', { statistic: 'p90' }),
    ]),
  ];
}

function tableGraphs(table: ILeaseTable): GraphWidget[] {
  const sum = { statistic: 'Sum', period: Duration.minutes(1) };
  return [
    graph('Consumed by the table', [
      table.metric('ConsumedWriteCapacityUnits', sum),
      table.metric('ConsumedReadCapacityUnits', sum),
    ]),
    graph('Refused by the table', [
      table.metric('ConditionalCheckFailedRequests', sum),
      table.metric('WriteThrottleEvents', sum),
      table.metric('ReadThrottleEvents', sum),
    ]),
  ];
}

function jobGraph(jobs: readonly Singleton[]): GraphWidget {
  const period = Duration.minutes(5);
  return graph(
    'Jobs',
    jobs.flatMap(({ function: fn, lease }) => [
      fn.metricInvocations({ period, label: `${lease}: runs` }),
      fn.metricErrors({ period, label: `${lease}: errors` }),
    ]),
  );
}

/** From the lines that the monitor writes; their fields are cut out, for a prefix goes before. */
function changes({ function: fn }: LifecycleMonitor): LogQueryWidget {
  const fields = ['lease', 'event', 'reason', 'holderIdentity', 'logStream'];
  return new LogQueryWidget({
    title: 'What the monitor saw',
    logGroupNames: [fn.logGroup.logGroupName],
    queryLines: [
      'filter @message like "A lease changed its condition."',
      ...fields.map((field) => `parse @message /"${field}":"(?<${field}>[^"]*)"/`),
      `display @timestamp, ${fields.join(', ')}`,
      'sort @timestamp desc',
      'limit 50',
    ],
    width: 24,
    height: 8,
  });
}
