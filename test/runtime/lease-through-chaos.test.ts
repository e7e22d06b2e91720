// Four environments and one lease, for some seconds of freezes and kills at any moment: between two
// looks at the clock, with a renewal or a release under way, or just as another takes over.
//
// Each line that a worker prints carries the moment and the token. No worker may print a step once
// one with a higher token has begun (L4), and no token is given twice (L2). `SEED=… npx vitest run …`
// repeats the plan, though not the moments at which it meets the workers.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { Invocation, LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import type { Line } from './fixtures/leased.ts';
import { lines, openStage } from './lease-stage.ts';

const seed = Number(process.env['SEED'] ?? 1);
const RUNNING_MS = 10_000;
/** The shorter the lease, the more often it changes hands. */
const LEASE = { leaseDurationSeconds: 1.5, renewDeadlineSeconds: 0.75 };
const TASK = { lease: 'chaos', steps: 20, stepMs: 25 };

test(
  `a lease has one holder through freezes and kills (seed ${seed})`,
  { timeout: 60_000 },
  async () => {
    await using stage = await openStage();
    const untilMs = performance.now() + RUNNING_MS;
    const told: Line[] = [];
    const ends = new Set<string>();

    async function haunt(which: number): Promise<void> {
      const random = randomNumbers(seed * 4 + which);
      let environment = await stage.start('works', { lease: LEASE });
      while (performance.now() < untilMs) {
        if (!environment.alive) {
          told.push(...lines(environment));
          environment = await stage.start('works', { lease: LEASE });
        }
        const over = new AbortController();
        const running = environment.invoke(TASK, { timeoutMs: 5_000 });
        void running.finally(() => over.abort());
        await disturb(environment, random, over.signal).catch((error: unknown) => {
          if (!over.signal.aborted) throw error;
        });
        ends.add(endOf(await running));
      }
      told.push(...lines(environment));
      await environment.kill();
    }

    await Promise.all([0, 1, 2, 3].map(haunt));
    told.sort((a, b) => a.nowMs - b.nowMs);
    let highest = 0;
    const broken: string[] = [];
    for (const line of told) {
      const { do: what, fencingToken } = line;
      const wanted = what === 'begin' ? fencingToken > highest : fencingToken === highest;
      if (what !== 'end' && !wanted) broken.push(`token ${highest}, then ${JSON.stringify(line)}`);
      highest = Math.max(highest, fencingToken);
    }
    expect(broken).toEqual([]);
    expect(highest).toBeGreaterThan(1);
    // Nothing ends an environment but the test itself: no unhandled rejection.
    // An acquisition that a freeze has cut in two fails, as a LeaseError.
    const known = ['returned', 'timed-out', 'crashed by SIGKILL', 'failed by LeaseError'];
    expect([...ends].filter((end) => !known.includes(end))).toEqual([]);
  },
);

function endOf(invocation: Invocation): string {
  if (invocation.kind === 'failed') return `failed by ${invocation.error.errorType}`;
  if (invocation.kind === 'crashed') return `crashed by ${invocation.signal ?? 'itself'}`;
  return invocation.kind;
}

/** Freezes for up to twice the lease's duration, now and then kills; rejects when it is over. */
async function disturb(
  environment: LambdaEnvironment,
  random: () => number,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(random() * 800, undefined, { signal });
    if (random() < 0.1) return environment.kill();
    environment.freeze();
    try {
      await sleep(random() * 3_000, undefined, { signal });
    } finally {
      environment.thaw();
    }
  }
}

/** A small generator (mulberry32), so that a run can be repeated. */
function randomNumbers(start: number): () => number {
  let state = start;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
