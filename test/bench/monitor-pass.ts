// The measured half of monitor-scale.ts: two passes of the lifecycle monitor, in a process of its
// own, so that its CPU and its memory are the monitor's and nobody else's.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import { LifecycleMonitor } from '../../src/lifecycle-monitor.ts';
import { testClient } from '../support/dynamodb.ts';

/** The second finds the same ones silent, and has nothing to write but that it has been. */
const PASSES = ['finds the silent', 'nothing new'] as const;

/** What one pass cost. */
export interface Cost {
  readonly pass: (typeof PASSES)[number];
  readonly blind: boolean;
  readonly scanned: number;
  readonly notReady: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  /** The largest heap that was in use right after a collection of garbage, less that before. */
  readonly heapBytes: number;
  /** The most that this process has had in memory since it started. */
  readonly residentBytes: number;
  readonly requests: Readonly<Record<string, number>>;
  readonly readUnits: number;
  readonly writeUnits: number;
}

interface Tally {
  readonly requests: Record<string, number>;
  readUnits: number;
  writeUnits: number;
}

/** After so many pages of a scan, what is still in use is looked at. */
const PAGES_PER_LOOK = 50;
/**
 * More records than a page has, which ends at 1 MB. Without a limit the embedded server fetches all
 * that is left of the table for each page.
 */
const SCAN_LIMIT = 3_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const [endpoint = '', table = ''] = process.argv.slice(2);

let tally: Tally = { requests: {}, readUnits: 0, writeUnits: 0 };
let largestHeap = 0;
/** Spent on looking, which no monitor does. */
let lookingCpuMs = 0;
let lookingMs = 0;

async function measured(pass: Cost['pass']): Promise<Cost> {
  // A new one each time, as an execution environment of Lambda starts: nothing is warm but the code.
  const monitor = new LifecycleMonitor({
    store: new DynamoDBStore({ tableName: table, client: countingClient() }),
    events: { publish: (events) => Promise.resolve(events.map(() => true)) },
    // Silence counts from the first pass on.
    graceSeconds: 0.001,
    // The embedded server does one thing at a time: segments would only wait for each other.
    segments: 1,
  });
  tally = { requests: {}, readUnits: 0, writeUnits: 0 };
  [largestHeap, lookingCpuMs, lookingMs] = [0, 0, 0];
  look();
  const heapBefore = largestHeap;
  [lookingCpuMs, lookingMs] = [0, 0];
  const [cpuBefore, before] = [process.cpuUsage(), performance.now()];
  const report = await monitor.pass();
  const ms = performance.now() - before - lookingMs;
  const cpu = process.cpuUsage(cpuBefore);
  return {
    pass,
    blind: report.blind !== undefined,
    scanned: report.scanned,
    notReady: report.notReady,
    seconds: ms / 1_000,
    cpuSeconds: ((cpu.user + cpu.system) / 1_000 - lookingCpuMs) / 1_000,
    heapBytes: largestHeap - heapBefore,
    residentBytes: process.resourceUsage().maxRSS * 1_024,
    ...tally,
  };
}

/** Counts what each request was and what the server says that it consumed. */
function countingClient() {
  const client = testClient(endpoint);
  client.middlewareStack.add(
    (next, { commandName = '' }) =>
      async (args) => {
        const operation = commandName.replace(/Command$/, '');
        const added = { ReturnConsumedCapacity: 'TOTAL' as const };
        const limit = operation === 'Scan' ? { Limit: SCAN_LIMIT } : {};
        const answer = await next({ ...args, input: { ...args.input, ...added, ...limit } });
        const { ConsumedCapacity } = answer.output as {
          ConsumedCapacity?: { CapacityUnits?: number };
        };
        const requests = (tally.requests[operation] ?? 0) + 1;
        tally.requests[operation] = requests;
        const units = ConsumedCapacity?.CapacityUnits ?? NaN;
        if (operation === 'UpdateItem') tally.writeUnits += units;
        else tally.readUnits += units;
        if (operation === 'Scan' && requests % PAGES_PER_LOOK === 1) look();
        return answer;
      },
    { step: 'initialize' },
  );
  return client;
}

function look(): void {
  const [cpuBefore, before] = [process.cpuUsage(), performance.now()];
  collectGarbage();
  largestHeap = Math.max(largestHeap, process.memoryUsage().heapUsed);
  const cpu = process.cpuUsage(cpuBefore);
  lookingCpuMs += (cpu.user + cpu.system) / 1_000;
  lookingMs += performance.now() - before;
}

for (const pass of PASSES) process.send!(await measured(pass));
// What is still connected, to the server and to who started this.
process.disconnect();
