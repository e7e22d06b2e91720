// A scheduled job as a Lambda handler: wraps it so that it runs once for each tick, one run at a
// time, however often its event is delivered.

import type { LambdaContext } from './invocation-options.ts';
import { checkFilled, invalid, show } from './options.ts';
import type { Skipped } from './refusal.ts';
import { ScheduledJobs, type JobRun, type ScheduledLease } from './scheduled-job.ts';
import type { ScheduledJobOptions } from './scheduled-options.ts';
import { provide } from './with-lease.ts';

/** Options of `scheduledSingleton`. */
export interface ScheduledSingletonOptions<
  TEvent,
  TContext,
  TKey extends string = 'lease',
> extends ScheduledJobOptions<TEvent, TContext> {
  /** Under which name the handler finds its lease in the context. Default `lease`. */
  readonly contextKey?: TKey;
  /**
   * What to do about ticks that were missed, where `periodSeconds` or `nextTick` tells which:
   * `none` (the default) runs for the present one only and shows the others in `lease.tick.missed`;
   * `once` runs for the newest of them first; `each` for every one of them first, oldest first,
   * while the invocation has time for it. What there is no time for, this tick included, is left to
   * the next invocation: the handler's answer is that of the last run, and a warning says so.
   */
  readonly catchUp?: 'none' | 'once' | 'each';
}

/** The context of the handler: the given one, with the lease in it. */
export type ScheduledSingletonContext<TContext, TKey extends string = 'lease'> = TContext &
  Readonly<Record<TKey, ScheduledLease>>;

/**
 * Wraps `handler` so that it runs once for each tick of its schedule, one run at a time. The tick
 * is the scheduled time that the event tells, not the time of its delivery.
 *
 * An event whose tick, or a newer one, has been completed is answered with a `Skipped`, whatever
 * `whenHeld` says; that is for one that comes while another run is at work. A run that throws
 * leaves its tick open, so that the retry runs; so does one that was killed, or told to stop.
 *
 * Not promised without `lease.completeTick()`: that a run which was killed had no effect yet. Its
 * tick runs again.
 *
 * @throws LeaseError `invalid-configuration`, at once, for options that cannot work; from the
 * wrapped handler `invalid-tick` for an event that tells no tick, or one in the future.
 */
export function scheduledSingleton<
  TEvent,
  TResult,
  TContext extends LambdaContext = LambdaContext,
  TKey extends string = 'lease',
>(
  options: ScheduledSingletonOptions<TEvent, TContext, TKey>,
  handler: (
    event: TEvent,
    context: ScheduledSingletonContext<TContext, TKey>,
  ) => Promise<TResult> | TResult,
): (event: TEvent, context: TContext) => Promise<TResult | Skipped> {
  if (typeof handler !== 'function') {
    throw invalid('scheduledSingleton needs the handler as its second argument.');
  }
  const jobs = new ScheduledJobs('scheduledSingleton', options, ['contextKey', 'catchUp']);
  const { contextKey = 'lease', catchUp = 'none' } = options;
  checkFilled('contextKey', contextKey);
  if (!['none', 'once', 'each'].includes(catchUp)) {
    throw invalid(`catchUp is ${show(catchUp)}; it must be "none", "once" or "each".`);
  }
  if (catchUp !== 'none' && options.periodSeconds === undefined && options.nextTick === undefined) {
    throw invalid('catchUp needs periodSeconds or nextTick beside it: which ticks were missed.');
  }

  return async (event, context) => {
    const opened = await jobs.open(event, context);
    if (opened.kind === 'skipped') return opened.result;
    const { run } = opened;
    try {
      const result = await runAll(run, catchUp, context, (lease) => {
        const leased = provide(context, contextKey, lease);
        return handler(event, leased as ScheduledSingletonContext<TContext, TKey>);
      });
      await run.settle('completed');
      return result;
    } catch (error) {
      await run.settle('failed', error);
      throw error;
    }
  };
}

/** The run for the tick itself is the last one; its result is what the handler answers. */
async function runAll<TResult>(
  run: JobRun,
  catchUp: 'none' | 'once' | 'each',
  context: Partial<LambdaContext> | undefined,
  work: (lease: ScheduledLease) => Promise<TResult> | TResult,
): Promise<TResult> {
  const missed = run.missed();
  const before = catchUp === 'each' ? missed : catchUp === 'once' ? missed.slice(-1) : [];
  const ticks = [...before, run.tickMs];
  let longestMs = 0;
  for (const [index, tickMs] of ticks.entries()) {
    const undone = missed.filter((ms) => ms < tickMs && !before.includes(ms));
    const startMs = remainingMs(context);
    const result = await work(run.begin(tickMs, undone));
    longestMs = Math.max(longestMs, startMs - remainingMs(context));
    const isLast = index === ticks.length - 1;
    if (isLast) return result;
    // What there is no time for is left to the next invocation, which will find it missed.
    if (remainingMs(context) < 2 * longestMs) {
      run.leave(ticks.slice(index + 1));
      return result;
    }
    await run.completed();
  }
  throw new Error('There is a run for the tick itself.');
}

function remainingMs(context: Partial<LambdaContext> | undefined): number {
  return context?.getRemainingTimeInMillis?.() ?? Infinity;
}
