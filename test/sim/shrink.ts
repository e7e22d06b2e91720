// From a history that broke an oracle to the few faults that it takes: halves at first, single
// faults in the end, each time run again. The world stays the same.

import type { Fault } from './faults.ts';
import type { Plan } from './plan.ts';
import { simulate, type Outcome } from './simulate.ts';

/** Each is a whole run, and a long world takes seconds. */
const MOST_RUNS = 120;
const LONGEST_MS = 90_000;

export type Run = (plan: Plan) => Promise<Outcome>;

export async function shrink(plan: Plan, oracle: string, run: Run = simulate): Promise<Outcome> {
  let best = await run(plan);
  let runs = 1;
  const startedMs = performance.now();
  const goesOn = () => runs < MOST_RUNS && performance.now() - startedMs < LONGEST_MS;
  const stillBroken = async (faults: readonly Fault[]) => {
    runs += 1;
    const outcome = await run({ ...plan, faults });
    if (!outcome.violations.some((violation) => violation.oracle === oracle)) return false;
    best = outcome;
    return true;
  };
  let size = Math.ceil(plan.faults.length / 2);
  while (size >= 1 && goesOn()) {
    let shrunk = false;
    for (let from = 0; from < best.plan.faults.length && goesOn();) {
      const { faults } = best.plan;
      const rest = faults.filter((_, place) => place < from || place >= from + size);
      if (await stillBroken(rest)) shrunk = true;
      else from += size;
    }
    if (size === 1 && !shrunk) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return best;
}
