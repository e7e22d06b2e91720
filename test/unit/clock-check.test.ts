// When a wall clock may be trusted: what the Date header of an answer proves, and for how long.

import { describe, expect, test } from 'vitest';
import { ClockCheck } from '../../src/clock-check.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { Timeline } from '../../src/timeline.ts';

/** A machine whose wall clock is ahead of the server's by `offsetMs`. */
function machine(offsetMs = 0) {
  const clock = new FakeClock(Date.UTC(2026, 0, 1) + 500 + offsetMs);
  const timeline = new Timeline(clock);
  const check = new ClockCheck(timeline);
  let serverMs = Date.UTC(2026, 0, 1) + 500;
  const pass = async (ms: number) => {
    serverMs += ms;
    await clock.advance(ms);
  };
  return {
    clock,
    timeline,
    check,
    pass,
    freeze: (ms: number, hands: { monotonicRuns?: boolean; wallRuns?: boolean }) => {
      serverMs += ms;
      clock.freeze(ms, hands);
    },
    /** One request, answered after `ms` each way. */
    ask: async (ms = 5) => {
      const answered = check.attempt();
      await pass(ms);
      const date = new Date(Math.floor(serverMs / 1_000) * 1_000).toUTCString();
      await pass(ms);
      answered(date);
    },
  };
}

const T = 5_000;

describe('a clock that has been measured', () => {
  test.each([
    [0, 'checked'],
    // The header's whole second costs up to a second of either side; the server is at .5 here.
    [1_300, 'checked'],
    [-1_300, 'checked'],
    [2_000, 'unchecked'],
    [-2_000, 'unchecked'],
    [3_000, 'wrong'],
    [-3_000, 'wrong'],
    [86_400_000, 'wrong'],
  ] as const)('%i ms ahead is %s', async (offsetMs, expected) => {
    const { ask, check } = machine(offsetMs);
    await ask();
    expect(check.status(T).kind).toBe(expected);
  });

  test('is unchecked before the first answer', () => {
    expect(machine().check.status(T)).toEqual({ kind: 'unchecked' });
  });

  test('says what must be added to be right', async () => {
    const { ask, check } = machine(60_000);
    await ask();
    const status = check.status(T);
    expect(status.kind).toBe('wrong');
    if (status.kind !== 'wrong') return;
    expect(status.lowerMs).toBeLessThanOrEqual(-60_000);
    expect(status.upperMs).toBeGreaterThanOrEqual(-60_000);
  });

  test('is not proven by an answer that took 15 s', async () => {
    const { ask, check } = machine();
    await ask(7_500);
    expect(check.status(T).kind).toBe('unchecked');
  });

  test('keeps what a quick answer proved when a slow one follows', async () => {
    const { ask, check } = machine();
    await ask();
    await ask(7_500);
    expect(check.status(T).kind).toBe('checked');
  });

  test('is checked again after a slow first answer, also for a limit asked about only later', async () => {
    const { ask, check } = machine();
    await ask(7_500);
    await ask();
    await ask(7_500);
    check.status(T);
    await ask();
    await ask(7_500);
    expect(check.status(T).kind).toBe('checked');
  });

  test('gives no sample when its lower end is above its upper end', () => {
    const { clock, check } = machine();
    const answered = check.attempt();
    const date = new Date(clock.read().wallMs).toUTCString();
    clock.stepWall(-3_600_000);
    answered(date);
    expect(check.status(T).kind).toBe('unchecked');
  });
});

describe('a checked clock is unchecked', () => {
  test.each([
    ['after a step forward', { step: 700 }],
    ['after a step back', { step: -700 }],
  ])('%s', async (_, { step }) => {
    const { ask, check, clock } = machine();
    await ask();
    clock.stepWall(step);
    expect(check.status(T).kind).toBe('unchecked');
  });

  test.each([
    ['after a sleep that stopped the monotonic clock', { monotonicRuns: false }],
    ['after a pause that stopped the wall clock', { wallRuns: false }],
  ])('%s', async (_, hands) => {
    const { ask, check, freeze } = machine();
    await ask();
    freeze(60_000, hands);
    expect(check.status(T).kind).toBe('unchecked');
  });

  test('after small steps that add up, whatever their signs', async () => {
    const { ask, check, clock } = machine();
    await ask();
    for (const step of [300, -300, 100]) {
      clock.stepWall(step);
      check.status(T);
    }
    expect(check.status(T).kind).toBe('unchecked');
  });

  test('not by a freeze through which both clocks ran', async () => {
    const { ask, check, freeze } = machine();
    await ask();
    freeze(3_600_000, {});
    expect(check.status(T).kind).toBe('checked');
  });
});

describe('a wrong clock', () => {
  test('is to be measured again once it has been set', async () => {
    const { ask, check, clock } = machine(60_000);
    await ask();
    clock.stepWall(-60_000);
    expect(check.status(T).kind).toBe('unchecked');
    await ask();
    expect(check.status(T).kind).toBe('checked');
  });
});

describe('an acquisition is proved only', () => {
  test('by a sample that was sent after its stamp', async () => {
    const { ask, check, pass, timeline } = machine();
    await ask();
    await pass(1);
    const stamp = timeline.look();
    expect(check.status(T).kind).toBe('checked');
    expect(check.statusSince(stamp, T).kind).toBe('unchecked');
    await ask();
    expect(check.statusSince(stamp, T).kind).toBe('checked');
  });

  test('when the clock was not set between stamp and sample', async () => {
    const { ask, check, clock, timeline } = machine(-3_600_000);
    const stamp = timeline.look();
    clock.stepWall(3_600_000);
    await ask();
    expect(check.status(T).kind).toBe('checked');
    expect(check.statusSince(stamp, T).kind).toBe('unchecked');
  });
});

describe('a clock cannot be verified', () => {
  test('with a tolerance below 2.5 s', () => {
    expect(machine().check.status(2_499)).toEqual({
      kind: 'unverifiable',
      because: 'small tolerance',
    });
    expect(machine().check.status(2_500).kind).toBe('unchecked');
  });

  test('but can be proven wrong all the same', async () => {
    const { ask, check } = machine(10_000);
    await ask();
    expect(check.status(1_000).kind).toBe('wrong');
  });

  test.each([undefined, '', 'yesterday'])('when answers carry the Date %j', (date) => {
    const { check } = machine();
    check.attempt()(date);
    expect(check.status(T)).toEqual({ kind: 'unverifiable', because: 'no date' });
  });

  test('but can once any answer has had a Date', async () => {
    const { ask, check } = machine();
    await ask();
    check.attempt()(undefined);
    expect(check.status(T).kind).toBe('checked');
  });
});

test('two clocks that are both checked differ by less than the tolerance', async () => {
  for (const offsetMs of Array.from({ length: 81 }, (_, index) => (index - 40) * 100)) {
    for (const toleranceMs of [2_500, 3_000, 5_000, 45_000]) {
      const { ask, check, clock } = machine(offsetMs);
      await ask();
      const limitMs = Math.min(toleranceMs, 5_000);
      // As far as it may drift unnoticed.
      const driftMs = Math.sign(offsetMs) * (limitMs / 8);
      clock.stepWall(driftMs);
      if (check.status(toleranceMs).kind !== 'checked') continue;
      expect(Math.abs(offsetMs + driftMs)).toBeLessThanOrEqual(limitMs / 2);
    }
  }
});
