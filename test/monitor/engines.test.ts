// The monitor against servers, in real time: also one that finds no map equal to any and keeps the
// refused item to itself.

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import type { LeaseEvent } from '../../src/events.ts';
import { readLease, type Item } from '../../src/lease.ts';
import { LifecycleMonitor } from '../../src/lifecycle-monitor.ts';
import {
  availableEngines,
  createLeaseTable,
  putRawItem,
  rawItem,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import { heldSince, START_MS } from './one-lease.ts';

const SILENT = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

describe.each(availableEngines())('a monitor on %s', (engine) => {
  test('flags, publishes, evicts and collects, each once', async () => {
    await using server = await startDynamoDB({ engine });
    const tableName = await createLeaseTable(server.endpoint);
    const client = testClient(server.endpoint);
    const events: LeaseEvent[] = [];
    const monitor = new LifecycleMonitor({
      store: new DynamoDBStore({ tableName, client }),
      events: {
        publish: async (more) => {
          events.push(...more);
          return more.map(() => true);
        },
      },
      logger: SILENT,
      graceSeconds: 0.5,
      tolerationSeconds: 1,
      retentionSeconds: 1,
    });
    const second = (Date.now() - START_MS) / 1_000 - 60;
    for (const kind of ['leader', 'heartbeat'] as const) {
      const item = heldSince(second, { kind, durationS: 0.5, token: 6 });
      await putRawItem(client, tableName, { ...(item as object), lease: { S: `default/${kind}` } });
    }
    while ((await rawItem(client, tableName, 'default/heartbeat')) !== undefined) {
      expect(await monitor.pass()).toMatchObject({ blind: undefined, unusable: 0 });
      await sleep(100);
    }
    const leader = (await rawItem(client, tableName, 'default/leader')) as Item;
    const expected = { vacant: true, evicted: true, leaseTransitions: 6, version: 101 };
    expect(readLease('default/leader', leader)).toMatchObject(expected);
    const told = events.map(({ detailType, detail }) => `${detail.data.name}: ${detailType}`);
    expect(told.sort()).toEqual([
      'heartbeat: Lease Evicted',
      'heartbeat: Lease Not Ready',
      'leader: Leader Changed',
      'leader: Lease Evicted',
      'leader: Lease Not Ready',
    ]);
    client.destroy();
  });
});
