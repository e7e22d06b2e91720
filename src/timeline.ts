// How long something has lasted, on a machine that may be frozen and whose clock may be set.
//
// Elapsed time is the sum of the larger of the two clocks' increments from one look to the next:
// the monotonic clock's, plus whatever the wall clock gained on it. A frozen machine may stop the
// monotonic clock, a wall clock may be set back: whichever still runs counts. A wall clock set
// forward counts too. That ends a tenure early, which is the price of surviving freezes, and never
// makes two leaders.

import type { Clock, Reading } from './clock.ts';

/** One look at the clocks. Moments of one timeline can be subtracted from each other. */
export interface Moment extends Reading {
  /** Time since the timeline began: the larger increments, summed. Never goes back. */
  readonly elapsedMs: number;
  /** How far the two clocks have advanced differently so far: absolute differences, summed. */
  readonly driftMs: number;
}

/**
 * The clocks tick at different phases, so the difference between them trembles by their
 * resolution. A tight loop of looks must not sum that up.
 */
const RESOLUTION_MS = 2;

export class Timeline {
  readonly #clock: Clock;
  readonly #startMonotonicMs: number;
  /** Wall minus monotonic clock, as last summed up. */
  #differenceMs: number;
  #latestMonotonicMs: number;
  #gainedMs = 0;
  #driftMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    const start = clock.read();
    this.#startMonotonicMs = start.monotonicMs;
    this.#latestMonotonicMs = start.monotonicMs;
    this.#differenceMs = start.wallMs - start.monotonicMs;
  }

  look(): Moment {
    const read = this.#clock.read();
    // A virtual machine that is set back to a snapshot takes both clocks with it.
    this.#latestMonotonicMs = Math.max(this.#latestMonotonicMs, read.monotonicMs);
    const now = { wallMs: read.wallMs, monotonicMs: this.#latestMonotonicMs };
    const changeMs = now.wallMs - now.monotonicMs - this.#differenceMs;
    if (Math.abs(changeMs) >= RESOLUTION_MS) {
      this.#differenceMs += changeMs;
      this.#driftMs += Math.abs(changeMs);
      this.#gainedMs += Math.max(0, changeMs);
    }
    return {
      ...now,
      elapsedMs: now.monotonicMs - this.#startMonotonicMs + this.#gainedMs,
      driftMs: this.#driftMs,
    };
  }
}
