// Everything at once: a table, the monitor, alarms with a topic, a dashboard, and an example of a
// job of which only one invocation works at a time.

import { CfnOutput, Duration, RemovalPolicy, Stack, type StackProps } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { EmailSubscription } from 'aws-cdk-lib/aws-sns-subscriptions';
import type { Construct } from 'constructs';
import { acknowledgeNoTracing } from './acknowledge.ts';
import { bundleOf } from './bundle.ts';
import { LeaseAlarms } from './lease-alarms.ts';
import { LeaseDashboard } from './lease-dashboard.ts';
import { LeaseTable } from './lease-table.ts';
import { LifecycleMonitor } from './lifecycle-monitor.ts';
import { SingletonFunction } from './singleton-function.ts';
import { KEY_ATTRIBUTE } from '../src/schema.ts';

/** What may be set for the stack. */
export interface LeaderElectionStackProps extends StackProps {
  /**
   * The table's name.
   * @default - a name that CloudFormation makes
   */
  readonly tableName?: string;
  /**
   * The name of the example worker's lease.
   * @default singleton-worker
   */
  readonly leaseName?: string;
  /**
   * The namespace of that lease.
   * @default default
   */
  readonly namespace?: string;
  /**
   * When the example worker runs.
   * @default - every minute
   */
  readonly schedule?: ScheduleExpression;
  /**
   * Who is told of alarms.
   * @default - the topic has no subscription
   */
  readonly email?: string;
  /**
   * Whether the table goes away with the stack.
   * @default false
   */
  readonly disposable?: boolean;
}

/** Everything at once: table, monitor, alarms, dashboard and an example worker. */
export class LeaderElectionStack extends Stack {
  /** The table. */
  readonly table: LeaseTable;
  /** The monitor that watches it. */
  readonly monitor: LifecycleMonitor;
  /** The example worker. */
  readonly worker: SingletonFunction;
  /** Whom the alarms tell. */
  readonly topic: Topic;
  /** The alarms. */
  readonly alarms: LeaseAlarms;
  /** The dashboard. */
  readonly dashboard: LeaseDashboard;

  constructor(scope: Construct, id: string, props: LeaderElectionStackProps = {}) {
    super(scope, id, { description: 'Leases and leader election on DynamoDB', ...props });
    const {
      tableName,
      leaseName = 'singleton-worker',
      namespace,
      schedule = ScheduleExpression.rate(Duration.minutes(1)),
      email,
      disposable = false,
    } = props;

    this.table = new LeaseTable(this, 'Leases', {
      ...(tableName === undefined ? {} : { tableName }),
      removalPolicy: disposable ? RemovalPolicy.DESTROY : RemovalPolicy.RETAIN,
    });
    const { table } = this;
    this.topic = new Topic(this, 'Alerts', { enforceSSL: true });
    if (email !== undefined) this.topic.addSubscription(new EmailSubscription(email));

    this.monitor = new LifecycleMonitor(this, 'Monitor', { table });
    const { monitor, topic } = this;
    this.worker = new SingletonFunction(this, 'Worker', {
      code: Code.fromAsset(bundleOf('singleton-worker')),
      description: 'Works in steps that its log shows, one invocation at a time',
      leaseName,
      ...(namespace === undefined ? {} : { namespace }),
      table,
      schedule,
      timeout: Duration.seconds(50),
      environment: { LEASE_LOG_LEVEL: 'INFO' },
      alarmTopic: topic,
    });
    acknowledgeNoTracing(this.worker);
    const jobs = [this.worker];
    this.alarms = new LeaseAlarms(this, 'Alarms', { table, monitor, jobs, topic });
    const { alarms } = this;
    this.dashboard = new LeaseDashboard(this, 'Dashboard', { table, monitor, alarms, jobs });

    this.#output('TableName', 'The table of leases', table.tableName);
    this.#output('DashboardUrl', 'Who holds what, and since when', this.dashboard.url);
    this.#output('LookCommand', 'Who holds what, on the command line', this.#lookCommand());
    this.#output(
      'WorkerFunctionName',
      'Invoke it twice at once: one works, the other says who does',
      this.worker.function.functionName,
    );
    this.#output('MonitorFunctionName', 'Its log says what it saw', monitor.function.functionName);
    this.#output(
      'WidgetFunctionName',
      'Renders the leases for the dashboard',
      this.dashboard.widgetFunction.functionName,
    );
    this.#output('EventBusName', 'Where changes of leases go', monitor.eventBus.eventBusName);
    this.#output(
      'DeadLetterQueueUrl',
      'Runs of the worker that have failed',
      this.worker.deadLetterQueue.queueUrl,
    );
  }

  #lookCommand(): string {
    const columns = [`${KEY_ATTRIBUTE}.S`, 'holderIdentity.S', 'renewTime.S', 'leaseTransitions.N'];
    return (
      `aws dynamodb scan --region ${this.region} --table-name ${this.table.tableName} ` +
      `--query 'Items[].[${columns.join(', ')}]' --output table`
    );
  }

  #output(name: string, description: string, value: string): void {
    new CfnOutput(this, name, { value, description });
  }
}
