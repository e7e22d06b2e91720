// Standing by: what it costs while somebody leads, how soon it ends, and what happens when many
// stand by for one lease.

import { describe, expect, test } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { sleep } from '../../src/clock.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE, ScriptedStore } from '../support/scripted-store.ts';
import {
  Candidate,
  held,
  LEASE,
  recordIn,
  SECOND,
  SeededRandom,
  silent,
  usurp,
  vacant,
} from './harness.ts';

function scene() {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const join = (name: string, seed = 1) => new Candidate({ clock, memory, name, seed }).run();
  return { clock, memory, join };
}

const HOUR = 3_600 * SECOND;

describe('a standby', () => {
  test('reads, eventually consistently, and writes nothing while the lease is held', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock, { durationSeconds: 3_600 }));
    const { store } = join('b');
    await clock.advance(600 * SECOND);
    expect(store.of('acquire')).toHaveLength(1);
    expect(
      store
        .kinds()
        .slice(1)
        .every((kind) => kind === 'read'),
    ).toBe(true);
    expect(store.of('read').every(({ consistent }) => consistent === false)).toBe(true);
  });

  test('reads once in a retry period, give or take a fifth', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock, { durationSeconds: 3_600 }));
    const { store } = join('b');
    await clock.advance(600 * SECOND);
    const times = store.calls.map(({ atMs }) => atMs);
    const gaps = times.slice(1).map((atMs, index) => atMs - times[index]!);
    expect(Math.min(...gaps)).toBeGreaterThanOrEqual(1_600);
    expect(Math.max(...gaps)).toBeLessThanOrEqual(2_400);
    expect(new Set(gaps.map(Math.round)).size).toBeGreaterThan(100);
  });

  test('sleeps until the expiry that it has read, and takes the lease then', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock));
    const standby = join('b');
    await clock.advance(15 * SECOND);
    expect(standby.isLeader).toBe(false);
    await clock.advance(25);
    expect(standby.isLeader).toBe(true);
    expect(standby.store.of('acquire')).toHaveLength(2);
  });

  test.each([1, 2, 3, 4, 5])(
    'takes a released lease within a retry period and its jitter (seed %i)',
    async (seed) => {
      const { clock, memory, join } = scene();
      const leader = join('a');
      await clock.advance(0);
      const standby = join('b', seed);
      await clock.advance(7 * SECOND);
      leader.stop();
      await clock.advance(2_400);
      expect(standby.isLeader).toBe(true);
      expect(recordIn(memory).leaseTransitions).toBe(2);
    },
  );

  test('waits for notBefore to pass, and no longer', async () => {
    const { clock, memory, join } = scene();
    const notBefore = { N: String(clock.read().wallMs + 5 * SECOND) };
    memory.poke(LEASE, { ...vacant(clock), notBefore });
    const standby = join('b');
    await clock.advance(5 * SECOND);
    expect(standby.isLeader).toBe(false);
    await clock.advance(30);
    expect(standby.isLeader).toBe(true);
  });

  test('waits for notBefore also when its clock is checked, and it need not read first', async () => {
    const { clock, memory, join } = scene();
    const standby = join('b');
    await clock.advance(SECOND);
    standby.stop();
    await clock.advance(0);
    const notBefore = { N: String(clock.read().wallMs + 5 * SECOND) };
    memory.poke(LEASE, { ...vacant(clock), notBefore });
    standby.run();
    await clock.advance(5 * SECOND);
    expect(standby.isLeader).toBe(false);
    await clock.advance(30);
    expect(standby.isLeader).toBe(true);
  });

  test('that read the past and lost its write goes on standing by', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock, { durationSeconds: 3_600 }));
    const standby = join('b');
    standby.store.plan('read', { past: vacant(clock, { version: 60 }) });
    await clock.advance(60 * SECOND);
    expect(standby.isLeader).toBe(false);
    expect(standby.store.of('acquire').map(({ outcome }) => outcome)).toEqual([
      'refused',
      'refused',
    ]);
    expect(standby.told('error')).toEqual([]);
  });

  test('of a store that throttles it asks less and less; once it eases, as often as before', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock, { durationSeconds: 36_000 }));
    const { store } = join('b');
    await clock.advance(10 * SECOND);
    const asked = async (seconds: number) => {
      const before = store.calls.length;
      await clock.advance(seconds * SECOND);
      return store.calls.length - before;
    };
    expect(await asked(160)).toBeGreaterThanOrEqual(66);
    store.script = () => ({ throttled: 1 });
    await asked(60);
    expect(await asked(160)).toBeLessThanOrEqual(13);
    store.script = () => undefined;
    await asked(60);
    expect(await asked(160)).toBeGreaterThanOrEqual(66);
    expect(store.of('acquire')).toHaveLength(1);
  });

  test('of a store that throttles it still takes over at the expiry, by a look first', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock));
    const standby = join('b');
    standby.store.script = () => ({ throttled: 1 });
    await clock.advance(15 * SECOND);
    expect(standby.isLeader).toBe(false);
    await clock.advance(SECOND);
    expect(standby.isLeader).toBe(true);
    expect(standby.store.kinds().slice(0, -1).at(-1)).toBe('read');
  });

  test('goes on through an outage, and takes the lease after it', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock));
    const standby = join('b');
    await clock.advance(SECOND);
    standby.store.script = () => BLACK_HOLE;
    await clock.advance(60 * SECOND);
    expect(standby.told('error').length).toBeGreaterThan(5);
    standby.store.script = () => undefined;
    await clock.advance(3 * SECOND + 2_400);
    expect(standby.isLeader).toBe(true);
  });
});

describe('two candidates that meet', () => {
  test.each([1, 2, 3, 4, 5, 6, 7, 8])(
    'at a free lease: one leads, the other goes on standing by (seed %i)',
    async (seed) => {
      const { clock, memory, join } = scene();
      const pair = [join('a', seed), join('b', seed + 100)];
      for (const { store } of pair) store.script = () => ({ requestMs: 20, answerMs: 20 });
      await clock.advance(100);
      expect(pair.filter(({ isLeader }) => isLeader)).toHaveLength(1);
      const [winner, loser] = pair[0]!.isLeader ? pair : pair.toReversed();
      await clock.advance(60 * SECOND);
      expect(loser!.told('error')).toEqual([]);
      expect(loser!.ended).toBeUndefined();
      winner!.stop();
      await clock.advance(3 * SECOND);
      expect(loser!.isLeader).toBe(true);
      expect(recordIn(memory).leaseTransitions).toBe(2);
    },
  );

  test('at a record that lacks what it may lack: never two, a hundred times over', async () => {
    const { clock, memory } = scene();
    const names = [
      'kind',
      'leaseDurationSeconds',
      'acquireTime',
      'renewTime',
      'expireTime',
      'version',
      'leaseTransitions',
      'holderIdentity',
    ];
    for (let round = 0; round < 100; round++) {
      const item = Object.entries(held(clock, { renewedAgoMs: HOUR })).filter(
        ([name]) => ((round >> (names.indexOf(name) % 7)) & 1) === 0 || name === 'lease',
      );
      memory.poke(LEASE, Object.fromEntries(item));
      const candidates = Array.from({ length: 5 }, (_, index) =>
        new Candidate({ clock, memory, name: `c${index}`, seed: 5 * round + index }).run(),
      );
      const leaders = () => candidates.filter(({ isLeader }) => isLeader).length;
      for (let second = 0; second < 65 && leaders() === 0; second++) await clock.advance(SECOND);
      expect(leaders()).toBe(1);
      await clock.advance(3 * SECOND);
      expect(leaders()).toBe(1);
      for (const candidate of candidates) candidate.stop();
      await clock.advance(10 * SECOND);
      expect(
        candidates.flatMap(({ log }) => log).filter((entry) => entry.startsWith('error')),
      ).toEqual([]);
    }
  });
});

describe('many that want a lease all the time, each for less than a pause', () => {
  const SECTION_MS = 20;
  const RUN_MS = 60 * SECOND;

  test.each([2, 3, 10])('%i of them: each gets its share, and few requests', async (size) => {
    const clock = new FakeClock();
    const memory = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
    const stop = new AbortController();
    const stores: ScriptedStore[] = [];
    const sections = new Array<number>(size).fill(0);
    let inside = 0;
    let overlaps = 0;
    const work = async (index: number): Promise<void> => {
      const random = new SeededRandom(index, `c${index}`);
      const requestMs = () => 5 + 2 * random.fraction();
      const script = () => ({ requestMs: requestMs(), answerMs: requestMs() });
      const store = new ScriptedStore({ clock, memory, script });
      stores.push(store);
      const options = { name: 'job', store, clock, random, logger: silent, signal: stop.signal };
      const timing = { leaseDurationSeconds: 15, retryPeriodSeconds: 0.05, maxWaitSeconds: 600 };
      while (!stop.signal.aborted) {
        const lease = await acquireLease({ ...options, ...timing });
        inside += 1;
        if (inside > 1) overlaps += 1;
        await sleep(clock, SECTION_MS);
        inside -= 1;
        sections[index] = (sections[index] ?? 0) + 1;
        await lease.release();
      }
    };
    const working = Array.from({ length: size }, (_, index) => work(index).catch(() => undefined));
    await clock.advance(RUN_MS);
    const requests = stores.reduce((sum, { calls }) => sum + calls.length, 0);
    const total = sections.reduce((sum, each) => sum + each, 0);
    stop.abort();
    await clock.advance(10 * SECOND);
    await Promise.all(working);

    expect(overlaps).toBe(0);
    expect(Math.max(...sections) / Math.min(...sections)).toBeLessThanOrEqual(2);
    // A section and the two ways to and from the table take some 45 ms.
    expect(total / (RUN_MS / SECOND)).toBeGreaterThan(15);
    expect(requests / total).toBeLessThanOrEqual(1.2 * size + 1);
  });
});

describe('two hundred standbys', () => {
  test('that know one expiry do not all write again and again', async () => {
    const { clock, memory, join } = scene();
    memory.poke(LEASE, held(clock));
    const standbys = Array.from({ length: 200 }, (_, index) => join(`s${index}`, index));
    for (const { store } of standbys) store.script = () => ({ requestMs: 15, answerMs: 15 });
    await clock.advance(14 * SECOND);
    const written = () => standbys.reduce((sum, { store }) => sum + store.of('acquire').length, 0);
    const perTakeover: number[] = [];
    for (let takeover = 0; takeover < 4; takeover++) {
      const before = written();
      await clock.advance(3 * SECOND);
      expect(standbys.filter(({ isLeader }) => isLeader)).toHaveLength(1);
      perTakeover.push(written() - before);
      // The leader vanishes: another record, of somebody who crashed, takes the place of its own.
      usurp(memory, clock);
      await clock.advance(14 * SECOND);
    }
    const [first, ...later] = perTakeover;
    // Each may learn once that there are rivals; then it looks before it writes.
    expect(first).toBeLessThanOrEqual(2 * 200);
    for (const writes of later) expect(writes).toBeLessThanOrEqual(20);
    expect(recordIn(memory).leaseTransitions).toBe(7 + 2 * 4);
  });

  test('take a released lease over without a stampede', async () => {
    const { clock, memory, join } = scene();
    const leader = join('leader', 999);
    await clock.advance(0);
    const standbys = Array.from({ length: 200 }, (_, index) => join(`s${index}`, index));
    for (const { store } of standbys) store.script = () => ({ requestMs: 15, answerMs: 15 });
    await clock.advance(10 * SECOND);
    const written = () => standbys.reduce((sum, { store }) => sum + store.of('acquire').length, 0);
    const before = written();
    leader.stop();
    await clock.advance(2_400);
    expect(standbys.filter(({ isLeader }) => isLeader)).toHaveLength(1);
    expect(written() - before).toBeLessThanOrEqual(20);
    expect(recordIn(memory).leaseTransitions).toBe(2);
  });
});
