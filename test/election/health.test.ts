// What an elector says of its health: red when somebody has to look, and not before.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { judgeHealth, type Signs } from '../../src/health.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE, NEVER_SETTLES } from '../support/scripted-store.ts';
import {
  Candidate,
  held,
  LEASE,
  recordIn,
  SECOND,
  usurp,
  vacant,
  type CandidateOptions,
} from './harness.ts';

function scene(options: Omit<CandidateOptions, 'clock'> = {}) {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory, ...options });
  const health = () => candidate.elector.health();
  return { clock, memory, candidate, store: candidate.store, health };
}

describe('health is judged', () => {
  const well: Signs = {
    lease: LEASE,
    timing: {
      leaseDurationMs: 60_000,
      renewDeadlineMs: 40_000,
      retryPeriodMs: 8_000,
      requestTimeoutMs: 3_000,
      toleranceMs: 20_000,
    },
    running: true,
    leading: true,
    leader: 'me',
    sinceContactMs: 0,
    sinceLeaderMs: 0,
    renewalOverdueMs: 0,
    unsettledWork: false,
    clock: { kind: 'checked' },
    lastFailure: undefined,
  };
  const idle = { running: false, leading: false, leader: undefined };

  test.each<[string, Partial<Signs>, RegExp | undefined]>([
    ['green for a leader that renews', {}, undefined],
    [
      'green for an elector that does not run, whatever it last saw',
      { ...idle, sinceContactMs: 3_600_000, sinceLeaderMs: 3_600_000 },
      undefined,
    ],
    ['green for a standby of a leader', { leading: false, leader: 'other' }, undefined],
    ['green while the store was silent for a duration', { sinceContactMs: 60_000 }, undefined],
    ['red when it is silent for longer', { sinceContactMs: 60_001 }, /not answered for 60.001 s/],
    [
      'green while nobody leads for a duration and two periods',
      { leader: undefined, sinceLeaderMs: 76_000 },
      undefined,
    ],
    [
      'red when nobody leads for longer',
      { leader: undefined, sinceLeaderMs: 76_001 },
      /"default\/job" for 76.001 s/,
    ],
    ['green while a renewal is overdue by the deadline', { renewalOverdueMs: 40_000 }, undefined],
    ['red when it is by more', { renewalOverdueMs: 40_001 }, /overdue by 40.001 s/],
    ['red while work outlives its tenure', { unsettledWork: true }, /although its tenure is over/],
    [
      'red when the clock is wrong',
      { clock: { kind: 'wrong', lowerMs: -61_000, upperMs: -60_000 } },
      /wrong by at least 60 s/,
    ],
    [
      'green when the clock cannot be checked',
      { clock: { kind: 'unverifiable', because: 'no date' } },
      undefined,
    ],
    ['red after work that failed', { lastFailure: new Error('no disk') }, /failed: Error: no disk/],
  ])('%s', (_, signs, problem) => {
    const health = judgeHealth({ ...well, ...signs });
    expect(health.healthy).toBe(problem === undefined);
    expect(health.problems).toHaveLength(problem === undefined ? 0 : 1);
    if (problem !== undefined) expect(health.problems[0]).toMatch(problem);
  });
});

describe('an elector', () => {
  test('is well before it runs, while it leads, and after it was stopped', async () => {
    const { clock, candidate, health } = scene();
    await clock.advance(600 * SECOND);
    expect(health()).toMatchObject({ healthy: true, leading: false, leader: undefined });
    candidate.run();
    await clock.advance(600 * SECOND);
    expect(health()).toMatchObject({
      healthy: true,
      leading: true,
      leader: candidate.lease.holderIdentity,
      withoutLeaderSeconds: 0,
      renewalOverdueSeconds: 0,
    });
    expect(health().sinceContactSeconds).toBeLessThanOrEqual(2);
    candidate.stop();
    await clock.advance(600 * SECOND);
    expect(health()).toMatchObject({ healthy: true, leading: false, leader: undefined });
  });

  test('that leads is red when its machine stood still, before any timer fires', async () => {
    const { clock, candidate, health } = scene();
    candidate.run();
    await clock.advance(4 * SECOND);
    clock.freeze(12_001);
    expect(health().problems.join()).toMatch(/A renewal is overdue by 10.001 s/);
    expect(health().leading).toBe(false);
  });

  test('that leads is red within a duration of the last answer when its calls never settle', async () => {
    const { clock, candidate, store, health } = scene();
    candidate.run();
    await clock.advance(4 * SECOND);
    store.script = () => ({ ...NEVER_SETTLES, lose: 'request' });
    await clock.advance(15 * SECOND);
    expect(health().healthy).toBe(true);
    await clock.advance(SECOND);
    expect(health().problems.join()).toMatch(/The store has not answered for 16 s/);
  });

  test('that stands by is well while another leads, and red when it cannot see that any more', async () => {
    const { clock, memory, candidate, store, health } = scene();
    memory.poke(LEASE, held(clock, { durationSeconds: 3_600 }));
    candidate.run();
    await clock.advance(600 * SECOND);
    expect(health()).toMatchObject({ healthy: true, leading: false, leader: 'host/1/other' });
    store.script = () => BLACK_HOLE;
    await clock.advance(18 * SECOND);
    expect(health().problems.join()).toMatch(/The store has not answered/);
    store.script = () => undefined;
    await clock.advance(5 * SECOND);
    expect(health().healthy).toBe(true);
  });

  test.each(['run', 'observe'] as const)(
    'that may %s is red when nobody leads for long',
    async (begin) => {
      const { clock, memory, candidate, health } = scene();
      memory.poke(LEASE, { ...vacant(clock), suspended: { M: {} } });
      candidate[begin]();
      await clock.advance(19 * SECOND);
      expect(health()).toMatchObject({ healthy: true, withoutLeaderSeconds: 19 });
      await clock.advance(SECOND);
      expect(health().problems.join()).toMatch(/Nobody has held lease "default\/job" for 20 s/);
      memory.poke(LEASE, held(clock));
      await clock.advance(3 * SECOND);
      expect(health()).toMatchObject({ healthy: true, withoutLeaderSeconds: 0 });
    },
  );

  test('is red while its clock is wrong, and says by how much', async () => {
    const clock = new FakeClock();
    const network = new FakeClock(clock.read().wallMs - 60 * SECOND);
    const candidate = new Candidate({ clock, network }).run();
    await clock.advance(0);
    expect(candidate.isLeader).toBe(false);
    expect(candidate.elector.health().problems.join()).toMatch(
      /The clock is wrong by at least 5\d/,
    );
    expect(candidate.told('error')).toEqual(['error: clock-wrong']);
    // What it took before the answer showed that, it has given back.
    expect(candidate.store.kinds()).toEqual(['acquire', 'release']);
    expect(recordIn(candidate.store.memory).vacant).toBe(true);
  });

  test('does not ask about the clock when it trusts none', async () => {
    const clock = new FakeClock();
    const network = new FakeClock(clock.read().wallMs - 60 * SECOND);
    const candidate = new Candidate({ clock, network, trustClocks: false }).run();
    await clock.advance(0);
    expect(candidate.isLeader).toBe(true);
    expect(candidate.elector.health().healthy).toBe(true);
  });

  test('is red after work that failed, until work has begun anew', async () => {
    let fails = true;
    const { clock, candidate, health } = scene({
      onStartedLeading: () =>
        fails ? Promise.reject(new Error('no disk')) : new Promise(() => undefined),
    });
    candidate.run();
    await clock.advance(SECOND);
    expect(health().problems).toEqual(["The last tenure's work failed: Error: no disk"]);
    fails = false;
    await clock.advance(3 * SECOND);
    expect(health()).toMatchObject({ healthy: true, leading: true });
  });

  test('is red while work goes on that ignores its loss', async () => {
    const { clock, memory, candidate, health } = scene({
      work: () => new Promise(() => undefined),
    });
    candidate.run();
    await clock.advance(0);
    usurp(memory, clock);
    await clock.advance(5 * SECOND);
    expect(health()).toMatchObject({
      healthy: false,
      leading: false,
      problems: ['Work goes on although its tenure is over.'],
    });
  });
});
