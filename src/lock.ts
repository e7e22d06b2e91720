// One lease, one contender: take it, renew it, give it back. Every question about what happened
// when the store did not say is answered here (L7); who may act is asked of decide().
//
// Sets no timer but the bound of a call, and repeats no call for longer than a few rounds: when to
// ask again is its callers' business.

import { failed, HELD, lost, overtaken, type Waiting } from './answers.ts';
import type { AcquireAnswer, AcquireOptions, LookAnswer } from './answers.ts';
import type { ReleaseAnswer, RenewAnswer } from './answers.ts';
import { clockCounts, type ClockStatus } from './clock-check.ts';
import { sleep } from './clock.ts';
import { acquisitionOf, claimOf, type Claimant } from './claims.ts';
import { clockUnproven, clockWrong } from './clock-refusal.ts';
import { decide, sight, type Decision, type Sighting } from './decide.ts';
import { depart, type Way } from './departure.ts';
import { LeaseError } from './errors.ts';
import { LeaseAccess, type LeaseAccessOptions, type LockWorld } from './lease-access.ts';
import { vacantLease, type LeaseRecord } from './lease.ts';
import { Attempts, Tenure, type Attempt, type EndReason, type TermsAt } from './tenure.ts';
import { acquire, renew, type JobNote, type Takeable } from './writes.ts';

export interface LockOptions extends LeaseAccessOptions, Claimant {
  readonly toleranceMs: number;
  readonly leaseDurationMs: number;
  /** A new one for each acquisition. */
  readonly newIdentity: () => string;
}

/** Another contender may change the record between any two rounds of one acquisition. */
const ACQUIRE_ROUNDS = 4;
const PROOF_ROUNDS = 3;
const PROOF_PAUSE_MS = 150;
const REMEMBERED_IDENTITIES = 16;

export class Lock {
  readonly lease: string;
  readonly #options: LockOptions;
  readonly #world: LockWorld;
  readonly #access: LeaseAccess;
  #sighting: Sighting | undefined;
  /** The identity that is trying, kept while a write of it may still be applied (L7). */
  #candidacy: Attempts | undefined;
  /** The last identity that is over. The record may still name it, or again: by a late write. */
  #departed: string | undefined;
  #knownTransitions = 0;
  #identities: readonly string[] = [];

  constructor(options: LockOptions, world: LockWorld) {
    this.lease = options.lease;
    this.#options = options;
    this.#world = world;
    this.#access = new LeaseAccess(options, world);
  }

  /** The record as last seen. */
  get seen(): LeaseRecord | undefined {
    return this.#sighting?.record;
  }

  /** When the store last answered, in the timeline's elapsed ms. */
  get lastAnswerAtMs(): number | undefined {
    return this.#access.lastAnswerAtMs;
  }

  get clockStatus(): ClockStatus {
    return this.#world.clockCheck.status(this.#options.toleranceMs);
  }

  get strained(): boolean {
    return this.#access.strained;
  }

  /** Reads cheaply, and says what may be done. What it shows may be the past. */
  async look(): Promise<LookAnswer> {
    try {
      const record = this.#see(await this.#access.read(false));
      const late = { kind: 'take', how: 'asRead' } as const;
      const decision = this.isLate(record) ? late : this.#decide();
      return { kind: 'seen', record, decision };
    } catch (error) {
      return failed(error);
    }
  }

  /**
   * Tries to take the lease, now. One request where it is free, or held by another; two where an
   * expired lease meets a clock that has not been checked yet; more only after failures and races.
   */
  async tryAcquire(termsAt: TermsAt, options: AcquireOptions = {}): Promise<AcquireAnswer> {
    try {
      await this.#refuseWrongClock();
      if (options.onlyOwn === true) {
        const record = this.#see(await this.#access.read(true));
        const decision = this.#decideFor(options);
        if (decision.kind === 'wait') return this.#refused(record, decision, false);
      }
      return await this.#contend(termsAt, options);
    } catch (error) {
      return failed(error);
    }
  }

  async #contend(termsAt: TermsAt, options: AcquireOptions): Promise<AcquireAnswer> {
    // Stamps of one identity never go back. Those of an earlier attempt, by a clock that has been
    // set back since, are not for a new acquisition.
    if (this.#candidacy?.aheadOfWallClock === true) {
      this.#departed = this.#candidacy.holderIdentity;
      this.#candidacy = undefined;
    }
    const candidacy = (this.#candidacy ??= this.#newCandidacy());
    let takeable = this.#takeableFirst(options);
    let unanswered = 0;
    let waiting = HELD;
    let looksFree = this.#sighting !== undefined && this.#decide().kind === 'take';
    for (let round = 0; round < ACQUIRE_ROUNDS; round++) {
      const attempt = candidacy.next(termsAt);
      // Asked for each, after its stamp was read: the clock may have been set since the last.
      if (takeable === 'vacant or expired') takeable = this.#takeableBlind();
      const answer = await this.#access.write(
        acquire(acquisitionOf(this.#options, candidacy, attempt, this.#knownTransitions), takeable),
        Math.min(this.#options.requestTimeoutMs, attempt.renewDeadlineMs),
      );
      if (answer.kind === 'applied') return this.#begin(candidacy, answer.record, termsAt);
      if (answer.kind === 'failed') {
        if (answer.error.code !== 'store-unavailable') return this.#explain(answer.error);
        unanswered += 1;
        if (unanswered === 1) continue;
        return this.#recover(candidacy, answer.error, termsAt);
      }
      candidacy.refused(attempt, answer.record);
      const record = this.#see(answer.record);
      if (record.holderIdentity === candidacy.holderIdentity) {
        return this.#begin(candidacy, record, termsAt);
      }
      if (record.holderIdentity !== undefined && record.holderIdentity === this.#departed) {
        const { requestTimeoutMs } = this.#options;
        await this.#depart('vacate', this.#departed, record.version, requestTimeoutMs);
        takeable = this.#takeableFirst(options);
        continue;
      }
      const decision = this.#decideFor(options);
      if (decision.kind === 'wait') {
        waiting = decision;
        // A slow answer proves nothing about the clock: ask again. A wrong one stays wrong.
        if (decision.because === 'clock unchecked' && this.clockStatus.kind !== 'wrong') continue;
        return this.#refused(record, decision, looksFree);
      }
      takeable = decision.how === 'asRead' ? { asRead: record } : decision.how;
      looksFree = true;
    }
    return this.#refused(this.seen ?? vacantLease(this.lease), waiting, looksFree);
  }

  #refused(record: LeaseRecord, waiting: Waiting, raced: boolean): AcquireAnswer {
    return { kind: 'refused', record, waiting, raced: raced && waiting.because === 'held' };
  }

  /** Twice no answer: the record itself may tell. Else a later try with this identity will. */
  async #recover(candidacy: Attempts, error: LeaseError, termsAt: TermsAt): Promise<AcquireAnswer> {
    const record = this.#see(await this.#access.read(true));
    return record.holderIdentity === candidacy.holderIdentity
      ? this.#begin(candidacy, record, termsAt)
      : { kind: 'failed', error };
  }

  /** A garbage version makes DynamoDB refuse the increment: the record says so better. */
  async #explain(error: LeaseError): Promise<AcquireAnswer> {
    if (error.code === 'request-refused') this.#see(await this.#access.read(true));
    return { kind: 'failed', error };
  }

  /**
   * The record names us. It is an acquisition once a sample sent after its stamp has proved the
   * clock, as a rule that of its own answer, and if belief in it has not passed meanwhile.
   */
  async #begin(
    candidacy: Attempts,
    acquired: LeaseRecord,
    termsAt: TermsAt,
  ): Promise<AcquireAnswer> {
    let record = acquired;
    let error: LeaseError | undefined;
    this.#candidacy = undefined;
    for (let round = 0; ; round++) {
      const wrote = candidacy.thatWrote(record);
      const clock = wrote === undefined ? undefined : this.#clockSince(wrote);
      if (clock !== undefined && clockCounts(clock)) break;
      if (clock?.kind === 'wrong') return this.#undo(candidacy, record, this.#wrong(clock));
      if (round === PROOF_ROUNDS) {
        return this.#undo(candidacy, record, error ?? this.#unproven());
      }
      // The header counts whole seconds: at the same fraction of one it would prove no more.
      if (wrote) await sleep(this.#world.clock, PROOF_PAUSE_MS - candidacy.ageMs(wrote));
      const attempt = candidacy.next(termsAt);
      const answer = await this.#access.write(
        renew(claimOf(this.#options, candidacy, attempt), record.version ?? 0),
        this.#options.requestTimeoutMs,
      );
      if (answer.kind === 'failed') {
        error = answer.error;
        continue;
      }
      if (answer.kind === 'refused') candidacy.refused(attempt, answer.record);
      if (answer.record?.holderIdentity !== candidacy.holderIdentity) {
        return this.#refused(this.#see(answer.record), HELD, true);
      }
      record = answer.record;
    }
    this.#see(record);
    const tenure = new Tenure(candidacy, record, this.#world.timeline);
    if (tenure.isHeld()) return { kind: 'acquired', tenure, record };
    return this.#undo(
      candidacy,
      record,
      new LeaseError(
        'store-unavailable',
        `Lease "${this.lease}": the answer to its acquisition came after the renew deadline of ` +
          'it. It was given back.',
      ),
    );
  }

  async #undo(candidacy: Attempts, record: LeaseRecord, error: LeaseError): Promise<AcquireAnswer> {
    await this.#depart('vacate', candidacy.holderIdentity, record.version);
    return { kind: 'failed', error };
  }

  /** Stops trying: gives back what an attempt that nobody answered may have taken. */
  async withdraw(): Promise<void> {
    const candidacy = this.#candidacy;
    this.#candidacy = undefined;
    if (candidacy?.unresolved !== true) return;
    const identity = (this.#departed = candidacy.holderIdentity);
    try {
      const record = await this.#access.read(true);
      if (record?.holderIdentity === identity)
        await this.#depart('vacate', identity, record.version);
    } catch {
      // Out of reach: what may have been taken expires by itself.
    }
  }

  /** One request; a second one where the first showed an earlier write of ours. */
  async renew(tenure: Tenure, termsAt: TermsAt, note?: JobNote): Promise<RenewAnswer> {
    let adopted: LeaseRecord | undefined;
    for (let round = 0; round < 2; round++) {
      const leftMs = tenure.remainingMs();
      if (leftMs <= 0) break;
      const attempt = tenure.attempts.next(termsAt);
      const answer = await this.#access.write(
        renew(claimOf(this.#options, tenure.attempts, attempt), tenure.version, note),
        Math.min(this.#options.requestTimeoutMs, leftMs),
      );
      if (answer.kind === 'failed') return { kind: 'unknown', error: answer.error };
      const { record } = answer;
      if (answer.kind === 'refused') tenure.attempts.refused(attempt, record);
      // Also what ends the tenure is remembered: its token, and whose lease it is now.
      if (record !== undefined) this.#see(record);
      const over = tenure.whyOver(record);
      if (over !== undefined || record === undefined) {
        tenure.end(over ?? 'record deleted');
        break;
      }
      tenure.confirm(record);
      if (answer.kind === 'applied' || tenure.believed === attempt) {
        return tenure.isHeld() ? { kind: 'renewed', record } : lost(tenure);
      }
      adopted = record;
    }
    if (adopted === undefined || !tenure.isHeld()) return lost(tenure);
    return note === undefined ? { kind: 'renewed', record: adopted } : overtaken(this.lease);
  }

  /**
   * Ends the tenure, then vacates its record within `withinMs`, by default twice a request's
   * time-out. Ends it first: from the moment that the write is sent, others may start (L4).
   */
  release(tenure: Tenure, reason: EndReason, withinMs?: number, note?: JobNote) {
    tenure.end(reason);
    return this.#depart('vacate', tenure.holderIdentity, tenure.version, withinMs, note);
  }

  /**
   * As release, but deletes the record: of a heartbeat or an identity, never of a leader (L2).
   * Also what an acquisition may have written that nobody answered.
   */
  async remove(tenure: Tenure | undefined, withinMs?: number): Promise<ReleaseAnswer> {
    tenure?.end('stopped');
    const identity = tenure?.holderIdentity ?? this.#identities.at(-1);
    if (identity === undefined) return { kind: 'released' };
    this.#candidacy = undefined;
    return this.#depart('remove', identity, tenure?.version, withinMs);
  }

  /**
   * Whether the record names us by a write that nobody waited for any more (L7). Nobody has to
   * wait for that to expire: the next attempt adopts it, or undoes it.
   */
  isLate({ holderIdentity }: LeaseRecord): boolean {
    return (
      holderIdentity !== undefined &&
      [this.#candidacy?.holderIdentity, this.#departed].includes(holderIdentity)
    );
  }

  #depart(
    way: Way,
    holderIdentity: string,
    version = 0,
    withinMs = 2 * this.#options.requestTimeoutMs,
    note?: JobNote,
  ): Promise<ReleaseAnswer> {
    this.#departed = holderIdentity;
    return depart(this.#access, {
      lease: this.lease,
      way,
      holderIdentity,
      isOwn: (named) =>
        named === holderIdentity || (way === 'remove' && this.#identities.includes(named ?? '')),
      version,
      note,
      withinMs,
      requestTimeoutMs: this.#options.requestTimeoutMs,
      timeline: this.#world.timeline,
      onRecord: (record) => this.#see(record),
    });
  }

  #newCandidacy(): Attempts {
    const identity = this.#options.newIdentity();
    this.#identities = [...this.#identities.slice(1 - REMEMBERED_IDENTITIES), identity];
    return new Attempts(identity, this.#world.timeline);
  }

  #see(seen: LeaseRecord | undefined): LeaseRecord {
    const record = seen ?? vacantLease(this.lease);
    this.#knownTransitions = Math.max(this.#knownTransitions, record.leaseTransitions);
    this.#sighting = sight(this.#sighting, record, this.#world.timeline.look().monotonicMs);
    return record;
  }

  #decide(): Decision {
    const sighting = this.#sighting ?? { record: vacantLease(this.lease), sinceMonotonicMs: 0 };
    const now = this.#world.timeline.look();
    return decide(sighting, { ...this.#options, now, clock: this.clockStatus });
  }

  /** As decide(), and what the options allow or forbid besides. */
  #decideFor({ evenHeld = false, onlyOwn = false }: AcquireOptions): Decision {
    const decision = this.#decide();
    const holder = this.seen?.holderIdentity;
    const own = holder !== undefined && this.#identities.includes(holder);
    if (this.seen?.vacant === false && onlyOwn && !own) return HELD;
    const mayTake =
      decision.kind === 'take' || ['held', 'clock unchecked'].includes(decision.because);
    // Nothing else than what was read, so that nobody who came meanwhile is taken for it.
    return (evenHeld || onlyOwn) && mayTake ? { kind: 'take', how: 'asRead' } : decision;
  }

  #takeableFirst(options: AcquireOptions): Takeable {
    const byRule = options.evenHeld === true || options.onlyOwn === true;
    if (!byRule || this.seen === undefined) return this.#takeableBlind();
    return this.#decideFor(options).kind === 'take' ? { asRead: this.seen } : this.#takeableBlind();
  }

  /** Before anything has been read: only a clock that counts may judge an expiry. */
  #takeableBlind(): Takeable {
    if (this.#options.trustClocks && clockCounts(this.clockStatus)) return 'vacant or expired';
    // What has been watched long enough may be taken as it was read.
    const decision = this.#sighting === undefined ? undefined : this.#decide();
    return decision?.kind === 'take' && this.#sighting !== undefined
      ? { asRead: this.#sighting.record }
      : 'vacant';
  }

  #clockSince(attempt: Attempt): ClockStatus {
    return this.#options.trustClocks
      ? this.#world.clockCheck.statusSince(attempt.base, this.#options.toleranceMs)
      : { kind: 'checked' };
  }

  /** A clock known to be wrong takes nothing; one read shows whether it has been set right. */
  async #refuseWrongClock(): Promise<void> {
    if (!this.#options.trustClocks || this.clockStatus.kind !== 'wrong') return;
    this.#see(await this.#access.read(false));
    const status: ClockStatus = this.#world.clockCheck.status(this.#options.toleranceMs);
    if (status.kind === 'wrong') throw this.#wrong(status);
  }

  #wrong(status: Extract<ClockStatus, { kind: 'wrong' }>): LeaseError {
    return clockWrong(this.lease, this.#world.store.description, status);
  }

  #unproven(): LeaseError {
    return clockUnproven(this.lease, this.#world.store.description, this.#options);
  }
}
