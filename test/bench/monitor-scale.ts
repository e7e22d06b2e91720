// What one pass of the lifecycle monitor costs, on tables of growing size: time, requests, read
// units, our own CPU and memory. Run it: npm run bench:monitor [-- 100000 1000000]
//
// The table is filled with healthy heartbeats, one in a thousand of them expired. Time is the
// embedded server's as much as ours and says little; requests and units do not vary.

import { BatchWriteItemCommand, type AttributeValue } from '@aws-sdk/client-dynamodb';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import type { EventSink } from '../../src/events.ts';
import { isoTime } from '../../src/lease.ts';
import { LifecycleMonitor } from '../../src/lifecycle-monitor.ts';
import { createLeaseTable, startDynamoDB, testClient } from '../support/dynamodb.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';

const SIZES = process.argv.slice(2).map(Number);
const BATCH = 25;
const AT_ONCE = 16;
/** One in so many is expired. */
const EXPIRED_EVERY = 1_000;

const sink: EventSink = { publish: (events) => Promise.resolve(events.map(() => true)) };

function leaseItem(index: number, nowMs: number): Record<string, AttributeValue> {
  const expired = index % EXPIRED_EVERY === 0;
  const renewedMs = nowMs - (expired ? 600_000 : 5_000);
  // Healthy for as long as the benchmark may take.
  const durationMs = expired ? 40_000 : 3_600_000;
  return {
    lease: { S: `fleet/worker-${index}` },
    kind: { S: 'heartbeat' },
    holderIdentity: { S: `host-${index}/4711/9b2f6c1e-7f0f-4f57-a0a4-2f0f3f2f7f10` },
    leaseDurationSeconds: { N: String(durationMs / 1_000) },
    acquireTime: { S: isoTime(renewedMs - 86_400_000) },
    renewTime: { S: isoTime(renewedMs) },
    expireTime: { N: String(renewedMs + durationMs) },
    leaseTransitions: { N: '1' },
    version: { N: String(1_767_000_000_000 + index) },
    annotations: { M: { host: { S: `host-${index}` }, pid: { S: '4711' } } },
    labels: { M: { zone: { S: `zone-${index % 3}` } } },
  };
}

async function fill(endpoint: string, table: string, size: number): Promise<void> {
  const client = testClient(endpoint);
  const nowMs = Date.now();
  let next = 0;
  await Promise.all(
    Array.from({ length: AT_ONCE }, async () => {
      while (next < size) {
        const from = next;
        next += BATCH;
        const length = Math.min(BATCH, size - from);
        const requests = Array.from({ length }, (_, offset) => ({
          PutRequest: { Item: leaseItem(from + offset, nowMs) },
        }));
        await client.send(new BatchWriteItemCommand({ RequestItems: { [table]: requests } }));
      }
    }),
  );
  client.destroy();
}

interface Row {
  readonly leases: number;
  readonly pass: string;
  readonly seconds: string;
  readonly 'CPU seconds': string;
  readonly 'heap grown, MB': string;
  readonly requests: number;
  readonly 'read units': number;
  readonly 'write units': number;
  readonly silent: number;
}

/** Time, CPU and memory straight at the server; requests and units through a proxy that counts. */
async function measure(size: number): Promise<Row[]> {
  await using server = await startDynamoDB();
  await using proxy = await startFaultProxy(server.endpoint);
  const table = await createLeaseTable(server.endpoint);
  await fill(server.endpoint, table, size);
  const monitorAt = (endpoint: string) =>
    new LifecycleMonitor({
      store: new DynamoDBStore({ tableName: table, client: testClient(endpoint) }),
      events: sink,
      graceSeconds: 0.001,
      // The embedded server does one thing at a time: segments would only wait for each other.
      segments: 1,
    });
  const [direct, counted] = [monitorAt(server.endpoint), monitorAt(proxy.endpoint)];
  const rows: Row[] = [];
  for (const pass of ['finds the silent', 'nothing new']) {
    globalThis.gc?.();
    const before = {
      cpu: process.cpuUsage(),
      heap: process.memoryUsage().heapUsed,
      at: Date.now(),
    };
    let peak = before.heap;
    const watch = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().heapUsed);
    }, 20);
    const report = await direct.pass();
    clearInterval(watch);
    const cpu = process.cpuUsage(before.cpu);
    const seconds = (Date.now() - before.at) / 1_000;
    proxy.reset();
    await counted.pass();
    const counts = proxy.counts();
    rows.push({
      leases: size,
      pass,
      seconds: seconds.toFixed(1),
      'CPU seconds': ((cpu.user + cpu.system) / 1e6).toFixed(2),
      'heap grown, MB': ((peak - before.heap) / 1e6).toFixed(0),
      requests: counts.requests,
      'read units': counts.readUnits,
      'write units': counts.writeUnits,
      silent: report.notReady,
    });
  }
  return rows;
}

for (const size of SIZES.length > 0 ? SIZES : [10_000, 100_000]) console.table(await measure(size));
