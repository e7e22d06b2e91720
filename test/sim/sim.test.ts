// The usual run of the simulation, and what the simulation itself promises: one seed is one
// history, a failure is shrunk to what it takes, and every mutant still fits the core.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { patched } from './breed.ts';
import { fingerprint, type Happening, type History } from './history.ts';
import { EPOCH_MS } from './machine.ts';
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

  describe('whose last tick nobody has run', () => {
    const record = { holder: undefined, token: 1, version: 1, durationMs: 1_000 };
    const sides = { before: { ...record }, after: { ...record } };
    const world = (monitors: number, after: object): readonly [History, Plan] => [
      [
        at(1, 'a', EPOCH_MS + 60),
        {
          ...{ kind: 'applied', lease: 'default/job', operation: 'complete', by: 'a', atMs: 1 },
          ...{ before: sides.before, after: { ...sides.after, lastTick: EPOCH_MS + 60, ...after } },
        } as Happening,
        { kind: 'machine', atMs: 100_000, by: 'a', what: 'is told to stop' },
        { kind: 'over', atMs: 200_000, unfinished: [] },
      ],
      {
        monitors: Array.from({ length: monitors }, () => ({})),
        jobs: [
          {
            ...{ leaseName: 'job', periodMs: 60, ticks: 2, guarded: true },
            timing: { leaseDurationSeconds: 1 },
          },
        ],
      } as unknown as Plan,
    ];
    const held = (expireTimeMs?: number) => ({ holder: 'a', expireTimeMs });

    test.each<[string, number, object, number]>([
      ['is told, with a monitor', 1, {}, 1],
      ['is told, without one', 0, {}, 1],
      ['is told where its lease has expired', 0, held(EPOCH_MS + 2_000), 1],
      ['is excused where no clock can tell when its lease expires', 0, held(), 0],
      ['is excused where that is never', 0, held(EPOCH_MS + 1e12), 0],
      ['is told all the same where a monitor would have freed that', 1, held(), 1],
    ])('%s', (_, monitors, after, violations) => {
      const found = ORACLES['every tick done'].check(...world(monitors, after));
      expect(found).toHaveLength(violations);
    });
  });
});
