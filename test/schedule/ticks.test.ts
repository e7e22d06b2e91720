// Which tick an event tells: of EventBridge Scheduler, of a rule, of the user's own function. What
// cannot be told for certain is refused by name, never taken for a tick.

import { describe, expect, test } from 'vitest';
import { isTick, checkTick, tickOf } from '../../src/schedule.ts';

const NOON_MS = Date.UTC(2026, 0, 31, 12);
const ARN = 'arn:aws:scheduler:eu-north-1:123456789012:schedule/default/nightly';

function told(value: unknown): unknown {
  try {
    return tickOf({}, () => value).timeMs;
  } catch (error) {
    return error;
  }
}

describe('the tick of an event', () => {
  test('of EventBridge Scheduler is its scheduledTime, with the schedule that told it', () => {
    const event = { scheduledTime: '2026-01-31T12:00:00Z', scheduleArn: ARN, more: 1 };
    expect(tickOf(event, undefined)).toEqual({ timeMs: NOON_MS, scheduleArn: ARN });
  });

  test.each([undefined, 7, null])('needs no scheduleArn; %s is none', (scheduleArn) => {
    const event = { scheduledTime: '2026-01-31T12:00:00Z', scheduleArn };
    expect(tickOf(event, undefined)).toEqual({ timeMs: NOON_MS });
  });

  const rule = {
    'detail-type': 'Scheduled Event',
    source: 'aws.events',
    time: '2026-01-31T12:00:00Z',
    resources: ['arn:aws:events:eu-north-1:123456789012:rule/nightly'],
    detail: {},
  };
  test('of an EventBridge rule is its time, with the rule that told it', () => {
    expect(tickOf(rule, undefined)).toEqual({ timeMs: NOON_MS, scheduleArn: rule.resources[0] });
  });

  test.each([undefined, [], 'arn', [7]])('of a rule may have as resources %j', (resources) => {
    expect(tickOf({ ...rule, resources }, undefined)).toEqual({ timeMs: NOON_MS });
  });

  test('is scheduledTime where both are there', () => {
    const event = { ...rule, scheduledTime: '2026-01-31T11:00:00Z' };
    expect(tickOf(event, undefined).timeMs).toBe(NOON_MS - 3_600_000);
  });

  test.each([
    ['undefined', undefined],
    ['null', null],
    ['a text', '2026-01-31T12:00:00Z'],
    ['a number', NOON_MS],
    ['an empty object', {}],
    ['a list', []],
    ['a message of a queue', { Records: [{ body: '{}' }] }],
    // Its time is when it happened: none of a schedule.
    ['an event of another source', { ...rule, 'detail-type': 'Object Created' }],
    ['a rule’s event without its time', { 'detail-type': 'Scheduled Event' }],
  ])('cannot be told by %s', (_, event) => {
    expect(() => tickOf(event, undefined)).toThrow(
      expect.objectContaining({
        code: 'invalid-tick',
        message: expect.stringMatching(/neither scheduledTime .*option tick/) as string,
      }),
    );
  });

  test('names the placeholder that EventBridge Scheduler has not filled in', () => {
    const event = { scheduledTime: '<aws.scheduler.scheduled-time>', scheduleArn: ARN };
    expect(() => tickOf(event, undefined)).toThrow(
      expect.objectContaining({
        code: 'invalid-tick',
        message: expect.stringMatching(
          /^scheduledTime is "<aws\.scheduler\.scheduled-time>"; .*fills that in/,
        ) as string,
      }),
    );
  });
});

describe('a time', () => {
  test.each<[string, unknown, number]>([
    ['in UTC', '2026-01-31T12:00:00Z', NOON_MS],
    ['with milliseconds', '2026-01-31T12:00:00.250Z', NOON_MS + 250],
    ['with nanoseconds', '2026-01-31T12:00:00.250999999Z', NOON_MS + 250],
    ['without seconds', '2026-01-31T12:00Z', NOON_MS],
    ['with an offset', '2026-01-31T13:30:00+01:30', NOON_MS],
    ['with an offset without a colon', '2026-01-31T11:00:00-0100', NOON_MS],
    ['on another day than in UTC', '2026-02-01T01:00:00+13:00', NOON_MS],
    ['on the leap day', '2024-02-29T00:00:00Z', Date.UTC(2024, 1, 29)],
    ['as a Date', new Date(NOON_MS), NOON_MS],
    ['as epoch ms', NOON_MS, NOON_MS],
    ['just after September 2001', 1_000_000_000_000, 1_000_000_000_000],
  ])('%s is a tick', (_, value, ms) => {
    expect(told(value)).toBe(ms);
  });

  test.each<[string, unknown, RegExp]>([
    ['of seconds', NOON_MS / 1_000, /is 1769860800; .*Is it in seconds\?/],
    ['of microseconds', NOON_MS * 1_000_000, /must be whole epoch milliseconds/],
    ['of half a millisecond', NOON_MS + 0.5, /must be whole epoch milliseconds/],
    ['NaN', NaN, /is NaN/],
    ['Infinity', Infinity, /is Infinity/],
    ['of an invalid Date', new Date('whenever'), /is NaN/],
    ['of a Date of 1970', new Date(0), /is 0; /],
    ['of a text of 1970', '1970-01-01T00:00:00Z', /no earlier than 2001/],
    ['of the year 26', '0026-01-31T12:00:00Z', /no earlier than 2001/],
    ['on February 30th', '2026-02-30T12:00:00Z', /is "2026-02-30T12:00:00Z"; it must be a time/],
    ['on a 29th of February that is none', '2025-02-29T12:00:00Z', /it must be a time/],
    ['on April 31st', '2026-04-31T12:00:00Z', /it must be a time/],
    ['on day 0', '2026-01-00T12:00:00Z', /it must be a time/],
    ['in month 13', '2026-13-01T12:00:00Z', /it must be a time/],
    ['at 25 o’clock', '2026-01-31T25:00:00Z', /it must be a time/],
    ['without a zone', '2026-01-31T12:00:00', /with its zone/],
    ['without a time', '2026-01-31', /it must be a time/],
    ['with blanks', ' 2026-01-31T12:00:00Z', /it must be a time/],
    ['of digits', String(NOON_MS), /it must be a time/],
    ['in words', 'Sat, 31 Jan 2026 12:00:00 GMT', /it must be a time/],
    ['of nothing', '', /is ""; it must be a time/],
    ['undefined', undefined, /is undefined; it must be a time/],
    ['null', null, /is null; it must be a time/],
    ['that is a promise', Promise.resolve(NOON_MS), /is an object; it must be a time/],
    ['that is true', true, /is true; it must be a time/],
    ['that is a bigint', BigInt(NOON_MS), /it must be a time/],
  ])('%s is refused', (_, value, message) => {
    expect(told(value)).toMatchObject({ code: 'invalid-tick', message });
    expect((told(value) as Error).message).toMatch(message);
    expect((told(value) as Error).message).toMatch(/^The time that the option tick returned is /);
  });

  test('that a function throws over is an error with that one as its cause', () => {
    const cause = new TypeError('no detail');
    const tell = () => {
      throw cause;
    };
    expect(() => tickOf({ scheduledTime: '2026-01-31T12:00:00Z' }, tell)).toThrow(
      expect.objectContaining({
        code: 'invalid-tick',
        message: 'The option tick threw (TypeError: no detail).',
        cause,
      }),
    );
  });
});

describe('a tick ahead of the clock', () => {
  test.each([-31_536_000_000, -1, 0, 30_000, 60_000])('by %d ms is let through', (aheadMs) => {
    expect(() => checkTick({ timeMs: NOON_MS + aheadMs }, NOON_MS)).not.toThrow();
  });

  test('by more than a minute is refused: it would make all before it "done"', () => {
    expect(() => checkTick({ timeMs: NOON_MS + 90_000 }, NOON_MS + 0.5)).toThrow(
      expect.objectContaining({
        code: 'invalid-tick',
        message: expect.stringMatching(
          /^The tick 2026-01-31T12:01:30.000Z is 90 s ahead .*12:00:00.000Z.*at most 60 s/,
        ) as string,
      }),
    );
  });
});

test.each([undefined, NaN, Infinity, -1, 0, 999_999_999_999, NOON_MS + 0.5, 8.64e15 + 1, 1e300])(
  'a number in a record that no tick can be: %s',
  (ms) => {
    expect(isTick(ms)).toBe(false);
  },
);
