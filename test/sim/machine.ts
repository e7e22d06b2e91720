// A machine with one process on it: clocks of its own, which may be off, drift and be set, and
// which may stand still for a while. A process that crashed is never heard of again, but what it
// has sent is on its way.

import type { Clock, Reading, Timer } from '../../src/clock.ts';
import type { VirtualTime } from './time.ts';

/** True time begins at the first moment of 2026. */
export const EPOCH_MS = Date.UTC(2026, 0, 1);

/** What goes on while the process stands still. */
export type Running = 'both clocks' | 'the wall clock' | 'no clock';

export interface ClockSettings {
  readonly offsetMs: number;
  /** How much faster both clocks of the machine run than true time, in parts of one. */
  readonly rate: number;
  /** Beyond that its wall clock never drifts. */
  readonly driftLimitMs: number;
}

export class Machine implements Clock {
  readonly name: string;
  readonly #time: VirtualTime;
  readonly #rate: number;
  readonly #driftLimitMs: number;
  readonly #bootedAtMs: number;
  #offsetMs: number;
  #slew = 0;
  #slewFromMs: number;
  #monotonicStoodMs = 0;
  #frozenAtMs: number | undefined;
  #running: Running = 'both clocks';
  #thawAtMs = 0;
  #waiting: (() => void)[] = [];
  #timers = 0;
  #crashed = false;
  /** Called whenever the process goes on after having stood still, before anything else. */
  onThaw: () => void = () => undefined;
  /** How long it has stood still so far. */
  stoodMs = 0;

  constructor(time: VirtualTime, name: string, settings: ClockSettings) {
    this.#time = time;
    this.name = name;
    this.#rate = settings.rate;
    this.#driftLimitMs = settings.driftLimitMs;
    this.#offsetMs = settings.offsetMs;
    this.#bootedAtMs = this.#slewFromMs = time.nowMs;
  }

  get crashed(): boolean {
    return this.#crashed;
  }

  get frozen(): boolean {
    return this.#frozenAtMs !== undefined;
  }

  /** Nothing of the process can run now. */
  get still(): boolean {
    return this.#crashed || this.frozen;
  }

  /** Timers that have neither fired nor been cancelled. */
  get timers(): number {
    return this.#timers;
  }

  /** How far the wall clock is off. */
  get offsetMs(): number {
    const slewedMs = this.#slew * (this.#time.nowMs - this.#slewFromMs);
    const offsetMs = this.#offsetMs + slewedMs;
    if (slewedMs === 0) return offsetMs;
    const limitMs = Math.max(this.#driftLimitMs, Math.abs(this.#offsetMs));
    return Math.max(-limitMs, Math.min(limitMs, offsetMs));
  }

  read(): Reading {
    const nowMs = this.#time.nowMs;
    const standingMs = this.#frozenAtMs === undefined ? 0 : nowMs - this.#frozenAtMs;
    const runningMs =
      nowMs -
      this.#bootedAtMs -
      this.#monotonicStoodMs -
      (this.#running === 'both clocks' ? 0 : standingMs);
    const wallMs = EPOCH_MS + nowMs + this.offsetMs;
    return { wallMs: Math.floor(wallMs), monotonicMs: runningMs * (1 + this.#rate) };
  }

  /** Timers go by the monotonic clock, and wait for the process to go on. */
  setTimer(delayMs: number, run: () => void): Timer {
    const dueMs = this.read().monotonicMs + Math.max(0, delayMs);
    let over = false;
    const end = () => {
      if (over) return false;
      over = true;
      this.#timers -= 1;
      return true;
    };
    const fire = () => {
      if (over || this.#crashed) return;
      const leftMs = dueMs - this.read().monotonicMs;
      if (leftMs > 1e-6) scheduled = this.#time.after(leftMs, wake);
      else if (end()) run();
    };
    const wake = () => {
      if (!over) this.run(fire);
    };
    this.#timers += 1;
    let scheduled = delayMs === Infinity ? undefined : this.#time.after(delayMs, wake);
    return {
      cancel: () => {
        if (end()) scheduled?.cancel();
      },
    };
  }

  /** Now, or when the process goes on; never, if it does not. */
  run(act: () => void): void {
    if (this.#crashed) return;
    if (this.frozen) this.#waiting.push(act);
    else act();
  }

  wait(delayMs: number): Promise<void> {
    return new Promise((resolve) => this.setTimer(delayMs, resolve));
  }

  /** A second freeze while it stands still lengthens the first. */
  freeze(forMs: number, running: Running, lastFirst = false): void {
    if (this.#crashed) return;
    this.#thawAtMs = Math.max(this.#thawAtMs, this.#time.nowMs + forMs);
    if (this.frozen) return;
    // A machine that stands still does not drift: its host keeps the wall clock.
    if (running !== 'both clocks') this.drift(0);
    this.#frozenAtMs = this.#time.nowMs;
    this.#running = running;
    const thaw = () => {
      if (this.#time.nowMs < this.#thawAtMs) this.#time.at(this.#thawAtMs, thaw);
      else this.#thaw(lastFirst);
    };
    this.#time.at(this.#thawAtMs, thaw);
  }

  /** Ends a freeze before its time. */
  thawNow(): void {
    if (this.frozen) this.#thaw(false);
  }

  stepWall(byMs: number): void {
    this.#settleOffset(byMs);
  }

  drift(partsOfOne: number): void {
    this.#settleOffset(0);
    this.#slew = partsOfOne;
  }

  crash(): void {
    this.#crashed = true;
    this.#waiting = [];
  }

  #settleOffset(byMs: number): void {
    this.#offsetMs = this.offsetMs + byMs;
    this.#slewFromMs = this.#time.nowMs;
  }

  #thaw(lastFirst: boolean): void {
    if (this.#frozenAtMs === undefined || this.#crashed) return;
    const stoodMs = this.#time.nowMs - this.#frozenAtMs;
    if (this.#running !== 'both clocks') this.#monotonicStoodMs += stoodMs;
    if (this.#running === 'no clock') this.#settleOffset(-stoodMs);
    this.stoodMs += stoodMs;
    this.#frozenAtMs = undefined;
    this.#running = 'both clocks';
    this.onThaw();
    const waiting = lastFirst ? this.#waiting.reverse() : this.#waiting;
    this.#waiting = [];
    // One after the other, each with what it makes ready: as the event loop does.
    for (const act of waiting) this.#time.after(0, () => this.run(act));
  }
}
