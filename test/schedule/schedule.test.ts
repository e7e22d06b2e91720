// Which ticks were missed, and when the next completion is overdue: by a period, and by a function
// that tells the tick after this one.

import { describe, expect, test } from 'vitest';
import {
  missedTicks,
  MOST_MISSED,
  overdueAt,
  scheduleOf,
  type ScheduleOptions,
} from '../../src/schedule.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOON = Date.UTC(2026, 0, 31, 12);

/** The same schedule told in both ways. */
const hourly: readonly [string, ScheduleOptions][] = [
  ['periodSeconds', { periodSeconds: 3_600 }],
  ['nextTick', { nextTick: (tick) => new Date(tick.getTime() + HOUR) }],
];
/** In hours before noon. */
const missed = (options: ScheduleOptions, last: number | undefined, tickMs = NOON) =>
  missedTicks(last === undefined ? last : NOON - last * HOUR, tickMs, scheduleOf(options)).map(
    (ms) => (NOON - ms) / HOUR,
  );

describe.each(hourly)('missed ticks by %s', (_, options) => {
  test.each([
    ['no tick was ever completed', undefined, []],
    ['the last one is the one before', 1, []],
    ['one is missing', 2, [1]],
    ['three are missing', 4, [3, 2, 1]],
    ['the last one is this one', 0, []],
    ['the last one is a newer one', -5, []],
  ] as const)('when %s', (_, last, expected) => {
    expect(missed(options, last)).toEqual(expected);
  });

  test.each([1, 30, -1, -30])('are none because this one came %d s late', (seconds) => {
    expect(missed(options, 1, NOON + seconds * 1_000)).toEqual([]);
    expect(missed(options, 3, NOON + seconds * 1_000)).toEqual([2, 1]);
  });

  test('are none because the last one came late', () => {
    expect(missed(options, 1 - 1 / 3_600)).toEqual([]);
    expect(missed(options, 1 + 1 / 3_600)).toEqual([]);
    expect(missed(options, 2 + 1 / 3_600)).toEqual([1 + 1 / 3_600]);
  });

  test.each([101, 102, 500, 999, 1_000, 1_001, 1_002, 1_100, 1_101, 1_102, 5_000, 100_000])(
    'after a gap of %d hours are the newest 100, without a hole',
    (gap) => {
      const newest = Array.from({ length: MOST_MISSED }, (_, index) => MOST_MISSED - index);
      expect(missed(options, gap)).toEqual(newest.slice(-(gap - 1)));
    },
  );

  test.each([NaN, -1e300, -8.64e15, 0, 5, 0.5, 999_999_999_999, 8.64e15 + 1, 1e300, Infinity])(
    'after a garbage lastTick of %d are unknown',
    (lastMs) => {
      expect(missedTicks(lastMs, NOON, scheduleOf(options))).toEqual([]);
    },
  );

  test('after 24 years of silence are found at once', () => {
    const startedMs = performance.now();
    expect(missedTicks(1e12, NOON, scheduleOf(options))).toHaveLength(100);
    expect(performance.now() - startedMs).toBeLessThan(500);
  });
});

test('a period of a second is looked over at once, whatever the gap', () => {
  const startedMs = performance.now();
  const ticks = missedTicks(1e12 + 500, NOON, scheduleOf({ periodSeconds: 1 }));
  expect(ticks).toHaveLength(100);
  expect(ticks.at(-1)).toBe(NOON - 1_500);
  expect(performance.now() - startedMs).toBeLessThan(100);
});

test('nothing tells what was missed without a period or a function', () => {
  expect(scheduleOf({})).toBeUndefined();
  expect(missedTicks(NOON - DAY, NOON, undefined)).toEqual([]);
  expect(overdueAt(NOON, undefined, 60_000)).toBeUndefined();
});

describe('nextTick', () => {
  /** The first of each month, told by a function that is right for ticks only. */
  const monthly = (tick: Date) => {
    const next = new Date(tick);
    next.setUTCMonth(next.getUTCMonth() + 1);
    return next;
  };

  test('is asked about ticks only, for a gap of months', () => {
    const asked: string[] = [];
    const schedule = scheduleOf({
      nextTick: (tick) => {
        asked.push(tick.toISOString().slice(0, 10));
        return monthly(tick);
      },
    });
    const ticks = missedTicks(Date.UTC(2025, 8, 1), Date.UTC(2026, 2, 1), schedule);
    expect(ticks).toEqual([9, 10, 11, 12, 13].map((month) => Date.UTC(2025, month, 1)));
    expect(asked.filter((day) => !day.endsWith('-01'))).toEqual([]);
  });

  test('may be uneven: weekdays only', () => {
    const weekdays = (tick: Date) =>
      new Date(tick.getTime() + (tick.getUTCDay() === 5 ? 3 : 1) * DAY);
    const schedule = scheduleOf({ nextTick: weekdays });
    const thursday = Date.UTC(2026, 0, 1);
    expect(missedTicks(thursday, thursday + 5 * DAY, schedule)).toEqual([
      thursday + DAY,
      thursday + 4 * DAY,
    ]);
  });

  test('is asked with a Date of its own each time, which it may change', () => {
    const schedule = scheduleOf({
      nextTick: (tick) => {
        tick.setUTCHours(tick.getUTCHours() + 1);
        return tick;
      },
    });
    expect(missedTicks(NOON - 3 * HOUR, NOON, schedule)).toEqual([NOON - 2 * HOUR, NOON - HOUR]);
  });

  test.each<[string, unknown, RegExp]>([
    ['the same tick', new Date(NOON), /returned "Sat Jan 31 2026 .*must be a Date after that tick/],
    ['an earlier one', new Date(NOON - 1), /must be a Date after that tick/],
    ['an invalid Date', new Date(NaN), /returned "Invalid Date"/],
    ['a number', NOON + HOUR, /returned 1769864400000;/],
    ['a text', '2026-01-31T13:00:00Z', /returned "2026-01-31T13:00:00Z";/],
    ['a promise', Promise.resolve(new Date(NOON + HOUR)), /returned an object;/],
    ['undefined', undefined, /returned undefined;/],
  ])('that returns %s is named', (_, next, message) => {
    const schedule = scheduleOf({ nextTick: () => next as Date });
    expect(() => schedule?.next(NOON)).toThrow(
      expect.objectContaining({
        code: 'invalid-configuration',
        message: expect.stringMatching(message) as string,
      }),
    );
    expect(() => schedule?.next(NOON)).toThrow(/^nextTick\(2026-01-31T12:00:00.000Z\) /);
  });

  test('that throws is named, with its error as the cause', () => {
    const cause = new Error('bad cron');
    const schedule = scheduleOf({
      nextTick: () => {
        throw cause;
      },
    });
    expect(() => schedule?.next(NOON)).toThrow(
      expect.objectContaining({
        code: 'invalid-configuration',
        message: 'nextTick(2026-01-31T12:00:00.000Z) threw (Error: bad cron).',
        cause,
      }),
    );
  });
});

describe.each(hourly)('the next completion is overdue by %s', (_, options) => {
  test('when the tick after the next one comes', () => {
    expect(overdueAt(NOON, scheduleOf(options), undefined)).toBe(NOON + 2 * HOUR);
  });

  test('or so long after the next tick', () => {
    expect(overdueAt(NOON, scheduleOf(options), 600_000)).toBe(NOON + HOUR + 600_000);
  });
});
