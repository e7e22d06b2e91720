// Writes of one lock that overtake each other: what arrives late, arrives at a record that has
// moved on (L1), and neither empties a successor nor leaves the lease with nobody (L7).

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { isoTime } from '../../src/lease.ts';
import { availableEngines } from '../support/dynamodb.ts';
import { acquiredBy, openTable, Site, type Table } from './fixture.ts';

let table: Table;

beforeAll(async () => {
  table = await openTable(availableEngines()[0]!);
});

afterAll(async () => {
  await table[Symbol.asyncDispose]();
});

/** Short enough to give up in a test, long enough for a busy machine to answer. */
const IMPATIENT = { requestTimeoutMs: 700 };

describe.concurrent('a release that meets a renewal under way', () => {
  test('wins when it arrives first', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a');
    const tenure = await a.acquire();
    const renewal = site.hold('renew');
    const renewed = a.renew(tenure);
    await renewal.reached();
    expect(await a.release(tenure)).toEqual({ kind: 'released' });
    renewal.release();
    expect(await renewed).toEqual({ kind: 'lost', reason: 'completed' });
    expect(await site.holder()).toEqual([undefined, 1]);
  });

  test('leaves a successor alone that came before the renewal arrived', async () => {
    await using site = await Site.open(table);
    const [a, b] = [site.contender('a'), site.contender('b')];
    const tenure = await a.acquire();
    const renewal = site.hold('renew');
    const renewed = a.renew(tenure);
    await renewal.reached();
    await a.release(tenure);
    const successor = await b.acquire();
    const before = await site.record();
    renewal.release();
    expect(await renewed).toEqual({ kind: 'lost', reason: 'completed' });
    expect(await site.record()).toEqual(before);
    expect(await b.renew(successor)).toMatchObject({ kind: 'renewed' });
  });

  test('wins when the renewal has been applied and its answer is on the way', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a');
    const tenure = await a.acquire();
    const renewal = site.hold('renew', 'after');
    const renewed = a.renew(tenure);
    await renewal.reached();
    site.proxy.reset();
    expect(await a.release(tenure)).toEqual({ kind: 'released' });
    // The refusal of the first shows the version that the renewal has left.
    expect(site.proxy.counts().operations).toEqual({ UpdateItem: 2 });
    expect(await site.holder()).toEqual([undefined, 1]);
    renewal.release();
    expect(await renewed).toEqual({ kind: 'lost', reason: 'completed' });
    expect(tenure.isHeld()).toBe(false);
  });

  test('wins over a renewal that was given up, and is applied before it', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', IMPATIENT);
    const tenure = await a.acquire();
    const renewal = site.hold('renew');
    expect(await a.renew(tenure)).toMatchObject({ kind: 'unknown' });
    const release = site.hold('release');
    const released = a.release(tenure);
    await release.reached();
    renewal.release();
    await site.reaches(tenure.version + 1);
    release.release();
    expect(await released).toEqual({ kind: 'released' });
    expect(await site.holder()).toEqual([undefined, 1]);
  });

  test('wins over a renewal that was given up, and arrives after it', async () => {
    await using site = await Site.open(table);
    const [a, b] = [site.contender('a', IMPATIENT), site.contender('b')];
    const tenure = await a.acquire();
    const renewal = site.hold('renew');
    expect(await a.renew(tenure)).toMatchObject({ kind: 'unknown' });
    expect(await a.release(tenure)).toEqual({ kind: 'released' });
    await b.acquire();
    const before = await site.record();
    renewal.release();
    await site.settled();
    expect(await site.record()).toEqual(before);
  });
});

describe.concurrent('a write that nobody waits for any more', () => {
  test('is no loss of the tenure that it started (L7)', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', IMPATIENT);
    const first = site.hold('acquire');
    const acquired = a.tryAcquire();
    await first.reached();
    const tenure = acquiredBy(await acquired);
    first.release();
    await site.settled();
    expect(await site.holder()).toEqual(['a/1', 1]);
    expect(await a.renew(tenure)).toMatchObject({ kind: 'renewed' });
  });

  test('being a release, empties no lease that another took meanwhile (L1)', async () => {
    await using site = await Site.open(table);
    const [a, b] = [site.contender('a', IMPATIENT), site.contender('b')];
    const tenure = await a.acquire();
    const release = site.hold('release', 'before', Infinity);
    expect(await a.release(tenure)).toMatchObject({ kind: 'unknown' });
    await site.expire();
    const successor = await b.acquire();
    const before = await site.record();
    release.release();
    await site.settled();
    expect(await site.record()).toEqual(before);
    expect(await b.renew(successor)).toMatchObject({ kind: 'renewed' });
    expect(await a.tryAcquire()).toMatchObject({
      kind: 'refused',
      record: { holderIdentity: 'b/1' },
    });
  });

  test('being an undo, empties no lease that another took meanwhile (L1)', async () => {
    await using site = await Site.open(table);
    const [a, b] = [site.contender('a', IMPATIENT), site.contender('b')];
    site.proxy.inject({ fault: { kind: 'date-shift', ms: 3_600_000 } });
    const undo = site.hold('release', 'before', Infinity);
    expect(await a.tryAcquire()).toMatchObject({ kind: 'failed', error: { code: 'clock-wrong' } });
    expect(await site.holder()).toEqual(['a/1', 1]);
    await site.expire();
    const successor = await b.acquire();
    const before = await site.record();
    undo.release();
    await site.settled();
    expect(await site.record()).toEqual(before);
    expect(await b.renew(successor)).toMatchObject({ kind: 'renewed' });
  });

  test('being an undo, is sent again by the next acquisition', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', IMPATIENT);
    site.proxy.inject({ fault: { kind: 'date-shift', ms: 3_600_000 } });
    const undo = site.hold('release', 'before', Infinity);
    expect(await a.tryAcquire()).toMatchObject({ kind: 'failed', error: { code: 'clock-wrong' } });
    undo.remove();
    expect(acquiredBy(await a.tryAcquire())).toMatchObject({
      holderIdentity: 'a/2',
      fencingToken: 2,
    });
    undo.release();
    await site.settled();
    expect(await site.holder()).toEqual(['a/2', 2]);
  });
});

describe.concurrent('of two renewals under way at once', () => {
  test('the first, applied first, is what belief counts from (L4, L7)', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', IMPATIENT);
    const tenure = await a.acquire();
    const first = site.hold('renew');
    expect(await a.renew(tenure)).toMatchObject({ kind: 'unknown' });
    const second = site.hold('renew');
    const renewed = a.renew(tenure);
    await second.reached();
    first.release();
    await site.reaches(tenure.version + 1);
    // What the lock sends when the refusal has shown it the first one gets no answer.
    const third = site.hold('renew');
    second.release();
    await third.reached();
    expect(await renewed).toMatchObject({ kind: 'unknown' });
    expect(await site.record()).toMatchObject({
      renewTime: { S: isoTime(tenure.believed!.stampMs) },
    });
    expect(tenure.version).toBe(await site.number('version'));
    expect(tenure.isHeld()).toBe(true);
    third.release();
  });

  test('the second, applied first, stands, and the first is refused', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', IMPATIENT);
    const tenure = await a.acquire();
    const first = site.hold('renew');
    expect(await a.renew(tenure)).toMatchObject({ kind: 'unknown' });
    expect(await a.renew(tenure)).toMatchObject({ kind: 'renewed' });
    const before = await site.record();
    first.release();
    await site.settled();
    expect(await site.record()).toEqual(before);
    expect(await a.renew(tenure)).toMatchObject({ kind: 'renewed' });
  });
});

/** Belief ends while a request is under way, which this client would wait for for ever. */
const LATE = {
  client: 'stock client',
  leaseDurationMs: 20_000,
  renewDeadlineMs: 1_500,
} as const;

describe.concurrent('a late success', () => {
  test('of a renewal, after its renew deadline, revives nothing (L4)', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', LATE);
    const tenure = await a.acquire();
    const renewal = site.hold('renew', 'after');
    expect(await a.renew(tenure)).toMatchObject({ kind: 'unknown' });
    // The call ended with belief, give or take a fraction of a millisecond.
    while (tenure.isHeld()) await sleep(1);
    renewal.release();
    await site.settled();
    expect(await a.renew(tenure)).toEqual({ kind: 'lost', reason: 'expired' });
    expect(tenure.isHeld()).toBe(false);
    expect(tenure.remainingMs()).toBe(0);
  });

  test('of an acquisition, after its renew deadline, is none: it is given back', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', LATE);
    const acquisition = site.hold('acquire', 'after');
    expect(await a.tryAcquire()).toMatchObject({
      kind: 'failed',
      error: { code: 'store-unavailable' },
    });
    expect(await site.holder()).toEqual([undefined, 1]);
    acquisition.release();
  });

  test('of the first attempt, while another holds it, is found by the next', async () => {
    await using site = await Site.open(table);
    const [a, b] = [site.contender('a', IMPATIENT), site.contender('b')];
    const other = await b.acquire();
    const first = site.hold('acquire');
    expect(await a.tryAcquire()).toMatchObject({ kind: 'refused' });
    await b.release(other);
    first.release();
    await site.settled();
    expect(await site.holder()).toEqual(['a/1', 2]);
    expect(await a.lock.look()).toMatchObject({ decision: { kind: 'take' } });
    const tenure = await a.acquire();
    expect(tenure).toMatchObject({ holderIdentity: 'a/1', fencingToken: 2 });
    expect(await a.renew(tenure)).toMatchObject({ kind: 'renewed' });
  });

  test('of the first attempt, when its tenure is over, is undone by the next', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', IMPATIENT);
    const first = site.hold('acquire');
    const tenure = await a.acquire();
    expect(await a.release(tenure)).toEqual({ kind: 'released' });
    first.release();
    await site.settled();
    expect(await site.holder()).toEqual(['a/1', 2]);
    expect(await a.lock.look()).toMatchObject({ decision: { kind: 'take' } });
    expect(await a.acquire()).toMatchObject({ holderIdentity: 'a/2', fencingToken: 3 });
  });

  test('of an attempt from before the clock was set back is undone by the next', async () => {
    await using site = await Site.open(table);
    let aheadMs = 300;
    const read = () => {
      const { wallMs, monotonicMs } = systemClock.read();
      return { wallMs: wallMs + aheadMs, monotonicMs };
    };
    const a = site.contender('a', { ...IMPATIENT, clock: { ...systemClock, read } });
    site.proxy.inject({ fault: { kind: 'black-hole', when: 'after' }, times: Infinity });
    expect(await a.tryAcquire()).toMatchObject({ kind: 'failed' });
    expect(await site.holder()).toEqual(['a/1', 1]);
    site.proxy.clearFaults();
    aheadMs = 0;
    expect(await a.acquire()).toMatchObject({ holderIdentity: 'a/2', fencingToken: 2 });
  });
});
