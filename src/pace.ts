// How one that stands by goes about it: how long it pauses between two tries, and whether the next
// try is a look or a write.
//
// A look costs a tenth of a write. But where the lease is in other hands at every look, tenures are
// shorter than the pauses: by the time that a look has shown a free lease and the write arrives,
// somebody else has it, most likely the one that has just given it back. There a write without a
// look is the only try with a chance, and the fair one: it asks at a moment of its own.
//
// Where the store must be asked twice for one answer it is short of capacity, and what there is
// belongs to the holder first: its renewals must get through.

import type { LeaseRecord } from './lease.ts';

/** So many looks in a row must have found other hands: one hand-over is no crowd. */
const CHANGES_OF_A_CROWD = 2;
const MOST_DOUBLINGS = 3;

export class Pace {
  readonly #retryPeriodMs: number;
  #seen: Pick<LeaseRecord, 'lease' | 'leaseTransitions'> | undefined;
  #changes = 0;
  #doublings = 0;

  constructor(retryPeriodMs: number) {
    this.#retryPeriodMs = retryPeriodMs;
  }

  /** To be told of each record that a try shows. */
  saw(record: Pick<LeaseRecord, 'lease' | 'leaseTransitions'>): void {
    // Of another slot, it tells nothing of this one.
    const changed =
      this.#seen?.lease === record.lease && record.leaseTransitions > this.#seen.leaseTransitions;
    this.#changes = changed ? this.#changes + 1 : 0;
    this.#seen = record;
  }

  /** To be told after each try whether the store was `strained` by it. */
  tried(strained: boolean): void {
    this.#doublings = strained
      ? Math.min(MOST_DOUBLINGS, this.#doublings + 1)
      : Math.max(0, this.#doublings - 1);
  }

  /** The pause before the next try, without jitter. */
  get periodMs(): number {
    return this.#retryPeriodMs * 2 ** this.#doublings;
  }

  /** Whether the pauses are longer than the caller asked for, to spare the store. */
  get spares(): boolean {
    return this.#doublings > 0;
  }

  /** Whether the next try is a write, without a look. */
  get writes(): boolean {
    return !this.spares && this.#changes >= CHANGES_OF_A_CROWD;
  }
}
