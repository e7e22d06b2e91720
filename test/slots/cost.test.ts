// What slots cost, counted where the requests pass: as the options' documentation says.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isoTime } from '../../src/lease.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import type { LambdaContext } from '../../src/invocation-options.ts';
import { putRawItem } from '../support/dynamodb.ts';
import { openTable, Site, type Table } from '../integration/fixture.ts';

const CONTEXT = { awsRequestId: 'request', getRemainingTimeInMillis: () => 30_000 };
const SLOTS = 4;

describe('on dynoxide', () => {
  let table: Table;
  beforeAll(async () => {
    table = await openTable('dynoxide');
  });
  afterAll(() => table[Symbol.asyncDispose]());

  const handler = (site: Site, options: Partial<WithLeaseOptions<unknown, LambdaContext>> = {}) => {
    const { namespace, name, clientConfig } = site;
    return withLease(
      {
        namespace,
        name,
        clientConfig,
        tableName: table.tableName,
        slots: SLOTS,
        // Begins at slot 1.
        random: { fraction: () => 0.3, uuid: () => crypto.randomUUID() },
        ...options,
      },
      (_event, { lease }) => [lease.slot, lease.fencingToken],
    );
  };

  /** Others hold these slots. */
  async function occupy(site: Site, slots: readonly number[]): Promise<void> {
    const nowMs = Date.now();
    for (const slot of slots) {
      await putRawItem(table.direct, table.tableName, {
        lease: { S: `${site.lease}/${slot}` },
        kind: { S: 'leader' },
        holderIdentity: { S: `other/${slot}` },
        leaseDurationSeconds: { N: '60' },
        acquireTime: { S: isoTime(nowMs) },
        renewTime: { S: isoTime(nowMs) },
        expireTime: { N: String(nowMs + 60_000) },
        leaseTransitions: { N: '1' },
        version: { N: '1' },
      });
    }
  }

  async function costOf(site: Site, operation: () => Promise<unknown>) {
    site.proxy.reset();
    await operation();
    const { requests, readUnits, writeUnits, consistentReads } = site.proxy.counts();
    return { requests, readUnits, writeUnits, consistentReads };
  }

  test('a run in the first slot: one look at the name, and two writes', async () => {
    await using site = await Site.open(table);
    const run = handler(site);
    for (const token of [1, 2]) {
      const cost = await costOf(site, async () =>
        expect(await run({}, CONTEXT)).toEqual([1, token]),
      );
      expect(cost).toEqual({ requests: 3, readUnits: 0.5, writeUnits: 2, consistentReads: 0 });
    }
  });

  test('a refusal: a look at the name and at each other slot, and one write', async () => {
    await using site = await Site.open(table);
    await occupy(site, [0, 1, 2, 3]);
    const cost = await costOf(site, async () => {
      expect(await handler(site)({}, CONTEXT)).toMatchObject({ skipped: true, reason: 'held' });
    });
    expect(cost).toEqual({
      requests: SLOTS + 1,
      readUnits: SLOTS / 2,
      writeUnits: 1,
      consistentReads: 0,
    });
  });

  test('the last slot that is free: one write more', async () => {
    await using site = await Site.open(table);
    await occupy(site, [1, 2, 3]);
    const cost = await costOf(site, async () =>
      expect(await handler(site)({}, CONTEXT)).toEqual([0, 1]),
    );
    // And the release.
    expect(cost).toEqual({
      requests: SLOTS + 3,
      readUnits: SLOTS / 2,
      writeUnits: 3,
      consistentReads: 0,
    });
  });

  test('suspended on the name: one look, and no write', async () => {
    await using site = await Site.open(table);
    await site.put({ suspended: { M: { by: { S: 'ops' } } } });
    const cost = await costOf(site, async () => {
      expect(await handler(site)({}, CONTEXT)).toMatchObject({ reason: 'suspended' });
    });
    expect(cost).toEqual({ requests: 1, readUnits: 0.5, writeUnits: 0, consistentReads: 0 });
  });

  test('a look while waiting: the name and each slot, and never a write', async () => {
    await using site = await Site.open(table);
    await occupy(site, [0, 1, 2, 3]);
    const run = handler(site, { whenHeld: 'wait', maxWaitSeconds: 2, retryPeriodSeconds: 0.25 });
    const { requests, readUnits, writeUnits } = await costOf(site, async () => {
      await expect(run({}, CONTEXT)).rejects.toMatchObject({ code: 'lease-held' });
    });
    expect(writeUnits).toBe(1);
    // The first attempt looks at one slot less.
    const looks = (requests - SLOTS - 1) / (SLOTS + 1);
    expect(looks).toBeGreaterThanOrEqual(1);
    expect(Number.isInteger(looks)).toBe(true);
    expect(readUnits).toBe(SLOTS / 2 + looks * ((SLOTS + 1) / 2));
  });
});
