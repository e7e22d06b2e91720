// Runs short worlds until one breaks an oracle, and says which: in the broken copy of a mutant.

import { planFor } from './plan.ts';
import { simulate } from './simulate.ts';

async function main(): Promise<void> {
  const seeds = Number(process.argv[2] ?? 100);
  Error.stackTraceLimit = 0;
  for (let seed = 1; seed <= seeds; seed++) {
    const plan = planFor(seed);
    if (plan.kind === 'long') continue;
    const { violations } = await simulate(plan);
    const [first] = violations;
    if (first === undefined) continue;
    const oracles = [...new Set(violations.map(({ oracle }) => oracle))];
    console.log(`caught by "${oracles.join('", "')}", seed ${seed}`);
    console.log(first.message);
    return;
  }
  console.log('not caught');
}

await main();
process.exit(0);
