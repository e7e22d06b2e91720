// Keeps a held lease while work runs under it: carries out what renewal.ts says, on real timers
// and a real lock, and hands the work its Lease.
//
// Owns every timer of the tenure; none is left when it has concluded. No promise here is ever
// left to reject unhandled: in Lambda that would end the environment.

import type { Clock, Timer } from './clock.ts';
import type { Logger } from './environment.ts';
import { describeError, LeaseError } from './errors.ts';
import { splitLeaseKey, type LeaseRecord } from './lease.ts';
import type { RenewAnswer } from './answers.ts';
import type { Lock } from './lock.ts';
import { STEPS, type HoldingAction, type HoldingEvent, type HoldingState } from './renewal.ts';
import type { EndReason, Tenure, TermsAt } from './tenure.ts';
import type { Timeline } from './timeline.ts';

/** A lease that is held, as the work under it sees it. */
export interface Lease extends AsyncDisposable {
  readonly name: string;
  readonly namespace: string;
  readonly holderIdentity: string;
  /**
   * Higher than that of every earlier tenure of this lease. Pass it to whatever must refuse a
   * holder that is over: only such a fence covers work that ignores its signal.
   */
  readonly fencingToken: number;
  /**
   * Aborts when the lease is lost, or the work is to finish. `aborted` compares the clocks at each
   * look: after a freeze it is true before any timer has had a chance to fire.
   */
  readonly signal: AbortSignal;
  /** Whether this tenure may still act. Compares the clocks at each call. */
  isHeld(): boolean;
  /** How long it may still act if no further renewal succeeds; 0 once it is over. */
  remainingMs(): number;
  /** Ends the tenure now, as if the work had returned: releases the lease, and waits for that. */
  release(): Promise<void>;
}

export interface HoldingOptions {
  readonly clock: Clock;
  readonly timeline: Timeline;
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
    this.lease = this.#makeLease();
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
    this.#lastSentAtMs = this.#options.timeline.look().elapsedMs;
    const renewed = this.#lock.renew(this.#tenure, this.#options.termsAt);
    // Terms may be shorter than before: belief may end earlier from the moment of the send.
    this.#watchBelief();
    renewed.then(
      (answer) => this.#answered(answer),
      (error: unknown) => this.#cannotTell(error),
    );
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
      const answer = await this.#lock.release(this.#tenure, reason, withinMs);
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

  #makeLease(): Lease {
    const { signal } = this.#abort;
    const isHeld = () => this.#isHeld();
    const release = async () => {
      this.workSettled('completed');
      // Whatever of the work still waits for its signal is to finish too.
      if (!isAborted(signal)) this.#abort.abort(this.#abortReason());
      await this.concluded;
    };
    // A timer may fire late, and after a freeze other callbacks may come before it: so the signal
    // itself compares the clocks when it is asked.
    Object.defineProperties(signal, {
      aborted: { get: () => !isHeld() || isAborted(signal) },
      throwIfAborted: {
        value: () => {
          if (isHeld() && !isAborted(signal)) return;
          throw isAborted(signal) ? signal.reason : this.#abortReason();
        },
      },
    });
    return {
      ...splitLeaseKey(this.#lock.lease),
      holderIdentity: this.#tenure.holderIdentity,
      fencingToken: this.#tenure.fencingToken,
      signal,
      isHeld,
      remainingMs: () => (isHeld() ? this.#tenure.remainingMs() : 0),
      release,
      [Symbol.asyncDispose]: release,
    };
  }
}

/** What the signal itself says, which may be late. */
function isAborted(signal: AbortSignal): boolean {
  return Reflect.get(AbortSignal.prototype, 'aborted', signal);
}

/** For `LEASE_DISABLED`: everybody holds everything. */
export function pretendedLease(key: string): Lease {
  const release = () => Promise.resolve();
  return {
    ...splitLeaseKey(key),
    holderIdentity: 'LEASE_DISABLED',
    fencingToken: 0,
    signal: new AbortController().signal,
    isHeld: () => true,
    remainingMs: () => Infinity,
    release,
    [Symbol.asyncDispose]: release,
  };
}
