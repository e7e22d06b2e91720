// The luck of one call, from the faults that last at the moment. Each fault throws its own dice
// for each call, so that taking one fault away leaves the luck of the others alone.

import type { LeaseErrorCode } from '../../src/errors.ts';
import { hashed } from './dice.ts';
import { isWeather, type Fault, type Weather } from './faults.ts';

/** What becomes of one call. */
export interface Luck {
  requestMs: number;
  answerMs: number;
  lose: 'request' | 'answer' | undefined;
  /** Nobody tells the caller of a loss. */
  silent: boolean;
  /** The caller's signal does not end the call either. */
  deaf: boolean;
  refused: LeaseErrorCode | undefined;
  /** The request reaches the table so much later, though its sender has been told of a failure. */
  lateMs: number | undefined;
  /** And once more, so much later. */
  againMs: number | undefined;
  resent: boolean;
  hidden: boolean;
  staleMs: number;
  /** The shift of the `Date` header; undefined: there is none. */
  dateMs: number | undefined;
}

export interface CallToJudge {
  readonly host: string;
  readonly place: number;
  readonly writes: boolean;
  readonly nowMs: number;
}

export class WeatherStation {
  readonly #seed: number;
  readonly #dateless: boolean;
  readonly #lasting = new Map<number, { readonly who: string; readonly fault: Fault }>();

  constructor(seed: number, dateless: boolean) {
    this.#seed = seed;
    this.#dateless = dateless;
  }

  begin(fault: Fault): void {
    this.#lasting.set(fault.id, { who: fault.who, fault });
  }

  end(fault: Fault): void {
    this.#lasting.delete(fault.id);
  }

  clear(): void {
    this.#lasting.clear();
  }

  /** What the sink of the events does now, for the `place`th publication. */
  sink(place: number): Extract<Weather, { kind: 'sink' }>['how'] | undefined {
    for (const { fault } of this.#lasting.values()) {
      if (fault.what.kind === 'sink' && this.#draw(fault, 'sink', place, 0) < fault.chance) {
        return fault.what.how;
      }
    }
    return undefined;
  }

  luckOf(call: CallToJudge): Luck {
    const { host, place } = call;
    const bits = hashed(this.#seed, host, place);
    const luck: Luck = {
      // The usual round trip is 2 to 40 ms.
      requestMs: 1 + (bits & 0xff) / 13,
      answerMs: 1 + ((bits >>> 8) & 0xff) / 13,
      lose: undefined,
      silent: false,
      deaf: false,
      refused: undefined,
      lateMs: undefined,
      againMs: undefined,
      resent: false,
      hidden: false,
      staleMs: 0,
      dateMs: this.#dateless ? undefined : 0,
    };
    for (const { who, fault } of this.#lasting.values()) {
      if (who !== 'all' && who !== host) continue;
      if (this.#draw(fault, host, place, 0) >= fault.chance) continue;
      this.#strike(luck, fault, call);
    }
    return luck;
  }

  #strike(luck: Luck, fault: Fault, { host, place, writes }: CallToJudge): void {
    const { what } = fault;
    if (!isWeather(what) || what.kind === 'sink') return;
    const part = (n: number) => this.#draw(fault, host, place, n);
    switch (what.kind) {
      case 'slow':
        if (what.way !== 'answer') luck.requestMs += what.upToMs * part(1) ** 2;
        if (what.way !== 'request') luck.answerMs += what.upToMs * part(2) ** 2;
        break;
      case 'lost':
        luck.lose = what.way;
        luck.silent = what.silent;
        break;
      case 'outage':
        luck.lose = 'request';
        luck.silent = what.silent;
        break;
      case 'late':
        if (writes) luck.lateMs = what.upToMs * part(1);
        break;
      case 'twice':
        if (writes) luck.againMs = what.upToMs * part(1);
        break;
      case 'resent':
        luck.resent = writes;
        break;
      case 'refused':
        luck.refused = what.code;
        break;
      case 'deaf':
        luck.deaf = true;
        luck.silent = true;
        luck.lose = part(1) < 0.5 ? 'request' : 'answer';
        break;
      case 'hidden':
        luck.hidden = true;
        break;
      case 'stale':
        luck.staleMs = what.upToMs * part(1);
        break;
      case 'date':
        luck.dateMs = what.byMs;
        break;
    }
  }

  #draw(fault: Fault, host: string, place: number, part: number): number {
    return hashed(this.#seed, fault.id, host, place, part) / 2 ** 32;
  }
}
