// Whoever asks a leader to make room: its own process, or an operator by way of the record.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { Candidate, change, held, LEASE, recordIn, SECOND, untilTold, vacant } from './harness.ts';

const asked = {
  M: { by: { S: 'ops' }, why: { S: 'deploy' }, since: { S: '2026-01-01T00:00:00.000Z' } },
};

async function leader(drainMs = 0) {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory, work: untilTold(clock, drainMs) }).run();
  await clock.advance(0);
  return { clock, memory, candidate, store: candidate.store };
}

describe('stepDown()', () => {
  test('lets another take over, and comes back as a contender', async () => {
    const { clock, memory, candidate } = await leader();
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(SECOND);
    await Promise.all([candidate.elector.stepDown(), clock.advance(0)]);
    expect(candidate.log.slice(2)).toEqual(['stopped: stepped down']);
    expect(recordIn(memory).vacant).toBe(true);
    await clock.advance(2_500);
    expect(other.isLeader).toBe(true);
    await clock.advance(60 * SECOND);
    expect([candidate.isLeader, candidate.elector.getLeader()]).toEqual([
      false,
      other.lease.holderIdentity,
    ]);
  });

  test('without another contender leaves a lease duration for one, then takes the lease again', async () => {
    const { clock, candidate, store } = await leader();
    await clock.advance(SECOND);
    await Promise.all([candidate.elector.stepDown(), clock.advance(0)]);
    await clock.advance(14_999);
    expect(store.of('acquire')).toHaveLength(1);
    await clock.advance(2 * 2_400);
    expect(candidate.log.slice(2)).toEqual([
      'stopped: stepped down',
      'new leader a-2',
      'started a-2, token 2',
    ]);
  });

  test('resolves when the work has settled and the lease is free, renewing until then', async () => {
    const { clock, memory, candidate, store } = await leader(5 * SECOND);
    await clock.advance(SECOND);
    let done = false;
    void candidate.elector.stepDown().then(() => (done = true));
    await clock.advance(4_999);
    expect([done, candidate.isLeader, candidate.lease.signal.aborted]).toEqual([false, true, true]);
    await clock.advance(1);
    expect([done, recordIn(memory).vacant]).toEqual([true, true]);
    expect(store.kinds()).toEqual(['acquire', 'renew', 'renew', 'release']);
  });

  test('of one that does not lead does nothing', async () => {
    const { clock, memory } = await leader();
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(SECOND);
    await other.elector.stepDown();
    await clock.advance(SECOND);
    expect(other.log).toEqual(['new leader a-1']);
  });

  test('twice ends one tenure once', async () => {
    const { clock, candidate } = await leader(SECOND);
    void candidate.elector.stepDown();
    void candidate.elector.stepDown();
    await clock.advance(10 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: stepped down']);
  });

  test('tells the work why', async () => {
    const { clock, candidate } = await leader(SECOND);
    void candidate.elector.stepDown();
    await clock.advance(0);
    expect(candidate.lease.signal.reason).toMatchObject({
      code: 'lease-stopped',
      reason: 'stepped down',
    });
  });
});

describe('an operator', () => {
  test('who asks the holder to step down is heard at its next renewal, and obeyed', async () => {
    const { clock, memory, candidate, store } = await leader();
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(SECOND);
    change(memory, { stepDownRequested: asked });
    await clock.advance(SECOND);
    expect(store.kinds()).toEqual(['acquire', 'renew', 'release']);
    expect(candidate.told('stopped')).toEqual(['stopped: stepped down']);
    await clock.advance(2_500);
    expect(other.isLeader).toBe(true);
    // The request was for the last holder; the next one is not bothered with it.
    expect(recordIn(memory).stepDownRequested).toBeUndefined();
    await clock.advance(30 * SECOND);
    expect(other.told('stopped')).toEqual([]);
  });

  test('who suspends the lease has the holder drain and release, and nobody takes it', async () => {
    const { clock, memory, candidate, store } = await leader(3 * SECOND);
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(SECOND);
    change(memory, { suspended: asked });
    await clock.advance(SECOND);
    expect([candidate.isLeader, candidate.lease.signal.aborted]).toEqual([true, true]);
    expect(candidate.lease.signal.reason).toMatchObject({ reason: 'suspended' });
    await clock.advance(3 * SECOND);
    expect(store.kinds()).toEqual(['acquire', 'renew', 'renew', 'release']);
    expect(candidate.told('stopped')).toEqual(['stopped: suspended']);
    await clock.advance(600 * SECOND);
    expect(recordIn(memory)).toMatchObject({ vacant: true, leaseTransitions: 1 });
    expect([...candidate.told('error'), ...other.told('error')]).toEqual([]);
    change(memory, { suspended: undefined });
    await clock.advance(2_500);
    expect([candidate.isLeader, other.isLeader].filter(Boolean)).toHaveLength(1);
    expect(recordIn(memory).leaseTransitions).toBe(2);
  });

  test('who does both at once has suspended it', async () => {
    const { clock, memory, candidate } = await leader();
    change(memory, { suspended: asked, stepDownRequested: asked });
    await clock.advance(2 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: suspended']);
  });

  test('is heard although the renewal that shows it was answered late', async () => {
    const { clock, memory, candidate, store } = await leader();
    change(memory, { suspended: asked });
    store.plan('renew', { lose: 'answer' });
    await clock.advance(3 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: suspended']);
    expect(recordIn(memory).vacant).toBe(true);
  });

  test('who writes anything at all in the way of a request is heard', async () => {
    const { clock, memory, candidate } = await leader();
    change(memory, { stepDownRequested: { BOOL: true } });
    await clock.advance(2 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: stepped down']);
  });
});

describe('a suspended lease', () => {
  test.each([
    ['vacant', vacant],
    ['expired', (clock: FakeClock) => held(clock, { renewedAgoMs: 3_600 * SECOND })],
    ['held until it expires', held],
  ])('that is %s is taken by nobody, and read for as little as a held one', async (_, stored) => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    memory.poke(LEASE, { ...stored(clock), suspended: asked });
    const candidate = new Candidate({ clock, memory }).run();
    await clock.advance(120 * SECOND);
    expect(candidate.isLeader).toBe(false);
    expect(recordIn(memory).leaseTransitions).toBe(7);
    expect(candidate.store.of('acquire')).toHaveLength(1);
    expect(candidate.store.of('read').length).toBeLessThan(120 / 1.6 + 1);
    change(memory, { suspended: undefined });
    await clock.advance(2_500);
    expect(candidate.isLeader).toBe(true);
  });
});
