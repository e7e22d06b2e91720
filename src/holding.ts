// Keeps a held lease while work runs under it: carries out what renewal.ts says, on real timers
// and a real lock, and hands the work its Lease.
//
// Owns every timer of the tenure; none is left when it has concluded. No promise here is ever
// left to reject unhandled: in Lambda that would end the environment.

import { sleep, type Clock, type Timer } from './clock.ts';
import type { Logger } from './environment.ts';
import { describeError, LeaseError } from './errors.ts';
import { isAborted, leaseHandle, type Lease } from './lease-handle.ts';
import type { LeaseRecord } from './lease.ts';
import type { RenewAnswer } from './answers.ts';
import type { Lock } from './lock.ts';
import type { Random } from './random.ts';
import { STEPS, type HoldingAction, type HoldingEvent, type HoldingState } from './renewal.ts';
import type { EndReason, Tenure, TermsAt } from './tenure.ts';
import type { LeaseStore } from './store.ts';
import type { Timeline } from './timeline.ts';
import { Turns } from './turns.ts';
import type { JobNote } from './writes.ts';

export interface HoldingOptions {
  readonly clock: Clock;
  readonly timeline: Timeline;
  readonly random: Random;
  readonly logger: Logger;
  readonly termsAt: TermsAt;
  /** Absent: the lease covers its work from the start, and is never renewed. */
  readonly renewEveryMs?: number | undefined;
  /** False for a renewal that would extend nothing. Default: always true. */
  readonly worthRenewing?: (() => boolean) | undefined;
  /** How long the work may take to settle once it is told to stop. May be Infinity. */
  readonly drainMs: number;
  /** How long, once the lease is lost. Within the tolerance: then others start. */
  readonly lossDrainMs: number;
  readonly releaseWithinMs: () => number;
  readonly maxHoldMs?: number | undefined;
  readonly store: Pick<LeaseStore, 'description' | 'tableName'>;
  readonly slot?: number | undefined;
  /** What a scheduled job writes of its run when it gives its lease back. */
  readonly noteAtRelease?: ((reason: EndReason) => JobNote | undefined) | undefined;
  /** Called with the record that each renewal shows. */
  readonly onRecord?: ((record: LeaseRecord) => void) | undefined;
}

export interface Conclusion {
  /** `kept`: it is not over. */
  readonly reason: EndReason | 'kept';
  /** False when the work outlasted its bound and may still be running. */
  readonly workSettled: boolean;
  /** True when the store has confirmed that the lease is free, or somebody else's. */
  readonly released: boolean;
}

const RETRY_FIRST_MS = 100;
/** How long a renewal waits for a transaction of the work, at most. */
const LONGEST_PATIENCE_MS = 1_000;
/** After `stop`, why it was told so; whatever ends a tenure first names it. */
const LOSSES: readonly EndReason[] = ['taken over', 'expired', 'record deleted', 'evicted'];

export class Holding {
  readonly lease: Lease;
  /** Settles when the tenure is over as far as this process can bring it; never rejects. */
  readonly concluded: Promise<Conclusion>;

  readonly #lock: Lock;
  readonly #tenure: Tenure;
  readonly #options: HoldingOptions;
  readonly #abort = new AbortController();
  readonly #turns: Turns;
  readonly #timers = new Map<'renewal' | 'belief' | 'bound' | 'hold', Timer>();
  #state: HoldingState = 'held';
  #reason: EndReason | undefined;
  #lastSentAtMs: number;
  #unanswered = 0;
  #released = false;
  #conclude: (conclusion: Conclusion) => void = () => undefined;

  constructor(lock: Lock, tenure: Tenure, options: HoldingOptions) {
    this.#lock = lock;
    this.#tenure = tenure;
    this.#options = options;
    this.concluded = new Promise((resolve) => (this.#conclude = resolve));
    this.#turns = new Turns(options.clock);
    this.lease = leaseHandle({
      lease: lock.lease,
      tableName: options.store.tableName ?? options.store.description,
      tenure,
      slot: options.slot,
      abort: this.#abort,
      clock: options.clock,
      random: options.random,
      isHeld: () => this.#isHeld(),
      abortReason: () => this.#abortReason(),
      release: () => this.#releasedByWork(),
      inTurn: (run) => this.#turns.transaction(run),
      refused: (record) => this.#refused(record),
      versionRaised: () => tenure.raiseVersion(),
    });
    this.#lastSentAtMs = tenure.believed?.base.elapsedMs ?? options.timeline.look().elapsedMs;
    this.#do('schedule');
    this.#watchBelief();
    if (options.maxHoldMs !== undefined) {
      this.#setTimer('hold', options.maxHoldMs, () => this.#holdLimit());
    }
  }

  get state(): HoldingState {
    return this.#state;
  }

  /** How long the next renewal is overdue; 0 while none is. For health checks. */
  overdueMs(): number {
    const { renewEveryMs, timeline } = this.#options;
    if (renewEveryMs === undefined || this.#state === 'ended') return 0;
    return Math.max(0, timeline.look().elapsedMs - this.#lastSentAtMs - renewEveryMs);
  }

  /** Asks the work to finish: aborts its signal, renews until it has settled, then releases. */
  stop(reason: EndReason): void {
    this.#reason ??= reason;
    this.#on('stop');
  }

  /** The work has returned or thrown: releases the lease if it is still ours. */
  workSettled(reason: 'completed' | 'failed'): void {
    // Work that slept through the end of its lease has not been told by a timer yet.
    this.#isHeld();
    this.#reason ??= reason;
    this.#on('workSettled');
  }

  /** Forgets the lease without releasing it: work may go on under it, unseen. It expires. */
  abandon(): void {
    this.stop('stopped');
    this.#on('boundPassed');
  }

  /**
   * Writes `note` with a renewal, and waits for the record. Undefined when the lease was lost
   * meanwhile: the note may have been written all the same.
   */
  async write(note?: JobNote): Promise<LeaseRecord | undefined> {
    for (let unanswered = 0; this.#isHeld(); unanswered++) {
      const answer = await this.#sendRenewal(note);
      if (answer.kind === 'renewed') return answer.record;
      if (answer.kind === 'lost') break;
      await sleep(this.#options.clock, RETRY_FIRST_MS * 2 ** Math.min(unanswered, 5));
    }
    this.#isHeld();
    return undefined;
  }

  /** The work has settled, but the tenure goes on: stops all timers, and releases nothing. */
  keep(): void {
    this.#isHeld();
    this.#on('keep');
  }

  #on(event: HoldingEvent): void {
    const [next, ...actions] = STEPS[this.#state][event];
    if (event === 'gone' || (next === 'lost' && this.#state !== 'lost')) {
      // Why it was lost says more than why it was asked to stop, or that the work is done.
      this.#reason = this.#tenure.endReason ?? 'expired';
    }
    this.#state = next;
    for (const action of actions) this.#do(action);
  }

  #do(action: HoldingAction): void {
    const { renewEveryMs, drainMs, lossDrainMs, timeline } = this.#options;
    switch (action) {
      case 'renew':
        this.#renew();
        break;
      case 'schedule':
        if (renewEveryMs !== undefined) {
          const sinceMs = timeline.look().elapsedMs - this.#lastSentAtMs;
          this.#setTimer('renewal', renewEveryMs - sinceMs, () => this.#renewalDue());
        }
        break;
      case 'scheduleRetry':
        // Doubling, so that a throttling table is not hammered, but never later than a period.
        this.#unanswered += 1;
        this.#setTimer(
          'renewal',
          Math.min(renewEveryMs ?? Infinity, RETRY_FIRST_MS * 2 ** (this.#unanswered - 1)),
          () => this.#renewalDue(),
        );
        break;
      case 'abortSignal':
        this.#abort.abort(this.#abortReason());
        break;
      case 'boundDrain':
        if (drainMs !== Infinity) this.#setTimer('bound', drainMs, () => this.#on('boundPassed'));
        break;
      case 'boundLoss':
        this.#setTimer('bound', lossDrainMs, () => this.#on('boundPassed'));
        break;
      case 'release':
        this.#clearTimers();
        void this.#release();
        break;
      case 'conclude':
        this.#clearTimers();
        this.#tenure.end(this.#reason ?? 'stopped');
        this.#settle(this.#reason ?? this.#tenure.endReason ?? 'stopped');
        break;
      case 'letGo':
        this.#clearTimers();
        this.#settle('kept');
        break;
    }
  }

  /** Work that hangs must not be renewed for ever, whatever else it was given time for. */
  #holdLimit(): void {
    this.stop('hold limit');
    const { drainMs, lossDrainMs } = this.#options;
    this.#setTimer('bound', Math.min(drainMs, lossDrainMs), () => this.#on('boundPassed'));
  }

  #settle(reason: Conclusion['reason']): void {
    this.#conclude({
      reason,
      workSettled: this.#state === 'ended',
      released: this.#released,
    });
  }

  /** The first thing after any pause is a check, not a renewal. */
  #renewalDue(): void {
    if (!this.#isHeld()) return;
    if (this.#options.worthRenewing?.() === false) return;
    this.#on('renewalDue');
  }

  #renew(): void {
    this.#sendRenewal().then(
      (answer) => this.#answered(answer),
      (error: unknown) => this.#cannotTell(error),
    );
  }

  #sendRenewal(note?: JobNote): Promise<RenewAnswer> {
    const patienceMs = Math.min(LONGEST_PATIENCE_MS, this.#tenure.remainingMs() / 4);
    return this.#turns.renewal(patienceMs, () => {
      this.#lastSentAtMs = this.#options.timeline.look().elapsedMs;
      const renewed = this.#lock.renew(this.#tenure, this.#options.termsAt, note);
      // Terms may be shorter than before: belief may end earlier from the moment of the send.
      this.#watchBelief();
      return renewed;
    });
  }

  /** A transaction found the lease not to be ours; or its tick to be done, which is no loss. */
  async #refused(record: LeaseRecord | undefined): Promise<LeaseError | undefined> {
    if (record === undefined) {
      // The server does not show it: a renewal finds out.
      return (await this.write()) ? undefined : this.#abortReason();
    }
    const over = this.#tenure.whyOver(record);
    if (over === undefined) {
      this.#tenure.confirm(record);
      return undefined;
    }
    this.#tenure.end(over);
    this.#on('gone');
    return this.#abortReason();
  }

  async #releasedByWork(): Promise<void> {
    this.workSettled('completed');
    // Whatever of the work still waits for its signal is to finish too.
    if (!isAborted(this.#abort.signal)) this.#abort.abort(this.#abortReason());
    await this.concluded;
  }

  #answered(answer: RenewAnswer): void {
    if (answer.kind === 'unknown') {
      this.#cannotTell(answer.error);
      return;
    }
    if (answer.kind === 'lost') {
      this.#on(answer.reason === 'expired' ? 'expired' : 'gone');
      return;
    }
    this.#unanswered = 0;
    this.#watchBelief();
    this.#on('renewed');
    try {
      this.#options.onRecord?.(answer.record);
    } catch (error) {
      this.#options.logger.error('A callback of a lease threw.', { error: describeError(error) });
    }
  }

  #cannotTell(error: unknown): void {
    if (!this.#tenure.isHeld()) {
      this.#on('expired');
      return;
    }
    this.#options.logger.warn('A renewal was not answered; it is tried again.', {
      lease: this.#lock.lease,
      holderIdentity: this.#tenure.holderIdentity,
      fencingToken: this.#tenure.fencingToken,
      remainingMs: this.#tenure.remainingMs(),
      error: describeError(error),
    });
    this.#on('cannotTell');
  }

  async #release(): Promise<void> {
    let problem: unknown;
    try {
      const reason = this.#reason ?? 'completed';
      const withinMs = this.#options.releaseWithinMs();
      const note = this.#options.noteAtRelease?.(reason);
      const answer = await this.#lock.release(this.#tenure, reason, withinMs, note);
      this.#released = answer.kind === 'released';
      if (answer.kind === 'unknown') problem = answer.error;
    } catch (error) {
      problem = error;
    }
    if (problem !== undefined) {
      this.#options.logger.warn('A lease may not have been released; it expires by itself.', {
        lease: this.#lock.lease,
        holderIdentity: this.#tenure.holderIdentity,
        error: describeError(problem),
      });
    }
    this.#on('released');
  }

  #isHeld(): boolean {
    if (this.#state === 'ended') return false;
    if (this.#tenure.isHeld()) return true;
    this.#on('expired');
    return false;
  }

  #watchBelief(): void {
    const leftMs = this.#tenure.remainingMs();
    // In whole ms: to a fraction of one, a clock may not get any nearer.
    this.#setTimer('belief', Math.ceil(leftMs), () => {
      // A renewal has moved the end of belief; or the timer was early by a fraction.
      if (this.#isHeld()) this.#watchBelief();
    });
  }

  #setTimer(name: 'renewal' | 'belief' | 'bound' | 'hold', delayMs: number, run: () => void): void {
    this.#timers.get(name)?.cancel();
    this.#timers.set(name, this.#options.clock.setTimer(Math.max(0, delayMs), run));
  }

  #clearTimers(): void {
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
  }

  #abortReason(): LeaseError {
    const reason = this.#reason ?? 'stopped';
    return LOSSES.includes(reason)
      ? new LeaseError('lease-lost', `Lease "${this.#lock.lease}" was lost: ${reason}.`, { reason })
      : new LeaseError(
          'lease-stopped',
          `The work under lease "${this.#lock.lease}" is to finish: ${reason}.`,
          { reason },
        );
  }
}
