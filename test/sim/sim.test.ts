// The usual run of the simulation, and what the simulation itself promises: one seed is one
// history, a failure is shrunk to what it takes, and every mutant still fits the core.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { patched } from './breed.ts';
import { fingerprint, type Happening } from './history.ts';
import { MUTANTS } from './mutants/index.ts';
import { ORACLES } from './oracles/index.ts';
import { planFor, type Plan } from './plan.ts';
import { shrink, type Run } from './shrink.ts';
import { simulate } from './simulate.ts';
import { USUAL_LEASE_HOURS, USUAL_SEEDS } from './usual.ts';

const MINUTES = 60_000;
const { stackTraceLimit } = Error;

beforeAll(() => {
  // Most errors in there are expected outcomes, and their stacks cost more than all the rest.
  Error.stackTraceLimit = 0;
});
afterAll(() => {
  Error.stackTraceLimit = stackTraceLimit;
});

describe('the simulation', () => {
  test(
    `breaks no oracle from seed ${USUAL_SEEDS.from} to ${USUAL_SEEDS.to}, for 20,000 lease-hours`,
    { timeout: 10 * MINUTES },
    async () => {
      let leaseHours = 0;
      for (let seed = USUAL_SEEDS.from; seed <= USUAL_SEEDS.to; seed++) {
        const outcome = await simulate(planFor(seed));
        leaseHours += outcome.leaseHours;
        expect(outcome.violations, `SEED=${seed} npm run sim`).toEqual([]);
      }
      expect(leaseHours).toBeGreaterThanOrEqual(USUAL_LEASE_HOURS);
    },
  );

  test.each([2, 3, 5])(
    'gives the same history for seed %i each time',
    { timeout: MINUTES },
    async (seed) => {
      const [first, second] = [await simulate(planFor(seed)), await simulate(planFor(seed))];
      expect(second.history.length).toBeGreaterThan(500);
      expect(fingerprint(second.history)).toBe(fingerprint(first.history));
    },
  );

  test('gives another history for another seed', { timeout: MINUTES }, async () => {
    const [first, second] = [await simulate(planFor(6)), await simulate(planFor(7))];
    expect(fingerprint(second.history)).not.toBe(fingerprint(first.history));
  });

  test('shrinks a failure to the faults that it takes', async () => {
    const plan = { ...planFor(1) };
    const [one, other] = [plan.faults[3]!.id, plan.faults[20]!.id];
    const run: Run = (tried) => {
      const ids = tried.faults.map(({ id }) => id);
      const broken = ids.includes(one) && ids.includes(other);
      const violations = broken ? [{ oracle: 'x', atMs: 0, message: 'two leaders' }] : [];
      return Promise.resolve({ plan: tried, history: [], violations, leaseHours: 0 });
    };
    const { plan: smallest } = await shrink(plan, 'x', run);
    expect(smallest.faults.map(({ id }) => id)).toEqual([one, other]);
  });
});

describe('the mutants', () => {
  test('are at least 16, each with a name of its own', () => {
    expect(new Set(MUTANTS.map(({ name }) => name)).size).toBe(MUTANTS.length);
    expect(MUTANTS.length).toBeGreaterThanOrEqual(16);
  });

  test.each(MUTANTS)('$name: still fits the core', (mutant) => {
    expect([...patched(mutant).keys()].length).toBeGreaterThan(0);
  });

  test('do not fit what has changed', () => {
    const patches = [{ file: 'src/random.ts', search: 'no such text', replace: '' }];
    expect(() => patched({ name: 'x', patches })).toThrow('does not fit any more');
  });
});

describe('an oracle for jobs on a schedule', () => {
  const plan = {} as Plan;
  const effect = { kind: 'effect', lease: 'default/job', token: 1, applied: true } as const;
  const at = (atMs: number, holder: string, tick: number): Happening => ({
    ...effect,
    atMs,
    holder,
    tick,
    guard: 'condition check',
  });

  test('is content with one effect for each tick', () => {
    expect(ORACLES['once per tick'].check([at(1, 'a', 60), at(2, 'b', 120)], plan)).toEqual([]);
  });

  test('tells of a tick that took effect twice', () => {
    const found = ORACLES['once per tick'].check([at(1, 'a', 60), at(2, 'b', 60)], plan);
    expect(found.map(({ atMs }) => atMs)).toEqual([2]);
  });
});
