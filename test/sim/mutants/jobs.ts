// Mutants of scheduled jobs: which ticks are run, and what completes them.

import type { Mutant } from './mutant.ts';

export const JOB_MUTANTS: readonly Mutant[] = [
  {
    name: 'a lease is taken for a tick that is done',
    patches: [
      {
        file: 'src/writes.ts',
        search: '      ...(claim.tickMs === undefined ? [] : [tickOpen(claim.tickMs)]),\n',
        replace: '',
      },
    ],
  },
  {
    name: 'a run that threw completes its tick',
    patches: [
      {
        file: 'src/scheduled-job.ts',
        search: "  return reason === 'failed' ? 'failed' : 'stopped';",
        replace: "  return reason === 'failed' ? 'succeeded' : 'stopped';",
      },
    ],
  },
  {
    name: 'a run that was told to stop completes its tick',
    patches: [
      {
        file: 'src/scheduled-job.ts',
        search: "  return reason === 'failed' ? 'failed' : 'stopped';",
        replace: "  return reason === 'failed' ? 'failed' : 'succeeded';",
      },
    ],
  },
  {
    name: 'a tick is completed without the check of the lease',
    patches: [
      {
        file: 'src/writes.ts',
        search:
          '    condition: { all: [stillHeld(holderIdentity, fencingToken), tickOpen(tickMs)] },',
        replace: "    condition: { all: [{ not: { absent: 'version' } }, tickOpen(tickMs)] },",
      },
    ],
  },
  {
    name: 'a tick is completed though it is done',
    patches: [
      {
        file: 'src/writes.ts',
        search:
          '    condition: { all: [stillHeld(holderIdentity, fencingToken), tickOpen(tickMs)] },',
        replace: '    condition: stillHeld(holderIdentity, fencingToken),',
      },
    ],
  },
  {
    name: 'a tick is completed when its lease is taken',
    patches: [
      {
        file: 'src/writes.ts',
        search: '      annotations: { M: textMap(claim.annotations) },',
        replace: `      annotations: { M: textMap(claim.annotations) },
      ...(claim.tickMs === undefined ? {} : { lastTick: { N: String(claim.tickMs) } }),`,
      },
    ],
  },
  {
    name: 'a refused completion counts as done, whoever completed it',
    patches: [
      {
        file: 'src/guarded.ts',
        search: `    if (over !== undefined) {
      if (this.#unresolved !== undefined) throw this.#cannotTell(cause);
      throw over;
    }`,
        replace: `    if (over !== undefined) {
      if (this.#unresolved !== undefined && this.#completes) return;
      throw over;
    }`,
      },
    ],
  },
];
