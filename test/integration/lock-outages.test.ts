// One lock and a store that does not answer at all for a while, refuses for good, or keeps the
// record to itself. Whatever was applied meanwhile is found afterwards; nothing is lost or taken
// twice (L7).

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { contend } from '../../src/contention.ts';
import type { LeaseError } from '../../src/errors.ts';
import { availableEngines } from '../support/dynamodb.ts';
import type { Fault } from '../support/fault-proxy.ts';
import {
  acquiredBy,
  answered,
  type Client,
  isWrite,
  openTable,
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

interface Outage {
  begin(site: Site): Promise<void>;
  end(site: Site): Promise<void>;
  /** Whether the store carries out what it does not answer. */
  readonly applies: boolean;
}

function every(fault: Fault, applies: boolean): Outage {
  return {
    begin: async ({ proxy }) => void proxy.inject({ fault, times: Infinity }),
    end: async ({ proxy }) => proxy.clearFaults(),
    applies,
  };
}

const outages: Readonly<Record<string, Outage>> = {
  'resets every connection': every({ kind: 'reset', when: 'before' }, false),
  'resets every connection, too late': every({ kind: 'reset', when: 'after' }, true),
  'swallows every request': every({ kind: 'black-hole', when: 'before' }, false),
  'swallows every answer': every({ kind: 'black-hole', when: 'after' }, true),
  'truncates every answer': every({ kind: 'truncate' }, true),
  'answers with errors': every({ kind: 'error', error: 'InternalServerError' }, false),
  'answers with errors to what it did': every(
    { kind: 'error', error: 'InternalServerError', when: 'after' },
    true,
  ),
  'throttles every request': every({ kind: 'error', error: 'ThrottlingException' }, false),
  'is in a transaction': every({ kind: 'error', error: 'TransactionConflictException' }, false),
  'refuses connections': {
    begin: ({ proxy }) => proxy.refuseConnections(),
    end: ({ proxy }) => proxy.acceptConnections(),
    applies: false,
  },
};

const CLIENTS: readonly Client[] = ['default client', 'stock client'];
const cases = CLIENTS.flatMap((client) =>
  Object.entries(outages).map(([what, outage]) => [client, what, outage] as const),
);

describe.concurrent.each(cases)('a lock with the %s, when the store %s', (client, _, outage) => {
  const requestTimeoutMs = 400;

  /** An operation is over in its time: so many calls of so long each, and what a machine needs. */
  async function timed<T>(calls: number, operation: Promise<T>): Promise<T> {
    const startMs = performance.now();
    const answer = await operation;
    expect(performance.now() - startMs).toBeLessThan(calls * requestTimeoutMs + 5_000);
    return answer;
  }

  test('cannot tell whether it acquired, and finds out in its next attempt', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', { client, requestTimeoutMs });
    await outage.begin(site);
    expect(await timed(3, a.tryAcquire())).toMatchObject({
      kind: 'failed',
      error: { code: 'store-unavailable' },
    });
    await outage.end(site);
    if (outage.applies) expect(await site.holder()).toEqual(['a/1', 1]);
    const tenure = acquiredBy(await answered(() => a.tryAcquire()));
    expect(tenure).toMatchObject({ holderIdentity: 'a/1', fencingToken: 1 });
    expect(tenure.isHeld()).toBe(true);
    expect(await answered(() => a.renew(tenure))).toMatchObject({ kind: 'renewed' });
    expect(await site.holder()).toEqual(['a/1', 1]);
  });

  test('cannot tell whether it renewed, and goes on in the same tenure', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', { client, requestTimeoutMs });
    const tenure = await a.acquire();
    const beliefMs = tenure.remainingMs();
    await outage.begin(site);
    for (let attempt = 1; attempt <= 2; attempt++) {
      expect(await timed(1, a.renew(tenure))).toMatchObject({
        kind: 'unknown',
        error: { code: 'store-unavailable' },
      });
    }
    expect(tenure.isHeld()).toBe(true);
    // No answer is no renewal either.
    expect(tenure.remainingMs()).toBeLessThan(beliefMs);
    await outage.end(site);
    expect(await answered(() => a.renew(tenure))).toMatchObject({ kind: 'renewed' });
    expect(tenure.version).toBe(await site.number('version'));
    expect(await site.holder()).toEqual(['a/1', 1]);
  });

  test('cannot tell whether it released, and never holds two tenures', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', { client, requestTimeoutMs });
    const tenure = await a.acquire();
    await outage.begin(site);
    const answer = await timed(3, a.release(tenure, 3 * requestTimeoutMs));
    expect(answer).toMatchObject({ kind: 'unknown', error: { code: 'store-unavailable' } });
    expect(tenure.isHeld()).toBe(false);
    await outage.end(site);
    expect(await site.holder()).toEqual([outage.applies ? undefined : 'a/1', 1]);
    // Its own old tenure does not stand in its way.
    const next = acquiredBy(await answered(() => a.tryAcquire()));
    expect(next).toMatchObject({ holderIdentity: 'a/2', fencingToken: 2 });
    expect(tenure.isHeld()).toBe(false);
  });
});

describe('an acquisition that the store carries out twice without an answer', () => {
  test('is found by a read in the same call', async () => {
    await using site = await Site.open(table);
    const fault = { kind: 'black-hole', when: 'after' } as const;
    site.proxy.inject({ fault, operation: 'UpdateItem', times: Infinity });
    const tenure = await site.contender('a', { requestTimeoutMs: 400 }).acquire();
    expect(tenure).toMatchObject({ holderIdentity: 'a/1', fencingToken: 1 });
    expect(site.proxy.counts('GetItem')).toMatchObject({ requests: 1, consistentReads: 1 });
  });
});

describe.concurrent.each(CLIENTS)('a lock with the %s that is', (client) => {
  const permanent = [
    ['denied', 'AccessDeniedException', 'access-denied', /Allow that action/],
    ['shown no table', 'ResourceNotFoundException', 'table-not-found', /Create it with/],
  ] as const;

  test.each(permanent)('%s says so at once, and what to do', async (_, error, code, fix) => {
    await using site = await Site.open(table);
    const a = site.contender('a', { client });
    const tenure = await a.acquire();
    site.proxy.reset();
    site.proxy.inject({ fault: { kind: 'error', error }, times: Infinity });
    const failed = { code, message: expect.stringMatching(fix) as string };
    const named = (action: string) => ({
      code,
      message: expect.stringMatching(
        new RegExp(`dynamodb:${action}.*table "${table.tableName}" in Region us-east-1`, 's'),
      ) as string,
    });
    const renewed = await a.renew(tenure);
    expect(renewed).toMatchObject({ kind: 'unknown', error: failed });
    expect(renewed).toMatchObject({ error: named('UpdateItem') });
    expect(tenure.isHeld()).toBe(true);
    const b = site.contender('b', { client });
    expect(await b.tryAcquire()).toMatchObject({ kind: 'failed', error: named('UpdateItem') });
    expect(await b.lock.look()).toMatchObject({ kind: 'failed', error: named('GetItem') });
    expect(await a.release(tenure)).toMatchObject({ kind: 'unknown', error: named('UpdateItem') });
    expect(site.proxy.counts().operations).toEqual({ UpdateItem: 3, GetItem: 1 });
  });

  test('pointed at a table that does not exist says so at once', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a', { client, tableName: 'no-such-table' });
    expect(await a.tryAcquire()).toMatchObject({
      kind: 'failed',
      error: {
        code: 'table-not-found',
        message: expect.stringMatching(
          /dynamodb:UpdateItem.*no table "no-such-table" in Region us-east-1.*LEASE_TABLE_NAME/s,
        ) as string,
      },
    });
    expect(site.proxy.counts()).toMatchObject({ requests: 1 });
  });
});

test('a contender that may write and not read says so, and stands by all the same', async () => {
  await using site = await Site.open(table);
  const [a, b] = [site.contender('a'), site.contender('b')];
  const tenure = await a.acquire();
  const denied = { kind: 'error', error: 'AccessDeniedException' } as const;
  site.proxy.inject({ fault: denied, operation: 'GetItem', times: Infinity });
  const errors: LeaseError[] = [];
  const waiting = contend(b.lock, {
    ...b.world,
    retryPeriodMs: 50,
    termsAt: b.termsAt,
    signal: new AbortController().signal,
    onError: (error) => errors.push(error),
  });
  while (site.proxy.counts('GetItem').requests < 2) await sleep(5);
  await a.release(tenure);
  expect(await waiting).toMatchObject({ kind: 'acquired', tenure: { fencingToken: 2 } });
  expect(errors[0]).toMatchObject({
    code: 'access-denied',
    message: expect.stringContaining('dynamodb:GetItem') as string,
  });
});

/** A server that shows no old item: dynalite never does, any other may be an old one. */
describe.each(availableEngines())('a lock on %s that is not shown the record', (engine) => {
  let silent: Table;

  beforeAll(async () => {
    silent = await openTable(engine);
  });

  afterAll(async () => {
    await silent[Symbol.asyncDispose]();
  });

  async function open(): Promise<Site> {
    const site = await Site.open(silent);
    site.proxy.inject({ fault: { kind: 'strip-item' }, times: Infinity });
    return site;
  }

  const reads = (site: Site) => {
    const { operations, consistentReads } = site.proxy.counts();
    return { reads: operations['GetItem'] ?? 0, consistentReads };
  };

  test('reads who holds the lease, consistently, once', async () => {
    await using site = await open();
    await site.contender('a').acquire();
    expect(await site.contender('b').tryAcquire()).toMatchObject({
      kind: 'refused',
      record: { holderIdentity: 'a/1', leaseTransitions: 1 },
      waiting: { because: 'held' },
    });
    expect(reads(site)).toEqual({ reads: 1, consistentReads: 1 });
  });

  test('takes an expired lease', async () => {
    await using site = await open();
    await site.contender('a').acquire();
    await site.expire();
    expect(await site.contender('b').acquire()).toMatchObject({ fencingToken: 2 });
  });

  test.each(['acquire', 'renew', 'release'] as const)(
    'recognises its own %s, whose answer was lost',
    async (kind) => {
      await using site = await open();
      const a = site.contender('a');
      const fault = { kind: 'reset', when: 'after' } as const;
      site.proxy.inject({ fault, match: isWrite(kind) });
      const tenure = await a.acquire();
      expect(tenure).toMatchObject({ holderIdentity: 'a/1', fencingToken: 1 });
      expect(await a.renew(tenure)).toMatchObject({ kind: 'renewed' });
      expect(await site.holder()).toEqual(['a/1', 1]);
      expect(await a.release(tenure)).toEqual({ kind: 'released' });
      expect(await site.holder()).toEqual([undefined, 1]);
      expect(reads(site)).toEqual({ reads: 1, consistentReads: 1 });
    },
  );

  test('hears from the record why it has lost it', async () => {
    await using site = await open();
    const [a, b] = [site.contender('a'), site.contender('b')];
    const tenure = await a.acquire();
    await site.expire();
    await b.acquire();
    expect(await a.renew(tenure)).toEqual({ kind: 'lost', reason: 'taken over' });
    expect(await site.holder()).toEqual(['b/1', 2]);
  });
});
