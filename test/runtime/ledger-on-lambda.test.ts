// Exactly once on the real runtime: each tick is delivered to two environments at once, which are
// frozen and killed by real signals at any moment while answers get lost, until one of them says
// that the tick is done. `SEED=… npx vitest run …` repeats the plan.

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { type Ledger, readLedger, sumOf, type Way } from '../guarded/ledger-job.ts';
import { randomOf } from '../integration/fixture.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import { expectRealRuntime, type LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import { openStage } from './lease-stage.ts';

const seed = Number(process.env['SEED'] ?? 1);
const realRuntime = expectRealRuntime();
/** The shorter the lease, the sooner a killed run is replaced. */
const LEASE = { leaseDurationSeconds: 1.5, renewDeadlineSeconds: 0.75 };
const PERIOD_MS = 60_000;

interface Run {
  readonly ledger: Ledger;
  readonly kills: number;
  readonly freezes: number;
}

async function runTicks(ticks: number, way: Way): Promise<Run> {
  await using stage = await openStage('ledger.ts');
  await using proxy = await stage.proxy();
  const random = randomOf(seed);
  const runtime = realRuntime ? 'ric' : 'stand-in';
  const start = () => stage.start(way, { runtime, lease: LEASE, through: proxy });
  const environments = await Promise.all([start(), start()]);
  const firstMs = Math.floor(Date.now() / PERIOD_MS) * PERIOD_MS - ticks * PERIOD_MS;
  let kills = 0;
  let freezes = 0;

  /** True once this environment knows the tick to be done. */
  async function deliver(which: number, tickMs: number): Promise<boolean> {
    if (environments[which]?.alive !== true) environments[which] = await start();
    const environment = environments[which];
    const event = { tick: new Date(tickMs).toISOString(), pauseMs: random() * 100 };
    const running = environment.invoke(event, { timeoutMs: 8_000 });
    const doom = random();
    const atMs = random() * 300;
    if (doom < 0.5) void disturb(environment, doom < 0.25, atMs);
    const invocation = await running;
    if (invocation.kind !== 'returned') return false;
    const { reason } = invocation.response as { readonly reason?: string };
    return invocation.response === 'ran' || reason === 'tick done' || reason === 'newer tick done';
  }

  async function disturb(environment: LambdaEnvironment, kill: boolean, atMs: number) {
    const forMs = random() * 3_000;
    await sleep(atMs);
    if (kill) {
      kills += 1;
      return environment.kill();
    }
    freezes += 1;
    environment.freeze();
    await sleep(forMs);
    environment.thaw();
  }

  for (let tick = 0; tick < ticks; tick++) {
    const tickMs = firstMs + tick * PERIOD_MS;
    for (let done = false; !done;) {
      if (random() < 0.5) loseAnAnswer(proxy);
      const both = await Promise.all([deliver(0, tickMs), deliver(1, tickMs)]);
      done = both.includes(true);
    }
  }
  await Promise.all(environments.map((environment) => environment.kill()));
  return { ledger: await readLedger(stage.client, stage.tableName), kills, freezes };
}

function loseAnAnswer(proxy: FaultProxy): void {
  const fault = { kind: 'reset', when: 'after' } as const;
  proxy.inject({ fault, operation: 'TransactWriteItems', times: 2 });
}

describe(`a ledger on the Lambda runtime (seed ${seed})`, () => {
  test('has each of 24 ticks once', { timeout: 240_000 }, async () => {
    const { ledger, kills, freezes } = await runTicks(24, 'guarded');
    expect(Math.min(kills, freezes)).toBeGreaterThan(3);
    expect([...ledger.times.values()]).toEqual(Array.from({ length: 24 }, () => 1));
    expect(ledger.balance).toBe(sumOf(ledger));
  });

  test('without the guard has some twice', { timeout: 240_000 }, async () => {
    const { ledger } = await runTicks(12, 'unguarded');
    expect([...ledger.times.values()].filter((times) => times > 1)).not.toEqual([]);
  });
});
