// No answer is not an answer (L7): each of these, judged the wrong way round, gives two leaders or
// loses a lease that was held.

import { describe, expect, test } from 'vitest';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE } from '../support/scripted-store.ts';
import { change, Contender, gate, LEASE } from './locksmith.ts';

describe('two renewals in flight', () => {
  test('when the first is applied and the second refused, belief counts from the first', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    // Sent at 0 s, applied, never answered.
    a.store.plan('renew', { lose: 'answer', hang: true });
    const first = a.renew(tenure);
    await a.clock.advance(3_000);
    expect((await first).kind).toBe('unknown');
    await a.clock.advance(3_000);
    // Sent at 6 s with the same version: refused, and its record is the first one's write. The
    // renewal that follows it at once gets no answer either.
    a.store.plan('renew', {}, BLACK_HOLE);
    const second = a.renew(tenure);
    await a.clock.advance(3_000);
    expect((await second).kind).toBe('unknown');
    expect(tenure.remainingMs()).toBe(1_000);
    await a.clock.advance(1_000);
    expect(tenure.isHeld()).toBe(false);
  });

  test('are told apart by their renewTime, though one identity and one token sent both', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    const { opened, open } = gate();
    a.store.plan('renew', { until: opened }, { lose: 'request', hang: true });
    const first = a.renew(tenure);
    await a.clock.advance(3_000);
    await first;
    const second = a.renew(tenure);
    await a.clock.advance(3_000);
    await second;
    // Only now is the first applied. The next renewal meets its record.
    open();
    await a.clock.advance(1_000);
    a.store.plan('renew', {}, BLACK_HOLE);
    const third = a.renew(tenure);
    await a.clock.advance(2_500);
    expect(tenure.isHeld()).toBe(true);
    expect(tenure.remainingMs()).toBe(500);
    await a.clock.advance(500);
    await third;
    expect(tenure.isHeld()).toBe(false);
  });
});

describe('an answer to a renewal that arrives after the renew deadline', () => {
  test('leaves the tenure ended (L4)', async () => {
    const a = new Contender('a', { requestTimeoutMs: 60_000 });
    const tenure = await a.acquire();
    a.store.plan('renew', { answerMs: 10_000 });
    const renewed = a.renew(tenure);
    await a.clock.advance(10_001);
    expect((await renewed).kind).not.toBe('renewed');
    expect(tenure.isHeld()).toBe(false);
    expect(tenure.endReason).toBe('expired');
    const again = await a.renew(tenure);
    expect(again).toEqual({ kind: 'lost', reason: 'expired' });
    expect(a.store.of('renew')).toHaveLength(1);
  });
});

describe('a release that was applied while its answer was lost', () => {
  test('is recognised in the same call', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    a.store.plan('release', { lose: 'answer' });
    expect(await a.lock.release(tenure, 'completed', 6_000)).toEqual({ kind: 'released' });
    expect(a.record().vacant).toBe(true);
  });

  test('leaves a past that an eventually consistent read may show: that is not mine', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    const past = a.store.memory.peek(LEASE);
    const released = a.store.memory;
    a.store.plan('release', { lose: 'answer', hang: true }, BLACK_HOLE, BLACK_HOLE);
    const release = a.lock.release(tenure, 'completed', 6_000);
    await a.clock.advance(6_000);
    expect((await release).kind).toBe('unknown');
    const present = released.peek(LEASE);
    a.store.plan('read', {
      before: () => released.poke(LEASE, past),
      after: () => released.poke(LEASE, present),
    });
    const seen = await a.during(a.lock.look());
    expect(seen.kind === 'seen' && seen.record.holderIdentity).toBe('a-1');
    expect(tenure.isHeld()).toBe(false);
    const next = await a.acquire();
    expect(next.holderIdentity).toBe('a-2');
    expect(next.fencingToken).toBe(tenure.fencingToken + 1);
  });
});

describe('an acquisition whose caller gave up', () => {
  test('may be applied a minute later, and its undo later still: the adopter keeps the lease', async () => {
    const memory = new MemoryStore();
    const a = new Contender('a', { memory });
    const late = gate();
    // Both tries and the read vanish; one try is applied a minute later.
    a.store.plan('acquire', { until: late.opened }, BLACK_HOLE);
    a.store.plan('read', BLACK_HOLE);
    const answer = a.tryAcquire();
    await a.clock.advance(9_000);
    expect((await answer).kind).toBe('failed');
    await a.clock.advance(60_000);
    late.open();
    await a.clock.advance(0);
    expect(a.record().holderIdentity).toBe('a-1');
    // Its stamps are a minute old: anybody with a checked clock takes it at once.
    const b = new Contender('b', { memory, clock: a.clock });
    const tenure = await b.acquire();
    expect(tenure.fencingToken).toBe(2);
    // The undo of the first, with what it knew, comes last and empties nothing.
    const stale = await a.tryAcquire();
    expect(stale.kind).toBe('refused');
    expect(b.record().holderIdentity).toBe('b-1');
    expect((await b.renew(tenure)).kind).toBe('renewed');
  });

  test('is adopted by the next try of the same contender, counting from its own send', async () => {
    const a = new Contender('a');
    a.store.plan('acquire', { lose: 'answer', hang: true }, BLACK_HOLE);
    a.store.plan('read', BLACK_HOLE);
    const answer = a.tryAcquire();
    await a.clock.advance(9_000);
    expect((await answer).kind).toBe('failed');
    // 9 s after the first send; the record lasts 15 s and belief 10 s from there.
    const next = await a.during(a.tryAcquire());
    expect(next.kind).toBe('acquired');
    if (next.kind !== 'acquired') return;
    expect(next.tenure.holderIdentity).toBe('a-1');
    expect(next.tenure.fencingToken).toBe(1);
    expect(next.tenure.remainingMs()).toBe(1_000);
  });

  test('an answer after the renew deadline is no acquisition, and is undone', async () => {
    const a = new Contender('a', { requestTimeoutMs: 60_000, trustClocks: false });
    a.store.plan('acquire', { answerMs: 9_999 });
    const answer = a.tryAcquire();
    await a.clock.advance(9_000);
    a.clock.freeze(1_500);
    await a.clock.advance(0);
    expect((await answer).kind).toBe('failed');
    expect(a.record().vacant).toBe(true);
  });
});

describe('an identity whose undo was sent', () => {
  test('is never adopted by match: the record is undone again', async () => {
    const a = new Contender('a', { requestTimeoutMs: 1_000 });
    // The clock is never proved (answers take 4 s of a tolerance of 5 s), so the acquisition is
    // undone; the undo is lost.
    a.store.script = ({ kind }) => (kind === 'release' ? BLACK_HOLE : { date: 'none' });
    a.store.plan('acquire', { date: 3_600_000 });
    const wrong = a.tryAcquire();
    await a.clock.advance(10_000);
    const failed = await wrong;
    expect(failed.kind === 'failed' && failed.error.code).toBe('clock-wrong');
    expect(a.record().holderIdentity).toBe('a-1');
    // The clock is measured again, and right. The record still names a-1.
    a.store.script = () => undefined;
    const next = await a.during(a.tryAcquire(), 0);
    expect(next.kind).toBe('acquired');
    expect(next.kind === 'acquired' && next.tenure.holderIdentity).toBe('a-2');
    expect(next.kind === 'acquired' && next.tenure.fencingToken).toBe(2);
  });
});

describe('a record deleted and created again by another', () => {
  test('ends the tenure at its next renewal, and survives its release', async () => {
    const memory = new MemoryStore();
    const a = new Contender('a', { memory });
    const tenure = await a.acquire();
    await a.clock.advance(1_000);
    const renewal = gate();
    a.store.plan('renew', { until: renewal.opened });
    const renewed = a.renew(tenure);
    await a.clock.advance(0);
    memory.poke(LEASE, undefined);
    const b = new Contender('b', { memory, clock: a.clock });
    const other = await b.acquire();
    renewal.open();
    expect(await a.during(renewed)).toEqual({ kind: 'lost', reason: 'taken over' });
    expect(await a.lock.release(tenure, 'completed', 6_000)).toEqual({ kind: 'released' });
    expect(b.record().holderIdentity).toBe('b-1');
    expect((await b.during(b.renew(other))).kind).toBe('renewed');
  });

  test('leads to a record above the token that the former holder knew (L2)', async () => {
    const a = new Contender('a');
    change(a.store.memory, {
      lease: { S: LEASE },
      leaseTransitions: { N: '41' },
      version: { N: '9' },
    });
    const tenure = await a.acquire();
    expect(tenure.fencingToken).toBe(42);
    a.store.memory.poke(LEASE, undefined);
    expect(await a.during(a.renew(tenure))).toEqual({ kind: 'lost', reason: 'record deleted' });
    expect(tenure.isHeld()).toBe(false);
    expect((await a.acquire()).fencingToken).toBe(43);
  });
});
