// What delivers the ticks of a schedule: each at least once, some late, twice or out of order, and
// again until a run has answered. Whoever takes a delivery and says nothing is taken for dead.

import { Dice } from './dice.ts';
import { EPOCH_MS } from './machine.ts';
import type { JobPlan } from './plan.ts';

export interface Delivery {
  readonly tickMs: number;
  dueMs: number;
}

export class Deliveries {
  /** By when each is to come; what has been answered is gone. */
  readonly #pending: Delivery[] = [];

  constructor(seed: number, { leaseName, periodMs, ticks }: JobPlan) {
    const dice = new Dice(seed, `deliveries of ${leaseName}`);
    for (let place = 1; place <= ticks; place++) {
      const dueMs = place * periodMs;
      const tickMs = EPOCH_MS + dueMs;
      const copies = dice.pick([1, 1, 1, 2, 3]);
      for (let copy = 0; copy < copies; copy++) {
        const lateMs = dice.chance(0.4) ? dice.mostlyLittle(4 * periodMs) : dice.between(0, 500);
        this.#pending.push({ tickMs, dueMs: dueMs + lateMs });
      }
    }
  }

  /** When the next one is due; Infinity when all have been answered. */
  get nextMs(): number {
    return Math.min(Infinity, ...this.#pending.map(({ dueMs }) => dueMs));
  }

  /** Whoever takes it answers until then, or it comes again. */
  take(nowMs: number, againMs: number): Delivery | undefined {
    const delivery = this.#pending.find(({ dueMs }) => dueMs <= nowMs);
    if (delivery !== undefined) delivery.dueMs = againMs;
    return delivery;
  }

  answered(delivery: Delivery): void {
    const place = this.#pending.indexOf(delivery);
    if (place !== -1) this.#pending.splice(place, 1);
  }
}
