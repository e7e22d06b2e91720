// Scheduled jobs on a server: what a tick costs, and that effect and completion commit together.

import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBDocumentClient, TransactWriteCommand } from '@aws-sdk/lib-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isoTime, readLease } from '../../src/lease.ts';
import { lastRunOf } from '../../src/job.ts';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import {
  scheduledSingleton,
  type ScheduledSingletonOptions,
} from '../../src/scheduled-singleton.ts';
import { openTable, Site, type Table } from '../integration/fixture.ts';
import { availableEngines } from '../support/dynamodb.ts';

interface TickEvent {
  readonly scheduledTime: string;
}
type Options = Partial<ScheduledSingletonOptions<TickEvent, typeof CONTEXT>>;

const CONTEXT = { awsRequestId: 'request', getRemainingTimeInMillis: () => 30_000 };
const MINUTE = 60_000;
const NOW_MS = Math.floor(Date.now() / MINUTE) * MINUTE;
const tick = (minute: number): TickEvent => ({
  scheduledTime: isoTime(NOW_MS - (10 - minute) * MINUTE),
});
const minuteOf = (ms: number) => (ms - NOW_MS) / MINUTE + 10;

describe.each(availableEngines())('on %s', (engine) => {
  let table: Table;
  /** A server that keeps the old item to itself makes a refusal cost a consistent read more. */
  const shows = engine === 'dynoxide';
  const duplicate = shows
    ? { requests: 1, readUnits: 0, writeUnits: 1 }
    : { requests: 2, readUnits: 1, writeUnits: 1 };

  beforeAll(async () => {
    table = await openTable(engine);
  });
  afterAll(() => table[Symbol.asyncDispose]());

  function job(site: Site, options: Options, work: (lease: ScheduledLease) => unknown) {
    const { namespace, name, clientConfig } = site;
    return scheduledSingleton<TickEvent, unknown, typeof CONTEXT>(
      { namespace, name, clientConfig, tableName: table.tableName, ...options },
      (_event, { lease }) => work(lease),
    );
  }

  async function costOf(site: Site, operation: () => Promise<unknown>) {
    site.proxy.reset();
    await operation();
    const { requests, readUnits, writeUnits } = site.proxy.counts();
    return { requests, readUnits, writeUnits };
  }

  const lastTick = async (site: Site) => minuteOf((await site.number('lastTick')) ?? NaN);

  test('a tick costs two writes, cold and warm; a duplicate or an older one costs one', async () => {
    await using site = await Site.open(table);
    const handler = job(site, { periodSeconds: 60 }, () => 'ran');
    for (const minute of [2, 3]) {
      expect(
        await costOf(site, async () => expect(await handler(tick(minute), CONTEXT)).toBe('ran')),
      ).toEqual({ requests: 2, readUnits: 0, writeUnits: 2 });
      expect(await lastTick(site)).toBe(minute);
      for (const [older, reason] of [
        [minute, 'tick done'],
        [minute - 1, 'newer tick done'],
      ] as const) {
        const cost = await costOf(site, async () =>
          expect(await handler(tick(older), CONTEXT)).toMatchObject({ skipped: true, reason }),
        );
        expect(cost).toEqual(duplicate);
      }
    }
  });

  test('a duplicate in a cold environment costs one too', async () => {
    await using site = await Site.open(table);
    await job(site, {}, () => 'ran')(tick(2), CONTEXT);
    const cold = job(site, {}, () => 'ran');
    expect(await costOf(site, () => cold(tick(2), CONTEXT))).toEqual(duplicate);
  });

  test('each tick that is caught up on costs one more', async () => {
    await using site = await Site.open(table);
    const ran: number[] = [];
    const handler = job(site, { periodSeconds: 60, catchUp: 'each' }, (lease) => {
      ran.push(minuteOf(lease.tick.time.getTime()));
    });
    await handler(tick(0), CONTEXT);
    expect(await costOf(site, () => handler(tick(4), CONTEXT))).toEqual({
      requests: 5,
      readUnits: 0,
      writeUnits: 5,
    });
    expect(ran).toEqual([0, 1, 2, 3, 4]);
    expect(await lastTick(site)).toBe(4);
  });

  test('three deliveries at once run once', async () => {
    await using site = await Site.open(table);
    let ran = 0;
    const handlers = [1, 2, 3].map(() =>
      job(site, {}, async () => {
        ran += 1;
        await sleep(30);
      }),
    );
    const answers = await Promise.all(handlers.map((handler) => handler(tick(1), CONTEXT)));
    expect(ran).toBe(1);
    expect(answers.filter((answer) => answer === undefined)).toHaveLength(1);
  });

  test('a lost answer of either write makes no second run', async () => {
    await using site = await Site.open(table);
    let ran = 0;
    const handler = job(site, {}, () => (ran += 1));
    for (const kind of ['acquire', 'release'] as const) {
      const fault = site.proxy.inject({
        fault: { kind: 'reset', when: 'after' },
        match: ({ UpdateExpression, ExpressionAttributeNames: names = {} }) =>
          UpdateExpression !== undefined &&
          Object.values(names).includes('acquireTime') === (kind === 'acquire'),
        times: 1,
      });
      await handler(tick(kind === 'acquire' ? 1 : 2), CONTEXT);
      fault.release();
    }
    expect(ran).toBe(2);
    expect(await handler(tick(2), CONTEXT)).toMatchObject({ reason: 'tick done' });
    expect(await lastTick(site)).toBe(2);
  });

  test('whatever is thrown, the record tells of it, and the lease goes back', async () => {
    await using site = await Site.open(table);
    const thrown = [new Error(''), new Error('\ud83d'.repeat(999)), undefined, { message: 7 }, 'é'];
    for (const [index, error] of thrown.entries()) {
      const handler = job(site, {}, () => {
        throw error as Error;
      });
      await handler(tick(1), CONTEXT).catch(() => undefined);
      const record = readLease(site.lease, (await site.record()) ?? {});
      expect(record.vacant).toBe(true);
      expect(lastRunOf(record)).toMatchObject({ outcome: 'failed', failures: index + 1 });
    }
  });

  // Dynalite knows no transactions: there it is not skipped, but not there to be run.
  const itself = shows ? describe : undefined;
  itself?.('a transaction that completes the tick', () => {
    /** The work's own effect: a count, which two effects of one tick would make two. */
    const effect = (site: Site) => ({
      Update: {
        TableName: table.tableName,
        Key: { lease: `effect/${site.name}` },
        UpdateExpression: 'ADD #count :one',
        ExpressionAttributeNames: { '#count': 'count' },
        ExpressionAttributeValues: { ':one': 1 },
      },
    });
    const transact = (site: Site, lease: ScheduledLease) =>
      DynamoDBDocumentClient.from(table.direct).send(
        new TransactWriteCommand({ TransactItems: [lease.completeTick(), effect(site)] }),
      );

    test('commits once, whatever becomes of the run', async () => {
      await using site = await Site.open(table);
      const handler = job(site, { periodSeconds: 60 }, async (lease) => {
        await transact(site, lease);
        throw new Error('after the commit');
      });
      await expect(handler(tick(3), CONTEXT)).rejects.toThrow('after the commit');
      expect(await lastTick(site)).toBe(3);
      expect(minuteOf((await site.number('dueTime'))!)).toBe(5);
      // The retry of Lambda: it has nothing to do any more.
      expect(await handler(tick(3), CONTEXT)).toMatchObject({ reason: 'tick done' });
    });

    test('is refused a second time in the same run, and to a lease that is over', async () => {
      await using site = await Site.open(table);
      let kept: ScheduledLease | undefined;
      await job(site, {}, async (lease) => {
        kept = lease;
        await transact(site, lease);
        await expect(transact(site, lease)).rejects.toMatchObject({
          name: 'TransactionCanceledException',
        });
      })(tick(1), CONTEXT);
      await job(site, {}, async () => {
        await expect(transact(site, kept!)).rejects.toMatchObject({
          name: 'TransactionCanceledException',
        });
      })(tick(2), CONTEXT);
      expect(await lastTick(site)).toBe(2);
    });

    test('costs the release another try: the version has moved on', async () => {
      await using site = await Site.open(table);
      const handler = job(site, {}, (lease) => transact(site, lease));
      expect((await costOf(site, () => handler(tick(1), CONTEXT))).requests).toBe(3);
      expect(await lastTick(site)).toBe(1);
    });
  });
});
