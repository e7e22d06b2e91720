// A lease that several may hold at once, each in a slot of its own: leases name/0 to name/n-1. To
// whoever contends it looks like one lease.
//
// The record of the name itself has no holder. An operator's `suspended` there stops all slots.

import type { AcquireAnswer, LookAnswer, Waiting } from './answers.ts';
import type { ClockStatus } from './clock-check.ts';
import type { LeaseRecord } from './lease.ts';
import type { Lock } from './lock.ts';
import { invalid, show } from './options.ts';
import type { Random } from './random.ts';
import type { EndReason, Tenure, TermsAt } from './tenure.ts';

/** What can be contended for: a lock, or any of several. */
export interface Contender {
  readonly lease: string;
  readonly seen: LeaseRecord | undefined;
  readonly lastAnswerAtMs: number | undefined;
  readonly clockStatus: ClockStatus;
  look(): Promise<LookAnswer>;
  tryAcquire(termsAt: TermsAt): Promise<AcquireAnswer>;
  withdraw(): Promise<void>;
  release(tenure: Tenure, reason: EndReason): Promise<unknown>;
}

const MOST_SLOTS = 100;

/** @throws LeaseError `invalid-configuration` for a number of slots that cannot be. */
export function checkSlots(slots: unknown): void {
  if (slots === undefined) return;
  const inRange = typeof slots === 'number' && slots >= 1 && slots <= MOST_SLOTS;
  if (inRange && Number.isInteger(slots)) return;
  throw invalid(`slots is ${show(slots)}; it must be a whole number from 1 to ${MOST_SLOTS}.`);
}

export function slotName(name: string, slot: number): string {
  return `${name}/${slot}`;
}

/** For checks of what is to come: a name, or that of its last slot. */
export function longestName(name: unknown, slots: number | undefined): unknown {
  return slots === undefined || typeof name !== 'string' ? name : slotName(name, slots - 1);
}

interface Seen {
  readonly record: LeaseRecord;
  readonly waiting: Waiting;
}

export class Slots implements Contender {
  readonly #base: Lock;
  readonly #locks: readonly Lock[];
  /** Where the next round begins. By chance at first, so that contenders do not all try slot 0. */
  #first: number;
  #taken: number | undefined;

  constructor(base: Lock, locks: readonly Lock[], random: Random) {
    this.#base = base;
    this.#locks = locks;
    this.#first = Math.floor(random.fraction() * locks.length);
  }

  get lease(): string {
    return this.#base.lease;
  }

  /** The slot that was acquired last. */
  get taken(): { readonly lock: Lock; readonly slot: number } | undefined {
    const lock = this.#taken === undefined ? undefined : this.#locks[this.#taken];
    return lock === undefined || this.#taken === undefined
      ? undefined
      : { lock, slot: this.#taken };
  }

  /** One of the records that were seen: a held one where there is one. */
  get seen(): LeaseRecord | undefined {
    const seen = this.#locks.flatMap(({ seen: record }) => (record === undefined ? [] : [record]));
    return seen.find(({ vacant }) => !vacant) ?? seen[0] ?? this.#base.seen;
  }

  get lastAnswerAtMs(): number | undefined {
    const answers = [this.#base, ...this.#locks].flatMap((lock) => lock.lastAnswerAtMs ?? []);
    return answers.length === 0 ? undefined : Math.max(...answers);
  }

  get clockStatus(): ClockStatus {
    return this.#base.clockStatus;
  }

  /** The first slot that looks free; or of those that are not, the one that will be first. */
  async look(): Promise<LookAnswer> {
    const base = await this.#base.look();
    if (base.kind === 'failed') return base;
    const { suspended } = base.record;
    if (suspended !== undefined) return suspendedAt(base.record);
    let soonest: Seen | undefined;
    for (const [, lock] of this.#inOrder()) {
      const seen = await lock.look();
      if (seen.kind === 'failed' || seen.decision.kind === 'take') return seen;
      soonest = sooner(soonest, { record: seen.record, waiting: seen.decision });
    }
    return soonest === undefined
      ? base
      : { kind: 'seen', record: soonest.record, decision: soonest.waiting };
  }

  /** Writes at the first slot at once; at the others only where they look free. */
  async tryAcquire(termsAt: TermsAt): Promise<AcquireAnswer> {
    const base = await this.#base.look();
    if (base.kind === 'failed') return base;
    if (base.record.suspended !== undefined) {
      const { record, decision } = suspendedAt(base.record);
      return { kind: 'refused', record, waiting: decision, raced: false };
    }
    let soonest: Seen | undefined;
    let raced = false;
    for (const [slot, lock] of this.#inOrder()) {
      if (soonest !== undefined) {
        const seen = await lock.look();
        if (seen.kind === 'failed') return seen;
        if (seen.decision.kind === 'wait') {
          soonest = sooner(soonest, { record: seen.record, waiting: seen.decision });
          continue;
        }
      }
      const answer = await lock.tryAcquire(termsAt);
      if (answer.kind === 'acquired') {
        this.#taken = slot;
        return answer;
      }
      if (answer.kind === 'failed') {
        // It may have been taken, or may be yet (L7): that is found out here before another is
        // tried. Two slots for one contender would be one too few for the rest.
        this.#first = slot;
        return answer;
      }
      raced ||= answer.raced;
      soonest = sooner(soonest, answer);
    }
    if (soonest === undefined) throw new RangeError('There is at least one slot.');
    return { kind: 'refused', ...soonest, raced };
  }

  async withdraw(): Promise<void> {
    await Promise.all(this.#locks.map((lock) => lock.withdraw()));
  }

  async release(tenure: Tenure, reason: EndReason): Promise<void> {
    await this.taken?.lock.release(tenure, reason);
  }

  #inOrder(): (readonly [number, Lock])[] {
    const slots = [...this.#locks.entries()];
    return [...slots.slice(this.#first), ...slots.slice(0, this.#first)];
  }
}

/** What was acquired last, and in which slot. */
export function takenOf(contender: Lock | Slots): { readonly lock: Lock; readonly slot?: number } {
  if (!(contender instanceof Slots)) return { lock: contender };
  const { taken } = contender;
  if (taken === undefined) throw new TypeError('No slot has been acquired.');
  return taken;
}

function suspendedAt(record: LeaseRecord) {
  const decision = { kind: 'wait', because: 'suspended', forMs: Infinity } as const;
  return { kind: 'seen', record, decision } as const;
}

function sooner(one: Seen | undefined, { record, waiting }: Seen): Seen {
  if (one !== undefined && one.waiting.forMs <= waiting.forMs) return one;
  return { record, waiting };
}
