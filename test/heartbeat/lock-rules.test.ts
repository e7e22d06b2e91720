// What a lock may take by rule, and what it deletes.

import { describe, expect, test } from 'vitest';
import { readEnvironment } from '../../src/environment.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import type { Item } from '../../src/lease.ts';
import { makeLock, makeWorld } from '../../src/setup.ts';
import { SeededRandom, silent } from '../election/harness.ts';
import { ScriptedStore } from '../support/scripted-store.ts';
import { LEASE, other, SECOND } from './stage.ts';

const TERMS = { leaseDurationMs: 40_000, renewDeadlineMs: 30_000 };

function contender(record?: (clock: FakeClock) => Item) {
  const clock = new FakeClock();
  const store = new ScriptedStore({ clock });
  if (record !== undefined) store.memory.poke(LEASE, record(clock));
  const options = { store, clock, logger: silent, random: new SeededRandom(1, 'me') };
  const environment = readEnvironment();
  const lock = makeLock(
    {
      name: 'worker',
      kind: 'heartbeat',
      options,
      environment,
      leaseDurationMs: 40_000,
      toleranceMs: 10_000,
      requestTimeoutMs: 3_000,
    },
    makeWorld(options, environment),
  );
  return { lock, store, clock };
}

const live = (clock: FakeClock) => other(clock);
const expired = (clock: FakeClock) => other(clock, 41 * SECOND);
const vacant = (clock: FakeClock) =>
  Object.fromEntries(
    Object.entries(other(clock)).filter(([name]) => !/holderIdentity|expireTime/.test(name)),
  );
const suspended = (clock: FakeClock) => other(clock, 0, { suspended: { M: {} } });
const leader = (clock: FakeClock) => other(clock, 0, { kind: { S: 'leader' } });
const versionless = (clock: FakeClock) =>
  Object.fromEntries(Object.entries(other(clock)).filter(([name]) => name !== 'version'));

describe('a lock', () => {
  test.each([
    ['nothing', undefined, 'acquired', 'acquired', 'acquired'],
    ['what is vacant', vacant, 'acquired', 'acquired', 'acquired'],
    ["another's that lives", live, 'refused', 'acquired', 'refused'],
    ["another's without a version", versionless, 'refused', 'acquired', 'refused'],
    ["another's that has expired", expired, 'acquired', 'acquired', 'refused'],
    ['what is suspended', suspended, 'refused', 'refused', 'refused'],
    ['what is of another kind', leader, 'failed', 'failed', 'failed'],
  ] as const)('that finds %s', async (_, record, plain, evenHeld, onlyOwn) => {
    const answers = await Promise.all(
      [{}, { evenHeld: true }, { onlyOwn: true }].map(async (options) => {
        const { kind } = await contender(record).lock.tryAcquire(() => TERMS, options);
        return kind;
      }),
    );
    expect(answers).toEqual([plain, evenHeld, onlyOwn]);
  });

  test('that replaces a live holder meets its renewal, and takes what that wrote', async () => {
    const { lock, store, clock } = contender(live);
    await lock.look();
    store.plan('acquire', {
      before: () => store.memory.poke(LEASE, other(clock, 0, { version: { N: '71' } })),
    });
    expect(await lock.tryAcquire(() => TERMS, { evenHeld: true })).toMatchObject({
      kind: 'acquired',
      record: { version: 72, leaseTransitions: 8 },
    });
  });

  test('that takes only its own leaves what another took between its read and its write', async () => {
    const { lock, store, clock } = contender();
    const mine = await lock.tryAcquire(() => TERMS);
    expect(mine.kind).toBe('acquired');
    const taken = other(clock, 41 * SECOND, { leaseTransitions: { N: '2' } });
    store.plan('acquire', { before: () => store.memory.poke(LEASE, taken) });
    const answer = await lock.tryAcquire(() => TERMS, { onlyOwn: true });
    expect(answer.kind).toBe('refused');
    expect(store.memory.peek(LEASE)).toEqual(taken);
  });

  test('deletes its own record, and nothing else', async () => {
    const { lock, store, clock } = contender();
    const answer = await lock.tryAcquire(() => TERMS);
    if (answer.kind !== 'acquired') throw new Error(answer.kind);
    expect(await lock.remove(answer.tenure)).toEqual({ kind: 'released' });
    expect(store.memory.peek(LEASE)).toBeUndefined();
    store.memory.poke(LEASE, other(clock));
    expect(await lock.remove(answer.tenure)).toEqual({ kind: 'released' });
    expect(store.memory.peek(LEASE)).toEqual(other(clock));
  });

  test('cannot tell whether it deleted when nobody answers', async () => {
    const { lock, store } = contender();
    const answer = await lock.tryAcquire(() => TERMS);
    if (answer.kind !== 'acquired') throw new Error(answer.kind);
    const down = { fail: 'store-unavailable' } as const;
    store.plan('remove', down, down, down);
    expect(await lock.remove(answer.tenure)).toMatchObject({ kind: 'unknown' });
  });
});
