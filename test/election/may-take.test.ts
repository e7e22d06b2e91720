// What a contender last saw, and what it may then do: client-go's table, in the terms of this
// protocol. Each row also counts the requests.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import type { Item } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { Candidate, change, held, LEASE, recordIn, SECOND, vacant } from './harness.ts';

type Stored = (clock: FakeClock) => Item | undefined;

const HOUR = 3_600 * SECOND;
const stopped = { M: { by: { S: 'ops' } } };
const soon = (clock: FakeClock, ms: number) => ({ N: String(clock.read().wallMs + ms) });

async function contender(stored: Stored, options: { readonly trustClocks?: boolean } = {}) {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  memory.poke(LEASE, stored(clock));
  const candidate = new Candidate({ clock, memory, ...options }).run();
  await clock.advance(0);
  return { clock, memory, candidate };
}

describe('a contender whose clock nothing has checked yet', () => {
  test.each<[string, Stored, number, number]>([
    ['a lease that has no record', () => undefined, 1, 1],
    ['a record with nothing in it but its key', () => ({ lease: { S: LEASE } }), 1, 1],
    ['a vacant lease (L3)', (clock) => vacant(clock, { token: 4, renewedAgoMs: HOUR }), 5, 1],
    ['a vacant lease, however recently it was renewed (L3)', (clock) => vacant(clock), 8, 1],
    [
      'an expired lease, once the refusal has proved its clock',
      (clock) => held(clock, { renewedAgoMs: HOUR }),
      8,
      2,
    ],
    ['a lease that expired a moment ago', (clock) => held(clock, { renewedAgoMs: 15_001 }), 8, 2],
    [
      'a vacant lease whose notBefore has passed',
      (clock) => ({ ...vacant(clock), notBefore: soon(clock, -1) }),
      8,
      2,
    ],
    [
      'a vacant lease whose notBefore cannot be read',
      (clock) => ({ ...vacant(clock), notBefore: { S: 'soon' } }),
      8,
      2,
    ],
  ])('takes %s', async (_, stored, token, requests) => {
    const { candidate, memory } = await contender(stored);
    expect(candidate.isLeader).toBe(true);
    expect(candidate.log).toEqual(['new leader a-1', `started a-1, token ${token}`]);
    expect(candidate.store.kinds()).toEqual(Array<string>(requests).fill('acquire'));
    expect(recordIn(memory)).toMatchObject({
      holderIdentity: candidate.lease.holderIdentity,
      leaseTransitions: token,
      kind: 'leader',
    });
  });

  test.each<[string, Stored, string[]]>([
    ['a lease that another holds', (clock) => held(clock), ['new leader other']],
    [
      'a lease that expires this very moment',
      (clock) => held(clock, { renewedAgoMs: 15_000 }),
      ['new leader other'],
    ],
    [
      'a lease whose holder wrote a time in the future',
      (clock) => held(clock, { renewedAgoMs: -HOUR }),
      ['new leader other'],
    ],
    [
      'a held lease without an expireTime',
      (clock) => ({ ...held(clock, { renewedAgoMs: HOUR }), expireTime: { S: '' } }),
      ['new leader other'],
    ],
    [
      'a lease of somebody who cannot be read',
      (clock) => ({ ...held(clock), holderIdentity: { N: '1' } }),
      [],
    ],
    [
      'a vacant lease before its notBefore (L3)',
      (clock) => ({ ...vacant(clock), notBefore: soon(clock, 1_000) }),
      [],
    ],
    [
      'a vacant lease that is suspended (L3)',
      (clock) => ({ ...vacant(clock), suspended: stopped }),
      [],
    ],
    [
      'an expired lease that is suspended',
      (clock) => ({ ...held(clock, { renewedAgoMs: HOUR }), suspended: stopped }),
      ['new leader other'],
    ],
  ])('leaves alone %s', async (_, stored, told) => {
    const { candidate, memory, clock } = await contender(stored);
    expect(candidate.isLeader).toBe(false);
    expect(candidate.log).toEqual(told);
    expect(candidate.store.kinds()).toEqual(['acquire']);
    expect(memory.peek(LEASE)).toEqual(stored(new FakeClock(clock.read().wallMs)));
  });
});

describe('a contender', () => {
  test('takes an expired lease with one request when its clock has been checked', async () => {
    const { candidate, clock, memory } = await contender((now) =>
      held(now, { renewedAgoMs: 13 * SECOND }),
    );
    await clock.advance(2_100);
    expect(candidate.isLeader).toBe(true);
    expect(candidate.store.of('acquire')).toHaveLength(2);
    expect(recordIn(memory).leaseTransitions).toBe(8);
  });

  test('that trusts no clocks waits for the duration in the record, not for its own', async () => {
    const long = (clock: FakeClock) => held(clock, { durationSeconds: 3, renewedAgoMs: HOUR });
    const { candidate, clock } = await contender(long, { trustClocks: false });
    await clock.advance(2_900);
    expect(candidate.isLeader).toBe(false);
    await clock.advance(200);
    expect(candidate.log.at(-1)).toBe('started a-1, token 8');
  });

  test('frees by observation a lease whose times lie in the future', async () => {
    const { candidate, clock } = await contender((now) => held(now, { renewedAgoMs: -HOUR }));
    await clock.advance(14_900);
    expect(candidate.isLeader).toBe(false);
    await clock.advance(200);
    expect(candidate.isLeader).toBe(true);
  });

  test('gives a record without a readable duration a minute, and then takes it', async () => {
    const garbage = {
      leaseDurationSeconds: { S: '15' },
      renewTime: { BOOL: true },
      expireTime: { S: '?' },
    };
    const { candidate, clock } = await contender((now) => ({ ...held(now), ...garbage }));
    await clock.advance(59_900);
    expect(candidate.isLeader).toBe(false);
    await clock.advance(200);
    expect(candidate.isLeader).toBe(true);
  });

  test('starts to watch anew whenever the version has moved on', async () => {
    const { candidate, clock, memory } = await contender((now) =>
      held(now, { renewedAgoMs: -HOUR, version: 70 }),
    );
    for (let version = 71; version < 80; version++) {
      await clock.advance(10 * SECOND);
      change(memory, { version: { N: String(version) } });
    }
    expect(candidate.isLeader).toBe(false);
    await clock.advance(18 * SECOND);
    expect(candidate.isLeader).toBe(true);
  });

  test('takes a record that has no version by its holder and renewTime as read', async () => {
    const { candidate, clock, memory } = await contender((now) => held(now));
    change(memory, { version: undefined, expireTime: undefined });
    await clock.advance(18 * SECOND);
    expect(candidate.isLeader).toBe(true);
    expect(recordIn(memory).version).toBeGreaterThan(Date.UTC(2026, 0, 1));
  });
});

describe('a holder', () => {
  test('renews with one write that keeps its token and its acquireTime', async () => {
    const { candidate, clock, memory } = await contender(() => undefined);
    const acquired = recordIn(memory);
    await clock.advance(2_000);
    const renewed = recordIn(memory);
    expect(candidate.store.kinds()).toEqual(['acquire', 'renew']);
    expect(renewed).toMatchObject({
      holderIdentity: acquired.holderIdentity,
      leaseTransitions: acquired.leaseTransitions,
      acquireTime: acquired.acquireTime,
      version: acquired.version! + 1,
    });
    expect(Date.parse(renewed.renewTime!) - Date.parse(acquired.renewTime!)).toBe(2_000);
  });
});
