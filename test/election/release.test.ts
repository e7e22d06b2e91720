// Giving a lease back: after whatever else was under way, once, and nobody else's.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE, type Fault } from '../support/scripted-store.ts';
import { Candidate, recordIn, SECOND, usurp } from './harness.ts';

/** A leader that has just acquired; its renewals are sent at 2 s, 4 s and so on. */
async function leader() {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory }).run();
  await clock.advance(0);
  expect(candidate.isLeader).toBe(true);
  return { clock, memory, candidate, store: candidate.store };
}

describe('a clean stop', () => {
  test('releases with one write, and keeps the record with its token (L2)', async () => {
    const { clock, memory, candidate, store } = await leader();
    await clock.advance(5 * SECOND);
    const before = recordIn(memory);
    candidate.stop();
    await clock.advance(0);
    expect(candidate.ended).toEqual({});
    expect(store.kinds()).toEqual(['acquire', 'renew', 'renew', 'release']);
    const after = recordIn(memory);
    expect(after).toMatchObject({ vacant: true, expireTimeMs: undefined, leaseTransitions: 1 });
    expect(after.version).toBe(before.version! + 1);
    expect(candidate.told('stopped')).toEqual(['stopped: stopped']);
  });

  test('is followed at once by the next attempt of another', async () => {
    const { clock, memory, candidate } = await leader();
    candidate.stop();
    await clock.advance(0);
    const next = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(0);
    expect(next.log).toEqual(['new leader b-1', 'started b-1, token 2']);
    expect(next.store.kinds()).toEqual(['acquire']);
  });

  test('leaves no timer behind, also when a renewal was under way', async () => {
    const { clock, candidate, store } = await leader();
    store.plan('renew', { answerMs: 2_500 });
    await clock.advance(2_200);
    candidate.stop();
    await clock.advance(2_300);
    expect(candidate.ended).toEqual({});
    expect(store.kinds()).toEqual(['acquire', 'renew', 'release']);
    expect(clock.timers).toBe(0);
    await clock.advance(60 * SECOND);
    expect(store.kinds()).toHaveLength(3);
  });

  test('may be followed by another run: one start, one new leader, a higher token (L5)', async () => {
    const { clock, candidate } = await leader();
    candidate.stop();
    await clock.advance(0);
    candidate.log.length = 0;
    candidate.run();
    await clock.advance(30 * SECOND);
    expect(candidate.log).toEqual(['new leader a-2', 'started a-2, token 2']);
  });
});

describe('a stop while a renewal is under way', () => {
  /** What becomes of the renewal sent at 2 s; the stop comes at 2.5 s; then what was sent. */
  test.each<[string, Fault[], string[]]>([
    ['that is applied and answered later', [{ answerMs: SECOND }], ['release']],
    ['that reaches the table later', [{ requestMs: SECOND }], ['release']],
    ['that is dropped', [BLACK_HOLE], ['release']],
    ['that is applied and never answered (L7)', [{ hang: true }], ['release', 'release']],
    [
      'that is answered with an error',
      [{ requestMs: SECOND, fail: 'store-unavailable' }],
      ['release'],
    ],
    ['that arrives after the release', [{ requestMs: 5 * SECOND }], ['release']],
  ])('%s ends with a vacant record', async (_, faults, then) => {
    const { clock, memory, candidate, store } = await leader();
    store.plan('renew', ...faults);
    await clock.advance(2_500);
    candidate.stop();
    await clock.advance(10 * SECOND);
    expect(candidate.ended).toEqual({});
    expect(store.kinds()).toEqual(['acquire', 'renew', ...then]);
    expect(recordIn(memory)).toMatchObject({ vacant: true, leaseTransitions: 1 });
    expect(store.calls.at(-1)?.outcome).toBe('applied');
    expect(candidate.log).toEqual(['new leader a-1', 'started a-1, token 1', 'stopped: stopped']);
  });

  test.each<[string, Fault, string[]]>([
    ['answered', { answerMs: SECOND }, ['renew', 'release']],
    ['dropped', BLACK_HOLE, ['release', 'read', 'release']],
    ['refused', { fail: 'store-unavailable' }, ['release', 'read', 'release']],
  ])(
    'whose refusal showed no record, so that a read is under way, ends with a vacant record: %s',
    async (_, read, then) => {
      const { clock, memory, candidate, store } = await leader();
      // The first renewal is applied unanswered; the second one is refused for it.
      store.plan('renew', { lose: 'answer' }, { hideItem: true });
      store.plan('release', { hideItem: true });
      store.plan('read', { requestMs: 500, ...read });
      await clock.advance(2_400);
      expect(store.kinds()).toEqual(['acquire', 'renew', 'renew', 'read']);
      candidate.stop();
      await clock.advance(10 * SECOND);
      expect(store.kinds().slice(4)).toEqual(then);
      expect(recordIn(memory)).toMatchObject({ vacant: true, leaseTransitions: 1 });
      expect(candidate.ended).toEqual({});
    },
  );
});

describe('a release', () => {
  test('is retried on a conflict with a renewal of its own that nobody answered (L7)', async () => {
    const { clock, memory, candidate, store } = await leader();
    store.plan('renew', { lose: 'answer' });
    await clock.advance(2_050);
    candidate.stop();
    await clock.advance(0);
    expect(store.kinds()).toEqual(['acquire', 'renew', 'release', 'release']);
    expect(store.of('release').map(({ outcome }) => outcome)).toEqual(['refused', 'applied']);
    expect(recordIn(memory).vacant).toBe(true);
  });

  test('whose answer is lost is asked about, not repeated on the next holder', async () => {
    const { clock, memory, candidate, store } = await leader();
    const taken = () => usurp(memory, clock);
    store.plan('release', { lose: 'answer', after: taken });
    candidate.stop();
    await clock.advance(0);
    expect(store.of('release').map(({ outcome }) => outcome)).toEqual(['applied', 'refused']);
    expect(recordIn(memory)).toMatchObject({
      holderIdentity: 'host/1/usurper',
      leaseTransitions: 2,
    });
    expect(candidate.ended).toEqual({});
  });

  test('that finds the lease in other hands ends the tenure once, and touches nothing', async () => {
    const { clock, memory, candidate } = await leader();
    usurp(memory, clock);
    const theirs = recordIn(memory);
    candidate.stop();
    await clock.advance(0);
    expect(candidate.told('stopped')).toHaveLength(1);
    expect(recordIn(memory)).toEqual(theirs);
    expect(candidate.ended).toEqual({});
  });

  test.each<[string, Fault, number]>([
    ['never settles', { lose: 'request', hang: true, ignoreSignal: true }, 6_000],
    ['fails at once, each time', { fail: 'store-unavailable' }, 0],
    ['is denied', { fail: 'access-denied' }, 0],
  ])('that %s is given up in bounded time, and the lease expires', async (_, fault, withinMs) => {
    const { clock, memory, candidate, store } = await leader();
    const next = new Candidate({ clock, memory, name: 'b' }).run();
    store.plan('release', fault, fault, fault);
    await clock.advance(SECOND);
    candidate.stop();
    await clock.advance(withinMs);
    expect(candidate.ended).toEqual({});
    expect(candidate.told('stopped')).toEqual(['stopped: stopped']);
    expect(recordIn(memory).holderIdentity).toBe(candidate.lease.holderIdentity);
    await clock.advance(15 * SECOND - withinMs - SECOND);
    expect(next.isLeader).toBe(false);
    await clock.advance(100);
    expect(next.isLeader).toBe(true);
  });

  test('that did not get through is made up for by the next attempt of the same process', async () => {
    const { clock, memory, candidate, store } = await leader();
    store.plan('release', BLACK_HOLE, BLACK_HOLE);
    void candidate.lease.release();
    await clock.advance(6 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: completed']);
    expect(recordIn(memory).holderIdentity).toBe(candidate.lease.holderIdentity);
    await clock.advance(2_400);
    expect(store.kinds().slice(3)).toEqual(['acquire', 'release', 'acquire']);
    expect(candidate.log.slice(-2)).toEqual(['new leader a-2', 'started a-2, token 2']);
  });

  test('has a signal of its own: the aborted one of its caller does not stop it', async () => {
    const { clock, memory, candidate, store } = await leader();
    store.plan('release', { requestMs: 2_500 });
    candidate.stop();
    await clock.advance(2_499);
    expect(candidate.ended).toBeUndefined();
    await clock.advance(1);
    expect(candidate.ended).toEqual({});
    expect(recordIn(memory).vacant).toBe(true);
  });
});
