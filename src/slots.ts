// A lease that several may hold at once, each in a slot of its own: leases name/0 to name/n-1. To
// whoever contends it looks like one lease.
//
// The record of the name itself has no holder. An operator's `suspended` there stops all slots. A
// slot whose own record cannot be used is passed by: the others can be.

import type { AcquireAnswer, LookAnswer, Waiting } from './answers.ts';
import type { ClockStatus } from './clock-check.ts';
import { isLeaseError, type LeaseError } from './errors.ts';
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
  /** Whether the store had to be asked twice, for want of capacity, when it was asked last. */
  readonly strained: boolean;
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

/** Told of a slot that cannot be used. */
type OnBroken = (lease: string, error: LeaseError) => void;
type Failed = Extract<AcquireAnswer, { kind: 'failed' }>;

export class Slots implements Contender {
  readonly #base: Lock;
  readonly #locks: readonly Lock[];
  readonly #onBroken: OnBroken;
  readonly #broken = new Set<Lock>();
  /** Where the next round begins. By chance at first, so that contenders do not all try slot 0. */
  #first: number;
  #taken: number | undefined;

  /** `onBroken` is called once for each slot. */
  constructor(base: Lock, locks: readonly Lock[], random: Random, onBroken: OnBroken) {
    this.#base = base;
    this.#locks = locks;
    this.#first = Math.floor(random.fraction() * locks.length);
    this.#onBroken = onBroken;
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

  /** The record of a slot that was seen. That of the name itself tells nothing of any. */
  get seen(): LeaseRecord | undefined {
    return this.#locks.find(({ seen }) => seen !== undefined)?.seen;
  }

  get lastAnswerAtMs(): number | undefined {
    const answers = [this.#base, ...this.#locks].flatMap((lock) => lock.lastAnswerAtMs ?? []);
    return answers.length === 0 ? undefined : Math.max(...answers);
  }

  get clockStatus(): ClockStatus {
    return this.#base.clockStatus;
  }

  get strained(): boolean {
    return [this.#base, ...this.#locks].some(({ strained }) => strained);
  }

  /** The first slot that looks free; or of those that are not, the one that will be first. */
  async look(): Promise<LookAnswer> {
    const base = await this.#lookAtBase();
    if (base.kind !== 'open') return base;
    let soonest: Seen | undefined;
    let broken: Failed | undefined;
    for (const [, lock] of this.#inOrder()) {
      const seen = await lock.look();
      if (seen.kind === 'failed') {
        if (!this.#passesBy(lock, seen.error)) return seen;
        broken ??= seen;
      } else {
        if (seen.decision.kind === 'take') return seen;
        soonest = sooner(soonest, { record: seen.record, waiting: seen.decision });
      }
    }
    if (soonest === undefined) return broken ?? noSlot();
    return { kind: 'seen', record: soonest.record, decision: soonest.waiting };
  }

  /** Writes at the first slot at once; at the others only where they look free. */
  async tryAcquire(termsAt: TermsAt): Promise<AcquireAnswer> {
    const base = await this.#lookAtBase();
    if (base.kind === 'failed') return base;
    if (base.kind === 'seen') {
      return { kind: 'refused', record: base.record, waiting: base.decision, raced: false };
    }
    let soonest: Seen | undefined;
    let broken: Failed | undefined;
    let raced = false;
    for (const [slot, lock] of this.#inOrder()) {
      const answer =
        soonest === undefined ? await lock.tryAcquire(termsAt) : await tryIfFree(lock, termsAt);
      if (answer.kind === 'refused' && !lock.isLate(answer.record)) {
        raced ||= answer.raced;
        soonest = sooner(soonest, answer);
      } else if (answer.kind === 'failed' && this.#passesBy(lock, answer.error)) {
        broken ??= answer;
      } else {
        // Here the next round begins. What failed may have been taken, or may be yet (L7); what is
        // acquired now, or could not be given back, may still name us when we come back. That is
        // found out before another slot is tried: two for one contender are one too few for others.
        this.#first = slot;
        if (answer.kind === 'acquired') this.#taken = slot;
        return answer;
      }
    }
    if (soonest === undefined) return broken ?? noSlot();
    return { kind: 'refused', ...soonest, raced };
  }

  async withdraw(): Promise<void> {
    await Promise.all(this.#locks.map((lock) => lock.withdraw()));
  }

  async release(tenure: Tenure, reason: EndReason): Promise<void> {
    await this.taken?.lock.release(tenure, reason);
  }

  async #lookAtBase() {
    const base = await this.#base.look();
    if (base.kind === 'failed') return base;
    const { record } = base;
    if (record.suspended === undefined) return { kind: 'open' } as const;
    const decision = { kind: 'wait', because: 'suspended', forMs: Infinity } as const;
    return { kind: 'seen', record, decision } as const;
  }

  /** Whether an error is about the record of this slot only, and says nothing of the others. */
  #passesBy(lock: Lock, error: LeaseError): boolean {
    if (!isLeaseError(error, 'corrupt-record') && !isLeaseError(error, 'kind-mismatch')) {
      return false;
    }
    if (!this.#broken.has(lock)) this.#onBroken(lock.lease, error);
    this.#broken.add(lock);
    return true;
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

async function tryIfFree(lock: Lock, termsAt: TermsAt): Promise<AcquireAnswer> {
  const seen = await lock.look();
  if (seen.kind === 'failed') return seen;
  const { record, decision } = seen;
  return decision.kind === 'take'
    ? lock.tryAcquire(termsAt)
    : { kind: 'refused', record, waiting: decision, raced: false };
}

function noSlot(): never {
  throw new RangeError('There is at least one slot.');
}

function sooner(one: Seen | undefined, { record, waiting }: Seen): Seen {
  if (one !== undefined && one.waiting.forMs <= waiting.forMs) return one;
  return { record, waiting };
}
