// Chance that can be thrown again: the same seed and the same names give the same numbers, and
// what one user of it draws moves nobody else's.

import type { Random } from '../../src/random.ts';

export class Dice implements Random {
  readonly #name: string;
  #state: number;
  #uuids = 0;

  constructor(seed: number, name = '') {
    this.#name = name;
    this.#state = hashed(seed, name);
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    return mixed(this.#state) / 2 ** 32;
  }

  /** Names its owner, so that an identity tells whose it is. */
  uuid(): string {
    this.#uuids += 1;
    return `${this.#name}.${this.#uuids}`;
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  between(from: number, to: number): number {
    return from + (to - from) * this.fraction();
  }

  /** A whole number, both ends included. */
  whole(from: number, to: number): number {
    return Math.floor(this.between(from, to + 1));
  }

  /** Up to `most`, and far more often little than much. */
  mostlyLittle(most: number): number {
    return most * this.fraction() ** 3;
  }

  pick<T>(choices: readonly T[]): T {
    return choices[this.whole(0, choices.length - 1)]!;
  }
}

/** A whole number of 32 bits that the parts alone decide. */
export function hashed(seed: number, ...parts: readonly (string | number)[]): number {
  let state = mixed((seed * 2_654_435_761) >>> 0);
  for (const part of parts) {
    if (typeof part === 'number') {
      state = mixed((state ^ part) >>> 0);
    } else {
      for (let place = 0; place < part.length; place++) {
        state = Math.imul(state ^ part.charCodeAt(place), 16_777_619) >>> 0;
      }
      state = mixed(state);
    }
  }
  return state;
}

function mixed(value: number): number {
  let bits = (value + 0x9e3779b9) >>> 0;
  bits = Math.imul(bits ^ (bits >>> 15), bits | 1);
  bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
  return (bits ^ (bits >>> 14)) >>> 0;
}
