// Giving up the wait for a lease, at any moment: also while the very request is under way that
// takes it. Nobody is left holding it.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acquireLease, type AcquireLeaseOptions } from '../../src/acquire-lease.ts';
import { contend } from '../../src/contention.ts';
import { availableEngines } from '../support/dynamodb.ts';
import { isWrite, openTable, randomOf, Site, type Table } from './fixture.ts';

let table: Table;

beforeAll(async () => {
  table = await openTable(availableEngines()[0]!);
});

afterAll(async () => {
  await table[Symbol.asyncDispose]();
});

function acquire(site: Site, options: Partial<AcquireLeaseOptions>) {
  return acquireLease({
    namespace: site.namespace,
    name: site.name,
    tableName: table.tableName,
    clientConfig: site.clientConfig,
    leaseDurationSeconds: 30,
    renewDeadlineSeconds: 20,
    retryPeriodSeconds: 0.05,
    requestTimeoutSeconds: 5,
    maxWaitSeconds: 60,
    ...options,
  });
}

const GIVEN_UP = { name: 'LeaseError', code: 'lease-stopped' };

describe.concurrent('a wait that is aborted at random moments', () => {
  test.each([1, 2, 3, 4])('leaves no orphan behind (seed %i)', async (seed) => {
    await using site = await Site.open(table);
    site.proxy.latencyMs = 4;
    const random = randomOf(seed);
    const holder = site.contender('holder');
    for (let run = 0; run < 15; run++) {
      const held = await holder.acquire();
      const aborting = new AbortController();
      const waiting = acquire(site, { signal: aborting.signal }).then(
        (lease) => lease.release(),
        (error: unknown) => expect(error).toMatchObject(GIVEN_UP),
      );
      const released = sleep(40 * random()).then(() => holder.release(held));
      await sleep(20 + 80 * random());
      aborting.abort();
      await Promise.all([waiting, released]);
      await site.settled();
      expect((await site.holder())[0], `seed ${seed}, run ${run}`).toBeUndefined();
    }
  });
});

describe.concurrent.each([
  ['waits', { maxWaitSeconds: 60 }],
  ['tries once', { maxWaitSeconds: 0 }],
])('an acquisition that %s', (_, options) => {
  test.each(['before', 'after'] as const)(
    'and is aborted when its write is held %s the store gives the lease back',
    async (when) => {
      await using site = await Site.open(table);
      const aborting = new AbortController();
      const write = site.hold('acquire', when);
      const refused = expect(
        acquire(site, { ...options, signal: aborting.signal }),
      ).rejects.toMatchObject(GIVEN_UP);
      await write.reached();
      aborting.abort();
      write.release();
      await refused;
      expect(await site.holder()).toEqual([undefined, 1]);
    },
  );

  test('gives the lease back also where that takes longer than a retry period', async () => {
    await using site = await Site.open(table);
    const aborting = new AbortController();
    const write = site.hold('acquire');
    site.proxy.inject({
      fault: { kind: 'delay', when: 'before', ms: 300 },
      match: isWrite('release'),
    });
    site.proxy.inject({ fault: { kind: 'reset', when: 'before' }, match: isWrite('release') });
    const refused = expect(
      acquire(site, { ...options, signal: aborting.signal }),
    ).rejects.toMatchObject(GIVEN_UP);
    await write.reached();
    aborting.abort();
    write.release();
    await refused;
    expect(await site.holder()).toEqual([undefined, 1]);
  });

  test('and is aborted before it began sends nothing', async () => {
    await using site = await Site.open(table);
    const signal = AbortSignal.abort();
    await expect(acquire(site, { ...options, signal })).rejects.toMatchObject(GIVEN_UP);
    expect(site.proxy.counts().requests).toBe(0);
  });
});

test('a wait aborted after nobody answered gives back what it may have taken (L7)', async () => {
  await using site = await Site.open(table);
  const b = site.contender('b', { requestTimeoutMs: 300 });
  site.proxy.inject({ fault: { kind: 'black-hole', when: 'after' }, times: Infinity });
  const aborting = new AbortController();
  let failed = false;
  const waiting = contend(b.lock, {
    ...b.world,
    retryPeriodMs: 1_000,
    termsAt: b.termsAt,
    signal: aborting.signal,
    onError: () => (failed = true),
  });
  await expect.poll(() => failed, { timeout: 10_000 }).toBe(true);
  site.proxy.clearFaults();
  aborting.abort();
  await waiting;
  expect(await site.holder()).toEqual([undefined, 1]);
});
