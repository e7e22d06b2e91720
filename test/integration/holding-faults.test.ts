// A held lease under work, on real clocks and timers, when the network or another client of the
// table interferes: work hears of a loss once and in time, and the lease is never left with nobody.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Holding } from '../../src/holding.ts';
import { availableEngines } from '../support/dynamodb.ts';
import {
  type Contender,
  type ContenderOptions,
  openTable,
  randomOf,
  Site,
  type Table,
} from './fixture.ts';

let table: Table;

beforeAll(async () => {
  table = await openTable(availableEngines()[0]!);
});

afterAll(async () => {
  await table[Symbol.asyncDispose]();
});

const REQUEST_TIMEOUT_MS = 700;

async function hold(contender: Contender, renewEveryMs: number): Promise<Holding> {
  return new Holding(contender.lock, await contender.acquire(), {
    ...contender.world,
    termsAt: contender.termsAt,
    renewEveryMs,
    drainMs: Infinity,
    lossDrainMs: 1_000,
    releaseWithinMs: () => 4 * REQUEST_TIMEOUT_MS,
  });
}

function contend(site: Site, name: string, options: ContenderOptions = {}): Contender {
  return site.contender(name, { requestTimeoutMs: REQUEST_TIMEOUT_MS, ...options });
}

/** How often the work has heard that it is to stop, and why. */
function heard({ lease }: Holding): unknown[] {
  const reasons: unknown[] = [];
  lease.signal.addEventListener('abort', () => reasons.push(lease.signal.reason));
  return reasons;
}

describe.concurrent('work that settles while a renewal is under way', () => {
  test.each(['before', 'after'] as const)(
    'releases when the renewal held %s the store is answered',
    async (when) => {
      await using site = await Site.open(table);
      const [a, b] = [contend(site, 'a'), contend(site, 'b')];
      const holding = await hold(a, 50);
      const renewal = site.hold('renew', when);
      await renewal.reached();
      holding.workSettled('completed');
      renewal.release();
      expect(await holding.concluded).toEqual({
        reason: 'completed',
        workSettled: true,
        released: true,
      });
      expect(await site.holder()).toEqual([undefined, 1]);
      expect(await b.acquire()).toMatchObject({ fencingToken: 2 });
    },
  );

  test.each(['before', 'after'] as const)(
    'releases though the renewal held %s the store is never answered, and for good',
    async (when) => {
      await using site = await Site.open(table);
      const [a, b] = [contend(site, 'a', { client: 'stock client' }), contend(site, 'b')];
      const holding = await hold(a, 50);
      const renewal = site.hold('renew', when);
      await renewal.reached();
      holding.workSettled('completed');
      expect(await holding.concluded).toMatchObject({ released: true });
      const successor = await b.acquire();
      const before = await site.record();
      renewal.release();
      await site.settled();
      expect(await site.record()).toEqual(before);
      expect(await b.renew(successor)).toMatchObject({ kind: 'renewed' });
    },
  );
});

describe.concurrent('releases at random moments of a quick heartbeat', () => {
  test.each([1, 2, 3, 4])('leave no lease held, and skip no token (seed %i)', async (seed) => {
    await using site = await Site.open(table);
    site.proxy.latencyMs = 5;
    const random = randomOf(seed);
    const a = contend(site, 'a', { requestTimeoutMs: 3_000 });
    for (let token = 1; token <= 30; token++) {
      const holding = await hold(a, 20);
      await sleep(80 * random());
      await holding.lease.release();
      expect(await site.holder(), `seed ${seed}`).toEqual([undefined, token]);
    }
  });
});

describe.concurrent('work whose network is cut', () => {
  test('hears of it once, before anyone else may start (L4)', async () => {
    await using site = await Site.open(table);
    const a = contend(site, 'a', { leaseDurationMs: 8_000, renewDeadlineMs: 1_500 });
    const holding = await hold(a, 100);
    const reasons = heard(holding);
    site.proxy.inject({ fault: { kind: 'black-hole', when: 'before' }, times: Infinity });
    await new Promise((resolve) => holding.lease.signal.addEventListener('abort', resolve));
    expect(Date.now()).toBeLessThan((await site.number('expireTime'))!);
    expect(holding.lease.isHeld()).toBe(false);
    holding.workSettled('completed');
    expect(await holding.concluded).toEqual({
      reason: 'expired',
      workSettled: true,
      released: false,
    });
    site.proxy.clearFaults();
    site.proxy.reset();
    await sleep(500);
    expect(reasons).toMatchObject([{ code: 'lease-lost', reason: 'expired' }]);
    expect(site.proxy.counts().requests).toBe(0);
  });

  test('hears nothing of an answer that comes after the end of belief (L4)', async () => {
    await using site = await Site.open(table);
    const a = contend(site, 'a', {
      leaseDurationMs: 20_000,
      renewDeadlineMs: 1_500,
      requestTimeoutMs: 3_000,
      client: 'stock client',
    });
    const holding = await hold(a, 100);
    const reasons = heard(holding);
    const renewal = site.hold('renew', 'after');
    await new Promise((resolve) => holding.lease.signal.addEventListener('abort', resolve));
    renewal.release();
    await site.settled();
    await sleep(200);
    expect(holding.lease.isHeld()).toBe(false);
    expect(holding.lease.remainingMs()).toBe(0);
    expect(holding.lease.signal.aborted).toBe(true);
    holding.workSettled('completed');
    expect(await holding.concluded).toMatchObject({ reason: 'expired', released: false });
    expect(reasons).toHaveLength(1);
  });

  test('goes on in the same tenure when it comes back in time', async () => {
    await using site = await Site.open(table);
    const a = contend(site, 'a', { client: 'stock client' });
    const holding = await hold(a, 50);
    const reasons = heard(holding);
    site.proxy.muteSockets();
    const throttled = site.proxy.inject({
      fault: { kind: 'error', error: 'TransactionConflictException' },
      times: 3,
    });
    await throttled.reached(3);
    await site.reaches((await site.number('version'))! + 2);
    expect(reasons).toEqual([]);
    expect(holding.lease).toMatchObject({ holderIdentity: 'a/1', fencingToken: 1 });
    expect(holding.lease.isHeld()).toBe(true);
    await holding.lease.release();
    expect(await site.holder()).toEqual([undefined, 1]);
  });
});

describe.concurrent('work that has lost its lease', () => {
  const losses: readonly (readonly [string, string, (site: Site) => Promise<unknown>])[] = [
    [
      'to another',
      'taken over',
      async (site) => {
        await site.expire();
        await contend(site, 'b').acquire();
      },
    ],
    ['to an eviction', 'evicted', (site) => site.evict()],
    ['with its record', 'record deleted', (site) => site.delete()],
  ];

  test.each(losses)('%s hears of it, and writes nothing more', async (_, reason, lose) => {
    await using site = await Site.open(table);
    const holding = await hold(contend(site, 'a'), 100);
    const reasons = heard(holding);
    const renewal = site.hold('renew');
    await renewal.reached();
    await lose(site);
    const before = await site.record();
    renewal.release();
    await new Promise((resolve) => holding.lease.signal.addEventListener('abort', resolve));
    holding.workSettled('completed');
    expect(await holding.concluded).toEqual({ reason, workSettled: true, released: false });
    expect(reasons).toMatchObject([{ code: 'lease-lost', reason }]);
    expect(await site.record()).toEqual(before);
  });
});
