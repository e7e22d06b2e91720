// The functions as they are deployed: minified, from dist/functions, on the Lambda runtime, on one
// table. One story of all of them: a worker is killed, the monitor notices, the widget shows it,
// and another worker takes over.

import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Item, type LeaseRecord, readLease } from '../../src/lease.ts';
import { readVerdict } from '../../src/stored-verdict.ts';
import { createLeaseTable, rawItem, startDynamoDB, testClient } from '../support/dynamodb.ts';
import { type EventBridge, startEventBridge } from '../support/eventbridge.ts';
import {
  expectRealRuntime,
  type Invocation,
  LambdaEnvironment,
} from '../support/lambda-runtime/index.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const runtime = expectRealRuntime() ? 'ric' : 'stand-in';
const TICK = '2026-01-05T08:00:00Z';

const cleanUp = new AsyncDisposableStack();
let settings: Readonly<Record<string, string>>;
let bridge: EventBridge;
let record: (lease: string) => Promise<LeaseRecord>;

beforeAll(async () => {
  execFileSync(process.execPath, [`${root}.config/bundle.mjs`], { stdio: 'pipe' });
  const { endpoint } = cleanUp.use(await startDynamoDB());
  bridge = cleanUp.use(await startEventBridge());
  const client = cleanUp.adopt(testClient(endpoint), (each) => each.destroy());
  const tableName = await createLeaseTable(endpoint);
  record = async (lease) =>
    readLease(lease, ((await rawItem(client, tableName, lease)) ?? {}) as Item);
  settings = {
    LEASE_TABLE_NAME: tableName,
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    AWS_ENDPOINT_URL_EVENTBRIDGE: bridge.endpoint,
  };
});
afterAll(() => cleanUp.disposeAsync());

function start(name: string, env: Readonly<Record<string, string>> = {}) {
  return LambdaEnvironment.start({
    taskRoot: `${root}dist/functions/${name}`,
    runtime,
    functionName: name,
    timeoutMs: 30_000,
    env: { ...settings, ...env },
  });
}

function response(invocation: Invocation): unknown {
  if (invocation.kind !== 'returned') throw new Error(JSON.stringify(invocation));
  return invocation.response;
}

describe(`the bundles that are deployed, on the ${runtime} runtime`, () => {
  it('are all known here', () => {
    const bundles = readdirSync(`${root}dist/functions`, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    expect(bundles.sort()).toEqual(['lease-widget', 'lifecycle-monitor', 'singleton-worker']);
  });

  it('see a worker die, and its work go on elsewhere', { timeout: 60_000 }, async () => {
    const env = { LEASE_NAME: 'nightly', LEASE_DURATION_SECONDS: '6' };
    await using first = await start('singleton-worker', env);
    await using second = await start('singleton-worker', env);
    await using monitor = await start('lifecycle-monitor', {
      GRACE_SECONDS: '1',
      PASS_INTERVAL_SECONDS: '0.3',
      RUN_SECONDS: '1',
    });
    await using widget = await start('lease-widget');
    const look = async () => String(response(await widget.invoke({ sort: 'lease' })));
    const status = async () => readVerdict(await record('default/nightly'))?.status;

    const working = first.invoke({ steps: 100, stepMs: 100 });
    await first.printed('"step":2,');
    const { holderIdentity, leaseTransitions } = await record('default/nightly');
    expect(leaseTransitions).toBe(1);
    expect(await second.invoke({})).toMatchObject({
      response: { skipped: true, reason: 'held', holderIdentity, fencingToken: 1 },
    });
    expect(await look()).toContain('<bdi>default/nightly</bdi>');
    await first.kill();
    expect((await working).kind).toBe('crashed');

    let passes = 0;
    while ((await status()) !== 'NotReady') {
      const { passes: more } = response(await monitor.invoke({})) as { passes: number };
      passes += more;
    }
    expect(passes).toBeGreaterThan(1);
    expect(await look()).toMatch(/NotReady|Not ready/i);
    const next = await second.invoke({ steps: 2, stepMs: 10 });
    expect(next).toMatchObject({ response: { steps: 2, completed: true, fencingToken: 2 } });
    while ((await status()) !== 'Ready') response(await monitor.invoke({}));
    const told = bridge.accepted.map(({ DetailType, Detail }) => {
      const { data } = JSON.parse(Detail) as { data: { name: string } };
      return `${data.name}: ${DetailType}`;
    });
    expect(told).toContain('nightly: Lease Not Ready');
    expect(told.lastIndexOf('nightly: Lease Ready')).toBeGreaterThan(
      told.indexOf('nightly: Lease Not Ready'),
    );
    // The monitor is a singleton through a lease of its own, and has given it back.
    const own = await record('lambda-lease/lifecycle-monitor');
    expect(own.vacant).toBe(true);
    expect(own.leaseTransitions).toBeGreaterThan(1);
    for (const each of [second, monitor, widget]) expect(each.alive).toBe(true);
  });

  it('run a scheduled tick once, and again when it failed', async () => {
    const env = { LEASE_NAME: 'hourly' };
    // Nobody listens on the port of the discard service.
    await using broken = await start('singleton-worker', {
      ...env,
      WORK_URL: 'http://127.0.0.1:9/',
    });
    await using sound = await start('singleton-worker', env);
    const event = { scheduledTime: TICK, steps: 1, stepMs: 1 };
    const delivery = { requestId: 'retried' };
    expect((await broken.invoke(event, delivery)).kind).toBe('failed');
    expect(await sound.invoke(event, delivery)).toMatchObject({
      response: { completed: true, fencingToken: 2 },
    });
    expect(await sound.invoke(event, delivery)).toMatchObject({
      response: { skipped: true, reason: 'tick done' },
    });
    expect((await record('default/hourly')).lastTickMs).toBe(Date.parse(TICK));
    expect(broken.alive).toBe(true);
  });
});
