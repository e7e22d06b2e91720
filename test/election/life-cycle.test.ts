// Tenure after tenure in one process, and its beginning and end.

import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { LeaseErrorCode } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type { Fault } from '../support/scripted-store.ts';
import {
  Candidate,
  change,
  held,
  LEASE,
  recordIn,
  SECOND,
  SeededRandom,
  untilTold,
  usurp,
  type CandidateOptions,
} from './harness.ts';

function scene(options: Omit<CandidateOptions, 'clock'> = {}) {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory, ...options });
  return { clock, memory, candidate, store: candidate.store };
}

const strictlyRising = (values: readonly number[]) =>
  values.every((value, index) => index === 0 || value > values[index - 1]!);

describe('an elector that loses its lease', () => {
  test.each([
    ['to another', (at: ReturnType<typeof scene>) => usurp(at.memory, at.clock)],
    [
      'to an eviction',
      (at: ReturnType<typeof scene>) =>
        change(at.memory, {
          holderIdentity: undefined,
          version: { N: String(recordIn(at.memory).version! + 1) },
        }),
    ],
    [
      'to an outage',
      (at: ReturnType<typeof scene>) =>
        at.store.plan(
          'renew',
          ...Array.from({ length: 8 }, () => ({ fail: 'store-unavailable' }) as const),
        ),
    ],
    ['to a freeze', (at: ReturnType<typeof scene>) => at.clock.freeze(20 * SECOND)],
  ])('50 times %s contends each time, and leads 51 times', async (_, lose) => {
    const at = scene();
    at.candidate.run();
    await at.clock.advance(SECOND);
    for (let loss = 1; loss <= 50; loss++) {
      expect(at.candidate.isLeader).toBe(true);
      lose(at);
      await at.clock.advance(30 * SECOND);
      expect(at.candidate.told('stopped')).toHaveLength(loss);
      expect(at.candidate.told('started')).toHaveLength(loss + 1);
    }
    expect(strictlyRising(at.candidate.leases.map(({ fencingToken }) => fencingToken))).toBe(true);
    expect(getEventListeners(at.candidate.signal, 'abort').length).toBeLessThan(5);
  });
});

describe('a thousand tenures', () => {
  test('leave no timer and no listener behind', async () => {
    const { clock, candidate, store } = scene({ work: async () => undefined });
    const standing = () => [clock.timers, getEventListeners(candidate.signal, 'abort').length];
    candidate.run();
    await clock.advance(0);
    const baseline = standing();
    await clock.advance(2_500 * SECOND);
    expect(candidate.leases.length).toBeGreaterThan(1_000);
    expect(standing()).toEqual(baseline);
    expect(store.calls).toHaveLength(2 * candidate.leases.length);
    candidate.stop();
    await clock.advance(0);
    expect(candidate.ended).toEqual({});
    expect(standing()).toEqual([0, 0]);
  });

  test('with faults of every kind and losses of every kind leave none either', async () => {
    const chance = new SeededRandom(47);
    const any = <T>(choices: readonly T[]) =>
      choices[Math.floor(chance.fraction() * choices.length)]!;
    const faults: readonly Fault[] = [
      { requestMs: 200, answerMs: 300 },
      { answerMs: 4 * SECOND },
      { hang: true, ignoreSignal: true },
      { lose: 'request' },
      { lose: 'answer' },
      { requestMs: 20 * SECOND },
      { fail: 'store-unavailable' },
      { date: 'none', hideItem: true },
    ];
    const { clock, candidate, store } = scene({
      work: (lease) => untilTold(clock, any([0, 500, 4_000]))(lease),
      maxHoldSeconds: 5,
    });
    store.script = () => (chance.fraction() < 0.2 ? any(faults) : undefined);
    const most = { timers: 0, listeners: 0 };
    candidate.run();
    for (let round = 0; candidate.leases.length < 1_000; round++) {
      await clock.advance(SECOND);
      most.timers = Math.max(most.timers, clock.timers);
      most.listeners = Math.max(
        most.listeners,
        getEventListeners(candidate.signal, 'abort').length,
      );
      expect(round).toBeLessThan(30_000);
    }
    // A tenure has four, a call one, and requests that nobody waits for are still on their way.
    expect(most.timers).toBeLessThan(15);
    expect(most.listeners).toBeLessThan(5);
    candidate.stop();
    await clock.advance(60 * SECOND);
    expect(candidate.ended).toEqual({});
    expect([clock.timers, getEventListeners(candidate.signal, 'abort').length]).toEqual([0, 0]);
    expect(strictlyRising(candidate.leases.map(({ fencingToken }) => fencingToken))).toBe(true);
    expect(candidate.told('stopped')).toHaveLength(candidate.told('started').length);
  });
});

describe('run()', () => {
  test('resolves only when the work has finished and the lease is free', async () => {
    const order: string[] = [];
    const { clock, memory, candidate } = scene({
      work: async (lease) => {
        await untilTold(clock, 100)(lease);
        order.push('work finished');
      },
      onStoppedLeading: () => order.push(`stopped, ${recordIn(memory).vacant ? 'free' : 'held'}`),
    });
    candidate.run();
    await clock.advance(SECOND);
    candidate.stop();
    await clock.advance(99);
    expect([order, candidate.ended]).toEqual([[], undefined]);
    await clock.advance(1);
    expect(order).toEqual(['work finished', 'stopped, free']);
    expect(candidate.ended).toEqual({});
  });

  test('that never led starts nothing while it shuts down, though the lease falls free', async () => {
    const { clock, memory, candidate } = scene();
    memory.poke(LEASE, held(clock, { renewedAgoMs: 14 * SECOND }));
    candidate.run();
    await clock.advance(500);
    candidate.stop();
    await clock.advance(60 * SECOND);
    expect(candidate.told('started')).toEqual([]);
    expect(candidate.store.of('acquire')).toHaveLength(1);
  });

  test('of a warm process judges an expired lease with its first request', async () => {
    const { clock, memory, candidate, store } = scene();
    candidate.run();
    await clock.advance(5 * SECOND);
    candidate.stop();
    await clock.advance(0);
    memory.poke(LEASE, held(clock, { renewedAgoMs: 16 * SECOND }));
    const before = store.calls.length;
    candidate.run();
    await clock.advance(0);
    expect(store.kinds().slice(before)).toEqual(['acquire']);
    expect(candidate.lease.fencingToken).toBe(8);
  });

  test.each<LeaseErrorCode>(['access-denied', 'table-not-found', 'request-refused'])(
    'rejects at once with %s when it has never seen the record',
    async (code) => {
      const { clock, candidate, store } = scene();
      store.script = () => ({ fail: code });
      candidate.run();
      await clock.advance(0);
      expect(candidate.ended).toMatchObject({ error: { code } });
      expect(clock.timers).toBe(0);
    },
  );

  test.each([
    ['corrupt-record', { version: { S: 'one' } }],
    ['corrupt-record', { leaseTransitions: { N: '-1' } }],
    ['kind-mismatch', { kind: { S: 'heartbeat' } }],
  ])('rejects with %s when that is all it has ever seen', async (code, attributes) => {
    for (const begin of ['run', 'observe'] as const) {
      const { clock, memory, candidate } = scene();
      memory.poke(LEASE, { ...held(clock), ...attributes });
      candidate[begin]();
      await clock.advance(0);
      expect(candidate.ended).toMatchObject({ error: { code } });
    }
  });

  test.each([
    [
      'access-denied',
      (at: ReturnType<typeof scene>) => (at.store.script = () => ({ fail: 'access-denied' })),
    ],
    [
      'table-not-found',
      (at: ReturnType<typeof scene>) => (at.store.script = () => ({ fail: 'table-not-found' })),
    ],
    [
      'corrupt-record',
      (at: ReturnType<typeof scene>) => change(at.memory, { version: { S: 'x' } }),
    ],
  ])('that has seen the record reports %s and tries again, without haste', async (code, break_) => {
    const at = scene();
    at.memory.poke(LEASE, held(at.clock));
    at.candidate.run();
    await at.clock.advance(SECOND);
    break_(at);
    await at.clock.advance(60 * SECOND);
    expect(at.candidate.ended).toBeUndefined();
    expect(new Set(at.candidate.told('error'))).toEqual(new Set([`error: ${code}`]));
    expect(at.candidate.told('error').length).toBeGreaterThan(10);
    expect(at.store.calls.length).toBeLessThan(3 * (60 / 1.6));
    at.store.script = () => undefined;
    change(at.memory, { version: { N: '71' } });
    await at.clock.advance(5 * SECOND);
    expect(at.candidate.isLeader).toBe(true);
  });

  test('waits for a store that is out of reach from the start, and says so', async () => {
    const { clock, candidate, store } = scene();
    store.script = () => ({ fail: 'store-unavailable' });
    candidate.run();
    await clock.advance(30 * SECOND);
    expect(candidate.ended).toBeUndefined();
    expect(candidate.told('error').length).toBeGreaterThan(5);
    store.script = () => undefined;
    await clock.advance(3 * SECOND);
    expect(candidate.isLeader).toBe(true);
  });
});
