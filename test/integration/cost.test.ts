// What it costs, counted where the requests pass: a bill is part of the contract. One write unit
// for each write, failed ones too; half a read unit for each poll of a contender that stands by.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { contend } from '../../src/contention.ts';
import { isoTime } from '../../src/lease.ts';
import { withLease } from '../../src/with-lease.ts';
import { availableEngines } from '../support/dynamodb.ts';
import { acquiredBy, type Contender, openTable, Site, type Table } from './fixture.ts';

/** One request, one unit. */
const ONE_WRITE = { requests: 1, readUnits: 0, writeUnits: 1 };
const CONTEXT = { awsRequestId: 'request', getRemainingTimeInMillis: () => 30_000 };

describe.each(availableEngines())('on %s', (engine) => {
  let table: Table;
  /** A server that keeps the old item to itself makes a refusal cost a consistent read more. */
  const shows = engine === 'dynoxide';
  const refusal = shows ? ONE_WRITE : { requests: 2, readUnits: 1, writeUnits: 1 };

  beforeAll(async () => {
    table = await openTable(engine);
  });

  afterAll(async () => {
    await table[Symbol.asyncDispose]();
  });

  /** What passes the proxy while `operation` runs. */
  async function costOf(site: Site, operation: () => Promise<unknown>) {
    site.proxy.reset();
    await operation();
    const { requests, readUnits, writeUnits } = site.proxy.counts();
    return { requests, readUnits, writeUnits };
  }

  /** A contender whose clock has been checked. */
  async function warm(site: Site, name: string): Promise<Contender> {
    const contender = site.contender(name);
    await contender.lock.look();
    expect(contender.lock.clockStatus).toEqual({ kind: 'checked' });
    return contender;
  }

  /** The record of a holder that is gone, with so much time left by its expiry. */
  async function crashed(site: Site, leftMs: number): Promise<void> {
    const nowMs = Date.now();
    await site.put({
      kind: { S: 'leader' },
      holderIdentity: { S: 'gone/1' },
      leaseDurationSeconds: { N: '60' },
      acquireTime: { S: isoTime(nowMs - 60_000) },
      renewTime: { S: isoTime(nowMs - 60_000 + leftMs) },
      expireTime: { N: String(nowMs + leftMs) },
      leaseTransitions: { N: '7' },
      version: { N: '1767225600007' },
    });
  }

  describe('one write is all that it takes', () => {
    test('to acquire a lease that nobody has ever held, for a cold process', async () => {
      await using site = await Site.open(table);
      const a = site.contender('a');
      expect(await costOf(site, () => a.acquire())).toEqual(ONE_WRITE);
    });

    test('to acquire a lease that was given back, for a cold and for a warm process', async () => {
      await using site = await Site.open(table);
      const a = await warm(site, 'a');
      await a.release(await a.acquire());
      const b = site.contender('b');
      let tenure = await a.acquire();
      await a.release(tenure);
      expect(await costOf(site, async () => (tenure = await b.acquire()))).toEqual(ONE_WRITE);
      await b.release(tenure);
      expect(await costOf(site, () => a.acquire())).toEqual(ONE_WRITE);
    });

    test('to renew, again and again', async () => {
      await using site = await Site.open(table);
      const a = site.contender('a');
      const tenure = await a.acquire();
      for (let renewal = 0; renewal < 3; renewal++) {
        expect(await costOf(site, () => a.renew(tenure))).toEqual(ONE_WRITE);
      }
    });

    test('to release', async () => {
      await using site = await Site.open(table);
      const a = site.contender('a');
      const tenure = await a.acquire();
      expect(await costOf(site, () => a.release(tenure))).toEqual(ONE_WRITE);
    });

    test('to take an expired lease, for a warm process', async () => {
      await using site = await Site.open(table);
      const a = await warm(site, 'a');
      await crashed(site, -1);
      expect(await costOf(site, () => a.acquire())).toEqual(ONE_WRITE);
    });
  });

  test('a cold process takes an expired lease with one write more: the first shows it', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a');
    await crashed(site, -1);
    expect(await costOf(site, () => a.acquire())).toEqual({
      requests: refusal.requests + 1,
      readUnits: refusal.readUnits,
      writeUnits: 2,
    });
  });

  describe('a lease that another holds costs a contender one write', () => {
    test('cold or warm, and its refusal says who, with which token, until when', async () => {
      await using site = await Site.open(table);
      await crashed(site, 60_000);
      const expireTimeMs = await site.number('expireTime');
      for (const contender of [site.contender('cold'), await warm(site, 'warm')]) {
        const cost = await costOf(site, async () => {
          expect(await contender.tryAcquire()).toMatchObject({
            kind: 'refused',
            waiting: { because: 'held' },
            record: { holderIdentity: 'gone/1', leaseTransitions: 7, expireTimeMs },
          });
        });
        expect(cost).toEqual(refusal);
      }
    });

    test('and the error of acquireLease says so', async () => {
      await using site = await Site.open(table);
      await crashed(site, 60_000);
      const { namespace, name, clientConfig } = site;
      const cost = await costOf(site, async () => {
        await expect(
          acquireLease({ namespace, name, clientConfig, tableName: table.tableName }),
        ).rejects.toMatchObject({
          code: 'lease-held',
          message: expect.stringMatching(/gone\/1 .*token 7, until 20\d\d-/) as string,
          record: { holderIdentity: 'gone/1', leaseTransitions: 7 },
        });
      });
      expect(cost).toEqual(refusal);
    });

    test('and a wrapped handler that is skipped returns so', async () => {
      await using site = await Site.open(table);
      await crashed(site, 60_000);
      const { namespace, name, clientConfig } = site;
      const handler = withLease(
        { namespace, name, clientConfig, tableName: table.tableName },
        () => 'ran',
      );
      const cost = await costOf(site, async () => {
        expect(await handler({}, CONTEXT)).toMatchObject({
          skipped: true,
          holderIdentity: 'gone/1',
          fencingToken: 7,
          until: expect.stringMatching(/^20\d\d-/) as string,
        });
      });
      expect(cost).toEqual(refusal);
    });
  });

  test('a wrapped invocation costs two writes in all, cold and warm', async () => {
    await using site = await Site.open(table);
    const { namespace, name, clientConfig } = site;
    const handler = withLease(
      { namespace, name, clientConfig, tableName: table.tableName },
      () => 'ran',
    );
    for (const token of [1, 2]) {
      const cost = await costOf(site, async () => {
        expect(await handler({}, CONTEXT)).toBe('ran');
      });
      expect(cost).toEqual({ requests: 2, readUnits: 0, writeUnits: 2 });
      expect(await site.holder()).toEqual([undefined, token]);
    }
  });

  describe('a contender that stands by', () => {
    test('polls with reads of half a unit, and never writes while the lease is held', async () => {
      await using site = await Site.open(table);
      await crashed(site, 60_000);
      const aborting = new AbortController();
      const a = site.contender('a');
      const waiting = contend(a.lock, {
        ...a.world,
        retryPeriodMs: 30,
        termsAt: a.termsAt,
        signal: aborting.signal,
      });
      const polls = () => site.proxy.requests.filter(({ capacity }) => capacity === 0.5);
      while (polls().length < 5) await sleep(5);
      aborting.abort();
      expect(await waiting).toEqual({ kind: 'aborted' });
      await site.settled();
      expect(site.proxy.counts('UpdateItem')).toMatchObject({ requests: 1, writeUnits: 1 });
      expect(site.proxy.counts().consistentReads).toBe(shows ? 0 : 1);
      expect(site.proxy.counts('GetItem').readUnits).toBe(0.5 * polls().length + (shows ? 0 : 1));
    });

    test('takes a crash over with one write more than its polls', async () => {
      await using site = await Site.open(table);
      await crashed(site, 1_200);
      const a = site.contender('a');
      const waiting = contend(a.lock, {
        ...a.world,
        retryPeriodMs: 100,
        termsAt: a.termsAt,
        signal: new AbortController().signal,
      });
      expect(acquiredBy(await answered(waiting))).toMatchObject({ fencingToken: 8 });
      const polls = site.proxy.counts('GetItem').requests - (shows ? 0 : 1);
      expect(polls).toBeGreaterThan(0);
      // The first write of all found it held.
      expect(site.proxy.counts()).toMatchObject({
        requests: polls + 2 + (shows ? 0 : 1),
        failedConditions: 1,
        consistentReads: shows ? 0 : 1,
        writeUnits: 2,
        readUnits: 0.5 * polls + (shows ? 0 : 1),
      });
    });
  });
});

async function answered(waiting: ReturnType<typeof contend>) {
  const answer = await waiting;
  if (answer.kind === 'aborted') throw new Error('Nobody aborted this.');
  return answer;
}
