// Ticks: one scheduled time of a job each. Where an event tells it, which were missed, and when the
// next completion is overdue. Times in epoch ms. Reads no clock.

import { describeError, LeaseError } from './errors.ts';
import { isCalendarTime, isoTime } from './lease.ts';
import { invalid, show } from './options.ts';

/** What a run is told of its tick. */
export interface Tick {
  /** The scheduled time. */
  readonly time: Date;
  /** Which schedule or rule told it, where the event says so. */
  readonly scheduleArn?: string;
  /** The last tick that was completed before; absent for a job that has never completed one. */
  readonly lastTick?: Date;
  /**
   * The ticks between that one and this, oldest first, that nobody has completed. Known where
   * `periodSeconds` or `nextTick` is given; at most the newest 100.
   */
  readonly missed: readonly Date[];
}

export interface TickTime {
  readonly timeMs: number;
  readonly scheduleArn?: string;
}

/** A tick further ahead than this is a mistake, or a clock that is wrong: no schedule is early. */
const LONGEST_AHEAD_MS = 60_000;
/** September 2001 in ms; March 1973 in seconds. */
const LEAST_PLAUSIBLE_MS = 1e12;
export const MOST_MISSED = 100;

const ISO = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)$/;

/**
 * The tick of an event, told by itself or by the user's own function.
 *
 * @throws LeaseError `invalid-tick` when it cannot be told.
 */
export function tickOf(event: unknown, tell: (() => unknown) | undefined): TickTime {
  return tell === undefined ? tickOfEvent(event) : tickOfFunction(tell);
}

/**
 * The input of an EventBridge Scheduler schedule with `scheduledTime`
 * (and `scheduleArn`), or the scheduled event of an EventBridge rule with `time`.
 */
function tickOfEvent(event: unknown): TickTime {
  const fields = typeof event === 'object' && event !== null ? event : {};
  const text = (name: string): unknown => Reflect.get(fields, name);
  if ('scheduledTime' in fields) {
    const arn = text('scheduleArn');
    return {
      timeMs: parseTime('scheduledTime', fields.scheduledTime),
      ...(typeof arn === 'string' ? { scheduleArn: arn } : {}),
    };
  }
  if (text('detail-type') === 'Scheduled Event' && 'time' in fields) {
    const resources = text('resources');
    const arn: unknown = Array.isArray(resources) ? resources[0] : undefined;
    return {
      timeMs: parseTime('time', fields.time),
      ...(typeof arn === 'string' ? { scheduleArn: arn } : {}),
    };
  }
  throw new LeaseError(
    'invalid-tick',
    'The event tells no tick: it has neither scheduledTime (the input of an EventBridge ' +
      'Scheduler schedule: {"scheduledTime": "<aws.scheduler.scheduled-time>", "scheduleArn": ' +
      '"<aws.scheduler.schedule-arn>"}) nor the time of a rule\'s "Scheduled Event". For other ' +
      'events give the option tick.',
  );
}

/** What a user's own `tick` returned or threw. */
function tickOfFunction(tell: () => unknown): TickTime {
  let told: unknown;
  try {
    told = tell();
  } catch (error) {
    throw new LeaseError('invalid-tick', `The option tick threw (${describeError(error)}).`, {
      cause: error,
    });
  }
  return { timeMs: parseTime('The time that the option tick returned', told) };
}

/**
 * @throws LeaseError `invalid-tick` for a tick in the future: completing it would make every one
 * until then "done".
 */
export function checkTick({ timeMs }: TickTime, nowMs: number): void {
  if (timeMs <= nowMs + LONGEST_AHEAD_MS) return;
  throw new LeaseError(
    'invalid-tick',
    `The tick ${isoTime(timeMs)} is ${Math.round((timeMs - nowMs) / 1_000)} s ahead of this ` +
      `machine's clock (${isoTime(Math.floor(nowMs))}); it must be at most ` +
      `${LONGEST_AHEAD_MS / 1_000} s ahead. Is it a time to come, or is the clock wrong?`,
  );
}

function parseTime(what: string, value: unknown): number {
  const ms = value instanceof Date ? value.getTime() : value;
  if (typeof ms === 'number') {
    if (Number.isSafeInteger(ms) && ms >= LEAST_PLAUSIBLE_MS && isCalendarTime(ms)) return ms;
    throw new LeaseError(
      'invalid-tick',
      `${what} is ${String(ms)}; a number must be whole epoch milliseconds from ` +
        `${LEAST_PLAUSIBLE_MS} on. Is it in seconds?`,
    );
  }
  const match = typeof ms === 'string' ? ISO.exec(ms) : null;
  const parsed = match === null ? NaN : Date.parse(match[0]);
  // The 30th of February is not the 2nd of March.
  const day = match === null ? NaN : Date.UTC(Number(match[1]), Number(match[2]) - 1);
  const days = new Date(day);
  days.setUTCDate(Number(match?.[3]));
  if (Number.isFinite(parsed) && days.getUTCMonth() + 1 === Number(match?.[2])) return parsed;
  throw new LeaseError(
    'invalid-tick',
    `${what} is ${show(value)}; it must be a time in ISO 8601 with its zone, such as ` +
      '"2026-01-31T12:00:00Z", or a Date.' +
      (typeof value === 'string' && value.startsWith('<aws.scheduler.')
        ? ' EventBridge Scheduler fills that in; whatever sent this event has not.'
        : ''),
  );
}

/** A schedule's ticks, in epoch ms. */
export interface Schedule {
  /** The tick after this one. */
  next(tickMs: number): number;
  /** Where to go on from: a tick at or before `fromMs`, but not before `lastMs`. */
  skipTo(fromMs: number, lastMs: number): number;
}

export interface ScheduleOptions {
  readonly periodSeconds?: number;
  readonly nextTick?: (tick: Date) => Date;
}

/** Of options that have been checked. Undefined where nothing tells. */
export function scheduleOf({ periodSeconds, nextTick }: ScheduleOptions): Schedule | undefined {
  if (periodSeconds !== undefined) {
    const periodMs = Math.round(periodSeconds * 1_000);
    return {
      next: (tickMs) => tickMs + periodMs,
      skipTo: (fromMs, lastMs) =>
        lastMs + Math.max(0, Math.floor((fromMs - lastMs) / periodMs)) * periodMs,
    };
  }
  if (nextTick === undefined) return undefined;
  return {
    next: (tickMs) => {
      const next: unknown = nextTick(new Date(tickMs));
      const nextMs = next instanceof Date ? next.getTime() : NaN;
      if (nextMs > tickMs && isCalendarTime(nextMs)) return nextMs;
      throw invalid(
        `nextTick(${isoTime(tickMs)}) returned ` +
          `${show(next instanceof Date ? String(next) : next)}; it must be a Date after that tick.`,
      );
    },
    skipTo: (fromMs, lastMs) => Math.max(fromMs, lastMs),
  };
}

/** When the completion of the tick after this one is overdue. Default: by the tick after that. */
export function overdueAt(
  tickMs: number,
  schedule: Schedule | undefined,
  overdueAfterMs: number | undefined,
): number | undefined {
  if (schedule === undefined) return undefined;
  const nextMs = schedule.next(tickMs);
  return overdueAfterMs === undefined ? schedule.next(nextMs) : nextMs + overdueAfterMs;
}

/** Ticks further back than this are not looked for one by one. */
const LONGEST_LOOK_BACK_MS = 31 * 86_400_000;

/**
 * The ticks after `lastMs` and before `tickMs`, oldest first: the newest MOST_MISSED of them.
 * `all` is false when there may be more.
 */
export function missedTicks(
  lastMs: number | undefined,
  tickMs: number,
  schedule: Schedule | undefined,
): { readonly ticks: readonly number[]; readonly all: boolean } {
  if (lastMs === undefined || schedule === undefined) return { ticks: [], all: true };
  const ticks: number[] = [];
  const fromMs = schedule.skipTo(tickMs - LONGEST_LOOK_BACK_MS, lastMs);
  let all = fromMs === lastMs;
  for (let at = schedule.next(fromMs); at < tickMs; at = schedule.next(at)) {
    ticks.push(at);
    if (ticks.length <= MOST_MISSED) continue;
    ticks.shift();
    all = false;
  }
  return { ticks, all };
}
