// Four environments and one lease, for some seconds of freezes and kills at any moment: between two
// looks at the clock, with a renewal or a release under way, or just as another takes over.
//
// Each line that a worker prints carries the moment and the token. No worker may print a step once
// one with a higher token has begun (L4), and no token is given twice (L2). `SEED=… npx vitest run …`
// repeats the plan, though not the moments at which it meets the workers.

import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import type { LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import type { Line } from './fixtures/leased.ts';
import { lines, openStage } from './lease-stage.ts';

const seed = Number(process.env['SEED'] ?? 1);
const RUNNING_MS = 15_000;
/** The shorter the lease, the more often it changes hands. */
const LEASE = { leaseDurationSeconds: 1.5, renewDeadlineSeconds: 0.75 };
const TASK = { lease: 'chaos', steps: 100, stepMs: 5 };

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
        const running = environment.invoke(TASK, { timeoutMs: 5_000 }).finally(() => over.abort());
        await disturb(environment, random, over.signal);
        const { kind, signal } = { signal: null, ...(await running) };
        ends.add(signal === null ? kind : `${kind} by ${signal}`);
      }
      told.push(...lines(environment));
      await environment.kill();
    }

    await Promise.all([0, 1, 2, 3].map(haunt));
    told.sort((a, b) => a.nowMs - b.nowMs);
    let highest = 0;
    for (const line of told) {
      if (line.do === 'begin') {
        expect(line.fencingToken).toBeGreaterThan(highest);
        highest = line.fencingToken;
      }
      if (line.do === 'step') expect(line.fencingToken).toBe(highest);
    }
    expect(highest).toBeGreaterThan(4);
    // Nothing ends an environment but the test itself: no unhandled rejection, no failing handler.
    const known = ['returned', 'timed-out', 'crashed by SIGKILL'];
    expect([...ends].filter((end) => !known.includes(end))).toEqual([]);
  },
);

/** Freezes for up to twice the lease's duration, and now and then kills. */
async function disturb(
  environment: LambdaEnvironment,
  random: () => number,
  over: AbortSignal,
): Promise<void> {
  const pause = (ms: number) => sleep(ms, undefined, { signal: over }).catch(() => undefined);
  while (!over.aborted) {
    await pause(random() * 800);
    if (over.aborted) return;
    if (random() < 0.1) {
      await environment.kill();
      return;
    }
    environment.freeze();
    await pause(random() * 3_000);
    environment.thaw();
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
