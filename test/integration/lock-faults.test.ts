// One lock, one fault: whatever a network or a service does to one request, the outcome is right,
// and known in the same call where it can be known (L7).

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { availableEngines } from '../support/dynamodb.ts';
import type { Fault, FaultProxy } from '../support/fault-proxy.ts';
import { type Client, openTable, Site, type Table } from './fixture.ts';

let table: Table;

beforeAll(async () => {
  table = await openTable(availableEngines()[0]!);
});

afterAll(async () => {
  await table[Symbol.asyncDispose]();
});

interface Case {
  readonly strike: (proxy: FaultProxy) => void;
  /** Who must hear of it, because the SDK repeats nothing by itself: then a renewal cannot tell. */
  readonly renewalCannotTell: readonly Client[];
}

const EVERY: readonly Client[] = ['default client', 'stock client'];

function once(fault: Fault, renewalCannotTell: Case['renewalCannotTell'] = []): Case {
  return { strike: (proxy) => proxy.inject({ fault, operation: 'UpdateItem' }), renewalCannotTell };
}

const cases: Readonly<Record<string, Case>> = {
  'a reset before it was applied': once({ kind: 'reset', when: 'before' }),
  'a reset after it was applied': once({ kind: 'reset', when: 'after' }),
  'a truncated answer': once({ kind: 'truncate' }),
  'a black hole before it was applied': once({ kind: 'black-hole', when: 'before' }, [
    'stock client',
  ]),
  'a black hole after it was applied': once({ kind: 'black-hole', when: 'after' }, [
    'stock client',
  ]),
  'a server error before it was applied': once({ kind: 'error', error: 'InternalServerError' }),
  'a server error after it was applied': once({
    kind: 'error',
    error: 'InternalServerError',
    when: 'after',
  }),
  throttling: once({ kind: 'error', error: 'ThrottlingException' }),
  'throttling of the table': once({
    kind: 'error',
    error: 'ProvisionedThroughputExceededException',
  }),
  'a transaction under way': once({ kind: 'error', error: 'TransactionConflictException' }, EVERY),
  'connections that went mute': {
    strike: (proxy) => proxy.muteSockets(),
    renewalCannotTell: ['stock client'],
  },
};

describe.each(EVERY)('a lock with the %s', (client) => {
  const requestTimeoutMs = client === 'default client' ? 5_000 : 2_500;

  describe.concurrent.each(Object.entries(cases))('through %s', (_, { strike, ...it }) => {
    test('acquires in the same call, once', async () => {
      await using site = await Site.open(table);
      const contender = site.contender('a', { client, requestTimeoutMs });
      await contender.lock.look();
      strike(site.proxy);
      const tenure = await contender.acquire();
      expect(site.struck).toBe(true);
      expect(tenure).toMatchObject({ holderIdentity: 'a/1', fencingToken: 1 });
      expect(tenure.isHeld()).toBe(true);
      expect(await site.holder()).toEqual(['a/1', 1]);
      expect(tenure.version).toBe(await site.number('version'));
    });

    test('renews, or cannot tell and then renews, and never loses', async () => {
      await using site = await Site.open(table);
      const contender = site.contender('a', { client, requestTimeoutMs });
      const tenure = await contender.acquire();
      strike(site.proxy);
      const answer = await contender.renew(tenure);
      expect(site.struck).toBe(true);
      expect(answer.kind).toBe(it.renewalCannotTell.includes(client) ? 'unknown' : 'renewed');
      expect(tenure.isHeld()).toBe(true);
      expect(await contender.renew(tenure)).toMatchObject({ kind: 'renewed' });
      expect(tenure.version).toBe(await site.number('version'));
      expect(await site.holder()).toEqual(['a/1', 1]);
    });

    test('releases in the same call, and keeps the token (L2)', async () => {
      await using site = await Site.open(table);
      const contender = site.contender('a', { client, requestTimeoutMs });
      const tenure = await contender.acquire();
      strike(site.proxy);
      expect(await contender.release(tenure)).toEqual({ kind: 'released' });
      expect(site.struck).toBe(true);
      expect(tenure.isHeld()).toBe(false);
      expect(await site.holder()).toEqual([undefined, 1]);
    });
  });
});

const answerLost: readonly (readonly [string, Fault])[] = [
  ['reset', { kind: 'reset', when: 'after' }],
  ['truncated', { kind: 'truncate' }],
  ['made a server error', { kind: 'error', error: 'InternalServerError', when: 'after' }],
  ['swallowed', { kind: 'black-hole', when: 'after' }],
];

describe.concurrent.each(answerLost)(
  "a write whose answer was %s, refused at the SDK's own retry",
  (_, fault) => {
    test('is an acquisition without a further request', async () => {
      await using site = await Site.open(table);
      site.proxy.inject({ fault });
      expect(await site.contender('a').acquire()).toMatchObject({ fencingToken: 1 });
      expect(site.proxy.counts().operations).toEqual({ UpdateItem: 2 });
    });

    test('is a renewal without a further request', async () => {
      await using site = await Site.open(table);
      const a = site.contender('a');
      const tenure = await a.acquire();
      site.proxy.reset();
      site.proxy.inject({ fault });
      expect(await a.renew(tenure)).toMatchObject({ kind: 'renewed' });
      expect(site.proxy.counts().operations).toEqual({ UpdateItem: 2 });
    });
  },
);

describe("a renewal whose answer was lost, refused at the SDK's own retry", () => {
  test('shortens belief from its first send, as it has shortened the lease (L4)', async () => {
    await using site = await Site.open(table);
    let renewDeadlineMs = 20_000;
    const termsAt = () => ({ renewDeadlineMs, leaseDurationMs: renewDeadlineMs + 10_000 });
    const a = site.contender('a', { termsAt });
    const tenure = await a.acquire();
    renewDeadlineMs = 4_000;
    site.proxy.reset();
    // The client gives up on its first send after a second. The lock's own next write, if there is
    // one, gets no answer that tells.
    site.proxy.inject({ fault: { kind: 'black-hole', when: 'after' } });
    site.proxy.inject({
      fault: { kind: 'error', error: 'TransactionConflictException' },
      match: (body) => JSON.stringify(body) !== JSON.stringify(site.proxy.requests[0]?.body),
    });
    const sentAt = performance.now();
    await a.renew(tenure);
    const record = await site.record();
    const sinceMs = performance.now() - sentAt;
    expect(sinceMs).toBeGreaterThan(900);
    expect(record).toMatchObject({ leaseDurationSeconds: { N: '14' } });
    expect(tenure.remainingMs()).toBeLessThanOrEqual(4_000 - sinceMs + 50);
  });
});
