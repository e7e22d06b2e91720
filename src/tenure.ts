// One tenure: from one acquisition to its end. Knows how long its holder may believe, and nothing
// of stores or timers.
//
// Belief counts from before the send of the write that gave it, never from the answer. It is
// compared with the clocks at every look, not cleared by a timer (L6), and once it has ended
// nothing revives it (L4).

import type { LeaseRecord } from './lease.ts';
import type { Moment, Timeline } from './timeline.ts';

/** How long a write makes the lease last, and how long its holder believes in it. */
export interface Terms {
  readonly leaseDurationMs: number;
  /** Less than the duration by the tolerance: holders stop that much before others may start. */
  readonly renewDeadlineMs: number;
}

/** One write that claims the lease: sent, and perhaps applied, now or later (L7). */
export interface Attempt extends Terms {
  /** What it writes as its renewTime, and is recognised by. May run ahead of the wall clock. */
  readonly stampMs: number;
  /** The wall clock itself, by which the expiry of others is judged. */
  readonly nowMs: number;
  /** The one look at the clocks, before the send, from which stamp and belief are counted. */
  readonly base: Moment;
}

/** The terms of a write sent at `now`: those of an invocation shrink towards its deadline. */
export type TermsAt = (now: Moment) => Terms;

/** More than can matter: who has not been answered so often has long lost what it held. */
const REMEMBERED_ATTEMPTS = 256;
const AHEAD_MS = 50;

/**
 * The attempts of one identity. Their stamps differ by at least 1 ms and never go back: the
 * larger of the wall clock and the last stamp plus the time elapsed since.
 */
export class Attempts {
  readonly holderIdentity: string;
  readonly #timeline: Timeline;
  #sent: Attempt[] = [];
  #nowMs = 0;
  #last: Attempt | undefined;

  constructor(holderIdentity: string, timeline: Timeline) {
    this.holderIdentity = holderIdentity;
    this.#timeline = timeline;
  }

  /** Looks at the clocks. To be called before the write is built and sent. */
  next(termsAt: TermsAt): Attempt {
    const base = this.#timeline.look();
    const last = this.#last;
    // Summed up without rounding: thousands of rounded steps would run ahead of the clock.
    this.#nowMs = Math.max(
      base.wallMs,
      last === undefined ? 0 : this.#nowMs + base.elapsedMs - last.base.elapsedMs,
    );
    const stampMs = Math.max(Math.floor(this.#nowMs), last === undefined ? 0 : last.stampMs + 1);
    const attempt = { ...termsAt(base), base, stampMs, nowMs: Math.floor(base.wallMs) };
    this.#last = attempt;
    this.#sent = [...this.#sent.slice(1 - REMEMBERED_ATTEMPTS), attempt];
    return attempt;
  }

  ageMs(attempt: Attempt): number {
    return this.#timeline.look().elapsedMs - attempt.base.elapsedMs;
  }

  /** Whether anything was sent that may have been applied, or may still be (L7). */
  get unresolved(): boolean {
    return this.#sent.length > 0;
  }

  /** Whether the wall clock has been set back since the last attempt. */
  get aheadOfWallClock(): boolean {
    if (this.#last === undefined) return false;
    const now = this.#timeline.look();
    const expectedMs = this.#nowMs + now.elapsedMs - this.#last.base.elapsedMs;
    return expectedMs - now.wallMs > AHEAD_MS;
  }

  /**
   * Its condition failed, so it will not be applied any more. Nor was it, unless the record says
   * so: then what failed was the client's own retry of it.
   */
  refused(attempt: Attempt, record: LeaseRecord | undefined): void {
    const mine = record?.holderIdentity === this.holderIdentity;
    if (mine && this.thatWrote(record) === attempt) return;
    this.#sent = this.#sent.filter((sent) => sent !== attempt);
  }

  /** The attempt that wrote this record, if one of ours did. */
  thatWrote(record: LeaseRecord): Attempt | undefined {
    if (record.renewTime === undefined) return undefined;
    const renewTimeMs = Date.parse(record.renewTime);
    return this.#sent.find(({ stampMs }) => stampMs === renewTimeMs);
  }

  /** When belief ends that rests on `applied`: no later than any attempt sent since allows. */
  beliefEndsAtMs(applied: Attempt): number {
    const since = this.#sent.filter(({ stampMs }) => stampMs >= applied.stampMs);
    // It counts also when so many came after it that it is no longer remembered among them.
    return Math.min(
      ...[applied, ...since].map((attempt) => attempt.base.elapsedMs + attempt.renewDeadlineMs),
    );
  }

  /** Attempts before `applied` can no longer be applied: the version has moved on. */
  forgetBefore(applied: Attempt): void {
    this.#sent = this.#sent.filter(({ stampMs }) => stampMs >= applied.stampMs);
  }
}

/** Why a tenure ended. */
export type EndReason =
  /** Another took the lease. */
  | 'taken over'
  /** Nothing confirmed it in time: the store was out of reach, or this process was frozen. */
  | 'expired'
  /** Somebody deleted the record. */
  | 'record deleted'
  /** Vacated by the lifecycle monitor or an operator. */
  | 'evicted'
  /** The work returned. */
  | 'completed'
  /** The work threw. */
  | 'failed'
  /** Told to stop: the caller's signal, or the process is shutting down. */
  | 'stopped'
  /** Asked to make room: `stepDown()`, or an operator's request in the record. */
  | 'stepped down'
  /** An operator has suspended the lease. */
  | 'suspended'
  /** `maxHoldSeconds` has passed. */
  | 'hold limit'
  /** The invocation's deadline has passed, where Lambda does not enforce it. */
  | 'deadline';

export class Tenure {
  readonly fencingToken: number;
  readonly attempts: Attempts;
  readonly #timeline: Timeline;
  #version: number;
  #believed: Attempt | undefined;
  #ended: EndReason | undefined;

  constructor(attempts: Attempts, record: LeaseRecord, timeline: Timeline) {
    this.attempts = attempts;
    this.fencingToken = record.leaseTransitions;
    this.#timeline = timeline;
    this.#version = record.version ?? 0;
    this.#believed = attempts.thatWrote(record);
  }

  get holderIdentity(): string {
    return this.attempts.holderIdentity;
  }

  /** The version of the record that this tenure wrote last, as far as it knows. */
  get version(): number {
    return this.#version;
  }

  /** The write that belief rests on. None when the record carries a renewTime that is not ours. */
  get believed(): Attempt | undefined {
    return this.#believed;
  }

  /** Set once the tenure is over. */
  get endReason(): EndReason | undefined {
    return this.#ended;
  }

  isHeld(): boolean {
    return this.remainingMs() > 0;
  }

  /** Milliseconds of belief left; 0 once it has ended, and from then on. */
  remainingMs(): number {
    if (this.#ended !== undefined) return 0;
    const endsAtMs =
      this.#believed === undefined ? 0 : this.attempts.beliefEndsAtMs(this.#believed);
    const leftMs = endsAtMs - this.#timeline.look().elapsedMs;
    if (leftMs > 0) return leftMs;
    this.end('expired');
    return 0;
  }

  /** The store shows a write of this tenure. Does nothing for a tenure that is over (L4). */
  confirm(record: LeaseRecord): void {
    if (!this.isHeld()) return;
    // Also to less: a transaction may have been counted that was seen in the record before.
    this.#version = record.version ?? 0;
    const wrote = this.attempts.thatWrote(record);
    if (wrote === undefined) return;
    this.#believed = wrote;
    this.attempts.forgetBefore(wrote);
  }

  /** A write of this holder that carries no stamp of its own has been applied. */
  raiseVersion(): void {
    this.#version += 1;
  }

  /** Why this record, or its absence, shows that the tenure is over; undefined while it is ours. */
  whyOver(record: LeaseRecord | undefined): EndReason | undefined {
    if (record === undefined) return 'record deleted';
    const mine =
      record.holderIdentity === this.holderIdentity &&
      record.leaseTransitions === this.fencingToken;
    if (mine) return undefined;
    // Vacant with a later token: another took it, and has given it back since.
    const untaken = record.leaseTransitions <= this.fencingToken;
    return record.vacant && untaken ? 'evicted' : 'taken over';
  }

  /** Ends belief, once; a later reason changes nothing. */
  end(reason: EndReason): void {
    this.#ended ??= reason;
  }
}
