// What one pass of the lifecycle monitor costs, on tables of growing size: requests, units, our own
// CPU, memory and time. Run it: npm run bench:monitor [-- 10000 100000]
//
// The table is filled with heartbeats of functions, one in a thousand of them expired. That takes
// the embedded server most of the time: some ten minutes for all sizes. Time and CPU are of the
// machine it runs on; requests and units, but for the server's rounding, are those of AWS.
//
// The embedded server is helped twice, or its time would grow with the square of the table: here
// by an index in the order of its scans, in monitor-pass.ts by a limit that no page reaches.

import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempDisposable, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { fileURLToPath } from 'node:url';
import {
  BatchWriteItemCommand,
  type AttributeValue,
  type BatchWriteItemCommandInput,
  type BatchWriteItemCommandOutput,
} from '@aws-sdk/client-dynamodb';
import { isoTime } from '../../src/lease.ts';
import { createLeaseTable, startDynamoDB, testClient } from '../support/dynamodb.ts';
import type { Cost } from './monitor-pass.ts';

const DEFAULT_SIZES = [10_000, 100_000, 1_000_000];
const BATCH = 25;
const AT_ONCE = 8;
/** One in so many is expired. */
const EXPIRED_EVERY = 1_000;

const startedMs = performance.now();

/** The heartbeat of a Lambda function: some 590 bytes, as DynamoDB counts them. */
function leaseItem(index: number, nowMs: number): Record<string, AttributeValue> {
  const expired = index % EXPIRED_EVERY === 0;
  const renewedMs = nowMs - (expired ? 600_000 : 5_000);
  // Healthy for as long as the benchmark may take.
  const durationMs = expired ? 40_000 : 36_000_000;
  const name = `orders-production-importer-${index}`;
  const digest = createHash('md5').update(name).digest('hex');
  const uuid = digest.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  const logStream = `2026/11/29/[7]${digest}`;
  return {
    lease: { S: `fleet/${name}` },
    kind: { S: 'heartbeat' },
    holderIdentity: { S: `${name}:7/${logStream}/${uuid}` },
    leaseDurationSeconds: { N: String(durationMs / 1_000) },
    acquireTime: { S: isoTime(renewedMs - 86_400_000) },
    renewTime: { S: isoTime(renewedMs) },
    expireTime: { N: String(renewedMs + durationMs) },
    leaseTransitions: { N: '1' },
    version: { N: String(1_767_000_000_000 + index) },
    timeToLive: { N: String(Math.floor((renewedMs + durationMs) / 1_000) + 86_400) },
    annotations: {
      M: {
        requestId: { S: uuid },
        logStream: { S: logStream },
        region: { S: 'eu-north-1' },
        version: { S: '7' },
        function: { S: name },
        // Nobody is evicted while this lasts.
        tolerationSeconds: { S: '86400' },
      },
    },
    labels: { M: { zone: { S: `zone-${index % 3}` }, service: { S: 'orders' } } },
  };
}

async function fill(endpoint: string, table: string, size: number): Promise<void> {
  const client = testClient(endpoint);
  const nowMs = Date.now();
  const tenth = size / 10;
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
        let left: BatchWriteItemCommandInput['RequestItems'] = { [table]: requests };
        while (left?.[table] !== undefined) {
          const answer: BatchWriteItemCommandOutput = await client.send(
            new BatchWriteItemCommand({ RequestItems: left }),
          );
          left = answer.UnprocessedItems;
        }
        const done = from + length;
        if (Math.floor(done / tenth) > Math.floor(from / tenth)) progress(`filled ${show(done)}`);
      }
    }),
  );
  client.destroy();
}

/**
 * dynoxide sorts all that is left of a table for every page of a scan, for want of an index: a
 * scan of a large table would take the square of its time.
 */
function addScanOrder(file: string, table: string): void {
  const database = new DatabaseSync(file);
  database.exec(`CREATE INDEX scan_order ON "${table}" (hash_prefix, pk, sk)`);
  database.close();
}

/** The passes run in a process of their own, which sends what each cost. */
async function passes(endpoint: string, table: string): Promise<Cost[]> {
  const script = fileURLToPath(new URL('monitor-pass.ts', import.meta.url));
  const child = fork(script, [endpoint, table]);
  const costs: Cost[] = [];
  child.on('message', (cost) => {
    costs.push(cost as Cost);
    progress(`pass: ${(cost as Cost).pass}`);
  });
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve));
  if (code !== 0) throw new Error(`The process that passes over the table ended with ${code}.`);
  return costs;
}

/** In memory where there is room: on a disk, filling takes ten times as long. */
async function parentFolder(size: number): Promise<string> {
  const memory = await statfs('/dev/shm').catch(() => undefined);
  const room = memory === undefined ? 0 : memory.bavail * memory.bsize;
  return room > size * 4_000 ? '/dev/shm' : tmpdir();
}

async function measure(size: number): Promise<Cost[]> {
  await using folder = await mkdtempDisposable(join(await parentFolder(size), 'monitor-scale-'));
  const file = join(folder.path, 'dynoxide.db');
  await using server = await startDynamoDB({ file });
  const table = await createLeaseTable(server.endpoint);
  progress(`${show(size)} leases on ${server.engine}`);
  await fill(server.endpoint, table, size);
  if (server.engine === 'dynoxide') addScanOrder(file, table);
  const costs = await passes(server.endpoint, table);
  for (const { blind, scanned, notReady } of costs) {
    if (blind || scanned < size || notReady !== Math.ceil(size / EXPIRED_EVERY)) {
      throw new Error(`A pass was blind, or saw ${notReady} of ${scanned} silent: no measurement.`);
    }
  }
  return costs;
}

function row(size: number, cost: Cost) {
  return {
    leases: show(size),
    pass: cost.pass,
    ...cost.requests,
    'read units': show(cost.readUnits),
    'write units': show(cost.writeUnits),
    'our CPU, s': cost.cpuSeconds.toFixed(2),
    'heap, MB': (cost.heapBytes / 1e6).toFixed(1),
    'process, MB': (cost.residentBytes / 1e6).toFixed(0),
    'time, s': cost.seconds.toFixed(1),
  };
}

function show(count: number): string {
  return count.toLocaleString('en');
}

function progress(text: string): void {
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(0);
  process.stderr.write(`${seconds.padStart(5)} s  ${text}\n`);
}

const asked = process.argv.slice(2).map(Number);
if (asked.some((size) => !Number.isInteger(size) || size < 1)) {
  throw new Error(`Sizes are ${process.argv.slice(2).join(' ')}; they must be whole and above 0.`);
}
const rows = [];
for (const size of asked.length > 0 ? asked : DEFAULT_SIZES) {
  for (const cost of await measure(size)) rows.push(row(size, cost));
  // Each time all so far: the largest takes long, and may be cut short.
  console.table(rows);
}
