// A stage for scheduled jobs: hours as ticks, and a job that remembers for which of them it ran.

import type { Metrics } from '../../src/metrics.ts';
import { lastRunOf } from '../../src/job.ts';
import { isoTime } from '../../src/lease.ts';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import {
  scheduledSingleton,
  type ScheduledSingletonOptions,
} from '../../src/scheduled-singleton.ts';
import { Stage } from '../handler/stage.ts';

export const HOUR = 3_600_000;
export const START = Date.UTC(2026, 0, 1);
export const SCHEDULE_ARN = 'arn:aws:scheduler:eu-north-1:123456789012:schedule/default/job';

export interface TickEvent {
  readonly scheduledTime: string;
  readonly scheduleArn?: string;
}
export type Context = ReturnType<Stage['context']>;
export type Options = Partial<ScheduledSingletonOptions<TickEvent, Context>>;
export type Work = (lease: ScheduledLease, event: TickEvent) => unknown;

/** The tick so many hours after the start. */
export function tick(hour: number): TickEvent {
  return { scheduledTime: isoTime(START + hour * HOUR), scheduleArn: SCHEDULE_ARN };
}

export function hourOf(time: Date | number): number {
  return (Number(time) - START) / HOUR;
}

export class JobStage extends Stage {
  /** The hours of the ticks for which the work began. */
  readonly ran: number[] = [];
  readonly counted: string[] = [];
  readonly metrics: Metrics = {
    addMetric: (name, unit, value) => {
      this.counted.push(`${name} ${value}`);
      if (unit !== 'Count') throw new Error(`${name} has the unit ${unit}.`);
    },
  };

  job(options: Options = {}, work: Work = () => 'done') {
    return scheduledSingleton<TickEvent, unknown, Context>(
      { ...this.options, name: 'job', metrics: this.metrics, ...options },
      (event, { lease }) => {
        this.ran.push(hourOf(lease.tick.time));
        return work(lease, event);
      },
    );
  }

  /** Lets time pass until so many hours, and minutes, after the start. */
  async reach(hour: number, minutes = 0): Promise<void> {
    await this.clock.advance(START + hour * HOUR + minutes * 60_000 - this.nowMs);
  }

  /** What the record says of the last run; times in ms after the last completed tick, or the start. */
  get run() {
    return lastRunOf(this.record('job'));
  }

  /** The hour of the last completed tick. */
  get lastTick(): number | undefined {
    const { lastTickMs } = this.record('job');
    return lastTickMs === undefined ? undefined : hourOf(lastTickMs);
  }
}
