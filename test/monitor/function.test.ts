// The monitor where it runs: its bundled handler on the Lambda runtime, a table, and a stand-in for
// EventBridge. Nothing here asserts that something was quick.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { MonitorResult } from '../../functions/lifecycle-monitor.ts';
import { type Item, readLease, type LeaseRecord } from '../../src/lease.ts';
import {
  createLeaseTable,
  type DynamoDBServer,
  putRawItem,
  rawItem,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import { type EventBridge, startEventBridge } from '../support/eventbridge.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import {
  bundleHandler,
  expectRealRuntime,
  type Invocation,
  LambdaEnvironment,
  LambdaInitError,
} from '../support/lambda-runtime/index.ts';
import { heldSince, START_MS, type HolderOptions } from './one-lease.ts';

const realRuntime = expectRealRuntime();
const cleanUp = new AsyncDisposableStack();
let server: DynamoDBServer;
let taskRoot: string;

beforeAll(async () => {
  server = cleanUp.use(await startDynamoDB());
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'monitor-')));
  const source = fileURLToPath(new URL('../../functions/lifecycle-monitor.ts', import.meta.url));
  taskRoot = await bundleHandler(source, folder.path);
});
afterAll(() => cleanUp.disposeAsync());

class Stage implements AsyncDisposable {
  readonly #client = testClient(server.endpoint);
  readonly tableName: string;
  readonly bridge: EventBridge;

  private constructor(tableName: string, bridge: EventBridge) {
    this.tableName = tableName;
    this.bridge = bridge;
  }

  static async open(): Promise<Stage> {
    return new Stage(await createLeaseTable(server.endpoint), await startEventBridge());
  }

  start(runtime: 'ric' | 'stand-in', env: Record<string, string> = {}): Promise<LambdaEnvironment> {
    return LambdaEnvironment.start({
      taskRoot,
      runtime,
      timeoutMs: 60_000,
      functionName: 'monitor',
      env: {
        LEASE_TABLE_NAME: this.tableName,
        AWS_ENDPOINT_URL_DYNAMODB: server.endpoint,
        AWS_ENDPOINT_URL_EVENTBRIDGE: this.bridge.endpoint,
        GRACE_SECONDS: '1',
        TOLERATION_SECONDS: '3',
        PASS_INTERVAL_SECONDS: '0.3',
        RUN_SECONDS: '8',
        ...env,
      },
    });
  }

  /** Renewed so many seconds ago, for one second. */
  async dead(name: string, secondsAgo: number, options: HolderOptions = {}): Promise<void> {
    const second = (Date.now() - START_MS) / 1_000 - secondsAgo;
    const item = heldSince(second, { durationS: 1, by: `host/1/${name}`, ...options });
    await putRawItem(this.#client, this.tableName, {
      ...(item as object),
      lease: { S: `default/${name}` },
    });
  }

  async record(lease: string): Promise<LeaseRecord> {
    return readLease(lease, ((await rawItem(this.#client, this.tableName, lease)) ?? {}) as Item);
  }

  events(): string[] {
    return this.bridge.accepted.map(({ DetailType, Detail }) => {
      const { data } = JSON.parse(Detail) as { data: { name: string } };
      return `${data.name}: ${DetailType}`;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#client.destroy();
    await this.bridge[Symbol.asyncDispose]();
  }
}

function result(invocation: Invocation): MonitorResult {
  if (invocation.kind !== 'returned') throw new Error(JSON.stringify(invocation));
  return invocation.response as MonitorResult;
}

describe.each(['ric', 'stand-in'] as const)('the monitor on the %s runtime', (runtime) => {
  const it = test.skipIf(runtime === 'ric' && !realRuntime).concurrent;

  it(
    'flags expired holders, publishes, and evicts them',
    { timeout: 60_000 },
    async ({ expect }) => {
      await using stage = await Stage.open();
      await using environment = await stage.start(runtime, { EVENT_BUS_NAME: 'ops' });
      await stage.dead('leader', 100, { token: 6 });
      await stage.dead('worker', 100, { kind: 'heartbeat', token: 6 });
      await stage.dead('live', 0, { kind: 'heartbeat', durationS: 3_600 });
      const { passes, last } = result(await environment.invoke({}));
      expect(passes).toBeGreaterThan(2);
      expect(last).toMatchObject({ scanned: 4, notReady: 0 });
      expect(last).not.toHaveProperty('blind');
      expect(await stage.record('default/leader')).toMatchObject({
        vacant: true,
        evicted: true,
        leaseTransitions: 6,
      });
      expect(await stage.record('default/worker')).toMatchObject({ vacant: false, evicted: true });
      expect(stage.events().sort()).toEqual([
        'leader: Leader Changed',
        'leader: Lease Evicted',
        'leader: Lease Not Ready',
        'worker: Lease Evicted',
        'worker: Lease Not Ready',
      ]);
      expect(stage.bridge.accepted[0]).toMatchObject({ EventBusName: 'ops' });
      expect((await stage.record('lambda-lease/lifecycle-monitor')).vacant).toBe(true);

      const lines = environment.output.map(({ text }) => text);
      const metrics = lines.filter((line) => line.startsWith('{"_aws"'));
      expect(metrics).toHaveLength(passes);
      expect(JSON.parse(metrics[0]!)).toMatchObject({
        _aws: { CloudWatchMetrics: [{ Namespace: 'lambda-lease', Dimensions: [['service']] }] },
        service: 'monitor',
        MonitorPass: 1,
        MonitorBlind: 0,
        LeasesScanned: 4,
      });
      expect(lines.filter((line) => line.includes('A lease changed'))).toHaveLength(5);
    },
  );

  it(
    'waits for the one at work, and goes on where that one was',
    { timeout: 60_000 },
    async ({ expect }) => {
      await using stage = await Stage.open();
      await using first = await stage.start(runtime, { RUN_SECONDS: '4' });
      await using second = await stage.start(runtime);
      await stage.dead('leader', 100, { token: 0 });
      const atWork = first.invoke({});
      while ((await stage.record('lambda-lease/lifecycle-monitor')).vacant) await sleep(50);
      const waiting = result(await second.invoke({}));
      expect(result(await atWork).passes).toBeGreaterThan(1);
      expect(waiting.passes).toBeGreaterThanOrEqual(1);
      expect((await stage.record('lambda-lease/lifecycle-monitor')).leaseTransitions).toBe(2);
      expect(stage.events()).toEqual(['leader: Lease Not Ready', 'leader: Lease Evicted']);
    },
  );

  it('begins no pass that it cannot finish', { timeout: 60_000 }, async ({ expect }) => {
    await using stage = await Stage.open();
    await using environment = await stage.start(runtime, { RUN_SECONDS: '600' });
    const invocation = await environment.invoke({}, { timeoutMs: 9_000 });
    expect(result(invocation).passes).toBeGreaterThan(1);
    expect(environment.alive).toBe(true);
  });
});

describe('the monitor, which bills for as long as it runs and for each renewal,', () => {
  test.concurrent(
    'ends when no further pass fits into its run',
    { timeout: 60_000 },
    async ({ expect }) => {
      await using stage = await Stage.open();
      const settings = { RUN_SECONDS: '1', PASS_INTERVAL_SECONDS: '50' };
      await using environment = await stage.start('stand-in', settings);
      // One that rested after its pass would be killed in its rest.
      const invocation = await environment.invoke({}, { timeoutMs: 30_000 });
      expect(result(invocation)).toMatchObject({ passes: 1, last: { scanned: 1 } });
      expect((await stage.record('lambda-lease/lifecycle-monitor')).vacant).toBe(true);
    },
  );

  test.concurrent(
    'renews its lease every 8 seconds, and no sooner',
    { timeout: 60_000 },
    async ({ expect }) => {
      await using stage = await Stage.open();
      await using proxy = await startFaultProxy(server.endpoint);
      await using environment = await stage.start('stand-in', {
        AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
        PASS_INTERVAL_SECONDS: '1',
        RUN_SECONDS: '10.5',
      });
      expect(result(await environment.invoke({})).passes).toBeGreaterThan(1);
      const writes = proxy.requests.filter(({ operation }) => operation === 'UpdateItem');
      const lastedMs = writes.at(-1)!.at - writes[0]!.at;
      const renewals = writes.filter(({ body }) => {
        const names = Object.values(body.ExpressionAttributeNames ?? {});
        return names.includes('renewTime') && !names.includes('leaseTransitions');
      });
      expect(renewals.length).toBeGreaterThan(0);
      expect(renewals.length).toBeLessThanOrEqual(lastedMs / 8_000);
    },
  );
});

describe('the monitor with settings that cannot work', () => {
  test.concurrent.each([
    ['LEASE_TABLE_NAME', '', 'LEASE_TABLE_NAME is not set'],
    ['GRACE_SECONDS', 'soon', 'GRACE_SECONDS is \\"soon\\"'],
    ['PASS_INTERVAL_SECONDS', '-1', 'PASS_INTERVAL_SECONDS is \\"-1\\"'],
    // Verdicts would be frozen for ever: so long an absence is blindness.
    ['PASS_INTERVAL_SECONDS', '120', 'PASS_INTERVAL_SECONDS is \\"120\\"'],
  ])('says so at once: %s=%s', async (name, value, message) => {
    await using stage = await Stage.open();
    const started = stage.start('stand-in', { [name]: value });
    const error = await started.then(
      () => undefined,
      (error: unknown) => error,
    );
    if (!(error instanceof LambdaInitError)) throw new Error('It started.');
    if (!JSON.stringify(error.message).includes(message)) throw error;
  });
});
