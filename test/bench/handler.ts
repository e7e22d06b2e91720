// A wrapped Lambda handler beside a bare one, warm, on the runtime of Lambda: what withLease adds to
// an invocation, beyond its two round trips.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Crew } from './crew.ts';
import { goal, type Measured, ms, spread } from './figures.ts';
import { bundleHandler, LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import { resolveRuntime } from '../support/lambda-runtime/runtimes.ts';

const HANDLERS = ['bare', 'requestsOnly', 'wrapped'] as const;
const WARM_UP = 20;
const LABELS = {
  bare: 'bare handler',
  requestsOnly: 'bare handler with two such UpdateItems',
  wrapped: 'wrapped in withLease',
};

export async function handler(invocations: number): Promise<Measured> {
  await using crew = await Crew.open();
  await using folder = await mkdtempDisposable(join(tmpdir(), 'bench-handler-'));
  const source = fileURLToPath(new URL('fixtures/wrapped.ts', import.meta.url));
  const taskRoot = await bundleHandler(source, folder.path);
  await using environments = new AsyncDisposableStack();
  const running = [];
  for (const name of HANDLERS) {
    const environment = await LambdaEnvironment.start({
      taskRoot,
      handler: `index.${name}`,
      env: {
        AWS_ENDPOINT_URL_DYNAMODB: crew.proxy.endpoint,
        LEASE_TABLE_NAME: crew.tableName,
      },
    });
    environments.use(environment);
    running.push({ name, environment, tookMs: [] as number[], requests: 0 });
  }
  for (let round = -WARM_UP; round < invocations; round++) {
    for (const each of running) {
      crew.proxy.reset();
      const invocation = await each.environment.invoke({});
      if (invocation.kind !== 'returned') throw new Error(JSON.stringify(invocation));
      if (round < 0) continue;
      each.tookMs.push(invocation.durationMs);
      each.requests += crew.proxy.counts().requests / invocations;
    }
  }
  const [, twice, wrapped] = running.map(({ tookMs }) => spread(tookMs));
  const overMs = wrapped!.median - twice!.median;
  const requests = running[2]!.requests;
  return {
    title: 'A wrapped handler',
    how:
      `Warm, on the ${resolveRuntime('auto') === 'ric' ? 'Node runtime of Lambda' : 'stand-in of the runtime of Lambda'}; ` +
      `${invocations} invocations each, taking turns, frozen between.`,
    rows: running.map(({ name, tookMs, requests: sent }) => {
      const took = spread(tookMs);
      return {
        '': LABELS[name],
        requests: Number(sent.toFixed(2)),
        'ms: min': ms(took.min),
        median: ms(took.median),
        p99: ms(took.p99),
      };
    }),
    goals: [
      goal('2 requests', requests, Math.abs(requests - 2) < 1e-6),
      goal('median at most 1 ms over its two round trips', overMs, overMs <= 1),
    ],
  };
}
