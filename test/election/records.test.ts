// What an election writes: which fields change when, under which names, and what is left alone.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { isoTime, type LeaseRecord } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { systemRandom } from '../../src/random.ts';
import {
  Candidate,
  change,
  held,
  LEASE,
  recordIn,
  SECOND,
  vacant,
  type CandidateOptions,
} from './harness.ts';

const HOUR = 3_600 * SECOND;

function scene() {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const join = (options: Omit<CandidateOptions, 'clock'> = {}) =>
    new Candidate({ clock, memory, ...options }).run();
  return { clock, memory, join };
}

describe('the fields of a record', () => {
  /** What each action does to holder, acquireTime, renewTime, token, version, duration. */
  async function through(act: (at: ReturnType<typeof scene>) => Promise<Candidate>) {
    const at = scene();
    const candidate = await act(at);
    const me = candidate.leases.at(-1)?.holderIdentity;
    return { me, now: isoTime(at.clock.read().wallMs), record: recordIn(at.memory) };
  }
  const started = isoTime(Date.UTC(2026, 0, 1));
  /** The stamps of two attempts of one identity differ. */
  const second = isoTime(Date.UTC(2026, 0, 1) + 1);

  test.each<
    [
      string,
      (at: ReturnType<typeof scene>) => Promise<Candidate>,
      (me: string | undefined, now: string) => Partial<LeaseRecord>,
    ]
  >([
    [
      'are all written by the first acquisition',
      async ({ clock, join }) => {
        const candidate = join();
        await clock.advance(0);
        return candidate;
      },
      (me, now) => ({
        holderIdentity: me,
        acquireTime: now,
        renewTime: now,
        leaseTransitions: 1,
        leaseDurationMs: 15_000,
      }),
    ],
    [
      'keep acquireTime and token through a renewal',
      async ({ clock, join }) => {
        const candidate = join();
        await clock.advance(2 * SECOND);
        return candidate;
      },
      (me, now) => ({
        holderIdentity: me,
        acquireTime: started,
        renewTime: now,
        leaseTransitions: 1,
        leaseDurationMs: 15_000,
      }),
    ],
    [
      'are all new, and the token one higher, after a takeover',
      async ({ clock, memory, join }) => {
        memory.poke(LEASE, held(clock, { renewedAgoMs: HOUR, durationSeconds: 40 }));
        const candidate = join();
        await clock.advance(0);
        return candidate;
      },
      (me) => ({
        holderIdentity: me,
        acquireTime: second,
        renewTime: second,
        leaseTransitions: 8,
        leaseDurationMs: 15_000,
      }),
    ],
    [
      'keep everything but holder and expiry through a release',
      async ({ clock, join }) => {
        const candidate = join();
        await clock.advance(3 * SECOND);
        candidate.stop();
        await clock.advance(0);
        return candidate;
      },
      () => ({
        holderIdentity: undefined,
        vacant: true,
        expireTimeMs: undefined,
        acquireTime: started,
        renewTime: isoTime(Date.parse(started) + 2 * SECOND),
        leaseTransitions: 1,
        leaseDurationMs: 15_000,
      }),
    ],
    [
      'get a higher token also from whoever released it',
      async ({ clock, join }) => {
        const candidate = join({ work: async () => undefined });
        await clock.advance(5 * SECOND);
        return candidate;
      },
      () => ({ leaseTransitions: 3 }),
    ],
    [
      'restart with a higher token when the record was deleted under its holder',
      async ({ clock, memory, join }) => {
        memory.poke(LEASE, vacant(clock, { token: 41 }));
        const candidate = join();
        await clock.advance(SECOND);
        memory.poke(LEASE, undefined);
        await clock.advance(4 * SECOND);
        return candidate;
      },
      (me) => ({ holderIdentity: me, leaseTransitions: 43 }),
    ],
  ])('%s', async (_, act, expected) => {
    const { me, now, record } = await through(act);
    expect(record).toMatchObject(expected(me, now));
  });

  test('are in agreement: expireTime is renewTime and the duration', async () => {
    const { clock, memory, join } = scene();
    join();
    for (let second = 0; second < 30; second++) {
      const { renewTime, leaseDurationMs, expireTimeMs } = recordIn(memory);
      if (renewTime !== undefined) {
        expect(expireTimeMs).toBe(Date.parse(renewTime) + leaseDurationMs!);
      }
      await clock.advance(SECOND);
    }
  });

  test('count each write in the version, and only up', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, vacant(clock, { version: 70 }));
    const candidate = join();
    await clock.advance(9 * SECOND);
    candidate.stop();
    await clock.advance(0);
    expect(candidate.store.kinds()).toEqual([
      'acquire',
      'renew',
      'renew',
      'renew',
      'renew',
      'release',
    ]);
    expect(recordIn(memory).version).toBe(76);
  });

  test('that nobody here knows survive every write', async () => {
    const { clock, memory, join } = scene();
    const theirs = {
      team: { S: 'billing' },
      labels: { M: { k2: { S: 'v2' } } },
      weight: { N: '3' },
    };
    memory.poke(LEASE, { ...vacant(clock), ...theirs });
    const candidate = join();
    await clock.advance(5 * SECOND);
    expect(memory.peek(LEASE)).toMatchObject(theirs);
    candidate.stop();
    await clock.advance(0);
    expect(memory.peek(LEASE)).toMatchObject(theirs);
  });

  test('never let DynamoDB delete a leader’s lease (L6)', async () => {
    const { clock, memory, join } = scene();
    const candidate = join();
    await clock.advance(5 * SECOND);
    candidate.stop();
    await clock.advance(0);
    expect(memory.peek(LEASE)).not.toHaveProperty('timeToLive');
  });

  test('say where to look, and carry the labels and annotations that were asked for', async () => {
    const { clock, memory, join } = scene();
    join({ labels: { app: 'billing' }, annotations: { build: '17' } });
    await clock.advance(0);
    expect(memory.peek(LEASE)?.['labels']).toEqual({ M: { app: { S: 'billing' } } });
    expect(recordIn(memory).annotations).toMatchObject({ build: '17', pid: String(process.pid) });
  });

  test('of a holder that trusts no clocks give nobody an expiry to judge it by', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, { ...vacant(clock), expireTime: { N: '1' } });
    join({ trustClocks: false });
    await clock.advance(0);
    expect(recordIn(memory)).toMatchObject({ vacant: false, expireTimeMs: undefined });
    await clock.advance(5 * SECOND);
    expect(recordIn(memory).expireTimeMs).toBeUndefined();
  });
});

describe('an identity', () => {
  test('differs between two electors of one process, and between two tenures of one', async () => {
    const { clock, join } = scene();
    const one = join({ random: systemRandom, maxHoldSeconds: 1 });
    const other = join({ random: systemRandom, maxHoldSeconds: 1 });
    await clock.advance(60 * SECOND);
    const identities = [one, other].flatMap(({ leases }) =>
      leases.map(({ holderIdentity }) => holderIdentity),
    );
    expect([one, other].every(({ leases }) => leases.length > 3)).toBe(true);
    expect(new Set(identities).size).toBe(identities.length);
  });

  test('is that of somebody else when mine is only its beginning', async () => {
    const { clock, memory, join } = scene();
    const one = join({ name: 'x' });
    await clock.advance(0);
    one.stop();
    await clock.advance(0);
    const mine = one.lease.holderIdentity;
    memory.poke(LEASE, held(clock, { by: `${mine}0`, token: 1 }));
    one.run();
    await clock.advance(10 * SECOND);
    expect(one.isLeader).toBe(false);
    expect(recordIn(memory).holderIdentity).toBe(`${mine}0`);
    expect(one.elector.getLeader()).toBe(`${mine}0`);
  });
});

describe('the fencing token', () => {
  test('strictly increases over every change of hands, whoever leads (L2)', async () => {
    const { clock, memory, join } = scene();
    const candidates = ['a', 'b', 'c'].map((name, seed) => join({ name, seed, maxHoldSeconds: 3 }));
    await clock.advance(600 * SECOND);
    const tenures = candidates
      .flatMap(({ store }) => store.of('acquire').filter(({ outcome }) => outcome === 'applied'))
      .toSorted((one, other) => one.carriedOutAtMs! - other.carriedOutAtMs!);
    expect(tenures.length).toBeGreaterThan(100);
    const tokens = candidates.flatMap(({ leases }) =>
      leases.map(({ fencingToken }) => fencingToken),
    );
    expect(tokens.toSorted((one, other) => one - other)).toEqual(
      tenures.map((_, index) => index + 1),
    );
    expect(candidates.every(({ leases }) => leases.length > 10)).toBe(true);
    expect(recordIn(memory).leaseTransitions).toBe(tenures.length);
  });

  test('of a tenure is known to its work before it may act', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, vacant(clock, { token: 41 }));
    const candidate = join();
    await clock.advance(0);
    expect(candidate.lease.fencingToken).toBe(42);
    change(memory, { leaseTransitions: { N: '50' } });
    expect(candidate.lease.fencingToken).toBe(42);
  });
});
