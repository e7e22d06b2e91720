// Options of a scheduled job that cannot work: refused at once, by name, value and rule.

import { describe, expect, test } from 'vitest';
import { scheduledSingleton } from '../../src/scheduled-singleton.ts';

const make = (options: object, work: unknown = () => 1) =>
  scheduledSingleton({ name: 'job', ...options }, work as never);

describe('scheduledSingleton', () => {
  test.each<[object, RegExp]>([
    [{ tick: '2026-01-01T00:00:00Z' }, /tick is "2026.*it must be a function/],
    [{ nextTick: 60 }, /nextTick is 60; it must be a function/],
    [{ periodSeconds: 0 }, /periodSeconds is 0; it must be a number of seconds greater than 0/],
    [{ periodSeconds: 0.5 }, /periodSeconds is 0\.5; it must be at least 1/],
    [{ periodSeconds: '60' }, /periodSeconds is "60"/],
    [{ periodSeconds: 86_400_000 }, /Is it in milliseconds\?/],
    [{ periodSeconds: 60, nextTick: () => new Date() }, /periodSeconds and nextTick exclude/],
    [{ overdueAfterSeconds: 60 }, /overdueAfterSeconds needs periodSeconds or nextTick/],
    [{ overdueAfterSeconds: NaN, periodSeconds: 60 }, /overdueAfterSeconds is NaN/],
    [{ failureBackoffSeconds: -1 }, /failureBackoffSeconds is -1/],
    [{ failureBackoffSeconds: 4_000 }, /is 4000; .*at most maxFailureBackoffSeconds \(3600\)/],
    [{ failureBackoffSeconds: 60, maxFailureBackoffSeconds: 30 }, /is 60; .*at most .* \(30\)/],
    [{ maxFailureBackoffSeconds: 30 }, /needs failureBackoffSeconds beside it/],
    [{ failureBackoffSeconds: 60, trustClocks: false }, /trustClocks: false exclude each other/],
    [{ catchUp: 'all', periodSeconds: 60 }, /catchUp is "all"; it must be "none", "once" or/],
    [{ catchUp: 'each' }, /catchUp needs periodSeconds or nextTick/],
    [{ metrics: {} }, /metrics is an object; it must have the method addMetric/],
    [{ sticky: false }, /sticky is not possible/],
    [{ slots: 1 }, /slots are not possible/],
    [{ contextKey: '' }, /contextKey is ""/],
    [{ periodSecond: 60 }, /has no option "periodSecond"\. It has: .*periodSeconds/],
  ])('refuses %j', (options, message) => {
    expect(() => make(options)).toThrow(
      expect.objectContaining({
        code: 'invalid-configuration',
        message: expect.stringMatching(message) as string,
      }),
    );
  });

  test('refuses to go without a handler', () => {
    expect(() => make({}, null)).toThrow(/needs the handler/);
  });

  test.each([
    { periodSeconds: 60, catchUp: 'once', overdueAfterSeconds: 5, minimumHoldSeconds: 30 },
    { nextTick: () => new Date(), failureBackoffSeconds: 60, maxFailureBackoffSeconds: 60 },
    { catchUp: 'none', tick: () => new Date(), sticky: undefined, slots: undefined },
  ])('takes %j', (options) => {
    expect(make(options)).toBeInstanceOf(Function);
  });
});
