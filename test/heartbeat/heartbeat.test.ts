// A worker's heartbeat, on virtual time: how it starts, renews, retries, comes back and ends.

import { describe, expect, test } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { Heartbeat } from '../../src/heartbeat.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE } from '../support/scripted-store.ts';
import { DOWN, LEASE, other, SECOND, settled, started, Worker } from './stage.ts';

const rejection = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error: unknown) => error,
  );

describe('a heartbeat that starts', () => {
  test('takes a record that is not there with one write, as a heartbeat', async () => {
    const worker = new Worker({ clock: new FakeClock(), labels: { zone: 'a' } });
    await settled(worker.clock, worker.heartbeat.start());
    expect(worker.store.kinds()).toEqual(['acquire']);
    expect(worker.record).toMatchObject({ kind: 'heartbeat', leaseDurationMs: 40 * SECOND });
    expect(worker.record?.labels).toEqual({ zone: 'a' });
    expect(worker.heartbeat.health()).toMatchObject({ healthy: true, state: 'beating' });
    await worker.heartbeat.stop();
  });

  test('is refused while another incarnation lives, and says which', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    memory.poke(LEASE, other(clock, 5 * SECOND));
    const worker = new Worker({ clock, memory });
    const error = await settled(clock, rejection(worker.heartbeat.start()));
    expect(isLeaseError(error, 'lease-held')).toBe(true);
    expect(String(error)).toContain('host/2/other');
    expect(memory.peek(LEASE)).toEqual(other(clock, 5 * SECOND));
    expect(worker.heartbeat.health()).toMatchObject({ healthy: false, state: 'stopped' });
    expect(clock.timers).toBe(0);
  });

  test('takes over from a live one by rule, by the version read, with a higher token', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    memory.poke(LEASE, other(clock));
    const worker = new Worker({ clock, memory, replace: true });
    await settled(clock, worker.heartbeat.start());
    expect(worker.record).toMatchObject({ leaseTransitions: 8, version: 71 });
    expect(worker.store.kinds()).toEqual(['acquire', 'acquire']);
    await worker.heartbeat.stop();
  });

  test('takes over from an expired one at once', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    memory.poke(LEASE, other(clock, 41 * SECOND));
    const worker = new Worker({ clock, memory });
    await settled(clock, worker.heartbeat.start());
    expect(worker.record).toMatchObject({ leaseTransitions: 8 });
    await worker.heartbeat.stop();
  });

  test('keeps trying while the store is out of reach, 0.2 s to 7 s apart, and says so', async () => {
    const clock = new FakeClock();
    const worker = new Worker({ clock, script: ({ atMs }) => (atMs < 30_000 ? DOWN : undefined) });
    const start = worker.heartbeat.start();
    await clock.advance(29_000);
    expect(worker.errors.length).toBeGreaterThan(5);
    expect(new Set(worker.errors)).toEqual(new Set(['store-unavailable']));
    // Each try writes, asks once more and reads: the first call of each tells when.
    const times = [...new Set(worker.store.calls.map(({ atMs }) => atMs))];
    const pauses = times.slice(1).map((at, index) => at - (times[index] ?? 0));
    expect(pauses).toEqual([200, 400, 800, 1_600, 3_200, 6_400, 7_000, 7_000]);
    await settled(clock, start);
    expect(worker.heartbeat.isPublished()).toBe(true);
    await worker.heartbeat.stop();
  });

  test.each(['access-denied', 'table-not-found', 'request-refused', 'clock-wrong'] as const)(
    'gives up at once on %s',
    async (code) => {
      const worker = new Worker({ clock: new FakeClock(), script: () => ({ fail: code }) });
      const error = await settled(worker.clock, rejection(worker.heartbeat.start()));
      expect(isLeaseError(error, code)).toBe(true);
    },
  );

  test('that trusts no clocks writes no expiry, and may still replace its predecessor', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    memory.poke(LEASE, other(clock, 3_600 * SECOND));
    const options = { clock, memory, trustClocks: false };
    const refused = new Worker(options);
    const error = await settled(clock, rejection(refused.heartbeat.start()));
    expect(isLeaseError(error, 'lease-held')).toBe(true);
    const worker = await started({ ...options, replace: true });
    expect(worker.record?.raw).not.toHaveProperty('expireTime');
    expect(worker.record?.raw).toHaveProperty('timeToLive');
    await worker.heartbeat.stop();
  });

  test('refuses to be started twice', async () => {
    const worker = await started();
    expect(isLeaseError(await rejection(worker.heartbeat.start()))).toBe(true);
    await worker.heartbeat.stop();
  });

  test('may be started again after a stop', async () => {
    const worker = await started();
    await settled(worker.clock, worker.heartbeat.stop());
    await settled(worker.clock, worker.heartbeat.start());
    expect(worker.heartbeat.isPublished()).toBe(true);
    await worker.heartbeat.stop();
  });
});

describe('a heartbeat that beats', () => {
  test('renews every quarter of the duration, stretched by at most 4 %', async () => {
    const worker = await started();
    await worker.clock.advance(1_000 * SECOND);
    const times = worker.store.calls.map(({ atMs }) => atMs);
    expect(new Set(worker.store.kinds())).toEqual(new Set(['renew']));
    for (const [index, at] of times.entries()) {
      const pauseMs = at - (times[index - 1] ?? 0);
      expect(pauseMs).toBeGreaterThanOrEqual(10 * SECOND);
      expect(pauseMs).toBeLessThanOrEqual(10.4 * SECOND);
    }
    expect(new Set(times.map((at, index) => at - (times[index - 1] ?? 0))).size).toBeGreaterThan(9);
    expect(times.length).toBeGreaterThanOrEqual(96);
    expect(worker.record?.leaseTransitions).toBe(1);
    await worker.heartbeat.stop();
  });

  test('moves timeToLive with each renewal, beyond all patience', async () => {
    const worker = await started({ graceSeconds: 3_600, tolerationSeconds: 600 });
    const timeToLive = () => Number((worker.record?.raw['timeToLive'] as { N: string }).N);
    const before = timeToLive();
    await worker.clock.advance(11 * SECOND);
    expect(timeToLive()).toBeGreaterThan(before);
    const { expireTimeMs = 0 } = worker.record ?? {};
    expect(timeToLive()).toBe(Math.ceil(expireTimeMs / SECOND) + 3_600 + 600 + 86_400);
    await worker.heartbeat.stop();
  });

  test.each([
    [{ graceSeconds: 3_600 }, 3_600 + 300],
    [{ tolerationSeconds: 3_600 }, 40 + 3_600],
    [{ graceSeconds: 1, tolerationSeconds: 1 }, 40 + 300],
    // The monitor tolerates for the duration of the record where that is longer.
    [{ leaseDurationSeconds: 7_200 }, 40 + 7_200],
  ])(
    'keeps its record for all the patience that the monitor has: %j',
    async (options, patienceS) => {
      const worker = await started({ ...options, retentionSeconds: 1 });
      const { expireTimeMs = 0, raw } = worker.record ?? {};
      const timeToLive = Number((raw?.['timeToLive'] as { N: string }).N);
      expect(timeToLive).toBe(Math.ceil(expireTimeMs / SECOND) + patienceS + 1);
      await worker.heartbeat.stop();
    },
  );

  test('tells the monitor its own patience', async () => {
    const worker = await started({ graceSeconds: 3_600, tolerationSeconds: 600 });
    expect(worker.record?.annotations).toMatchObject({
      graceSeconds: '3600',
      tolerationSeconds: '600',
    });
    await worker.heartbeat.stop();
  });

  test('writes a changed duration at its renewals, and keeps what others wrote', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore();
    memory.poke(LEASE, other(clock, 50 * SECOND, { team: { S: 'payments' } }));
    const worker = await started({ clock, memory, leaseDurationSeconds: 20 });
    await clock.advance(6 * SECOND);
    expect(worker.record).toMatchObject({ leaseDurationMs: 20 * SECOND });
    expect(worker.record?.raw['team']).toEqual({ S: 'payments' });
    await worker.heartbeat.stop();
  });
});

/** The cases of a kubelet's lease controller: what a renewal meets, and what comes of it. */
describe('a renewal', () => {
  const HANGS = { ...BLACK_HOLE };
  test.each([
    ['without errors', [], { renewals: 1, errors: 0, token: 1 }],
    ['after one failure', [DOWN], { renewals: 2, errors: 0, token: 1 }],
    ['after a call that was never answered', [HANGS], { renewals: 2, errors: 0, token: 1 }],
    [
      'after one that was applied unseen',
      [{ lose: 'answer' }],
      { renewals: 3, errors: 0, token: 1 },
    ],
    ['after two failures', [DOWN, DOWN], { renewals: 3, errors: 1, token: 1 }],
    ['after four failures', [DOWN, DOWN, DOWN, DOWN], { renewals: 5, errors: 1, token: 1 }],
  ] as const)('%s succeeds before the next interval', async (_, faults, expected) => {
    const worker = await started();
    worker.store.plan('renew', ...faults);
    await worker.clock.advance(18 * SECOND);
    expect(worker.store.of('renew')).toHaveLength(expected.renewals);
    expect(worker.errors).toHaveLength(expected.errors);
    expect(worker.heartbeat.health()).toMatchObject({
      healthy: true,
      fencingToken: expected.token,
    });
    await settled(worker.clock, worker.heartbeat.stop());
  });

  test('that fails five times waits for the next interval, and says so once', async () => {
    const worker = await started();
    worker.store.plan('renew', DOWN, DOWN, DOWN, DOWN, DOWN);
    await worker.clock.advance(20 * SECOND);
    expect(worker.store.of('renew')).toHaveLength(5);
    expect(worker.errors).toEqual(['store-unavailable']);
    await worker.clock.advance(3 * SECOND);
    expect(worker.store.of('renew')).toHaveLength(6);
    expect(worker.heartbeat.health().healthy).toBe(true);
    await worker.heartbeat.stop();
  });

  test('does not wait on a dead connection: the call is aborted, and the next is a new one', async () => {
    const worker = await started();
    worker.store.plan('renew', BLACK_HOLE);
    await worker.clock.advance(15 * SECOND);
    const [dead, next] = worker.store.of('renew');
    expect(dead).toMatchObject({ outcome: 'lost', answer: 'failed' });
    expect((next?.atMs ?? 0) - (dead?.atMs ?? 0)).toBe(3_100);
    await worker.heartbeat.stop();
  });

  test('finds its record deleted, and creates it again above the token it knew (L2)', async () => {
    const worker = await started();
    worker.store.memory.poke(LEASE, undefined);
    await worker.clock.advance(11 * SECOND);
    expect(worker.record).toMatchObject({ leaseTransitions: 2, kind: 'heartbeat' });
    expect(worker.heartbeat.health()).toMatchObject({ healthy: true, state: 'beating' });
    await worker.heartbeat.stop();
  });

  test('finds it vacated, and takes it again', async () => {
    const worker = await started();
    const item = Object.entries(worker.store.memory.peek(LEASE) ?? {});
    worker.store.memory.poke(LEASE, {
      ...Object.fromEntries(item.filter(([name]) => name !== 'holderIdentity')),
      version: { N: '1999999999999' },
    });
    await worker.clock.advance(11 * SECOND);
    expect(worker.record).toMatchObject({ vacant: false, leaseTransitions: 2 });
    await worker.heartbeat.stop();
  });

  test('survives a verdict of the monitor, an eviction included', async () => {
    const worker = await started();
    worker.store.memory.poke(LEASE, {
      ...worker.store.memory.peek(LEASE),
      condition: { M: { status: { S: 'Evicted' } } },
    });
    await worker.clock.advance(11 * SECOND);
    expect(worker.heartbeat.health()).toMatchObject({ healthy: true, fencingToken: 1 });
    await worker.heartbeat.stop();
  });
});

describe('an outage', () => {
  test('that outlasts the renew deadline ends the tenure; another follows when it is over', async () => {
    const worker = await started();
    worker.store.script = ({ atMs }) => (atMs < 100_000 ? DOWN : undefined);
    const health = () => worker.heartbeat.health();
    await worker.clock.advance(60 * SECOND);
    expect(health()).toMatchObject({ healthy: false, state: 'lost' });
    expect(health().problems[0]).toContain('could not be renewed in time');
    await worker.clock.advance(50 * SECOND);
    expect(health()).toMatchObject({ healthy: true, state: 'beating', fencingToken: 2 });
    await worker.heartbeat.stop();
  });

  test('shorter than the lease: it takes over from itself, though the record is not expired', async () => {
    const worker = await started();
    const before = worker.clock.read().monotonicMs;
    worker.store.script = () =>
      worker.clock.read().monotonicMs - before < 31 * SECOND ? DOWN : undefined;
    await worker.clock.advance(39 * SECOND);
    expect(worker.record?.leaseTransitions).toBe(2);
    expect(worker.replacedBy).toEqual([]);
    await worker.heartbeat.stop();
  });

  test('a freeze is noticed first: no renewal of a tenure that is over (L5)', async () => {
    const worker = await started();
    worker.clock.freeze(3_600 * SECOND);
    expect(worker.heartbeat.isPublished()).toBe(false);
    await worker.clock.advance(SECOND);
    expect(worker.store.kinds()).toEqual(['read', 'acquire']);
    expect(worker.record?.leaseTransitions).toBe(2);
    await worker.heartbeat.stop();
  });
});

describe('two incarnations', () => {
  test('never share a record: the one that was replaced falls silent for good', async () => {
    const first = await started();
    const { clock } = first;
    const second = await started({ clock, memory: first.store.memory, replace: true, id: 'b' });
    await clock.advance(11 * SECOND);
    const holder = second.heartbeat.holderIdentity;
    expect(first.replacedBy).toEqual([holder]);
    expect(first.heartbeat.health()).toMatchObject({ healthy: false, state: 'replaced' });
    first.forget();
    await clock.advance(600 * SECOND);
    expect(first.store.calls).toEqual([]);
    expect(first.record).toMatchObject({ holderIdentity: holder, leaseTransitions: 2 });
    await settled(clock, first.heartbeat.stop());
    expect(first.record?.holderIdentity).toBe(holder);
    await second.heartbeat.stop();
    expect(clock.timers).toBe(0);
  });

  test('nor when the other took over during an outage, and has expired since', async () => {
    const worker = await started();
    worker.clock.freeze(300 * SECOND);
    const taken = other(worker.clock, 100 * SECOND);
    worker.store.memory.poke(LEASE, taken);
    await worker.clock.advance(60 * SECOND);
    expect(worker.replacedBy).toEqual(['host/2/other']);
    expect(worker.store.memory.peek(LEASE)).toEqual(taken);
  });

  test('of which one throws in its callback harm nobody', async () => {
    const worker = await started({
      onReplaced: () => {
        throw new Error('mine');
      },
    });
    worker.store.memory.poke(LEASE, other(worker.clock));
    await worker.clock.advance(11 * SECOND);
    expect(worker.heartbeat.health().state).toBe('replaced');
  });
});

describe('readiness', () => {
  test('is told at once, with a reason, and travels with every renewal', async () => {
    const worker = await started();
    await settled(worker.clock, worker.heartbeat.setReady(false, 'warming up'));
    expect(worker.store.kinds()).toEqual(['renew']);
    const unready = { ready: 'false', readyReason: 'warming up' };
    expect(worker.record?.annotations).toMatchObject(unready);
    await worker.clock.advance(25 * SECOND);
    expect(worker.record?.annotations).toMatchObject(unready);
    expect(worker.heartbeat.health()).toMatchObject({ healthy: true, ready: false });
    await settled(worker.clock, worker.heartbeat.setReady(true));
    expect(worker.record?.annotations).not.toHaveProperty('ready');
    await worker.heartbeat.stop();
  });

  test('that is told before the start is in the first write', async () => {
    const worker = new Worker({ clock: new FakeClock() });
    await worker.heartbeat.setReady(false);
    await settled(worker.clock, worker.heartbeat.start());
    expect(worker.store.kinds()).toEqual(['acquire']);
    expect(worker.record?.annotations).toMatchObject({ ready: 'false' });
    await worker.heartbeat.stop();
  });

  test('changed while a renewal is under way is told by another one', async () => {
    const worker = await started();
    worker.store.plan('renew', { answerMs: 500 });
    const first = worker.heartbeat.setReady(false, 'one');
    await worker.clock.advance(100);
    const second = worker.heartbeat.setReady(false, 'two');
    await settled(worker.clock, Promise.all([first, second]));
    expect(worker.store.of('renew')).toHaveLength(2);
    expect(worker.record?.annotations['readyReason']).toBe('two');
    await worker.heartbeat.stop();
  });

  test('that cannot be told does not hammer the store, and is told in the end', async () => {
    const worker = await started();
    worker.store.plan('renew', DOWN, DOWN, DOWN, DOWN, DOWN);
    const told = worker.heartbeat.setReady(false);
    await worker.clock.advance(9 * SECOND);
    expect(worker.store.of('renew')).toHaveLength(5);
    await settled(worker.clock, told);
    expect(worker.record?.annotations['ready']).toBe('false');
    await worker.heartbeat.stop();
  });

  test('gives a reason that is cut to its budget', async () => {
    const worker = await started();
    await settled(worker.clock, worker.heartbeat.setReady(false, 'x'.repeat(1_000)));
    expect(worker.record?.annotations['readyReason']).toBe('x'.repeat(48));
    await worker.heartbeat.stop();
  });
});

describe('a clean stop', () => {
  test('deletes the record with one request, and leaves no timer', async () => {
    const worker = await started();
    await settled(worker.clock, worker.heartbeat.stop());
    expect(worker.store.kinds()).toEqual(['remove']);
    expect(worker.record).toBeUndefined();
    expect(worker.clock.timers).toBe(0);
    expect(worker.heartbeat.health()).toMatchObject({ healthy: false, state: 'stopped' });
  });

  test('is idempotent, and safe before any start', async () => {
    const worker = await started();
    const both = Promise.all([worker.heartbeat.stop(), worker.heartbeat.stop()]);
    await settled(worker.clock, both);
    await settled(worker.clock, worker.heartbeat.stop());
    expect(worker.store.of('remove')).toHaveLength(1);
    const never = new Worker({ clock: new FakeClock() });
    await never.heartbeat.stop();
    expect(never.store.calls).toEqual([]);
  });

  test('comes with `await using`', async () => {
    const worker = new Worker({ clock: new FakeClock() });
    {
      await using heartbeat = worker.heartbeat;
      await heartbeat.start();
    }
    expect(worker.record).toBeUndefined();
  });

  test('adopts a renewal that was applied unseen (L7)', async () => {
    const worker = await started();
    worker.store.plan('renew', { hang: true });
    await worker.clock.advance(10.5 * SECOND);
    await settled(worker.clock, worker.heartbeat.stop());
    expect(worker.store.kinds()).toEqual(['renew', 'remove', 'remove']);
    expect(worker.record).toBeUndefined();
  });

  test('deletes an acquisition that was applied unseen (L7)', async () => {
    const worker = new Worker({ clock: new FakeClock() });
    worker.store.plan('acquire', { hang: true });
    const start = rejection(worker.heartbeat.start());
    await worker.clock.advance(SECOND);
    await settled(worker.clock, worker.heartbeat.stop());
    expect(isLeaseError(await start, 'lease-stopped')).toBe(true);
    expect(worker.record).toBeUndefined();
    expect(worker.clock.timers).toBe(0);
  });

  test('interrupts a start that cannot succeed', async () => {
    const worker = new Worker({ clock: new FakeClock(), script: () => BLACK_HOLE });
    const start = rejection(worker.heartbeat.start());
    await worker.clock.advance(60 * SECOND);
    const stop = worker.heartbeat.stop();
    await settled(worker.clock, stop);
    expect(isLeaseError(await start, 'lease-stopped')).toBe(true);
    expect(worker.clock.timers).toBe(0);
  });

  test('interrupts a renewal under way, and never waits longer than two calls', async () => {
    const worker = await started();
    worker.store.script = () => BLACK_HOLE;
    await worker.clock.advance(10.5 * SECOND);
    const before = worker.clock.read().monotonicMs;
    await settled(worker.clock, worker.heartbeat.stop());
    expect(worker.clock.read().monotonicMs - before).toBeLessThanOrEqual(6.1 * SECOND);
    expect(worker.clock.timers).toBe(0);
  });

  test('leaves the record of whoever took over meanwhile', async () => {
    const worker = await started();
    const taken = other(worker.clock);
    worker.store.memory.poke(LEASE, taken);
    await settled(worker.clock, worker.heartbeat.stop());
    expect(worker.store.memory.peek(LEASE)).toEqual(taken);
  });

  test('deletes its own record also after its tenure has expired', async () => {
    const worker = await started();
    worker.store.script = ({ kind }) => (kind === 'remove' ? undefined : DOWN);
    await worker.clock.advance(120 * SECOND);
    expect(worker.heartbeat.health().state).toBe('lost');
    await settled(worker.clock, worker.heartbeat.stop());
    expect(worker.record).toBeUndefined();
  });
});

describe('options', () => {
  const store = new MemoryStore();
  test.each([
    ['a name is required', {}, 'name is undefined'],
    ['three renewals must fit', { leaseDurationSeconds: 29, renewEverySeconds: 10 }, '3 x'],
    [
      'two attempts with their time-outs must fit before belief ends',
      { leaseDurationSeconds: 40, requestTimeoutSeconds: 15 },
      'must leave room',
    ],
    ['grace is a time', { graceSeconds: -1 }, 'graceSeconds is -1'],
    ['toleration is a time', { tolerationSeconds: Number.NaN }, 'tolerationSeconds'],
    ['what the heartbeat says is not set by hand', { annotations: { ready: 'yes' } }, 'ready'],
    ['a store must be able to delete', { store: { description: '', read: 1, write: 1 } }, 'store'],
    ['a misspelt option is told', { graceSecs: 4 }, 'graceSecs'],
    ['replace is a flag', { replace: 'yes' }, 'replace'],
  ])('%s', (title, options, message) => {
    const name = title.startsWith('a name') ? {} : { name: 'worker' };
    const given = { store, ...name, ...options } as never;
    expect(() => new Heartbeat(given)).toThrow(message);
  });
});
