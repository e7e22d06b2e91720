// A store of a user's own that does what no store should: throws at once, throws what is no error,
// answers what is no answer. A leader must still stop in time, and the process go on.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type { LeaseStore } from '../../src/store.ts';
import { Candidate, recordIn, SECOND } from './harness.ts';

type Misbehaviour = () => unknown;

async function rejectWith(whatever: unknown): Promise<never> {
  throw whatever;
}

const MISBEHAVIOURS: readonly (readonly [string, Misbehaviour])[] = [
  [
    'throws at once',
    () => {
      throw new TypeError('no such method');
    },
  ],
  ['rejects with no LeaseError', () => Promise.reject(new RangeError('pool exhausted'))],
  ['rejects with nothing', () => rejectWith(undefined)],
  ['rejects with a text', () => rejectWith('down')],
  ['answers nothing', () => Promise.resolve(undefined)],
  ['answers what is no answer', () => Promise.resolve({ kind: 'nonsense' })],
  ['is not even asynchronous', () => 7],
  ['never answers', () => new Promise(() => undefined)],
];

function scene(misbehave: Misbehaviour) {
  const clock = new FakeClock();
  const memory = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
  const broken = { is: false };
  const answer = <T>(ask: () => Promise<T>) => (broken.is ? (misbehave() as Promise<T>) : ask());
  const store: LeaseStore = {
    description: 'a store of somebody',
    read: (lease, call) => answer(() => memory.read(lease, call)),
    write: (lease, write, call) => answer(() => memory.write(lease, write, call)),
  };
  return { clock, memory, broken, candidate: new Candidate({ clock, store }) };
}

describe.each(MISBEHAVIOURS)('a store that %s', (_, misbehave) => {
  test('ends a tenure at its renew deadline, and the next begins once it is well', async () => {
    const { clock, memory, broken, candidate } = scene(misbehave);
    candidate.run();
    await clock.advance(SECOND);
    expect(candidate.isLeader).toBe(true);
    broken.is = true;
    let ledUntilMs = 0;
    for (let ms = 0; ms < 20 * SECOND; ms += 100) {
      await clock.advance(100);
      if (candidate.isLeader) ledUntilMs = ms + 100;
    }
    expect(ledUntilMs).toBeLessThan(10 * SECOND);
    expect(candidate.told('stopped')).toHaveLength(1);
    expect(candidate.ended).toBeUndefined();
    broken.is = false;
    await clock.advance(20 * SECOND);
    expect(candidate.isLeader).toBe(true);
    expect(candidate.told('started')).toHaveLength(2);
    expect(recordIn(memory).leaseTransitions).toBe(2);
    candidate.stop();
    await clock.advance(10 * SECOND);
    expect(candidate.ended).toEqual({});
    expect(recordIn(memory).vacant).toBe(true);
    expect(clock.timers).toBe(0);
  });

  test('ends a run that is told to stop, in bounded time', async () => {
    const { clock, broken, candidate } = scene(misbehave);
    candidate.run();
    await clock.advance(SECOND);
    broken.is = true;
    candidate.stop();
    await clock.advance(20 * SECOND);
    expect(candidate.ended).toEqual({});
    expect(candidate.told('stopped')).toEqual(['stopped: stopped']);
    expect(clock.timers).toBe(0);
  });
});
