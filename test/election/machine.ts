// A machine of its own in a shared world: with a clock that is off, and that can stand still for a
// while, or for ever. The world's clock is true time.

import type { Clock, Reading, Timer } from '../../src/clock.ts';
import type { FakeClock } from '../../src/fake-clock.ts';

interface Overdue {
  readonly run: () => void;
  cancelled: boolean;
}

export class Machine implements Clock {
  readonly #world: FakeClock;
  #wallOffsetMs: number;
  #stoodStillMs = 0;
  #frozen = false;
  #crashed = false;
  #overdue: Overdue[] = [];

  constructor(world: FakeClock, wallOffsetMs = 0) {
    this.#world = world;
    this.#wallOffsetMs = wallOffsetMs;
  }

  /** Nothing runs on it now. */
  get frozen(): boolean {
    return this.#frozen;
  }

  read(): Reading {
    const { wallMs, monotonicMs } = this.#world.read();
    return {
      wallMs: wallMs + this.#wallOffsetMs,
      monotonicMs: monotonicMs - this.#stoodStillMs,
    };
  }

  setTimer(delayMs: number, run: () => void): Timer {
    const due: Overdue = { run, cancelled: false };
    const timer = this.#world.setTimer(delayMs, () => {
      if (this.#frozen) this.#overdue.push(due);
      else run();
    });
    return {
      cancel: () => {
        due.cancelled = true;
        timer.cancel();
      },
    };
  }

  stepWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** Timers that come due meanwhile fire on waking, in order; its monotonic clock may stop. */
  freeze(ms: number, { monotonicRuns = true } = {}): void {
    if (this.#frozen) return;
    this.#frozen = true;
    this.#world.setTimer(ms, () => {
      if (this.#crashed) return;
      if (!monotonicRuns) this.#stoodStillMs += ms;
      this.#frozen = false;
      const overdue = this.#overdue;
      this.#overdue = [];
      for (const due of overdue) if (!due.cancelled) due.run();
    });
  }

  /** It never does anything again; what it has sent is on its way all the same. */
  crash(): void {
    this.#frozen = true;
    this.#crashed = true;
  }
}
