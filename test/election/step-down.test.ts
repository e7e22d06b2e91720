// A leader that can no longer know that it leads: when it stops, and that nothing revives it.

import { describe, expect, test } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE, NEVER_SETTLES, type Fault } from '../support/scripted-store.ts';
import { Candidate, change, deferred, recordIn, SECOND, usurp } from './harness.ts';

async function leader() {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory }).run();
  await clock.advance(0);
  expect(candidate.isLeader).toBe(true);
  const abortedAt: number[] = [];
  const { signal } = candidate.lease;
  signal.addEventListener('abort', () => abortedAt.push(clock.read().monotonicMs));
  return { clock, memory, candidate, store: candidate.store, abortedAt, signal };
}

describe('a leader whose renewals fail from the start', () => {
  test.each<[string, Fault]>([
    ['are never settled, not even by their signal', { ...NEVER_SETTLES, lose: 'request' }],
    ['are dropped', BLACK_HOLE],
    ['are answered with errors at once', { fail: 'store-unavailable' }],
    ['are denied', { fail: 'access-denied' }],
    ['find no table', { fail: 'table-not-found' }],
    ['never reach the table', { lose: 'request' }],
    ['are applied, and never answered', { hang: true }],
  ])('because they %s is told to stop at the renew deadline, by a timer', async (_, fault) => {
    const { clock, candidate, store, abortedAt, signal } = await leader();
    // Reads work: they say nothing about whether the lease could be renewed.
    store.script = ({ kind }) => (kind === 'read' ? {} : fault);
    await clock.advance(9_999);
    expect(abortedAt).toEqual([]);
    await clock.advance(1);
    // Before anybody asks: asking compares the clocks too.
    expect(abortedAt).toEqual([10_000]);
    expect(candidate.isLeader).toBe(false);
    expect(isLeaseError(signal.reason, 'lease-lost')).toBe(true);
    await clock.advance(4 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: expired']);
  });

  test('is not revived by a success that comes late (L4)', async () => {
    const { clock, memory, candidate, store, signal } = await leader();
    const first = candidate.lease;
    // Sent at 8.3 s, applied at 11 s: the record is ours until 23.3 s, and we do not lead.
    store.plan('renew', BLACK_HOLE, BLACK_HOLE, { requestMs: 2_700 });
    await clock.advance(9_999);
    expect(first.isHeld()).toBe(true);
    for (let atMs = 10_000; atMs < 23_300; atMs += 100) {
      await clock.advance(atMs === 10_000 ? 1 : 100);
      expect([atMs, first.isHeld(), first.remainingMs(), signal.aborted]).toEqual([
        atMs,
        false,
        0,
        true,
      ]);
      expect(candidate.isLeader).toBe(false);
    }
    expect(recordIn(memory).holderIdentity).toBe(first.holderIdentity);
    await clock.advance(200);
    expect(candidate.lease.fencingToken).toBe(2);
    expect(first.isHeld()).toBe(false);
  });

  test('is not revived by an answer that its machine finds on waking (L4)', async () => {
    const { clock, candidate, store, abortedAt } = await leader();
    const gate = deferred();
    // Sent at 8.3 s, when belief ends at 10 s; answered at 11.4 s, before any timer has fired.
    store.plan('renew', BLACK_HOLE, BLACK_HOLE, { until: gate.promise });
    await clock.advance(8_400);
    clock.freeze(3 * SECOND);
    gate.resolve();
    await clock.advance(0);
    expect(store.of('renew').at(-1)).toMatchObject({ outcome: 'applied', answer: 'given' });
    expect(abortedAt).toEqual([11_400]);
    expect([candidate.isLeader, candidate.told('stopped')]).toEqual([false, ['stopped: expired']]);
  });

  test('keeps trying until then, and never waits longer than a period between two attempts', async () => {
    const { clock, store } = await leader();
    store.script = ({ kind }) => (kind === 'renew' ? { fail: 'store-unavailable' } : undefined);
    await clock.advance(10 * SECOND);
    const sentAt = store.of('renew').map(({ atMs }) => atMs);
    const gaps = sentAt.slice(1).map((atMs, index) => atMs - sentAt[index]!);
    expect(gaps).toEqual([100, 200, 400, 800, 1_600, 2_000, 2_000]);
  });
});

describe('a leader one of whose renewals', () => {
  test.each<[string, Fault]>([
    ['stalls for half of the deadline', { answerMs: 5_000 }],
    ['is never settled', { ...NEVER_SETTLES, lose: 'request' }],
    ['is applied and never answered (L7)', { hang: true }],
    ['is applied, and its answer is lost (L7)', { lose: 'answer' }],
    ['arrives a minute late', { requestMs: 60_000 }],
    ['is answered with an error', { fail: 'store-unavailable' }],
  ])('%s is retried, and goes on leading', async (_, fault) => {
    const { clock, candidate, store, abortedAt } = await leader();
    store.plan('renew', fault);
    await clock.advance(120 * SECOND);
    expect(abortedAt).toEqual([]);
    expect(candidate.isLeader).toBe(true);
    expect(candidate.log).toEqual(['new leader a-1', 'started a-1, token 1']);
  });

  test('is slow is given up within half of the deadline, so that another fits', async () => {
    const { clock, store } = await leader();
    store.plan('renew', NEVER_SETTLES);
    await clock.advance(6 * SECOND);
    const [first, second] = store.of('renew');
    expect(second!.atMs - first!.atMs).toBeLessThanOrEqual(5 * SECOND);
  });
});

describe('a leader that sees another in its place', () => {
  test('does not lead from that answer on, and is told once', async () => {
    const { clock, memory, candidate, abortedAt } = await leader();
    await clock.advance(SECOND);
    usurp(memory, clock);
    await clock.advance(SECOND);
    expect(abortedAt).toEqual([2_000]);
    expect(candidate.isLeader).toBe(false);
    await clock.advance(10 * SECOND);
    expect(candidate.log).toEqual([
      'new leader a-1',
      'started a-1, token 1',
      'stopped: taken over',
      'new leader usurper',
    ]);
  });

  test('learns it too from a server that does not show the old record', async () => {
    const { clock, memory, candidate, store } = await leader();
    store.plan('renew', { hideItem: true });
    usurp(memory, clock);
    await clock.advance(2 * SECOND);
    expect(store.kinds()).toEqual(['acquire', 'renew', 'read']);
    expect(store.of('read')[0]?.consistent).toBe(true);
    expect(candidate.told('stopped')).toEqual(['stopped: taken over']);
  });

  test.each([
    ['its own name with something behind it', (me: string) => `${me}0`],
    ['the beginning of its name', (me: string) => me.slice(0, -1)],
    ['its name in capitals', (me: string) => me.toUpperCase()],
  ])('is not taken in by %s', async (_, name) => {
    const { clock, memory, candidate } = await leader();
    change(memory, { holderIdentity: { S: name(candidate.lease.holderIdentity) } });
    await clock.advance(2 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: taken over']);
  });

  test('does not take its own name under another token for its own tenure (L5)', async () => {
    const { clock, memory, candidate } = await leader();
    change(memory, { leaseTransitions: { N: '9' }, version: { N: '12345' } });
    await clock.advance(2 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: taken over']);
  });

  test('was evicted when nobody is in its place', async () => {
    const { clock, memory, candidate } = await leader();
    const { version } = recordIn(memory);
    change(memory, { holderIdentity: undefined, version: { N: String(version! + 1) } });
    await clock.advance(2 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: evicted']);
    await clock.advance(3 * SECOND);
    expect(candidate.lease.fencingToken).toBe(2);
  });
});

describe('a leader whose machine stood still', () => {
  test.each([
    ['while both clocks ran', {}],
    ['and its monotonic clock with it', { monotonicRuns: false }],
    ['and its wall clock with it', { wallRuns: false }],
  ])('%s checks before it renews, and renews nothing', async (_, how) => {
    const { clock, candidate, store, abortedAt } = await leader();
    await clock.advance(5 * SECOND);
    const sent = store.calls.length;
    clock.freeze(60 * SECOND, how);
    await clock.advance(0);
    expect(store.of('renew')).toHaveLength(2);
    expect(store.calls).toHaveLength(sent);
    expect(abortedAt).toHaveLength(1);
    expect(candidate.isLeader).toBe(false);
    await clock.advance(30 * SECOND);
    expect(candidate.told('stopped')).toEqual(['stopped: expired']);
    expect(candidate.lease.fencingToken).toBe(2);
  });

  test('for less than the deadline leads on', async () => {
    const { clock, candidate } = await leader();
    await clock.advance(5 * SECOND);
    clock.freeze(8_900);
    await clock.advance(60 * SECOND);
    expect(candidate.log).toEqual(['new leader a-1', 'started a-1, token 1']);
  });
});

describe('a leader whose wall clock', () => {
  test('is set back leads on, and still stops in time', async () => {
    const { clock, candidate, store } = await leader();
    await clock.advance(3 * SECOND);
    clock.stepWall(-3_600 * SECOND);
    await clock.advance(60 * SECOND);
    expect(candidate.told('stopped')).toEqual([]);
    const lastMs = store.of('renew').at(-1)!.atMs;
    store.script = () => BLACK_HOLE;
    await clock.advance(lastMs + 10 * SECOND - clock.read().monotonicMs - 1);
    expect(candidate.isLeader).toBe(true);
    await clock.advance(1);
    expect(candidate.isLeader).toBe(false);
  });

  test('is set back writes no renewTime that goes back', async () => {
    const { clock, memory } = await leader();
    let last = '';
    for (let step = 0; step < 20; step++) {
      clock.stepWall(step % 2 === 0 ? -60 * SECOND : 100);
      await clock.advance(2 * SECOND);
      const { renewTime } = recordIn(memory);
      expect(renewTime! > last).toBe(true);
      last = renewTime!;
    }
  });

  test('is set forward stops early, and takes nothing until it has been set right', async () => {
    const clock = new FakeClock();
    const machine = new FakeClock();
    const both = async (ms: number) => {
      for (let leftMs = ms; leftMs > 0; leftMs -= 100) {
        await machine.advance(100);
        await clock.advance(100);
      }
    };
    // The table's clock is another one than the machine's.
    const memory = new MemoryStore();
    const candidate = new Candidate({ clock: machine, network: clock, memory }).run();
    await both(3_000);
    expect(candidate.isLeader).toBe(true);
    machine.stepWall(60 * SECOND);
    expect(candidate.isLeader).toBe(false);
    await both(30_000);
    expect(candidate.told('started')).toHaveLength(1);
    expect(candidate.told('error')).toContain('error: clock-wrong');
    // One refused write has shown it; from then on it only reads.
    expect(candidate.store.of('acquire')).toHaveLength(2);
    machine.stepWall(-60 * SECOND);
    await both(5_000);
    expect(candidate.log.at(-1)).toMatch(/^started .*, token 2$/);
  });
});
