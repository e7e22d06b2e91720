// Electors with slots, on virtual time: so many lead at once, each slot is taken over by itself,
// and what nobody answered never makes one of them hold two.

import { beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { readLease, type Item } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type { Random } from '../../src/random.ts';
import { NEVER_SETTLES } from '../support/scripted-store.ts';
import {
  Candidate,
  held,
  SECOND,
  SeededRandom,
  untilTold,
  type CandidateOptions,
} from '../election/harness.ts';
import { Machine } from '../election/machine.ts';

let clock: FakeClock;
let memory: MemoryStore;
beforeEach(() => {
  clock = new FakeClock();
  memory = new MemoryStore();
});

const SLOTS = [0, 1, 2];
const key = (slot: number) => `default/job/${slot}`;
const record = (slot: number) => readLease(key(slot), memory.peek(key(slot)) ?? {});
const named = () => SLOTS.filter((slot) => !record(slot).vacant);
const mark = (lease: string, attributes: Item) =>
  memory.poke(lease, { ...memory.peek(lease), ...attributes });
const suspension = { suspended: { M: { by: { S: 'ops' } } } } satisfies Item;
const others = (slot: number) =>
  memory.poke(key(slot), {
    ...held(clock, { by: `host/1/other${slot}` }),
    lease: { S: key(slot) },
  });

/** Chances as of the harness, but for the first: which slot of three to begin with. */
class Beginning implements Random {
  readonly #usual: SeededRandom;
  #first: number | undefined;

  constructor(slot: number, name: string) {
    this.#usual = new SeededRandom(1, name);
    this.#first = (slot + 0.5) / 3;
  }

  fraction(): number {
    const first = this.#first ?? this.#usual.fraction();
    this.#first = undefined;
    return first;
  }

  uuid(): string {
    return this.#usual.uuid();
  }
}

const candidate = (name: string, slot: number, options: Partial<CandidateOptions> = {}) =>
  new Candidate({
    clock,
    memory,
    name,
    slots: 3,
    random: new Beginning(slot, name),
    ...options,
  });
const slotsOf = (candidates: readonly Candidate[]) =>
  candidates.map(({ isLeader, leases }) => (isLeader ? leases.at(-1)?.slot : undefined));

test('three of five lead, each in a slot; one that stops is replaced in its slot', async () => {
  const all = [0, 0, 1, 1, 2].map((slot, index) => candidate(`c${index}`, slot).run());
  await clock.advance(5 * SECOND);
  const leading = () => all.filter(({ isLeader }) => isLeader);
  expect(slotsOf(leading()).sort()).toEqual([0, 1, 2]);
  expect(all.flatMap(({ log }) => log)).toHaveLength(3);
  const one = leading().find(({ lease }) => lease.slot === 1)!;
  one.stop();
  await clock.advance(3 * SECOND);
  expect(one.log.at(-1)).toBe('stopped: stopped');
  expect(slotsOf(leading()).sort()).toEqual([0, 1, 2]);
  expect(leading().find(({ lease }) => lease.slot === 1)?.lease).toMatchObject({
    name: 'job/1',
    fencingToken: 2,
  });
});

test('a crash frees one slot at its expiry, and no other', async () => {
  const machine = new Machine(clock);
  const dead = candidate('dead', 1, { clock: machine, network: clock }).run();
  const live = [0, 2].map((slot) => candidate(`live${slot}`, slot).run());
  await clock.advance(SECOND);
  const standby = candidate('standby', 0).run();
  await clock.advance(4 * SECOND);
  expect(slotsOf([dead, ...live])).toEqual([1, 0, 2]);
  machine.crash();
  await clock.advance(10 * SECOND);
  expect(standby.isLeader).toBe(false);
  await clock.advance(6 * SECOND);
  expect(standby.lease).toMatchObject({ slot: 1, fencingToken: 2 });
  expect(slotsOf(live)).toEqual([0, 2]);
  expect(live.map(({ log }) => log.length)).toEqual([1, 1]);
});

test('one that was frozen finds its slot taken, and does not come back into it', async () => {
  const machine = new Machine(clock);
  const frozen = candidate('frozen', 1, { clock: machine, network: clock }).run();
  const live = [0, 2].map((slot) => candidate(`live${slot}`, slot).run());
  await clock.advance(SECOND);
  const standby = candidate('standby', 0).run();
  machine.freeze(30 * SECOND, { monotonicRuns: false });
  await clock.advance(40 * SECOND);
  expect(standby.lease).toMatchObject({ slot: 1, fencingToken: 2 });
  expect(frozen.log).toEqual(['started frozen-1, token 1', 'stopped: expired']);
  expect(frozen.leases[0]?.isHeld()).toBe(false);
  expect(slotsOf([...live, standby, frozen])).toEqual([0, 2, 1, undefined]);
});

describe('what nobody answered', () => {
  test('is adopted in its slot, though others are free', async () => {
    const a = candidate('a', 1);
    a.store.plan('acquire', { lose: 'answer' }, { lose: 'answer' });
    let reads = 0;
    a.store.script = ({ kind }) =>
      kind === 'read' && ++reads === 2 ? { lose: 'answer' } : undefined;
    a.run();
    await clock.advance(SECOND / 2);
    expect(named()).toEqual([1]);
    expect(a.isLeader).toBe(false);
    await clock.advance(3 * SECOND);
    expect(a.log).toEqual(['error: store-unavailable', 'started a-1, token 1']);
    expect(named()).toEqual([1]);
  });

  test('also where that is not the slot that it began with, and this one is free again', async () => {
    others(0);
    const a = candidate('a', 0);
    a.store.plan('acquire', {}, { lose: 'answer' }, { lose: 'answer' });
    a.store.script = ({ kind, consistent }) =>
      kind === 'read' && consistent === true ? { lose: 'answer' } : undefined;
    a.run();
    await clock.advance(SECOND / 2);
    expect(named()).toEqual([0, 1]);
    memory.poke(key(0), {});
    await clock.advance(3 * SECOND);
    expect(a.lease.slot).toBe(1);
    expect(named()).toEqual([1]);
  });

  test('and was never applied is tried there again', async () => {
    const a = candidate('a', 1);
    a.store.plan('acquire', { lose: 'request' }, { lose: 'request' });
    a.run();
    await clock.advance(3 * SECOND);
    expect(a.lease.slot).toBe(1);
    expect(named()).toEqual([1]);
    expect(new Set(a.store.of('acquire').map(({ lease }) => lease))).toEqual(new Set([key(1)]));
  });

  test('and which another has meanwhile is settled by a refusal, before the next slot', async () => {
    const a = candidate('a', 1);
    a.store.plan('acquire', { lose: 'request' }, { lose: 'request', after: () => undefined });
    a.run();
    await clock.advance(SECOND / 2);
    others(1);
    await clock.advance(3 * SECOND);
    expect(a.lease.slot).toBe(2);
    expect(a.store.of('acquire').map(({ lease, outcome }) => `${lease}: ${outcome}`)).toEqual([
      `${key(1)}: lost`,
      `${key(1)}: lost`,
      `${key(1)}: refused`,
      `${key(2)}: applied`,
    ]);
  });

  test('is given back by one that is told to stop', async () => {
    const a = candidate('a', 1);
    a.store.plan('acquire', { lose: 'answer' }, { lose: 'answer' });
    a.store.script = ({ kind, consistent }) =>
      kind === 'read' && consistent === true && clock.read().monotonicMs < 500
        ? { lose: 'answer' }
        : undefined;
    a.run();
    await clock.advance(SECOND);
    expect(named()).toEqual([1]);
    a.stop();
    await clock.advance(SECOND);
    expect(a.ended).toEqual({});
    expect(named()).toEqual([]);
    expect(a.log).toEqual(['error: store-unavailable']);
  });

  test('of a release is found out before another slot is taken', async () => {
    // Begins at slot 0, which another holds, so that the one it gets is not its first.
    others(0);
    const a = candidate('a', 0, { maxHoldSeconds: 5 }).run();
    await clock.advance(SECOND);
    expect(a.lease.slot).toBe(1);
    memory.poke(key(0), {});
    // For as long as it tries to release, and while it contends again for some time.
    a.store.script = ({ kind }) =>
      kind === 'release' && clock.read().monotonicMs < 12 * SECOND
        ? { lose: 'request' }
        : undefined;
    await clock.advance(5 * SECOND);
    const seen = new Set<string>();
    for (let passedMs = 0; passedMs < 14 * SECOND; passedMs += 100) {
      await clock.advance(100);
      seen.add(named().join());
    }
    expect(
      a.store.of('release').filter(({ outcome }) => outcome === 'lost').length,
    ).toBeGreaterThan(1);
    expect(a.leases.length).toBeGreaterThan(1);
    expect([...seen].filter((slots) => slots.includes(','))).toEqual([]);
  });

  test('and arrives late ends by itself, at the expiry it was sent with', async () => {
    const a = candidate('a', 1);
    a.store.plan('acquire', { ...NEVER_SETTLES, requestMs: 12 * SECOND });
    a.run();
    await clock.advance(SECOND / 2);
    others(1);
    await clock.advance(6 * SECOND);
    expect(a.lease.slot).toBe(2);
    memory.poke(key(1), {});
    await clock.advance(6 * SECOND);
    expect(record(1)).toMatchObject({
      vacant: false,
      holderIdentity: expect.stringMatching(/a-1$/) as string,
    });
    expect(a.leases).toHaveLength(1);
    const b = candidate('b', 1).run();
    await clock.advance(5 * SECOND);
    expect(b.lease.slot).not.toBe(2);
    expect(slotsOf([a, b])[0]).toBe(2);
  });
});

test('one that is told to stop while its acquisition is under way gives the slot back', async () => {
  const a = candidate('a', 1);
  a.store.plan('acquire', { answerMs: SECOND });
  a.run();
  await clock.advance(SECOND / 2);
  expect(named()).toEqual([1]);
  a.stop();
  await clock.advance(SECOND);
  expect(named()).toEqual([]);
  expect(a.ended).toEqual({});
  expect(a.log).toEqual([]);
});

describe('suspended', () => {
  test('on the name: who leads goes on, who waits waits, and resumes with it', async () => {
    const all = [0, 1].map((slot) => candidate(`c${slot}`, slot).run());
    await clock.advance(SECOND);
    mark('default/job', suspension);
    const late = candidate('late', 2).run();
    await clock.advance(60 * SECOND);
    expect(slotsOf([...all, late])).toEqual([0, 1, undefined]);
    all[0]!.stop();
    await clock.advance(10 * SECOND);
    expect(named()).toEqual([1]);
    memory.poke('default/job', {});
    await clock.advance(3 * SECOND);
    expect(late.isLeader).toBe(true);
  });

  test('on one slot: its leader drains and moves to another', async () => {
    const a = candidate('a', 1, { work: untilTold() }).run();
    await clock.advance(SECOND);
    mark(key(1), suspension);
    await clock.advance(6 * SECOND);
    expect(a.log).toEqual(['started a-1, token 1', 'stopped: suspended', 'started a-3, token 1']);
    expect(a.leases.map(({ slot }) => slot)).toEqual([1, 2]);
    expect(named()).toEqual([2]);
  });
});

test('stepDown gives the slot back, and leaves it to others for a while', async () => {
  const all = SLOTS.map((slot) => candidate(`c${slot}`, slot).run());
  const standby = candidate('standby', 0).run();
  await clock.advance(SECOND);
  void all[1]!.elector.stepDown();
  await clock.advance(3 * SECOND);
  expect(all[1]!.log.at(-1)).toBe('stopped: stepped down');
  expect(standby.lease).toMatchObject({ slot: 1, fencingToken: 2 });
  await clock.advance(30 * SECOND);
  expect(slotsOf([...all, standby])).toEqual([0, undefined, 2, 1]);
});

describe('health', () => {
  test('is green for who leads and for who stands by while all slots are held', async () => {
    const all = SLOTS.map((slot) => candidate(`c${slot}`, slot).run());
    await clock.advance(SECOND);
    const standby = candidate('standby', 1).run();
    await clock.advance(60 * SECOND);
    expect(all[2]!.elector.health()).toMatchObject({ healthy: true, leading: true });
    expect(standby.elector.health()).toMatchObject({
      healthy: true,
      leading: false,
      leader: expect.stringMatching(/c\d-1$/) as string,
    });
  });

  test('is red when nobody may lead for long, and when the store is silent', async () => {
    mark('default/job', suspension);
    const a = candidate('a', 1).run();
    await clock.advance(25 * SECOND);
    expect(a.elector.health().problems).toEqual([
      expect.stringMatching(/^Nobody has held lease "default\/job" for 2\d/),
    ]);
    a.store.script = () => ({ lose: 'request' });
    await clock.advance(20 * SECOND);
    expect(a.elector.health().problems).toHaveLength(2);
  });
});

describe('what no retry mends', () => {
  test('ends run, as of one lease: a missing permission to write', async () => {
    const a = candidate('a', 1, {
      script: ({ kind }) => (kind === 'acquire' ? { fail: 'access-denied' } : undefined),
    }).run();
    await clock.advance(10 * SECOND);
    expect(a.ended).toMatchObject({ error: { code: 'access-denied' } });
  });

  test('in one slot does not keep anybody from the others', async () => {
    mark(key(1), { version: { S: 'garbage' } });
    const all = [1, 1, 1].map((slot, index) => candidate(`c${index}`, slot).run());
    await clock.advance(10 * SECOND);
    expect(slotsOf(all)).toEqual([2, 0, undefined]);
    expect(all.map(({ ended }) => ended)).toEqual([undefined, undefined, undefined]);
    all[0]!.stop();
    await clock.advance(3 * SECOND);
    expect(slotsOf(all)).toEqual([undefined, 0, 2]);
  });

  test('in every slot ends run', async () => {
    for (const slot of SLOTS) mark(key(slot), { leaseTransitions: { S: 'garbage' } });
    const a = candidate('a', 1).run();
    await clock.advance(10 * SECOND);
    expect(a.ended).toMatchObject({ error: { code: 'corrupt-record' } });
  });
});
