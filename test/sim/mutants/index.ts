// Deliberately broken variants of the core. What the simulation is worth is told by whether it
// catches them.

import { BELIEF_MUTANTS } from './belief.ts';
import { JOB_MUTANTS } from './jobs.ts';
import { LEAK_MUTANTS } from './leaks.ts';
import type { Mutant } from './mutant.ts';
import { WATCHING_MUTANTS } from './watching.ts';
import { WRITE_MUTANTS } from './writes.ts';

export type { Mutant } from './mutant.ts';

export const MUTANTS: readonly Mutant[] = [
  ...BELIEF_MUTANTS,
  ...WRITE_MUTANTS,
  ...WATCHING_MUTANTS,
  ...JOB_MUTANTS,
  ...LEAK_MUTANTS,
];
