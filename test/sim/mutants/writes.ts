// Mutants of the writes: their conditions, their tokens, and whose they are taken for.

import type { Mutant } from './mutant.ts';

export const WRITE_MUTANTS: readonly Mutant[] = [
  {
    name: 'a release ends belief only when it is answered',
    patches: [
      {
        file: 'src/lock.ts',
        search: `    tenure.end(reason);
    return this.#depart('vacate', tenure.holderIdentity, tenure.version, withinMs, note);`,
        replace: `    return this.#depart(
      'vacate', tenure.holderIdentity, tenure.version, withinMs, note,
    ).then((gone) => {
      tenure.end(reason);
      return gone;
    });`,
      },
    ],
  },
  {
    name: 'release without a condition',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(holderIdentity, version),
    set: { ...note?.set, version: { N: String(version + 1) } },`,
        replace: `    condition: { not: { absent: 'holderIdentity' } },
    set: { ...note?.set, version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'undo and release by holder alone',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(holderIdentity, version),
    set: { ...note?.set, version: { N: String(version + 1) } },`,
        replace: `    condition: { equals: ['holderIdentity', { S: holderIdentity }] },
    set: { ...note?.set, version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'renewal without a condition',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(claim.holderIdentity, version),
    set: { ...claimed(claim), ...note?.set, version: { N: String(version + 1) } },`,
        replace: `    condition: { not: { absent: 'version' } },
    set: { ...claimed(claim), ...note?.set, version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'renewal by holder, without version',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(claim.holderIdentity, version),
    set: { ...claimed(claim), ...note?.set, version: { N: String(version + 1) } },`,
        replace: `    condition: { equals: ['holderIdentity', { S: claim.holderIdentity }] },
    set: { ...claimed(claim), ...note?.set, version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'a used identity is recognised as its own',
    patches: [
      {
        file: 'src/lock.ts',
        search: '    const identity = this.#options.newIdentity();',
        replace: '    const identity = this.#identities.at(-1) ?? this.#options.newIdentity();',
      },
    ],
  },
  {
    name: 'an acquisition counts though its clock is not proved',
    patches: [
      {
        file: 'src/lock.ts',
        search: 'if (clock !== undefined && clockCounts(clock)) break;',
        replace: 'if (clock !== undefined) break;',
      },
    ],
  },
  {
    name: 'an acquisition has no new token',
    patches: [
      {
        file: 'src/writes.ts',
        search: '      leaseTransitions: { incrementFrom: claim.knownTransitions },',
        replace: '      leaseTransitions: { N: String(Math.max(1, claim.knownTransitions)) },',
      },
    ],
  },
  {
    name: 'a guarded write without its condition',
    patches: [
      {
        file: 'test/sim/resource.ts',
        search: "        { equals: ['holderIdentity', { S: lease.holderIdentity }] },\n",
        replace: '',
      },
      {
        file: 'test/sim/resource.ts',
        search: "{ equals: ['leaseTransitions', { N: String(lease.fencingToken) }] },",
        replace: "{ not: { absent: 'leaseTransitions' } },",
      },
    ],
  },
  {
    name: 'a fenced write without its condition',
    patches: [
      {
        file: 'test/sim/resource.ts',
        search: 'known === undefined || known <= lease.fencingToken',
        replace: 'known !== lease.fencingToken + 1e9',
      },
    ],
  },
  {
    name: 'an acquisition without its condition',
    patches: [
      {
        file: 'src/writes.ts',
        search: 'condition: { all: [mayTake(takeable, claim.nowMs), gate(claim)] },',
        replace: 'condition: { any: [mayTake(takeable, claim.nowMs), gate(claim)] },',
      },
    ],
  },
];
