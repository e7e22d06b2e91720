// Heartbeats and identities on a real server: what passes the wire, what it costs, what is left.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import { Heartbeat, withHeartbeat } from '../../src/heartbeat.ts';
import { byteLength } from '../../src/holder.ts';
import { withIdentity } from '../../src/identity.ts';
import { readLease, type Item, type Value } from '../../src/lease.ts';
import { listIdentities } from '../../src/list-identities.ts';
import { collect } from '../../src/monitor-writes.ts';
import { BYTE_BUDGET } from '../../src/schema.ts';
import { openTable, Site, type Table } from '../integration/fixture.ts';
import { availableEngines } from '../support/dynamodb.ts';

const ONE_WRITE = { requests: 1, writeUnits: 1, readUnits: 0 };

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

function optionsAt(site: Site) {
  return {
    name: site.name,
    namespace: site.namespace,
    tableName: table.tableName,
    clientConfig: site.clientConfig,
  };
}

describe('a heartbeat on DynamoDB', () => {
  test('starts, says what has changed and stops with one request and one unit each', async () => {
    await using site = await Site.open(table);
    const heartbeat = new Heartbeat({ ...optionsAt(site), graceSeconds: 3_600 });
    await heartbeat.start();
    expect(site.proxy.counts()).toMatchObject(ONE_WRITE);
    site.proxy.reset();
    await heartbeat.setReady(false, 'warming up');
    expect(site.proxy.counts()).toMatchObject(ONE_WRITE);
    const record = readLease(site.lease, (await site.record())!);
    expect(record).toMatchObject({ kind: 'heartbeat', leaseTransitions: 1 });
    expect(record.annotations).toMatchObject({
      ready: 'false',
      readyReason: 'warming up',
      graceSeconds: '3600',
    });
    site.proxy.reset();
    await heartbeat.stop();
    expect(site.proxy.counts()).toMatchObject(ONE_WRITE);
    expect(await site.record()).toBeUndefined();
  });

  test('renews with one request and one unit, in its own time', async () => {
    await using site = await Site.open(table);
    const heartbeat = new Heartbeat({ ...optionsAt(site), leaseDurationSeconds: 12 });
    await heartbeat.start();
    site.proxy.reset();
    while (site.proxy.counts().requests === 0) await sleep(50);
    await sleep(200);
    const { requests, writeUnits } = site.proxy.counts();
    expect(writeUnits).toBe(requests);
    await heartbeat.stop();
    expect(await site.record()).toBeUndefined();
  });

  test('that is replaced by the version read deletes nothing of its successor', async () => {
    await using site = await Site.open(table);
    const first = new Heartbeat(optionsAt(site));
    await first.start();
    await expect(new Heartbeat(optionsAt(site)).start()).rejects.toThrow(/is held by/);
    const second = new Heartbeat({ ...optionsAt(site), replace: true });
    await second.start();
    await first.stop();
    expect((await site.record())?.['holderIdentity']).toEqual({ S: second.holderIdentity });
    await second.stop();
    expect(await site.record()).toBeUndefined();
  });

  test('of a function costs one unit when it is due, and nothing when not', async () => {
    await using site = await Site.open(table);
    const handler = withHeartbeat({ ...optionsAt(site), graceSeconds: 3_600 }, () => 'done');
    await handler({}, {});
    expect(site.proxy.counts()).toMatchObject(ONE_WRITE);
    for (let again = 0; again < 3; again++) await handler({}, {});
    expect(site.proxy.counts()).toMatchObject(ONE_WRITE);
  });
});

describe('identities on DynamoDB', () => {
  test('are listed by labels, dots and all, by a filter in the server', async () => {
    await using site = await Site.open(table, 'fleet', 'one');
    await using other = await Site.open(table, 'fleet', 'two');
    const publish = (at: Site, labels: Record<string, string>) =>
      withIdentity({ ...optionsAt(at), labels }, () => 'done')({}, {});
    await publish(site, { 'app.kubernetes.io/version': '7', team: 'a' });
    await publish(other, { 'app.kubernetes.io/version': '8' });
    const list = async (selector: string) => {
      const { tableName } = table;
      const { clientConfig } = site;
      const found = await listIdentities({ tableName, clientConfig, selector, namespace: 'fleet' });
      return found.map(({ name, alive }) => `${name} ${String(alive)}`);
    };
    expect(await list('')).toEqual(['one true', 'two true']);
    expect(await list('app.kubernetes.io/version=7')).toEqual(['one true']);
    expect(await list('team!=a')).toEqual(['two true']);
    expect(await list('!team')).toEqual(['two true']);
    expect(await list('team,app.kubernetes.io/version!=8')).toEqual(['one true']);
  });

  test('survive a collector that read them before their last renewal', async () => {
    await using site = await Site.open(table);
    const options = { ...optionsAt(site), leaseDurationSeconds: 12, renewEverySeconds: 0.001 };
    const handler = withIdentity(options, () => 'done');
    const store = new DynamoDBStore({
      tableName: table.tableName,
      clientConfig: site.clientConfig,
    });
    const call = { signal: new AbortController().signal, attempt: () => () => undefined };
    await handler({}, {});
    const judged = readLease(site.lease, (await site.record())!);
    await sleep(20);
    await handler({}, {});
    expect(await store.remove(site.lease, collect(judged), call)).toMatchObject({
      kind: 'refused',
    });
    const now = readLease(site.lease, (await site.record())!);
    expect(now.version).toBe((judged.version ?? 0) + 1);
    expect(await store.remove(site.lease, collect(now), call)).toEqual({ kind: 'applied' });
  });
});

/** By DynamoDB's rules; a number has a byte for each two significant digits and one more. */
function sizeOf(item: Item): number {
  const size = (value: Value): number => {
    if ('S' in value) return byteLength(value.S);
    if ('N' in value) return Math.ceil(value.N.replace(/[-.]/g, '').length / 2) + 1;
    if ('M' in value) return 3 + Object.keys(value.M).length + sizeOf(value.M);
    throw new Error(JSON.stringify(value));
  };
  return Object.entries(item).reduce(
    (sum, [name, value]) => sum + byteLength(name) + size(value),
    0,
  );
}

describe('each record costs one unit with the longest of everything', () => {
  const fill = (bytes: number) => 'x'.repeat(bytes);
  const longest = async (kind: 'heartbeat' | 'identity') => {
    const variables = {
      AWS_LAMBDA_FUNCTION_NAME: fill(64),
      AWS_LAMBDA_FUNCTION_VERSION: '$LATEST',
      AWS_LAMBDA_LOG_GROUP_NAME: fill(512),
      AWS_LAMBDA_LOG_STREAM_NAME: `2026/11/29/[$LATEST]${'0123456789abcdef'.repeat(2)}`,
      AWS_LAMBDA_INITIALIZATION_TYPE: 'lambda-managed-instances',
      AWS_REGION: 'ap-southeast-3',
    };
    for (const [name, value] of Object.entries(variables)) vi.stubEnv(name, value);
    const namespace = fill(BYTE_BUDGET.namespace);
    const name = kind + fill(BYTE_BUDGET.lease - namespace.length - 1 - kind.length);
    await using site = await Site.open(table, namespace, name);
    await site.put({ leaseTransitions: { N: '1234567890' } });
    const options = {
      ...optionsAt(site),
      labels: { x: fill(BYTE_BUDGET.labels - 2) },
      annotations: { x: fill(BYTE_BUDGET.ownAnnotations - 2) },
      leaseDurationSeconds: 800.123,
    };
    if (kind === 'heartbeat') {
      const patience = { graceSeconds: 31_536_000.123, tolerationSeconds: 31_536_000.123 };
      const heartbeat = new Heartbeat({ ...options, ...patience });
      await heartbeat.start();
      await heartbeat.setReady(false, fill(1_000));
      const item = (await site.record())!;
      await heartbeat.stop();
      return item;
    }
    const context = { invokedFunctionArn: `a:a:a:a:a:a:a:${fill(128)}`, awsRequestId: fill(36) };
    await withIdentity(options, () => 'done')({}, context);
    return (await site.record())!;
  };

  test.each(['heartbeat', 'identity'] as const)('that the holder of %s writes', async (kind) => {
    const item = await longest(kind);
    expect(item['kind']).toEqual({ S: kind });
    expect(sizeOf(item)).toBeLessThanOrEqual(1_024);
  });
});
