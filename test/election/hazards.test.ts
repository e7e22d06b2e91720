// Hazards of client-go's elector as published, each shown absent here. Its defaults, 15 / 10 / 2 s.

import { describe, expect, test } from 'vitest';
import { LeaderElector } from '../../src/elector.ts';
import { isLeaseError } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type { TimingOptions } from '../../src/options.ts';
import { BLACK_HOLE } from '../support/scripted-store.ts';
import {
  Candidate,
  change,
  LEASE,
  recordIn,
  SECOND,
  usurp,
  type CandidateOptions,
} from './harness.ts';

async function leader(options: Omit<CandidateOptions, 'clock'> = {}) {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory, ...options }).run();
  await clock.advance(0);
  return { clock, memory, candidate, store: candidate.store };
}

describe("a release does not wipe a successor's lease", () => {
  test('when it arrives after the successor has taken it (L1)', async () => {
    const { clock, memory, candidate, store } = await leader();
    const next = new Candidate({ clock, memory, name: 'b' }).run();
    store.plan('release', { requestMs: 20 * SECOND }, { requestMs: 21 * SECOND });
    await clock.advance(SECOND);
    candidate.stop();
    await clock.advance(15 * SECOND);
    expect(next.isLeader).toBe(true);
    await clock.advance(30 * SECOND);
    expect(store.of('release').map(({ outcome }) => outcome)).toEqual(['refused', 'refused']);
    expect(next.isLeader).toBe(true);
    expect(recordIn(memory).holderIdentity).toBe(next.lease.holderIdentity);
    expect(next.told('started')).toHaveLength(1);
  });

  test('when it arrives after the same process has taken it anew (L5)', async () => {
    const { clock, memory, candidate, store } = await leader();
    store.plan('release', { requestMs: 20 * SECOND }, { requestMs: 21 * SECOND });
    void candidate.lease.release();
    await clock.advance(12 * SECOND);
    expect(candidate.lease.fencingToken).toBe(2);
    await clock.advance(30 * SECOND);
    expect(candidate.isLeader).toBe(true);
    expect(recordIn(memory).holderIdentity).toBe(candidate.lease.holderIdentity);
  });
});

describe('work does not run on after the lease was lost', () => {
  test('for its signal aborts at the renew deadline, and nothing is released first', async () => {
    const { clock, memory, candidate, store } = await leader();
    const next = new Candidate({ clock, memory, name: 'b' }).run();
    const abortedAt: number[] = [];
    candidate.lease.signal.addEventListener('abort', () => {
      abortedAt.push(clock.read().monotonicMs);
      expect(store.of('release')).toEqual([]);
    });
    store.script = () => BLACK_HOLE;
    await clock.advance(14_999);
    expect(abortedAt).toEqual([10_000]);
    expect(candidate.told('stopped')).toEqual(['stopped: expired']);
    expect(next.isLeader).toBe(false);
    await clock.advance(100);
    expect(next.isLeader).toBe(true);
    expect(store.of('release')).toEqual([]);
  });
});

describe('belief counts from the send, never from the answer (L4)', () => {
  test('of the acquisition', async () => {
    const clock = new FakeClock();
    const candidate = new Candidate({ clock }).run();
    candidate.store.plan('acquire', { answerMs: 800 });
    candidate.store.script = ({ kind }) => (kind === 'renew' ? BLACK_HOLE : undefined);
    await clock.advance(9_999);
    expect(candidate.isLeader).toBe(true);
    await clock.advance(1);
    expect(candidate.isLeader).toBe(false);
  });

  test('of a renewal, however slow its answer was', async () => {
    const { clock, candidate, store } = await leader();
    store.plan('renew', { requestMs: 1_400, answerMs: 1_400 });
    store.script = ({ kind }) => (kind === 'renew' ? BLACK_HOLE : undefined);
    await clock.advance(11_999);
    expect(candidate.isLeader).toBe(true);
    await clock.advance(1);
    expect(candidate.isLeader).toBe(false);
  });

  test('of the write that the record shows, not of a later one that was lost (L7)', async () => {
    const { clock, candidate, store } = await leader();
    // Applied at 2 s; the next look at the record, at 5.1 s, finds it and renews on top of it.
    store.plan('renew', { hang: true }, {});
    store.script = ({ kind }) => (kind === 'renew' ? BLACK_HOLE : undefined);
    await clock.advance(11_999);
    expect(candidate.isLeader).toBe(true);
    await clock.advance(1);
    expect(candidate.isLeader).toBe(false);
    expect(store.of('renew').filter(({ outcome }) => outcome === 'applied')).toHaveLength(1);
  });
});

describe('settings that would let two lead are refused', () => {
  test.each<[string, TimingOptions, RegExp]>([
    ['the same duration and deadline', { renewDeadlineSeconds: 15 }, /15.*greater.*15/],
    ['a deadline beyond the duration', { renewDeadlineSeconds: 45 }, /15.*greater.*45/],
    ['a deadline that fits one attempt only', { retryPeriodSeconds: 5 }, /two attempts.*= 11/],
    ['a retry period of the deadline', { retryPeriodSeconds: 10 }, /two attempts/],
    ['a time-out of the deadline', { requestTimeoutSeconds: 10 }, /two attempts/],
    ['a negative duration', { leaseDurationSeconds: -45 }, /leaseDurationSeconds is -45/],
    ['no duration', { leaseDurationSeconds: 0 }, /leaseDurationSeconds is 0/],
    ['a negative deadline', { renewDeadlineSeconds: -45 }, /renewDeadlineSeconds is -45/],
    ['no deadline', { renewDeadlineSeconds: 0 }, /renewDeadlineSeconds is 0/],
    ['a negative retry period', { retryPeriodSeconds: -45 }, /retryPeriodSeconds is -45/],
    ['a duration that is no number', { leaseDurationSeconds: Number.NaN }, /is NaN/],
  ])('%s', (_, timing, message) => {
    const defaults = {
      leaseDurationSeconds: 15,
      renewDeadlineSeconds: 10,
      retryPeriodSeconds: 2,
      requestTimeoutSeconds: 3,
    };
    const make = () =>
      new LeaderElector({ ...defaults, ...timing, name: 'job', store: new MemoryStore() });
    expect(make).toThrow(message);
    expect(make).toThrow(expect.objectContaining({ code: 'invalid-configuration' }));
  });

  test.each([
    ['no name', { name: '' }, /name is ""/],
    ['a blank name', { name: ' ' }, /name/],
    ['a namespace with a slash', { namespace: 'a/b' }, /slash/],
    ['an option that does not exist', { releaseOnCancel: true }, /releaseOnCancel/],
  ])('%s', (_, wrong, message) => {
    const make = () => new LeaderElector({ name: 'job', store: new MemoryStore(), ...wrong });
    expect(make).toThrow(message);
  });

  test('and the narrowest accepted ones still keep two apart', async () => {
    const narrow = { leaseDurationSeconds: 10.1, renewDeadlineSeconds: 10 };
    const { clock, memory, candidate, store } = await leader(narrow);
    const next = new Candidate({ clock, memory, name: 'b', ...narrow }).run();
    store.script = () => BLACK_HOLE;
    await clock.advance(9_999);
    expect([candidate.isLeader, next.isLeader]).toEqual([true, false]);
    await clock.advance(101);
    expect([candidate.isLeader, next.isLeader]).toEqual([false, false]);
    await clock.advance(50);
    expect([candidate.isLeader, next.isLeader]).toEqual([false, true]);
  });

  test('without work there is nothing to run for', async () => {
    const elector = new LeaderElector({ name: 'job', store: new MemoryStore() });
    await expect(elector.run()).rejects.toThrow('onStartedLeading is missing');
  });
});

describe('parts of a second are kept', () => {
  test.each([1.5, 0.9, 2.345])('a lease of %s s lasts that long', async (seconds) => {
    const { clock, memory, candidate } = await leader({
      leaseDurationSeconds: seconds,
      renewDeadlineSeconds: seconds / 1.5,
      retryPeriodSeconds: seconds / 10,
    });
    const startMs = clock.read().wallMs;
    expect(recordIn(memory)).toMatchObject({
      leaseDurationMs: seconds * SECOND,
      expireTimeMs: startMs + seconds * SECOND,
    });
    expect(memory.peek(LEASE)?.['leaseDurationSeconds']).toEqual({ N: String(seconds) });
    candidate.store.script = () => BLACK_HOLE;
    await clock.advance((seconds * SECOND) / 1.5 - 1);
    expect(candidate.isLeader).toBe(true);
    await clock.advance(1);
    expect(candidate.isLeader).toBe(false);
  });
});

describe('a deleted record does not restart the tokens (L2)', () => {
  test('for the holder that finds it gone', async () => {
    const { clock, memory, candidate } = await leader();
    change(memory, { leaseTransitions: { N: '41' } });
    usurp(memory, clock);
    await clock.advance(2_000);
    memory.poke(LEASE, undefined);
    await clock.advance(17 * SECOND);
    expect(candidate.lease.fencingToken).toBeGreaterThan(42);
  });

  test('and its tenure ends at the next renewal, for that reason', async () => {
    const { clock, memory, candidate } = await leader();
    memory.poke(LEASE, undefined);
    await clock.advance(2_000);
    expect(candidate.told('stopped')).toEqual(['stopped: record deleted']);
    await clock.advance(3_000);
    expect(candidate.log.slice(-1)).toEqual(['started a-2, token 2']);
    expect(recordIn(memory).version).toBeGreaterThan(Date.UTC(2026, 0, 1));
  });

  test('for a contender that has seen it', async () => {
    const { clock, memory } = await leader();
    change(memory, { leaseTransitions: { N: '41' } });
    const next = new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(SECOND);
    memory.poke(LEASE, undefined);
    await clock.advance(2 * SECOND);
    expect(next.lease.fencingToken).toBe(42);
  });
});

describe('a process that leads again cannot be mistaken for its former self (L5)', () => {
  test('it has a new identity and a higher token', async () => {
    const { clock, candidate } = await leader({ work: async () => undefined });
    await clock.advance(10 * SECOND);
    const identities = candidate.leases.map(({ holderIdentity }) => holderIdentity);
    expect(identities.length).toBeGreaterThan(3);
    expect(new Set(identities).size).toBe(identities.length);
    expect(candidate.leases.map(({ fencingToken }) => fencingToken)).toEqual(
      identities.map((_, index) => index + 1),
    );
  });

  test('and a lease of its own that it let expire is a new tenure', async () => {
    const { clock, memory, candidate, store } = await leader();
    store.script = ({ atMs }) => (atMs < 16 * SECOND ? BLACK_HOLE : undefined);
    await clock.advance(22 * SECOND);
    expect(candidate.leases.map(({ fencingToken }) => fencingToken)).toEqual([1, 2]);
    expect(recordIn(memory).holderIdentity).toBe(candidate.leases[1]?.holderIdentity);
  });
});

describe('what an elector says of itself depends on the time', () => {
  test('isLeader() is false after a freeze, before any timer has fired (L4, L6)', async () => {
    const { clock, candidate } = await leader();
    clock.freeze(10 * SECOND);
    expect(candidate.isLeader).toBe(false);
    expect(candidate.lease.signal.aborted).toBe(true);
    expect(() => candidate.lease.signal.throwIfAborted()).toThrow(
      expect.objectContaining({ code: 'lease-lost', reason: 'expired' }),
    );
  });

  test('onNewLeader() never fires with an empty name', async () => {
    const { clock, memory, candidate } = await leader();
    const names: string[] = [];
    const watcher = new Candidate({
      clock,
      memory,
      name: 'w',
      onNewLeader: (name) => names.push(name),
    });
    watcher.observe();
    await clock.advance(3 * SECOND);
    candidate.stop();
    await clock.advance(3 * SECOND);
    change(memory, { holderIdentity: { S: '' } });
    await clock.advance(3 * SECOND);
    expect(names).toEqual([candidate.lease.holderIdentity]);
    expect(watcher.elector.getLeader()).toBeUndefined();
  });

  test('the leader that is reported is the one that getLeader() knows', async () => {
    const pairs: (string | undefined)[][] = [];
    const { clock, memory, candidate } = await leader({
      onNewLeader: (name) => pairs.push([name, candidate.elector.getLeader()]),
    }).catch((error: unknown) => {
      throw isLeaseError(error) ? error : new Error('no leader', { cause: error });
    });
    await clock.advance(3 * SECOND);
    usurp(memory, clock);
    await clock.advance(20 * SECOND);
    expect(pairs.length).toBeGreaterThan(1);
    for (const [reported, known] of pairs) expect(reported).toBe(known);
  });
});
