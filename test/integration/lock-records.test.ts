// One lock and what it may find in the table: records of other clients, of older days, and garbage
// that only a real server refuses to count with.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Item, Value } from '../../src/lease.ts';
import { availableEngines } from '../support/dynamodb.ts';
import { openTable, Site, type Table } from './fixture.ts';

describe.each(availableEngines())('a lock on %s', (engine) => {
  let table: Table;

  beforeAll(async () => {
    table = await openTable(engine);
  });

  afterAll(async () => {
    await table[Symbol.asyncDispose]();
  });

  const corrupt = (...garbage: readonly Value[]) =>
    ['version', 'leaseTransitions'].flatMap((name) =>
      garbage.map((value) => [name, JSON.stringify(value), { [name]: value }] as const),
    );

  test.each(corrupt({ S: '7' }, { S: '' }, { NULL: true }, { L: [] }))(
    'names the record whose %s is %s, and leaves it as it is',
    async (name, _, attributes) => {
      await using site = await Site.open(table);
      const held: Item = { holderIdentity: { S: 'x' }, expireTime: { N: '9999999999999' } };
      for (const item of [attributes, { ...held, ...attributes }]) {
        await site.put(item);
        const before = await site.record();
        const answer = await site.contender('a').tryAcquire();
        expect(answer).toMatchObject({
          kind: 'failed',
          error: {
            code: 'corrupt-record',
            message: expect.stringContaining(`"${site.lease}"`) as string,
            record: { lease: site.lease },
          },
        });
        expect(answer).toMatchObject({
          error: { message: expect.stringContaining(`its ${name} is`) as string },
        });
        expect(await site.record()).toEqual(before);
      }
    },
  );

  test.each(corrupt({ N: '1.5' }, { N: '-3' }, { N: '9007199254740992' }))(
    'names the record whose %s is %s, and holds nothing',
    async (name, _, attributes) => {
      await using site = await Site.open(table);
      await site.put({ ...attributes, holderIdentity: { S: 'x' } });
      for (const contender of [site.contender('a'), site.contender('b')]) {
        expect(await contender.tryAcquire()).toMatchObject({
          kind: 'failed',
          error: {
            code: 'corrupt-record',
            message: expect.stringContaining(`its ${name} is`) as string,
          },
        });
      }
    },
  );

  test('does not take a lease of another kind', async () => {
    await using site = await Site.open(table);
    await site.put({ kind: { S: 'heartbeat' } });
    expect(await site.contender('a').tryAcquire()).toMatchObject({
      kind: 'failed',
      error: { code: 'kind-mismatch' },
    });
    expect(await site.record()).toEqual({ lease: { S: site.lease }, kind: { S: 'heartbeat' } });
  });

  test('goes on above its token when the record is deleted (L2)', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a');
    await a.release(await a.acquire());
    const tenure = await a.acquire();
    expect(tenure.fencingToken).toBe(2);
    await site.delete();
    expect(await a.renew(tenure)).toEqual({ kind: 'lost', reason: 'record deleted' });
    expect(await a.acquire()).toMatchObject({ holderIdentity: 'a/3', fencingToken: 3 });
  });

  test('releases nothing that was deleted or evicted, and calls it released', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a');
    const deleted = await a.acquire();
    await site.delete();
    expect(await a.release(deleted)).toEqual({ kind: 'released' });
    expect(await site.record()).toBeUndefined();

    const evicted = await a.acquire();
    await site.evict();
    const before = await site.record();
    expect(await a.release(evicted)).toEqual({ kind: 'released' });
    expect(await site.record()).toEqual(before);
  });

  test('leaves the attributes of others alone, from acquisition to release', async () => {
    await using site = await Site.open(table);
    const others: Item = {
      team: { S: 'payments' },
      run: { M: { outcome: { S: 'failed' } } },
      lastTick: { S: 'never' },
      condition: { M: { status: { S: 'Ready' } } },
    };
    await site.put(others);
    const a = site.contender('a');
    const tenure = await a.acquire();
    await a.renew(tenure);
    await a.release(tenure);
    expect(await site.record()).toMatchObject(others);
  });
});
