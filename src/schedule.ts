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

/** Whether a number may be a tick at all; a record may carry any as its lastTick. */
export function isTick(ms: number | undefined): ms is number {
  return Number.isSafeInteger(ms) && Number(ms) >= LEAST_PLAUSIBLE_MS && isCalendarTime(Number(ms));
}

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
    return toldBy(text('scheduleArn'), parseTime('scheduledTime', fields.scheduledTime));
  }
  if (text('detail-type') === 'Scheduled Event' && 'time' in fields) {
    const resources = text('resources');
    const arn: unknown = Array.isArray(resources) ? resources[0] : undefined;
    return toldBy(arn, parseTime('time', fields.time));
  }
  throw new LeaseError(
    'invalid-tick',
    'The event tells no tick: it has neither scheduledTime (the input of an EventBridge ' +
      'Scheduler schedule: {"scheduledTime": "<aws.scheduler.scheduled-time>", "scheduleArn": ' +
      '"<aws.scheduler.schedule-arn>"}) nor the time of a rule\'s "Scheduled Event". For other ' +
      'events give the option tick.',
  );
}

function toldBy(arn: unknown, timeMs: number): TickTime {
  return { timeMs, ...(typeof arn === 'string' ? { scheduleArn: arn } : {}) };
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
    if (isTick(ms)) return ms;
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
  if (isTick(parsed) && days.getUTCMonth() + 1 === Number(match?.[2])) return parsed;
  throw new LeaseError(
    'invalid-tick',
    `${what} is ${show(value)}; it must be a time in ISO 8601 with its zone, such as ` +
      '"2026-01-31T12:00:00Z", or a Date; no earlier than 2001.' +
      (typeof value === 'string' && value.startsWith('<aws.scheduler.')
        ? ' EventBridge Scheduler fills that in; whatever sent this event has not.'
        : ''),
  );
}

/** A schedule's ticks, in epoch ms. */
export interface Schedule {
  /** The tick after this one. */
  next(tickMs: number): number;
  /** Where to go on from instead of `lastMs`, when `tickMs` is too many steps away. */
  skip(lastMs: number, tickMs: number): number;
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
      skip: (lastMs, tickMs) =>
        lastMs + Math.max(0, Math.floor((tickMs - lastMs) / periodMs) - MOST_MISSED - 1) * periodMs,
    };
  }
  if (nextTick === undefined) return undefined;
  return {
    next: (tickMs) => {
      const next = ask(nextTick, tickMs);
      const nextMs = next instanceof Date ? next.getTime() : NaN;
      if (nextMs > tickMs && isCalendarTime(nextMs)) return nextMs;
      throw invalid(
        `nextTick(${isoTime(tickMs)}) returned ` +
          `${show(next instanceof Date ? String(next) : next)}; it must be a Date after that tick.`,
      );
    },
    // Who has so many ticks has one again soon after any moment.
    skip: (lastMs, tickMs) => Math.max(lastMs, tickMs - LONGEST_LOOK_BACK_MS),
  };
}

function ask(nextTick: (tick: Date) => unknown, tickMs: number): unknown {
  try {
    return nextTick(new Date(tickMs));
  } catch (error) {
    throw new LeaseError(
      'invalid-configuration',
      `nextTick(${isoTime(tickMs)}) threw (${describeError(error)}).`,
      { cause: error },
    );
  }
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

/** So many ticks in a row are looked for one by one; those further back than that are not. */
const MOST_STEPS = 1_000;
const LONGEST_LOOK_BACK_MS = 31 * 86_400_000;

/**
 * The ticks after `lastMs` and before `tickMs`, oldest first: the newest MOST_MISSED of them. Of
 * the schedule's ticks the one nearest to `tickMs` is this tick: a rule may be late by a second.
 */
export function missedTicks(
  lastMs: number | undefined,
  tickMs: number,
  schedule: Schedule | undefined,
): readonly number[] {
  if (!isTick(lastMs) || schedule === undefined) return [];
  const ticks: number[] = [];
  let at = schedule.next(lastMs);
  for (let step = 1; at < tickMs; step++) {
    const following = schedule.next(at);
    if (tickMs - at <= following - tickMs) break;
    ticks.push(at);
    if (ticks.length > MOST_MISSED) ticks.shift();
    at = following;
    const fromMs = step === MOST_STEPS ? schedule.skip(at, tickMs) : at;
    if (fromMs === at) continue;
    ticks.length = 0;
    at = schedule.next(fromMs);
  }
  return ticks;
}
