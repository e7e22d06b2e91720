// A function of which one invocation works at a time, on a schedule: its environment, what it may
// do with its lease and with no other, its schedule, what becomes of failed runs, and its alarms.
//
// The handler is wrapped by `withLease` of the library; this gives it what that needs.

import { Duration, Validations } from 'aws-cdk-lib';
import type { Alarm } from 'aws-cdk-lib/aws-cloudwatch';
import {
  Function as LambdaFunction,
  type Code,
  type FunctionOptions,
  type FunctionProps,
  type Runtime,
} from 'aws-cdk-lib/aws-lambda';
import type { ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Schedule, ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import type { IQueue } from 'aws-cdk-lib/aws-sqs';
import { Construct } from 'constructs';
import { makeAlarm } from './alarm.ts';
import { deliver, type Delivery } from './delivery.ts';
import { isUnknown, secondsOf, secondsText } from './durations.ts';
import { ARCHITECTURE, functionParts, RUNTIME } from './function-parts.ts';
import { checkLeaseName } from './lease-keys.ts';
import { checkReach, LeaseTable, type ILeaseTable } from './lease-table.ts';
import { DEFAULT_NAMESPACE, LONGEST_DURATION_SECONDS } from '../src/schema.ts';

/** A job: its lease, its schedule, what becomes of failed runs. */
export interface SingletonProps extends Delivery {
  /**
   * The lease's name, in `LEASE_NAME`. Two jobs with the same one exclude each other. Two that are
   * scheduled share their ticks besides: a tick that one has completed is done for the other.
   */
  readonly leaseName: string;
  /**
   * The lease's namespace, in `LEASE_NAMESPACE`.
   * @default default
   */
  readonly namespace?: string;
  /**
   * Where the lease is kept, in `LEASE_TABLE_NAME`.
   * @default - a table of its own
   */
  readonly table?: ILeaseTable;
  /**
   * How long a renewal lasts, in `LEASE_DURATION_SECONDS` for the handler to pass on to
   * `withLease`. A worker that crashes is replaced after that.
   * @default - the lease covers the invocation's remaining time, and needs no renewal
   */
  readonly leaseDuration?: Duration;
  /**
   * Whether a lease with a duration is renewed while the handler works. `false` for work that never
   * yields to the event loop: the lease must then outlast the function's time-out.
   * @default true
   */
  readonly renewed?: boolean;
  /**
   * When it runs. A rate's period is in `LEASE_PERIOD_SECONDS` for the handler to pass on to
   * `scheduledSingleton`: then the monitor reports a tick that was not completed.
   * @default - never by itself
   */
  readonly schedule?: ScheduleExpression;
  /**
   * What the scheduled event has besides `scheduledTime` and `scheduleArn`.
   * @default - nothing
   */
  readonly input?: Readonly<Record<string, unknown>>;
  /**
   * Who is told when a run fails.
   * @default - the alarms tell nobody
   */
  readonly alarmTopic?: ITopic;
}

/** What of FunctionOptions is settled here, or says the same as something in `Delivery`. */
type Settled =
  | keyof Delivery
  | 'onFailure'
  | 'onSuccess'
  | 'deadLetterQueueEnabled'
  | 'deadLetterTopic'
  | 'logGroup'
  | 'logRetention'
  | 'logRemovalPolicy'
  | 'logRetentionRole'
  | 'logRetentionRetryOptions';

/** A job and its function: code, runtime, time-out and what else a function takes. */
export interface SingletonFunctionProps extends SingletonProps, Omit<FunctionOptions, Settled> {
  /** The code, with a handler that is wrapped under `leaseName`. */
  readonly code: Code;
  /**
   * The handler in `code`.
   * @default index.handler
   */
  readonly handler?: string;
  /**
   * Node.js 22 or later.
   * @default Runtime.NODEJS_24_X
   */
  readonly runtime?: Runtime;
  /**
   * How long a run may take.
   * @default Duration.minutes(1)
   */
  readonly timeout?: Duration;
  /**
   * Where it logs.
   * @default - Lambda's usual log group, kept for a month
   */
  readonly logGroup?: ILogGroup;
}

/** Below it the `Date` header of DynamoDB's answers, of whole seconds, cannot prove a clock. */
const SHORTEST_PROVEN_SECONDS = 7.5;
/** The tolerance that `withLease` keeps unless told otherwise. */
const TOLERANCE_SECONDS = 5;

/** A function that is a singleton, and what belongs to it. See `SingletonFunction`, `singleton`. */
export class Singleton extends Construct {
  /** The function of which one invocation works at a time. */
  readonly function: LambdaFunction;
  /** Where its lease is kept. */
  readonly table: ILeaseTable;
  /** The key of its lease, `namespace/name`. */
  readonly lease: string;
  /** When it runs, where it has a schedule. */
  readonly schedule: Schedule | undefined;
  /** Runs that have failed, and ticks that could not be delivered. */
  readonly deadLetterQueue: IQueue;
  /** `Failing` and `Undelivered`. */
  readonly alarms: readonly Alarm[];

  /** `make` is given the construct itself, as the scope of a new function. */
  protected constructor(
    scope: Construct,
    id: string,
    make: (scope: Construct) => LambdaFunction,
    props: SingletonProps,
  ) {
    super(scope, id);
    const { leaseName, namespace = DEFAULT_NAMESPACE, leaseDuration, alarmTopic: topic } = props;
    checkLeaseName(namespace, leaseName);
    this.lease = `${namespace}/${leaseName}`;
    this.function = make(this);
    checkDuration(this, props, this.function.timeout);

    this.table = props.table ?? new LeaseTable(this, 'Leases');
    checkReach(this, this.function, this.table);
    warnOfSharedTicks(this, props);
    this.table.grantHolder(this.function, { leases: [leaseName], namespace });
    const environment = {
      LEASE_TABLE_NAME: this.table.tableName,
      LEASE_NAMESPACE: namespace,
      LEASE_NAME: leaseName,
      ...(leaseDuration === undefined
        ? {}
        : { LEASE_DURATION_SECONDS: secondsText(leaseDuration) }),
      ...periodOf(props.schedule),
    };
    for (const [name, value] of Object.entries(environment)) {
      this.function.addEnvironment(name, value);
    }
    const { deadLetterQueue, schedule } = deliver(this, this.function, {
      ...props,
      description: `Runs the holder of lease ${this.lease}`,
    });
    this.deadLetterQueue = deadLetterQueue;
    this.schedule = schedule;
    this.alarms = [
      makeAlarm(this, 'Failing', {
        metric: this.function.metricErrors({ period: Duration.minutes(5), statistic: 'Sum' }),
        description:
          `A run of the job with lease ${this.lease} has failed or timed out. Look at the logs ` +
          'of its function. Unless it is repeated, its tick is over: if that must not be missed, ' +
          'invoke the function with the event that lies in the queue of dead letters.',
        missing: 'good',
        topic,
      }),
      makeAlarm(this, 'Undelivered', {
        metric: deadLetterQueue.metricApproximateNumberOfMessagesVisible({
          period: Duration.minutes(5),
          statistic: 'Maximum',
        }),
        description:
          `Runs of the job with lease ${this.lease} lie in its queue of dead letters: they have ` +
          'failed, or their ticks could not be delivered. Read them for the reason, repeat what ' +
          'must not be missed by invoking the function, and purge the queue.',
        missing: 'good',
        topic,
      }),
    ];
  }

  /** Makes a singleton of a function that exists. */
  static of(fn: LambdaFunction, props: SingletonProps): Singleton {
    // Where nobody checks types.
    const given: object = fn;
    if (!('addEnvironment' in given)) {
      throw new Error(
        `${fn.node.path}: only a function that is made in this app can be made ` +
          'a singleton, for its environment is set; not an imported one, a version or an alias.',
      );
    }
    if (fn.node.tryFindChild('Singleton') !== undefined) {
      throw new Error(`${fn.node.path} is a singleton already; it can hold one lease.`);
    }
    return new Singleton(fn, 'Singleton', () => fn, props);
  }
}

/** Makes a scheduled singleton of a function that exists. */
export function singleton(fn: LambdaFunction, props: SingletonProps): Singleton {
  return Singleton.of(fn, props);
}

/** A new function that is a scheduled singleton. */
export class SingletonFunction extends Singleton {
  constructor(scope: Construct, id: string, props: SingletonFunctionProps) {
    super(
      scope,
      id,
      (self) => new LambdaFunction(self, 'Function', functionProps(self, props)),
      props,
    );
  }
}

function functionProps(scope: Construct, props: SingletonFunctionProps): FunctionProps {
  const given = without(props, SINGLETON_PROPS);
  return {
    handler: 'index.handler',
    runtime: RUNTIME,
    architecture: ARCHITECTURE,
    timeout: Duration.minutes(1),
    memorySize: 256,
    ...given,
    ...functionParts(scope, { ...given, inVpc: given.vpc !== undefined }),
  };
}

/** What is not for the function itself. */
const SINGLETON_PROPS = [
  'leaseName',
  'namespace',
  'table',
  'leaseDuration',
  'renewed',
  'schedule',
  'input',
  'alarmTopic',
  'retryAttempts',
  'maxEventAge',
  'deadLetterQueue',
] as const satisfies readonly (keyof SingletonProps)[];

function without<T extends object, K extends keyof T>(all: T, names: readonly K[]): Omit<T, K> {
  const kept = Object.entries(all).filter(([name]) => !names.some((other) => other === name));
  return Object.fromEntries(kept) as Omit<T, K>;
}

/** Refuses what cannot work, and warns of what cannot be proven. */
function checkDuration(scope: Construct, props: SingletonProps, timeout: Duration | undefined) {
  const { leaseDuration, renewed = true } = props;
  if (leaseDuration === undefined) {
    if (renewed) return;
    throw new Error(
      `${scope.node.path}: renewed is false without a leaseDuration; a lease without a duration ` +
        'covers the whole invocation and is never renewed. Leave renewed out.',
    );
  }
  if (isUnknown(leaseDuration)) return;
  const seconds = secondsOf(leaseDuration);
  if (seconds <= 0 || seconds > LONGEST_DURATION_SECONDS) {
    throw new Error(
      `${scope.node.path}: leaseDuration is ${seconds} s; it must be longer than 0 and at most ` +
        `${LONGEST_DURATION_SECONDS} s (366 days).`,
    );
  }
  if (!renewed && timeout !== undefined && !isUnknown(timeout)) {
    const needed = secondsOf(timeout) + TOLERANCE_SECONDS;
    if (seconds < needed) {
      throw new Error(
        `${scope.node.path}: leaseDuration (${seconds} s) is shorter than the function's ` +
          `time-out and the tolerance together (${needed} s), and renewed is false: the lease ` +
          'would expire while the work goes on. Leave leaseDuration out, so that the lease ' +
          `covers the invocation, raise it to ${needed} s, or let it be renewed.`,
      );
    }
  }
  if (seconds < SHORTEST_PROVEN_SECONDS) {
    Validations.of(scope).addWarning(
      'lambda-lease:unproven-clock',
      `leaseDuration is ${seconds} s: with less than ${SHORTEST_PROVEN_SECONDS} s the tolerance ` +
        'of clocks is so small that answers of DynamoDB cannot prove it, and exclusion rests on ' +
        "the hosts' clocks.",
    );
  }
}

/** The period of a rate. A cron expression has none. */
function periodOf(schedule: ScheduleExpression | undefined): Record<string, string> {
  const rate = /^rate\((\d+) (minute|hour|day)s?\)$/.exec(schedule?.expressionString ?? '');
  if (rate === null) return {};
  const unit = { minute: 60, hour: 3_600, day: 86_400 }[rate[2] as 'minute' | 'hour' | 'day'];
  return { LEASE_PERIOD_SECONDS: String(Number(rate[1]) * unit) };
}

/** By table and lease, the scheduled job that came first. */
const scheduled = new WeakMap<ILeaseTable, Map<string, Singleton>>();

function warnOfSharedTicks(job: Singleton, { schedule }: SingletonProps): void {
  if (schedule === undefined) return;
  const jobs = scheduled.get(job.table) ?? new Map<string, Singleton>();
  scheduled.set(job.table, jobs);
  const first = jobs.get(job.lease);
  if (first === undefined) {
    jobs.set(job.lease, job);
    return;
  }
  Validations.of(job).addWarning(
    'lambda-lease:shared-ticks',
    `It has the lease ${job.lease} of ${first.node.path}, and both are on a schedule: a tick ` +
      'that one has completed is done for the other, which skips it and all that are older. Give ' +
      'each job a leaseName of its own.',
  );
}
