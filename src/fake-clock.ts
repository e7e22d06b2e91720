// A clock that goes only when it is told to, for tests and simulations: both hands, timers, and
// what real machines do to them.

import type { Clock, Reading, Timer } from './clock.ts';

interface Pending {
  readonly dueMs: number;
  readonly order: number;
  readonly run: () => void;
}

/** A clock for tests: it goes only when it is told to. */
export class FakeClock implements Clock {
  #wallMs: number;
  #monotonicMs = 0;
  #timeMs = 0;
  #order = 0;
  #pending: Pending[] = [];

  /** Starts at `wallMs`, by default the first moment of 2026. */
  constructor(wallMs = Date.UTC(2026, 0, 1)) {
    this.#wallMs = wallMs;
  }

  /** Both clocks as they stand. */
  read(): Reading {
    return { wallMs: this.#wallMs, monotonicMs: this.#monotonicMs };
  }

  /** Fires while `advance` passes its moment. */
  setTimer(delayMs: number, run: () => void): Timer {
    const pending = { dueMs: this.#timeMs + Math.max(0, delayMs), order: this.#order++, run };
    this.#pending.push(pending);
    return { cancel: () => (this.#pending = this.#pending.filter((timer) => timer !== pending)) };
  }

  /** How many timers are waiting. */
  get timers(): number {
    return this.#pending.length;
  }

  /** Lets time pass: timers fire in order, each with both clocks at its moment. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#timeMs + ms;
    await turn();
    for (;;) {
      const next = this.#next();
      if (next === undefined || next.dueMs > endMs) break;
      this.#pass(Math.max(0, next.dueMs - this.#timeMs));
      this.#pending = this.#pending.filter((timer) => timer !== next);
      next.run();
      await turn();
    }
    // What a timer did may have frozen the process beyond that.
    this.#pass(Math.max(0, endMs - this.#timeMs));
    await turn();
  }

  /** Sets the wall clock forward, or back with a negative number. */
  stepWall(ms: number): void {
    this.#wallMs += ms;
  }

  /**
   * The process stands still for a while, as when it is frozen or a laptop sleeps: timers become
   * overdue, and fire when time passes again. The monotonic clock may stand still too.
   */
  freeze(ms: number, { monotonicRuns = true, wallRuns = true } = {}): void {
    this.#timeMs += ms;
    if (wallRuns) this.#wallMs += ms;
    if (monotonicRuns) this.#monotonicMs += ms;
  }

  #next(): Pending | undefined {
    return this.#pending.reduce<Pending | undefined>(
      (first, timer) =>
        first === undefined ||
        timer.dueMs < first.dueMs ||
        (timer.dueMs === first.dueMs && timer.order < first.order)
          ? timer
          : first,
      undefined,
    );
  }

  #pass(ms: number): void {
    this.#timeMs += ms;
    this.#wallMs += ms;
    this.#monotonicMs += ms;
  }
}

/** Lets everything that is ready to go on do so. */
function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
