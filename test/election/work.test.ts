// The work of a leader: how it ends, and what becomes of the lease.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE } from '../support/scripted-store.ts';
import {
  Candidate,
  deferred,
  recordIn,
  SECOND,
  untilTold,
  usurp,
  type CandidateOptions,
  type Work,
} from './harness.ts';

async function leader(options: Omit<CandidateOptions, 'clock'>, run = {}) {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory, ...options }).run(run);
  await clock.advance(0);
  return { clock, memory, candidate, store: candidate.store };
}

/** Work that ends when it is told to by the test, whatever its signal says. */
function stubborn() {
  const runs: { settle: () => void }[] = [];
  const work: Work = () => new Promise<void>((resolve) => runs.push({ settle: resolve }));
  return { work, runs };
}

const first =
  (work: Work): Work =>
  (lease) =>
    lease.fencingToken === 1 ? work(lease) : untilTold()(lease);

describe('work that fails', () => {
  const after = (ms: number, clock: FakeClock): Work =>
    first(async () => {
      await new Promise<void>((resolve) => clock.setTimer(ms, resolve));
      throw new Error('out of memory');
    });

  test('releases the lease, is reported, and lets this process contend again', async () => {
    const clock = new FakeClock();
    const candidate = new Candidate({ clock, work: after(5 * SECOND, clock) }).run();
    await clock.advance(5 * SECOND);
    expect(candidate.store.kinds()).toEqual(['acquire', 'renew', 'renew', 'release']);
    expect(candidate.log.slice(2)).toEqual(['stopped: failed', 'error: Error: out of memory']);
    await clock.advance(2_400);
    expect(candidate.log.slice(4)).toEqual(['new leader a-2', 'started a-2, token 2']);
  });

  test('is not renewed any more', async () => {
    const clock = new FakeClock();
    const candidate = new Candidate({ clock, work: after(5 * SECOND, clock) }).run({ once: true });
    await clock.advance(60 * SECOND);
    expect(candidate.store.of('renew').filter(({ atMs }) => atMs > 5 * SECOND)).toEqual([]);
  });

  test('while a renewal is under way is renewed by that one only, then released', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    const candidate = new Candidate({ clock, memory, work: after(2_500, clock) }).run();
    candidate.store.plan('renew', { requestMs: 1_000 });
    await clock.advance(4 * SECOND);
    expect(candidate.store.kinds()).toEqual(['acquire', 'renew', 'release']);
    expect(recordIn(memory).vacant).toBe(true);
  });

  test('at once, in a plain function, is no different', async () => {
    const { candidate, clock } = await leader({
      onStartedLeading: () => {
        throw new Error('wrong from the start');
      },
      onNewLeader: () => undefined,
    });
    expect(candidate.store.kinds()).toEqual(['acquire', 'release']);
    expect(candidate.log).toEqual(['stopped: failed', 'error: Error: wrong from the start']);
    await clock.advance(60 * SECOND);
    // It rests a period between two tenures.
    expect(candidate.store.of('acquire').length).toBeLessThan(60 / 1.6 + 1);
  });

  test('rejects a run of one tenure, and is not reported besides', async () => {
    const { candidate } = await leader(
      { work: async () => Promise.reject(new Error('broken')) },
      { once: true },
    );
    expect(candidate.ended).toMatchObject({ error: { message: 'broken' } });
    expect(candidate.told('error')).toEqual([]);
    expect(candidate.told('stopped')).toEqual(['stopped: failed']);
  });
});

describe('work that returns', () => {
  test('releases the lease and contends again, with its turn last', async () => {
    const { candidate, clock, memory } = await leader({ work: first(async () => 'done') });
    expect(recordIn(memory).vacant).toBe(true);
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(10 * SECOND);
    expect(candidate.log.slice(2)).toEqual(['stopped: completed', 'new leader b-1']);
    expect(other.isLeader).toBe(true);
  });

  test('ends a run of one tenure', async () => {
    const { candidate } = await leader({ work: async () => 'done' }, { once: true });
    expect(candidate.ended).toEqual({});
    expect(candidate.store.kinds()).toEqual(['acquire', 'release']);
  });

  test('after its lease was lost releases nothing', async () => {
    const { candidate, clock, memory, store } = await leader({ work: first(untilTold()) });
    store.plan('renew', ...Array.from({ length: 4 }, () => BLACK_HOLE));
    await clock.advance(10 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: expired']);
    expect(store.of('release')).toEqual([]);
    expect(recordIn(memory).holderIdentity).toBe(candidate.lease.holderIdentity);
  });

  test('may release the lease itself first', async () => {
    const memory = new MemoryStore();
    const { candidate, clock } = await leader({
      memory,
      work: async (lease) => {
        await lease.release();
        expect([lease.isHeld(), lease.remainingMs(), lease.signal.aborted]).toEqual([
          false,
          0,
          true,
        ]);
        expect(recordIn(memory).vacant).toBe(true);
      },
    });
    await clock.advance(0);
    expect(candidate.told('stopped')).toEqual(['stopped: completed']);
    expect(candidate.told('error')).toEqual([]);
  });
});

describe('work that drains', () => {
  test('is renewed meanwhile; then, and only then, the lease is released', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    let settledAt = Infinity;
    const work: Work = async (lease) => {
      await untilTold(clock, 5 * SECOND)(lease);
      expect(lease.isHeld()).toBe(true);
      settledAt = clock.read().monotonicMs;
    };
    const candidate = new Candidate({ clock, memory, work }).run();
    await clock.advance(3 * SECOND);
    candidate.stop();
    await clock.advance(4_999);
    expect([candidate.isLeader, candidate.ended]).toEqual([true, undefined]);
    await clock.advance(1);
    const { store } = candidate;
    expect(store.kinds()).toEqual(['acquire', 'renew', 'renew', 'renew', 'release']);
    expect(store.of('renew').map(({ atMs }) => atMs)).toEqual([2_000, 4_000, 6_000]);
    expect(settledAt).toBe(8_000);
    expect(store.of('release').map(({ atMs }) => atMs)).toEqual([8_000]);
    expect(candidate.told('stopped')).toEqual(['stopped: stopped']);
    expect(recordIn(memory).vacant).toBe(true);
  });

  test('keeps others out until it has settled, and lets them in at once then', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    const candidate = new Candidate({ clock, memory, work: untilTold(clock, 25 * SECOND) }).run();
    await clock.advance(0);
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    candidate.stop();
    await clock.advance(24_999);
    expect(other.isLeader).toBe(false);
    await clock.advance(2_500);
    expect(other.isLeader).toBe(true);
  });

  test('and whose lease is lost meanwhile has the shorter time of a loss', async () => {
    const { work } = stubborn();
    const { candidate, clock, memory } = await leader({ work });
    candidate.stop();
    await clock.advance(SECOND);
    usurp(memory, clock);
    await clock.advance(SECOND);
    expect(candidate.isLeader).toBe(false);
    await clock.advance(2_500);
    expect(candidate.told('stopped')).toEqual(['stopped: taken over']);
    expect(candidate.store.of('release')).toEqual([]);
  });
});

describe('work that outlasts the time it was given to drain', () => {
  test('is renewed no more and never released: its lease expires', async () => {
    const { work } = stubborn();
    const { candidate, clock, memory, store } = await leader({ work, drainSeconds: 4 });
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(SECOND);
    candidate.stop();
    await clock.advance(4 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: stopped']);
    expect(candidate.isLeader).toBe(false);
    expect(candidate.ended).toEqual({});
    await clock.advance(14 * SECOND);
    expect(store.kinds()).toEqual(['acquire', 'renew', 'renew']);
    expect(other.isLeader).toBe(false);
    await clock.advance(100);
    expect(other.isLeader).toBe(true);
    await clock.advance(60 * SECOND);
    expect(store.kinds()).toHaveLength(3);
    expect(clock.timers).toBeGreaterThan(0);
  });

  test('keeps another run of this elector waiting, and its health red, until it has settled', async () => {
    const { work, runs } = stubborn();
    const { candidate, clock } = await leader({ work, drainSeconds: 4 });
    candidate.stop();
    await clock.advance(4 * SECOND);
    expect(candidate.ended).toEqual({});
    candidate.run();
    await clock.advance(60 * SECOND);
    expect(runs).toHaveLength(1);
    expect(candidate.elector.health().problems).toContain(
      'Work goes on although its tenure is over.',
    );
    runs[0]!.settle();
    await clock.advance(3 * SECOND);
    expect(runs).toHaveLength(2);
    expect(candidate.isLeader).toBe(true);
    expect(candidate.elector.health().healthy).toBe(true);
  });
});

describe('work that ignores that its lease was lost', () => {
  test('is reported once; no second tenure begins in this process until it has settled', async () => {
    const { work, runs } = stubborn();
    const { candidate, clock, memory, store } = await leader({ work });
    usurp(memory, clock);
    await clock.advance(2_000 + 2_500);
    expect(candidate.log.slice(2)).toEqual(['stopped: taken over', 'error: lease-stopped']);
    const sent = store.calls.length;
    await clock.advance(300 * SECOND);
    expect(store.calls).toHaveLength(sent);
    expect(recordIn(memory).holderIdentity).toBe('host/1/usurper');
    expect(candidate.elector.health().healthy).toBe(false);
    runs[0]!.settle();
    await clock.advance(3 * SECOND);
    expect(runs).toHaveLength(2);
    expect(candidate.log.slice(4)).toEqual(['new leader a-2', 'started a-2, token 3']);
    expect(store.of('release')).toEqual([]);
  });

  test('is given up half of the tolerance after the deadline, before others may start', async () => {
    const { work } = stubborn();
    const { candidate, clock, store } = await leader({ work });
    store.script = () => BLACK_HOLE;
    await clock.advance(12_499);
    expect([candidate.lease.signal.aborted, candidate.told('stopped')]).toEqual([true, []]);
    await clock.advance(1);
    expect(candidate.told('stopped')).toEqual(['stopped: expired']);
  });

  test('has its failure reported when it comes after that', async () => {
    const failed = deferred();
    const { candidate, clock, memory } = await leader({ work: first(() => failed.promise) });
    usurp(memory, clock);
    await clock.advance(30 * SECOND);
    failed.reject(new Error('at last'));
    await clock.advance(SECOND);
    expect(candidate.told('stopped')).toHaveLength(1);
    expect(candidate.told('error')).toEqual(['error: lease-stopped', 'error: Error: at last']);
  });
});

describe('a tenure with maxHoldSeconds', () => {
  test('ends then: the work is told, the lease released, and others have their turn', async () => {
    const { candidate, clock, memory } = await leader({ maxHoldSeconds: 7 });
    const other = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(6_999);
    expect(candidate.isLeader).toBe(true);
    await clock.advance(1);
    expect(candidate.told('stopped')).toEqual(['stopped: hold limit']);
    expect(candidate.lease.signal.reason).toMatchObject({
      code: 'lease-stopped',
      reason: 'hold limit',
    });
    expect(recordIn(memory).vacant).toBe(true);
    await clock.advance(3_000);
    expect([candidate.isLeader, other.isLeader].filter(Boolean)).toHaveLength(1);
  });

  test('is not renewed for ever when its work hangs, nor released', async () => {
    const { work } = stubborn();
    const { candidate, clock, store } = await leader({ work, maxHoldSeconds: 7 });
    await clock.advance(300 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: hold limit']);
    expect(store.of('release')).toEqual([]);
    expect(store.of('renew').at(-1)!.atMs).toBeLessThanOrEqual(7_000 + 2_500);
  });
});
