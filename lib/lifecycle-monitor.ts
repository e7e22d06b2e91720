// The lifecycle monitor, deployed: the prebuilt function, called each minute, with what it may do
// and where its events and metrics go.

import { Duration, Names } from 'aws-cdk-lib';
import { Metric, type MetricOptions } from 'aws-cdk-lib/aws-cloudwatch';
import { EventBus, type IEventBus } from 'aws-cdk-lib/aws-events';
import { PolicyStatement, type IGrantable, type IPrincipal } from 'aws-cdk-lib/aws-iam';
import { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { acknowledgeNoTracing } from './acknowledge.ts';
import { deliver, type Delivery } from './delivery.ts';
import { bundledParts } from './function-parts.ts';
import { isUnknown, secondsOf, secondsText } from './durations.ts';
import { checkReach, type ILeaseTable } from './lease-table.ts';

/** What is watched, how often, and with how much patience. */
export interface LifecycleMonitorProps extends Pick<Delivery, 'deadLetterQueue'> {
  /** The table that is watched. */
  readonly table: ILeaseTable;
  /**
   * Where `Lease Not Ready`, `Lease Ready`, `Lease Evicted`, `Leader Changed` and `Schedule Missed`
   * are published, from the source `lambda-lease`.
   * @default - a bus of its own
   */
  readonly eventBus?: IEventBus;
  /**
   * How long after its expiry a lease becomes NotReady. A lease's own annotation comes first.
   * @default Duration.seconds(40)
   */
  readonly gracePeriod?: Duration;
  /**
   * How long after that its holder is evicted, at the earliest. A lease's own annotation comes
   * first.
   * @default Duration.seconds(300)
   */
  readonly toleration?: Duration;
  /**
   * How often the whole table is read: 1 s to 1 minute. At less than a minute the function runs all
   * the time, which is what most of the monitor's cost is.
   * @default Duration.seconds(10)
   */
  readonly passInterval?: Duration;
  /**
   * Megabytes of memory.
   * @default 256
   */
  readonly memorySize?: number;
}

/** One invocation a minute looks for a minute, and another waits for its release. */
const RUN = Duration.minutes(1);
const TIMEOUT = Duration.minutes(3);
const METRICS_NAMESPACE = 'lambda-lease';
/** Whose events the monitor may publish: its own. */
const EVENT_SOURCE = 'lambda-lease';

/**
 * Watches a table of leases: flags holders that have fallen silent, evicts them after a toleration,
 * tells EventBridge. No lease depends on it.
 */
export class LifecycleMonitor extends Construct implements IGrantable {
  /** The function that makes the passes. */
  readonly function: LambdaFunction;
  /** Where the events go. */
  readonly eventBus: IEventBus;
  /** Minutes that could not be delivered. */
  readonly deadLetterQueue: IQueue;
  readonly grantPrincipal: IPrincipal;
  readonly #service: string;

  constructor(scope: Construct, id: string, props: LifecycleMonitorProps) {
    super(scope, id);
    const { table, gracePeriod, toleration, passInterval = Duration.seconds(10) } = props;
    for (const [name, value] of Object.entries({ gracePeriod, toleration })) {
      if (value !== undefined && !isUnknown(value) && secondsOf(value) <= 0) {
        throw new Error(`${this.node.path}: ${name} is 0; it must be longer.`);
      }
    }
    if (isUnknown(passInterval)) {
      throw new Error(
        `${this.node.path}: passInterval is known only when the stack is deployed; it must be ` +
          'known at synth.',
      );
    }
    const intervalSeconds = secondsOf(passInterval);
    if (intervalSeconds < 1 || intervalSeconds > secondsOf(RUN)) {
      throw new Error(
        `${this.node.path}: passInterval is ${intervalSeconds} s; it must be between 1 and ` +
          `${secondsOf(RUN)} s, for how long one invocation looks.`,
      );
    }
    this.eventBus = props.eventBus ?? (new EventBus(this, 'Events') as IEventBus);
    // By it the alarms of this monitor tell its metrics from those of others in the account.
    this.#service = Names.uniqueResourceName(this, { maxLength: 64, separator: '-' });
    this.function = new LambdaFunction(this, 'Function', {
      ...bundledParts(this, 'lifecycle-monitor'),
      description: 'Lifecycle monitor of a table of leases',
      timeout: TIMEOUT,
      memorySize: props.memorySize ?? 256,
      environment: {
        LEASE_TABLE_NAME: table.tableName,
        EVENT_BUS_NAME: this.eventBus.eventBusName,
        ...paceOf(intervalSeconds),
        POWERTOOLS_METRICS_NAMESPACE: METRICS_NAMESPACE,
        POWERTOOLS_SERVICE_NAME: this.#service,
        ...(gracePeriod === undefined ? {} : { GRACE_SECONDS: secondsText(gracePeriod) }),
        ...(toleration === undefined ? {} : { TOLERATION_SECONDS: secondsText(toleration) }),
      },
    });
    checkReach(this, this.function, table);
    acknowledgeNoTracing(this.function);
    this.grantPrincipal = this.function.grantPrincipal;
    table.grantMonitor(this.function);
    this.function.addToRolePolicy(
      new PolicyStatement({
        actions: ['events:PutEvents'],
        resources: [this.eventBus.eventBusArn],
        conditions: { StringEquals: { 'events:source': EVENT_SOURCE } },
      }),
    );
    const { deadLetterQueue } = deliver(this, this.function, {
      schedule: ScheduleExpression.rate(RUN),
      description: 'A minute of passes over the table of leases',
      // A minute that was missed is not to be made up for.
      maxEventAge: Duration.minutes(1),
      ...(props.deadLetterQueue === undefined ? {} : { deadLetterQueue: props.deadLetterQueue }),
    });
    this.deadLetterQueue = deadLetterQueue;
  }

  /**
   * A metric of the monitor's passes, such as `LeasesNotReady`.
   * @default - the sum over a minute
   */
  metric(metricName: string, options: MetricOptions = {}): Metric {
    return new Metric({
      namespace: METRICS_NAMESPACE,
      metricName,
      dimensionsMap: { service: this.#service },
      period: Duration.minutes(1),
      statistic: 'Sum',
      ...options,
    }).attachTo(this);
  }
}

/** With a pass each minute there is no second one to wait for. */
function paceOf(intervalSeconds: number): Record<string, string> {
  const [interval, run] =
    intervalSeconds === secondsOf(RUN) ? [0.1, 0.1] : [intervalSeconds, secondsOf(RUN)];
  return { PASS_INTERVAL_SECONDS: String(interval), RUN_SECONDS: String(run) };
}
