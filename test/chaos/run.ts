// One storm from beginning to end.

import { setTimeout as sleep } from 'node:timers/promises';
import { Arena, TIMING } from './arena.ts';
import type { Manner } from './messages.ts';
import { judge, type Report } from './judge.ts';
import { drawFrom, storm } from './storm.ts';

export interface StormOptions {
  readonly seed: number;
  readonly seconds: number;
  readonly contenders?: number | undefined;
  /** Kinds of weather. Default: all. */
  readonly only?: readonly string[] | undefined;
  readonly manner?: Manner | undefined;
}

export interface Outcome {
  readonly report: Report;
  readonly struck: Readonly<Record<string, number>>;
}

/** Processes start slowly on a busy machine; the protocol's own bound is a part of this. */
const RECOVERY_MS = (TIMING.leaseDurationSeconds + 4 * TIMING.retryPeriodSeconds + 20) * 1_000;

export async function runStorm(options: StormOptions): Promise<Outcome> {
  const { seed, seconds, contenders = 10, manner } = options;
  await using arena = await Arena.open({ contenders, manner });
  const { witness } = arena;
  await until(() => witness.sections.length > 0, RECOVERY_MS);
  const struck = await storm(arena, drawFrom(seed), seconds * 1_000, options.only);
  const calmAt = performance.now();
  const before = witness.sections.length;
  const recovered = await until(
    () => arena.leader !== undefined || witness.sections.length > before,
    RECOVERY_MS,
  );
  const recoveredMs = recovered ? performance.now() - calmAt : undefined;
  // What was under way comes to its end.
  await sleep(1_000);
  const report = judge({
    sections: witness.sections,
    overlaps: witness.overlaps,
    strays: witness.strays,
    freezes: arena.freezes,
    regressions: witness.regressions,
    told: arena.told,
    crashes: arena.crashes,
    ledger: await arena.ledger(),
    recoveredMs,
  });
  return { report, struck };
}

async function until(done: () => boolean, withinMs: number): Promise<boolean> {
  const endsAt = performance.now() + withinMs;
  while (!done()) {
    if (performance.now() > endsAt) return false;
    await sleep(20);
  }
  return true;
}
