// How large a record can get: a write costs one unit for each kilobyte begun, and none of ours may
// ever cost two.

import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { byteLength } from '../../src/holder.ts';
import { itemBytes, WRITE_UNIT_BYTES } from '../../src/item-size.ts';
import { noteOf } from '../../src/job.ts';
import { readLease, type Item } from '../../src/lease.ts';
import { isSkipped } from '../../src/refusal.ts';
import { BYTE_BUDGET } from '../../src/schema.ts';
import { withLease } from '../../src/with-lease.ts';
import { availableEngines } from '../support/dynamodb.ts';
import { openTable, Site, type Table } from './fixture.ts';

/** What a holder's own writes may take of it. */
const HOLDERS_SHARE = 650;

let table: Table;

beforeAll(async () => {
  table = await openTable(availableEngines()[0]!);
});

afterEach(() => {
  vi.unstubAllEnvs();
});

afterAll(async () => {
  await table[Symbol.asyncDispose]();
});

describe('the size of an item, counted as here,', () => {
  test('is what the server charges for', async () => {
    await using site = await Site.open(table);
    const a = site.contender('a');
    const tenure = await a.acquire();
    const charged = new Set<number>();
    for (let size = WRITE_UNIT_BYTES - 4; size <= WRITE_UNIT_BYTES + 4; size++) {
      const bare = { ...(await site.record()), pad: { S: '' } };
      await site.put({ ...bare, pad: { S: 'x'.repeat(size - itemBytes(bare)) } });
      site.proxy.reset();
      await a.renew(tenure);
      // A time may have a digit less than the one before it. The larger item counts.
      const larger = Math.max(size, itemBytes((await site.record())!));
      expect(site.proxy.counts()).toMatchObject({
        requests: 1,
        writeUnits: Math.ceil(larger / WRITE_UNIT_BYTES),
      });
      charged.add(site.proxy.counts().writeUnits);
    }
    expect([...charged]).toEqual([1, 2]);
  });
});

interface Extent {
  readonly environment: Readonly<Record<string, string>>;
  readonly namespace: string;
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

const LAMBDA = {
  AWS_LAMBDA_FUNCTION_NAME: 'f'.repeat(64),
  AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
  AWS_LAMBDA_LOG_GROUP_NAME: `/${'g'.repeat(511)}`,
  AWS_LAMBDA_LOG_STREAM_NAME: `2026/11/29/[$LATEST]${'0123456789abcdef'.repeat(2)}`,
  AWS_REGION: 'ap-southeast-3',
};

/** As much of `unit` as there is room for. */
const fill = (unit: string, bytes: number) => unit.repeat(Math.floor(bytes / byteLength(unit)));

/** Everything that has a budget uses it up. */
function longest(unit: string, environment: Extent['environment']): Extent {
  const namespace = fill(unit, BYTE_BUDGET.namespace);
  return {
    environment,
    namespace,
    name: fill(unit, BYTE_BUDGET.lease - byteLength(namespace) - 1),
    labels: { [unit]: fill(unit, BYTE_BUDGET.labels - byteLength(unit) - 1) },
    annotations: { [unit]: fill(unit, BYTE_BUDGET.ownAnnotations - byteLength(unit) - 1) },
  };
}

/** The record of a holder that has renewed, seen while a wrapped handler runs. */
async function recordOf(it: Extent): Promise<Item> {
  for (const [name, value] of Object.entries(it.environment)) vi.stubEnv(name, value);
  await using site = await Site.open(table, it.namespace, it.name);
  // A lease that has changed hands a billion times.
  await site.put({ leaseTransitions: { N: '1234567890' } });
  const options = {
    namespace: it.namespace,
    name: it.name,
    labels: it.labels,
    annotations: it.annotations,
    tableName: table.tableName,
    clientConfig: site.clientConfig,
    leaseDurationSeconds: 800.123,
    retryPeriodSeconds: 0.02,
  };
  const renewal = site.hold('renew', 'after');
  const item = await withLease(options, async () => {
    await renewal.reached();
    const record = await site.record();
    renewal.release();
    return record!;
  })({}, { awsRequestId: 'x'.repeat(36), getRemainingTimeInMillis: () => 900_000 });
  if (isSkipped(item)) throw new Error('The lease was not free.');
  const { requests, writeUnits } = site.proxy.counts();
  expect(requests).toBeGreaterThanOrEqual(3);
  expect(writeUnits).toBe(requests);
  return item;
}

describe('each write costs one unit', () => {
  const wide = '\u{1f600}';
  // A name, a value, and what a map costs for each entry.
  const letters = Array.from({ length: 32 }, (_, index) => String.fromCodePoint(0x41 + index));
  const manyTexts = Object.fromEntries(letters.map((letter) => [letter, 'x']));

  test.each([
    ['with the longest of everything', longest('x', LAMBDA)],
    [
      'with the longest of everything, in characters of four bytes',
      longest(wide, Object.fromEntries(Object.keys(LAMBDA).map((name) => [name, fill(wide, 256)]))),
    ],
    ['with the longest of everything outside Lambda', longest('x', {})],
    [
      'with as many labels and annotations as there may be',
      { ...longest('x', LAMBDA), labels: manyTexts, annotations: manyTexts },
    ],
  ])('%s, and with all that others write into the record', async (_, extent) => {
    const item = await recordOf(extent);
    expect(itemBytes(item)).toBeLessThanOrEqual(HOLDERS_SHARE);
    for (const [kind, others] of Object.entries(OTHERS_OF)) {
      expect(itemBytes({ ...item, ...others }), kind).toBeLessThanOrEqual(WRITE_UNIT_BYTES);
    }
  });

  test('of an ordinary function, with all that others write into its record', async () => {
    const item = await recordOf({
      environment: {
        ...LAMBDA,
        AWS_LAMBDA_FUNCTION_NAME: 'payments-nightly-settlement',
        AWS_LAMBDA_LOG_GROUP_NAME: '/aws/lambda/payments-nightly-settlement',
      },
      namespace: 'payments',
      name: 'nightly-settlement',
      labels: { team: 'payments', stage: 'production' },
      annotations: { runbook: 'https://example.com/runbooks/settlement' },
    });
    for (const [kind, others] of Object.entries(OTHERS_OF)) {
      expect(itemBytes({ ...item, ...others }), kind).toBeLessThanOrEqual(WRITE_UNIT_BYTES);
    }
  });
});

/** The longest that a job can write of its run: after a billion failures. */
const NOTE = noteOf(
  {
    tickMs: 1_767_225_600_123,
    outcome: 'failed',
    error: new Error('\u{1f600}'.repeat(1_000)),
    startMs: 1_767_225_600_123,
    endMs: 1_767_225_600_123,
    fencingToken: 1_234_567_890,
    found: readLease('default/job', { run: { M: { failures: { N: '1234567890' } } } }),
  },
  { dueMs: 1_767_225_600_123, maxFailureBackoffMs: 1 },
);

/**
 * What others write, about 80 bytes for each map. A leader's lease is asked to step down, a job's
 * is not: it finishes its run.
 */
const MAP = { M: { since: { S: '2026-01-01T00:00:00.000Z' }, why: { S: 'x'.repeat(36) } } };
const OTHERS: Item = {
  condition: MAP,
  suspended: MAP,
  openVerdict: { N: '1' },
};
const OTHERS_OF: Readonly<Record<string, Item>> = {
  leader: { ...OTHERS, stepDownRequested: MAP },
  job: { ...OTHERS, ...NOTE.set, lastTick: { N: '1767225600123' } },
};
