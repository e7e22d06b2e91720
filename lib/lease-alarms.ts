// What is worth waking somebody for. Each alarm says what missing data means and what to do; they
// notify one by one, so that this reaches whoever is woken. The composite is for everything that
// wants one answer: a deployment that rolls back, a status page.

import { Duration } from 'aws-cdk-lib';
import {
  AlarmRule,
  CompositeAlarm,
  MathExpression,
  type Alarm,
  type AlarmBase,
  type MetricOptions,
} from 'aws-cdk-lib/aws-cloudwatch';
import type { ITopic } from 'aws-cdk-lib/aws-sns';
import { Construct } from 'constructs';
import { makeAlarm, type AlarmProps } from './alarm.ts';
import type { ILeaseTable } from './lease-table.ts';
import type { LifecycleMonitor } from './lifecycle-monitor.ts';
import type { Singleton } from './singleton-function.ts';

/** What the alarms watch, and whom they tell. */
export interface LeaseAlarmsProps {
  /** The table whose throttling is watched. */
  readonly table: ILeaseTable;
  /** The monitor whose metrics are watched. */
  readonly monitor: LifecycleMonitor;
  /**
   * Jobs whose own alarms belong to the composite. Those tell each job's `alarmTopic`.
   * @default - none
   */
  readonly jobs?: readonly Singleton[];
  /**
   * Who is told, also when it is over.
   * @default - nobody
   */
  readonly topic?: ITopic;
  /**
   * How many changes of leaders within ten minutes are too many. A job that is seen at work is a
   * new leader at each run.
   * @default - 10, and 10 more for each of the jobs, which start at most once a minute
   */
  readonly flappingThreshold?: number;
}

const MINUTE = Duration.minutes(1);
const FLAPPING_WINDOW = Duration.minutes(10);
const LOOK = 'the widget of the dashboard shows which';

/** A rule has at most 100 alarms and 10,240 characters, of which an alarm's ARN takes up to 200. */
const ALARMS_IN_A_RULE = 50;

/** Alarms on a table of leases and on the monitor that watches it. */
export class LeaseAlarms extends Construct {
  /** All of them, those of the jobs included; the composite apart. */
  readonly alarms: readonly Alarm[];
  /** Whether any of them has gone off. */
  readonly composite: CompositeAlarm;

  constructor(scope: Construct, id: string, props: LeaseAlarmsProps) {
    super(scope, id);
    const { table, monitor, jobs = [], topic, flappingThreshold = 10 + 10 * jobs.length } = props;
    const alarm = (name: string, rest: AlarmProps) => makeAlarm(this, name, { topic, ...rest });
    const most = { statistic: 'Maximum', period: MINUTE } satisfies MetricOptions;

    this.alarms = [
      alarm('ExpiredHolder', {
        metric: monitor.metric('LeasesNotReady', most),
        periods: 2,
        missing: 'good',
        description:
          'A holder has let its lease expire and has been silent for longer than the grace ' +
          `period, or says that it is not ready; ${LOOK}. Look at its log stream: it crashed, ` +
          'hangs, or cannot reach DynamoDB. It is evicted after the toleration.',
      }),
      alarm('Leaderless', {
        metric: monitor.metric('LeasesLeaderless', most),
        periods: 2,
        missing: 'good',
        description:
          "A leader's lease was taken from a dead holder, and nobody has taken it since; " +
          `${LOOK}. Start a candidate, or invoke the job. Suspend the lease of a job that is to ` +
          'stay away: it is not counted then.',
      }),
      alarm('Flapping', {
        metric: monitor.metric('LeaderChanges', { statistic: 'Sum', period: FLAPPING_WINDOW }),
        atLeast: flappingThreshold,
        missing: 'good',
        description:
          `Leases changed hands ${flappingThreshold} times or more within ten minutes. Look for ` +
          'leaders that crash after a while, durations too short for the work, or an event loop ' +
          'that is blocked for longer than a renewal may take.',
      }),
      alarm('MissedSchedule', {
        metric: monitor.metric('SchedulesMissed', { period: Duration.minutes(5) }),
        missing: 'good',
        description:
          'A scheduled job did not complete in time. Look whether its schedule is enabled, ' +
          'whether its runs fail, and who holds its lease meanwhile.',
      }),
      alarm('MassExpiry', {
        metric: new MathExpression({
          expression: 'partial + full',
          usingMetrics: {
            partial: monitor.metric('ZonesPartiallySilent', most),
            full: monitor.metric('ZonesSilent', most),
          },
          label: 'Zones in which most heartbeats are silent',
          period: MINUTE,
        }),
        missing: 'good',
        description:
          'Most or all heartbeats of a zone are silent at once: the network or DynamoDB is ' +
          'likelier at fault than the workers. Evictions there are slowed down meanwhile. Look ' +
          "at the zone's network, and at the AWS Health Dashboard.",
      }),
      alarm('ThrottledTable', {
        metric: new MathExpression({
          expression: 'FILL(reads, 0) + FILL(writes, 0)',
          usingMetrics: {
            reads: table.metric('ReadThrottleEvents', { statistic: 'Sum', period: MINUTE }),
            writes: table.metric('WriteThrottleEvents', { statistic: 'Sum', period: MINUTE }),
          },
          label: 'Throttled requests to the table',
          period: MINUTE,
        }),
        periods: 2,
        missing: 'good',
        description:
          'DynamoDB throttles requests to the table of leases: renewals may be lost. One lease ' +
          'takes at most 1,000 writes a second. Look for a contender in a tight loop, for limits ' +
          'on the table, and at the account quotas.',
      }),
      alarm('MonitorSilent', {
        metric: monitor.metric('MonitorPass'),
        below: 1,
        periods: 3,
        // Nobody would report anything else any more.
        missing: 'bad',
        description:
          'The lifecycle monitor has made no pass for three minutes: no holder is watched. ' +
          'Leases go on without it. Look at its logs, its queue of dead letters and its schedule.',
      }),
      alarm('MonitorBlind', {
        metric: monitor.metric('MonitorBlind'),
        periods: 3,
        missing: 'good',
        description:
          'The lifecycle monitor cannot read the table, or its clock is wrong: it passes no ' +
          'verdict. Its log says which: permissions, throttling, a DynamoDB outage, or time.',
      }),
      alarm('EventsUnpublished', {
        metric: monitor.metric('EventsUnpublished', most),
        periods: 5,
        missing: 'good',
        description:
          'Events have not reached EventBridge for five minutes. They are kept and published ' +
          'again. Look whether the bus exists and the monitor may put events on it.',
      }),
      ...jobs.flatMap((job) => job.alarms),
    ];
    this.composite = new CompositeAlarm(this, 'Any', {
      alarmRule: AlarmRule.anyOf(...inGroups(this, this.alarms)),
      alarmDescription: `Something is wrong with the leases in ${table.tableName}: see its alarms.`,
    });
  }
}

/** The alarms themselves or, where one rule cannot name so many, composites of them. */
function inGroups(scope: Construct, alarms: readonly Alarm[]): readonly AlarmBase[] {
  if (alarms.length <= ALARMS_IN_A_RULE) return alarms;
  const groups = Math.ceil(alarms.length / ALARMS_IN_A_RULE);
  return Array.from({ length: groups }, (_, group) => {
    const start = group * ALARMS_IN_A_RULE;
    return new CompositeAlarm(scope, `Any${group}`, {
      alarmRule: AlarmRule.anyOf(...alarms.slice(start, start + ALARMS_IN_A_RULE)),
      alarmDescription: 'Something is wrong with the leases: see its alarms.',
    });
  });
}
