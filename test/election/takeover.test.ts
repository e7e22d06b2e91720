// A holder that dies, in whatever state: its lease is taken over in time, and never before.

import { describe, expect, test } from 'vitest';
import { holds } from '../../src/condition.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { sendGuarded } from '../../src/guarded.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { stillHeld } from '../../src/writes.ts';
import { ScriptedServer } from '../guarded/scripted-client.ts';
import { adding, outcome } from '../guarded/stage.ts';
import { BLACK_HOLE, type CallKind, type Fault } from '../support/scripted-store.ts';
import { Candidate, LEASE, recordIn, SECOND, untilTold } from './harness.ts';
import { Machine } from './machine.ts';

const ROUND_TRIP = 200;
/** Each way takes half of it. */
const network: Fault = { requestMs: ROUND_TRIP / 2, answerMs: ROUND_TRIP / 2 };

function scene() {
  const world = new FakeClock();
  const memory = new MemoryStore();
  const join = (name: string, offsetMs = 0) => {
    const clock = new Machine(world, offsetMs);
    const work = untilTold(world, 3 * SECOND);
    const candidate = new Candidate({ clock, network: world, memory, name, work }).run();
    candidate.store.script = () => network;
    return { clock, candidate };
  };
  return { world, memory, join };
}

describe('a holder that is killed', () => {
  test.each<[string, number, boolean, CallKind, Fault]>([
    ['while its acquisition is on its way', 50, false, 'acquire', network],
    ['while its acquisition is being answered', 150, false, 'acquire', network],
    ['just after it has acquired', 201, false, 'acquire', network],
    ['between two renewals', 3_000, false, 'renew', network],
    ['while its renewal is on its way', 2_050, false, 'renew', network],
    ['while its renewal is being answered', 2_150, false, 'renew', network],
    ['while its renewal hangs, applied', 4_000, false, 'renew', { ...network, hang: true }],
    [
      'while its renewal hangs, lost',
      4_000,
      false,
      'renew',
      { ...network, hang: true, lose: 'request' },
    ],
    ['while it drains', 2_600, true, 'renew', network],
    ['while its release is on its way', 5_650, true, 'renew', network],
    ['while its release is lost', 5_650, true, 'release', { ...network, lose: 'request' }],
    ['while its release is being answered', 5_750, true, 'release', network],
  ])(
    '%s is replaced within duration, period and round trips',
    async (_, killedAt, stop, kind, fault) => {
      const { world, memory, join } = scene();
      const first = join('a');
      first.candidate.store.plan(kind, fault);
      await world.advance(10);
      const next = join('b');
      let leftMs = killedAt - 10;
      if (stop) {
        await world.advance(2_500 - 10);
        first.candidate.stop();
        leftMs = killedAt - 2_500;
      }
      await world.advance(leftMs);
      first.clock.crash();
      let before = recordIn(memory);
      for (let waitedMs = 0; !next.candidate.isLeader; waitedMs += 10) {
        expect(waitedMs).toBeLessThan(15 * SECOND + 2.2 * 2 * SECOND + 2 * ROUND_TRIP);
        const now = recordIn(memory);
        if (now.leaseTransitions <= 1) before = now;
        await world.advance(10);
      }
      const { acquireTime, leaseTransitions } = recordIn(memory);
      expect(leaseTransitions).toBe(before.leaseTransitions + 1);
      if (!before.vacant) expect(Date.parse(acquireTime!)).toBeGreaterThan(before.expireTimeMs!);
    },
  );

  test('is replaced one round trip after its expiry by whoever has read when that is', async () => {
    const { world, memory, join } = scene();
    const first = join('a');
    await world.advance(SECOND);
    const next = join('b');
    await world.advance(10 * SECOND);
    first.clock.crash();
    await world.advance(SECOND);
    const { expireTimeMs } = recordIn(memory);
    await world.advance(expireTimeMs! - world.read().wallMs);
    expect(next.candidate.isLeader).toBe(false);
    await world.advance(ROUND_TRIP + 25);
    expect(next.candidate.isLeader).toBe(true);
  });

  test.each([
    ['ahead by less than the tolerance allows', 600],
    ['behind by less than the tolerance allows', -600],
  ])('is not replaced while it may believe, by a clock that is %s', async (_, offsetMs) => {
    const { world, join } = scene();
    const first = join('a', -offsetMs);
    await world.advance(SECOND);
    const next = join('b', offsetMs);
    await world.advance(10 * SECOND);
    const { candidate } = first;
    candidate.store.script = () => ({ lose: 'request', hang: true });
    for (let ms = 0; ms < 20 * SECOND; ms += 10) {
      await world.advance(10);
      expect(candidate.isLeader && next.candidate.isLeader).toBe(false);
    }
    expect(next.candidate.isLeader).toBe(true);
  });
});

describe('a holder that stood still through its successor’s acquisition', () => {
  test.each([
    ['with its monotonic clock running', true],
    ['with its monotonic clock stopped too', false],
  ])('%s, does not believe when it wakes, and writes nothing (L4)', async (_, monotonicRuns) => {
    const { world, memory, join } = scene();
    const first = join('a');
    await world.advance(SECOND);
    const next = join('b');
    await world.advance(2 * SECOND);
    const sent = first.candidate.store.of('renew').length;
    first.clock.freeze(40 * SECOND, { monotonicRuns });
    await world.advance(39 * SECOND);
    expect(next.candidate.isLeader).toBe(true);
    await world.advance(SECOND);
    expect(first.candidate.isLeader).toBe(false);
    await world.advance(10 * SECOND);
    expect(first.candidate.store.of('renew')).toHaveLength(sent);
    expect(first.candidate.store.of('release')).toEqual([]);
    expect(recordIn(memory).holderIdentity).toBe(next.candidate.lease.holderIdentity);
    expect(first.candidate.log.slice(2)).toEqual([
      'stopped: expired',
      'error: lease-stopped',
      'new leader b-1',
    ]);
  });
});

describe('a holder whose renewals are held up beyond its deadline', () => {
  const lateMs = 20 * SECOND;
  const onTheWay: Fault = { requestMs: lateMs, ignoreSignal: true };
  const onTheWayBack: Fault = { ...network, answerMs: lateMs, ignoreSignal: true };
  // Sent at 8.3 s, applied, and answered at 11 s: that is less than the time-out of a call.
  const untilJustAfter: Fault = { ...network, answerMs: 2_600 };
  test.each<[string, Fault[], string]>([
    ['on their way', [onTheWay, onTheWay, onTheWay], 'given'],
    ['on their way back', [onTheWayBack, onTheWayBack, onTheWayBack], 'given'],
    ['and the last is answered just after it', [BLACK_HOLE, BLACK_HOLE, untilJustAfter], 'failed'],
  ])('%s, stops in time and stays stopped (L4, L7)', async (_, faults, inTheEnd) => {
    const { world, memory, join } = scene();
    const { candidate } = join('a');
    await world.advance(SECOND);
    // Nor does anything else get through to it: it does not contend with the other.
    candidate.store.plan('renew', ...faults);
    candidate.store.script = () => BLACK_HOLE;
    const next = join('b').candidate;
    const { lease } = candidate;
    const abortedAt: number[] = [];
    lease.signal.addEventListener('abort', () => abortedAt.push(world.read().monotonicMs));

    await world.advance(9 * SECOND - 1);
    expect([lease.isHeld(), abortedAt]).toEqual([true, []]);
    await world.advance(1);
    // By a timer, while its calls are still open: before anybody asks.
    expect(abortedAt).toEqual([10 * SECOND]);
    expect([lease.isHeld(), candidate.isLeader]).toEqual([false, false]);
    expect(candidate.store.of('renew').map(({ answer }) => answer)).not.toContain('given');

    const staysStopped = async (forMs: number) => {
      for (let leftMs = forMs; leftMs > 0; leftMs -= 100) {
        await world.advance(Math.min(leftMs, 100));
        expect([lease.isHeld(), lease.remainingMs()]).toEqual([false, 0]);
      }
    };
    await staysStopped(recordIn(memory).expireTimeMs! - world.read().wallMs);
    expect(next.isLeader).toBe(false);
    // It may be reading at this very moment: then it reads, writes, and is told.
    await staysStopped(2 * ROUND_TRIP + 25);
    expect([next.isLeader, next.lease.fencingToken]).toEqual([true, 2]);

    // What its work still writes is refused: here where it is sent, and at the table.
    const server = new ScriptedServer([]);
    expect(await outcome(sendGuarded(server.client, adding(), lease))).toBe('lease-lost');
    expect(server.sent).toEqual([]);
    const guard = stillHeld(lease.holderIdentity, lease.fencingToken);
    expect(holds(guard, memory.peek(LEASE)!)).toBe(false);

    await staysStopped(2 * lateMs);
    const answers = candidate.store.of('renew').map(({ answer }) => answer);
    expect(answers).toEqual([inTheEnd, inTheEnd, inTheEnd]);
    expect(candidate.told('st')).toEqual(['started a-1, token 1', 'stopped: expired']);
    expect(abortedAt).toHaveLength(1);
    expect(next.isLeader).toBe(true);
    expect(recordIn(memory).holderIdentity).toBe(next.lease.holderIdentity);
  });
});
