// What may be set for a scheduled job, besides what any lease of an invocation takes.

import type { InvocationOptions } from './invocation-options.ts';
import type { Metrics } from './metrics.ts';
import { checkMethods, invalid, seconds, show } from './options.ts';

export interface ScheduledJobOptions<TEvent, TContext> extends Omit<
  InvocationOptions<TEvent, TContext>,
  'sticky' | 'slots'
> {
  /**
   * The tick of an event that is neither the input of an EventBridge Scheduler schedule with
   * `scheduledTime` nor the event of an EventBridge rule: a Date, ISO 8601, or epoch ms.
   */
  readonly tick?: (event: TEvent, context: TContext) => Date | string | number;
  /** The schedule's period, at least 1. With it, missed ticks and overdue completions are known. */
  readonly periodSeconds?: number;
  /** The same for a schedule without a period: the tick after this one. */
  readonly nextTick?: (tick: Date) => Date;
  /**
   * How long after the next tick its completion is overdue: then the lifecycle monitor reports
   * "Schedule Missed". Default: at the tick after that. Needs `periodSeconds` or `nextTick`.
   */
  readonly overdueAfterSeconds?: number;
  /**
   * After a run that failed, nobody may take the lease for so long; doubled with each failure in a
   * row. A retry that comes sooner is skipped. Default: no rest.
   */
  readonly failureBackoffSeconds?: number;
  /** What the doubling ends at. Default 3600. */
  readonly maxFailureBackoffSeconds?: number;
  /**
   * Counts `TickCompleted`, `TickFailed`, `TickSkipped` (it was done already, or the job rests or
   * is suspended), `TickOverrun` (an earlier run was still at work) and `TicksMissed`. Powertools'
   * Metrics, say.
   */
  readonly metrics?: Metrics;
}

export const JOB_OPTIONS = [
  'tick',
  'periodSeconds',
  'nextTick',
  'overdueAfterSeconds',
  'failureBackoffSeconds',
  'maxFailureBackoffSeconds',
  'metrics',
] as const satisfies readonly (keyof ScheduledJobOptions<unknown, unknown>)[];

export const DEFAULT_MAX_BACKOFF_SECONDS = 3_600;

/** @throws LeaseError `invalid-configuration` for options that cannot work. */
export function checkJobOptions<TEvent, TContext>(
  options: ScheduledJobOptions<TEvent, TContext>,
): void {
  if ('sticky' in options && options.sticky !== undefined) {
    throw invalid('sticky is not possible for a scheduled job: each tick is a tenure of its own.');
  }
  if ('slots' in options && options.slots !== undefined) {
    throw invalid('slots are not possible for a scheduled job: one run completes a tick.');
  }
  for (const name of ['tick', 'nextTick'] as const) {
    const value: unknown = options[name];
    if (value === undefined || typeof value === 'function') continue;
    throw invalid(`${name} is ${show(value)}; it must be a function.`);
  }
  const period = seconds(options, 'periodSeconds');
  if (period !== undefined && period < 1) {
    throw invalid(`periodSeconds is ${period}; it must be at least 1.`);
  }
  if (period !== undefined && options.nextTick !== undefined) {
    throw invalid('periodSeconds and nextTick exclude each other: give one of them.');
  }
  const known = period !== undefined || options.nextTick !== undefined;
  if (seconds(options, 'overdueAfterSeconds') !== undefined && !known) {
    throw invalid('overdueAfterSeconds needs periodSeconds or nextTick beside it.');
  }
  const backoff = seconds(options, 'failureBackoffSeconds');
  const longest = seconds(options, 'maxFailureBackoffSeconds');
  if (longest !== undefined && backoff === undefined) {
    throw invalid('maxFailureBackoffSeconds needs failureBackoffSeconds beside it.');
  }
  if (backoff !== undefined && backoff > (longest ?? DEFAULT_MAX_BACKOFF_SECONDS)) {
    throw invalid(
      `failureBackoffSeconds is ${backoff}; it must be at most maxFailureBackoffSeconds ` +
        `(${longest ?? DEFAULT_MAX_BACKOFF_SECONDS}).`,
    );
  }
  if (backoff !== undefined && options.trustClocks === false) {
    throw invalid('failureBackoffSeconds and trustClocks: false exclude each other.');
  }
  checkMethods('metrics', options.metrics, ['addMetric']);
}
