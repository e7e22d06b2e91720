// What the checks in a transaction let pass and refuse, on a real table, through both clients.

import {
  type DynamoDBClient,
  type TransactWriteItem,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient, TransactWriteCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { sendGuarded } from '../../src/guarded.ts';
import type { Lease } from '../../src/lease-handle.ts';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import { scheduledSingleton } from '../../src/scheduled-singleton.ts';
import { silent } from '../election/harness.ts';
import { openTable, Site, type Table } from '../integration/fixture.ts';
import { rawItem, testClient } from '../support/dynamodb.ts';
import type { Fault } from '../support/fault-proxy.ts';
import { outcome } from './stage.ts';

let table: Table;
let site: Site;
let client: DynamoDBClient;
/** A second tenure that a test has begun. */
let again: Lease | undefined;
beforeAll(async () => {
  table = await openTable('dynoxide');
});
afterAll(() => table[Symbol.asyncDispose]());
beforeEach(async () => {
  site = await Site.open(table, 'guarded');
  client = testClient(site.proxy.endpoint, { maxAttempts: 1 });
  again = undefined;
  return async () => {
    await again?.release();
    client.destroy();
    await site[Symbol.asyncDispose]();
  };
});

const TIMING = { leaseDurationSeconds: 30, renewDeadlineSeconds: 20, retryPeriodSeconds: 0.1 };

function acquire(): Promise<Lease> {
  const { tableName } = table;
  const { clientConfig, namespace, name } = site;
  return acquireLease({ tableName, clientConfig, namespace, name, logger: silent, ...TIMING });
}

function inRun<T>(work: (lease: ScheduledLease) => Promise<T>, tickMs = Date.now() - 1_000) {
  const { tableName } = table;
  const { clientConfig, namespace, name } = site;
  const handler = scheduledSingleton(
    { tableName, clientConfig, namespace, name, logger: silent, tick: () => tickMs },
    (_event: object, { lease }) => work(lease),
  );
  return handler({}, { getRemainingTimeInMillis: () => 60_000 });
}

/** Adds 1 to the effect, with what guards it. */
type Send = (lease: Lease, completes?: boolean) => Promise<unknown>;

const effectKey = () => `${site.lease} effect`;
const low = () => ({
  Update: {
    TableName: table.tableName,
    Key: { lease: { S: effectKey() } },
    UpdateExpression: 'ADD n :one',
    ExpressionAttributeValues: { ':one': { N: '1' } },
  },
});
const native = () => ({
  Update: {
    ...low().Update,
    Key: { lease: effectKey() },
    ExpressionAttributeValues: { ':one': 1 },
  },
});

const WAYS: readonly (readonly [string, Send])[] = [
  [
    'a check in typed values',
    (lease, completes = false) => {
      const format = { marshalled: true } as const;
      const check: TransactWriteItem = completes
        ? (lease as ScheduledLease).completeTick(format)
        : lease.conditionCheck(format);
      return client.send(new TransactWriteItemsCommand({ TransactItems: [low(), check] }));
    },
  ],
  [
    'a check in native values',
    (lease, completes = false) => {
      const check = completes ? (lease as ScheduledLease).completeTick() : lease.conditionCheck();
      const command = new TransactWriteCommand({ TransactItems: [check, native()] });
      return DynamoDBDocumentClient.from(client).send(command);
    },
  ],
  [
    'sendGuarded',
    (lease, completeTick = false) =>
      sendGuarded(client, new TransactWriteItemsCommand({ TransactItems: [low()] }), lease, {
        completeTick,
      }),
  ],
  [
    'sendGuarded and the document client',
    (lease, completeTick = false) =>
      sendGuarded(
        DynamoDBDocumentClient.from(client),
        new TransactWriteCommand({ TransactItems: [native()] }),
        lease,
        { completeTick },
      ),
  ],
];

async function effects(): Promise<number> {
  return Number((await rawItem(table.direct, table.tableName, effectKey()))?.['n']?.N ?? 0);
}

const takeOver = async () => {
  await site.put({
    ...(await site.record()),
    holderIdentity: { S: 'other' },
    leaseTransitions: { N: '99' },
    version: { N: '1' },
  });
};

describe.each(WAYS)('with %s, a transaction', (way, send) => {
  test('commits while the lease is held, whatever renewals come between', async () => {
    await using lease = await acquire();
    await send(lease);
    const from = (await site.number('version')) ?? 0;
    while (((await site.number('version')) ?? 0) < from + 3) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await send(lease);
    expect(await effects()).toBe(2);
    expect(lease.isHeld()).toBe(true);
  });

  test.each<[string, (lease: Lease) => Promise<unknown>]>([
    ['another has taken the lease over', takeOver],
    [
      'it is held under the same name, with a later token',
      async () => site.put({ ...(await site.record()), leaseTransitions: { N: '99' } }),
    ],
    ['it was released', (lease) => lease.release()],
    ['it was evicted', () => site.evict()],
    ['its record was deleted', () => site.delete()],
    [
      'it expired, and this very process has taken it again (L5)',
      async () => {
        await site.expire();
        const { fencingToken } = (again = await acquire());
        expect(fencingToken).toBe(2);
      },
    ],
  ])('does not commit once %s', async (_end, end) => {
    const { proxy } = site;
    // Renewals shall not tell the lease of it before its transaction does.
    const lease = await acquire();
    const renewals = proxy.inject({
      fault: { kind: 'hold', when: 'before' },
      operation: 'UpdateItem',
      match: ({ ExpressionAttributeValues: values }) =>
        JSON.stringify(values).includes(lease.holderIdentity) &&
        !JSON.stringify(values).includes('acquireTime'),
      times: Infinity,
    });
    if (end.length > 0) renewals.release();
    await end(lease);
    const sending = send(lease);
    // A record that is gone is not shown: there a renewal has to tell.
    setTimeout(() => renewals.release(), 200);
    expect(await outcome(sending)).toMatch(
      /^(TransactionCanceledException|lease-lost|lease-stopped)$/,
    );
    expect(await effects()).toBe(0);
    await lease.release();
  });

  test('completes a tick with its effect, once', async () => {
    const outcomes: string[] = [];
    await inRun(async (lease) => {
      outcomes.push(await outcome(send(lease, true)), await outcome(send(lease, true)));
    });
    expect(outcomes[0]).toBe('done');
    expect(outcomes[1]).toMatch(/^(TransactionCanceledException|tick-done)$/);
    expect(await effects()).toBe(1);
  });

  test('does not complete a tick under a lease that another has taken over', async () => {
    let came: string | undefined;
    await inRun(async (lease) => {
      await takeOver();
      came = await outcome(send(lease, true));
    });
    expect(came).toMatch(/^(TransactionCanceledException|lease-lost)$/);
    expect([await effects(), await site.number('lastTick')]).toEqual([0, undefined]);
  });

  test('completes its tick with two requests of ours, or one more done by hand', async () => {
    await inRun((lease) => send(lease, true));
    const { operations } = site.proxy.counts();
    expect(operations['TransactWriteItems']).toBe(1);
    expect(operations['UpdateItem']).toBe(way.startsWith('a check') ? 3 : 2);
    expect((await site.holder())[0]).toBeUndefined();
  });
});

describe('sendGuarded through a network that loses things', () => {
  const faults: Fault[] = [
    { kind: 'reset', when: 'before' },
    { kind: 'reset', when: 'after' },
    { kind: 'error', error: 'InternalServerError', when: 'before' },
    { kind: 'error', error: 'InternalServerError', when: 'after' },
    { kind: 'error', error: 'ThrottlingException' },
    { kind: 'error', error: 'TransactionConflictException' },
    { kind: 'truncate' },
    { kind: 'black-hole', when: 'after' },
  ];

  describe.each([false, true])('completing a tick: %s', (completeTick) => {
    test.each(faults)('has its effect once: %o', async (fault) => {
      const send = WAYS[2]![1];
      const times = fault.kind === 'black-hole' ? 1 : 2;
      site.proxy.inject({ fault, operation: 'TransactWriteItems', times });
      expect(await outcome(inRun((lease) => send(lease, completeTick)))).toBe('done');
      expect(await effects()).toBe(1);
      const sent = site.proxy.requests.filter(({ operation }) => operation.startsWith('Transact'));
      expect(new Set(sent.map(({ body }) => body['ClientRequestToken'])).size).toBe(1);
    });
  });

  test('knows a lost tenure where the server does not show the record', async () => {
    const lease = await acquire();
    await site.delete();
    site.proxy.inject({ fault: { kind: 'strip-item' }, times: Infinity });
    expect(await outcome(WAYS[2]![1](lease))).toBe('lease-lost');
    await lease.release();
    expect(await effects()).toBe(0);
  });

  test('knows its own failed condition from the fence', async () => {
    await using lease = await acquire();
    const own = { ...low().Update, ConditionExpression: 'attribute_exists(n)' };
    const command = new TransactWriteItemsCommand({ TransactItems: [{ Update: own }] });
    expect(await outcome(sendGuarded(client, command, lease))).toBe('condition-failed');
    expect(lease.isHeld()).toBe(true);
    await takeOver();
    expect(await outcome(sendGuarded(client, command, lease))).toBe('lease-lost');
  });
});
