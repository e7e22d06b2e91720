// `npm run sim`: runs worlds of seeds, prints what goes wrong in each, and judges their histories.
//
//   npm run sim                        the usual range of seeds
//   npm run sim -- --from 1 --to 50    another range
//   npm run sim -- --minutes 30        new seeds for so long
//   SEED=17 npm run sim                one seed, with all its faults
//   SEED=17 FAULTS=3,8 npm run sim     only these of them

import { describeFault, tally } from './faults.ts';
import { fingerprint } from './history.ts';
import { leasesOf, planFor, type Plan } from './plan.ts';
import { shrink } from './shrink.ts';
import { simulate, type Outcome } from './simulate.ts';
import { Totals } from './totals.ts';
import { USUAL_SEEDS } from './usual.ts';

function option(name: string): number | undefined {
  const place = process.argv.indexOf(`--${name}`);
  if (place === -1) return undefined;
  const value = Number(process.argv[place + 1]);
  if (!Number.isFinite(value)) throw new Error(`--${name} needs a number.`);
  return value;
}

function describePlan(plan: Plan): string {
  const { seed, kind, regime, faults, contenders, workers, monitors, jobs } = plan;
  return (
    `seed ${seed}: ${kind}, clocks ${regime}; ${leasesOf(plan).length} leases, ` +
    `${contenders.length} contenders, ${workers.length} workers, ${monitors.length} monitors, ` +
    `${jobs.length} jobs; ` +
    `${faults.length} faults${faults.length > 0 ? `: ${tally(faults)}` : ''}`
  );
}

async function report(outcome: Outcome): Promise<void> {
  const { plan, violations } = outcome;
  const first = violations[0]!;
  console.log(`\nseed ${plan.seed} broke the oracle "${first.oracle}". Shrinking its faults…`);
  const smallest = await shrink(plan, first.oracle);
  for (const fault of smallest.plan.faults) console.log(`  ${describeFault(fault)}`);
  for (const { atMs, oracle, message } of smallest.violations.slice(0, 5)) {
    console.log(`  ${(atMs / 1_000).toFixed(3)} s  ${oracle}: ${message}`);
  }
  const ids = smallest.plan.faults.map(({ id }) => id).join(',');
  console.log(`Repeat it: SEED=${plan.seed} FAULTS=${ids} npm run sim\n`);
}

async function repeat(seed: number, only: readonly number[] | undefined): Promise<number> {
  const drawn = planFor(seed);
  const faults = drawn.faults.filter(({ id }) => only === undefined || only.includes(id));
  const plan = { ...drawn, faults };
  console.log(describePlan(plan));
  for (const fault of faults) console.log(`  ${describeFault(fault)}`);
  const { history, violations, leaseHours } = await simulate(plan);
  if (process.argv.includes('--history')) {
    for (const it of history) console.log(JSON.stringify(it));
  }
  for (const { atMs, oracle, message } of violations.slice(0, 20)) {
    console.log(`${(atMs / 1_000).toFixed(3)} s  ${oracle}: ${message}`);
  }
  console.log(`${leaseHours.toFixed(1)} lease-hours; ${fingerprint(history)}`);
  console.log(violations.length === 0 ? 'Every oracle held.' : `${violations.length} violations.`);
  return violations.length === 0 ? 0 : 1;
}

async function range(from: number, goOn: (seed: number) => boolean): Promise<number> {
  // Most errors here are expected outcomes; their stacks would cost more than all the rest.
  Error.stackTraceLimit = 0;
  const started = performance.now();
  const totals = new Totals();
  let leaseHours = 0;
  let broken = 0;
  let seed = from;
  for (; goOn(seed) && broken < 5; seed++) {
    const plan = planFor(seed);
    console.log(describePlan(plan));
    const outcome = await simulate(plan);
    leaseHours += outcome.leaseHours;
    totals.add(outcome.history);
    if (outcome.violations.length === 0) continue;
    broken += 1;
    await report(outcome);
  }
  console.log(totals.toString());
  const seconds = (performance.now() - started) / 1_000;
  console.log(
    `${seed - from} seeds, ${Math.floor(leaseHours)} virtual lease-hours (leases x hours) in ` +
      `${seconds.toFixed(1)} s: ${broken === 0 ? 'every oracle held.' : `${broken} seeds failed.`}`,
  );
  return broken === 0 ? 0 : 1;
}

async function main(): Promise<number> {
  const { SEED, FAULTS } = process.env;
  if (SEED !== undefined && SEED !== '') {
    const ids = FAULTS?.split(',').filter((id) => id !== '');
    return repeat(Number(SEED), ids?.map(Number));
  }
  const minutes = option('minutes');
  if (minutes !== undefined) {
    const from = option('from') ?? Date.now() % 1_000_000_000;
    const untilMs = performance.now() + minutes * 60_000;
    return range(from, () => performance.now() < untilMs);
  }
  const to = option('to') ?? USUAL_SEEDS.to;
  return range(option('from') ?? USUAL_SEEDS.from, (seed) => seed <= to);
}

process.exitCode = await main();
