// Publishes that a process is alive, for as long as it runs: takes the record, renews it, comes
// back after an outage, and deletes it when it is stopped.
//
// It renews and retries as the kubelet does: each interval after the last renewal ended, a few
// times in quick succession when one fails, and then not before the next interval. What the
// kubelet does not do: it looks who holds the record. Two incarnations never share one.

import type { AcquireOptions } from './answers.ts';
import { sleep } from './clock.ts';
import { describeError, isPermanent, LeaseError, type LeaseErrorCode } from './errors.ts';
import { invalid, show } from './options.ts';
import type { Pulse } from './pulse.ts';
import { refusalError } from './refusal.ts';

export interface PublisherOptions {
  /** Take over also from another that is alive, by rule: the newcomer wins. */
  readonly replace: boolean;
  readonly disabled: boolean;
  readonly onError?: ((error: unknown) => void) | undefined;
  readonly onReplaced?: ((holderIdentity: string | undefined) => void) | undefined;
}

/** What a heartbeat or an identity is doing. */
export type PulseState =
  /** Not started, or stopped. */
  | 'stopped'
  /** `start` has not published it yet. */
  | 'starting'
  /** Published, and renewed. */
  | 'beating'
  /** It could not renew in time, or the record is gone: it tries to come back. */
  | 'lost'
  /** Another incarnation took over. It stays silent until it is started again. */
  | 'replaced';

/** What `health()` of a heartbeat or an identity tells. */
export interface PulseHealth {
  /** True while there are no problems. */
  readonly healthy: boolean;
  /** One sentence each; empty when healthy. */
  readonly problems: readonly string[];
  /** What it is doing. */
  readonly state: PulseState;
  /** What it says of itself. */
  readonly ready: boolean;
  /** Its identity while it is published. */
  readonly holderIdentity: string | undefined;
  /** Its token while it is published. */
  readonly fencingToken: number | undefined;
  /** Since the last renewal that was confirmed; Infinity before the first. */
  readonly sinceRenewalSeconds: number;
}

/** The kubelet's: intervals are stretched by up to this much, so that workers drift apart. */
const JITTER = 0.04;
const MENDED_BY_WAITING: readonly LeaseErrorCode[] = ['store-unavailable', 'clock-unproven'];
const ATTEMPTS = 5;
const FIRST_PAUSE_MS = 100;
const FIRST_BACKOFF_MS = 200;
const LONGEST_BACKOFF_MS = 7_000;

export class Publisher implements AsyncDisposable {
  readonly #makePulse: () => Pulse;
  readonly #options: PublisherOptions;
  #pulse: Pulse;
  #state: PulseState = 'stopped';
  #running: Promise<void> = Promise.resolve();
  #stopped: Promise<void> | undefined;
  #stop = new AbortController();
  #wake: () => void = () => undefined;
  /** Who waits for a change of readiness to be told. */
  #untold: (() => void)[] = [];
  /** The last renewal failed: what is untold waits for the next interval. */
  #unheard = false;
  #renewedAtMs: number | undefined;
  #lastFailure: unknown;

  protected constructor(makePulse: () => Pulse, options: PublisherOptions) {
    this.#makePulse = makePulse;
    this.#options = options;
    this.#pulse = makePulse();
  }

  /**
   * Publishes, and goes on in the background. While the store is out of reach it keeps trying,
   * and tells `onError`.
   *
   * @throws LeaseError `lease-held` when another incarnation holds the record and is not to be
   * replaced; what no retry mends; `lease-stopped` when it is stopped meanwhile.
   */
  async start(): Promise<void> {
    if (!['stopped', 'replaced'].includes(this.#state)) {
      throw new LeaseError('invalid-configuration', `${this.#what} has been started already.`);
    }
    this.#state = 'starting';
    // From here on a stop is one of this start, also while the last one comes to its end.
    const ended = this.#stopped;
    this.#stopped = undefined;
    this.#stop = new AbortController();
    const starting = this.#begin(ended);
    this.#running = starting.then(
      () => this.#run(),
      () => this.#nobodyIsTold(),
    );
    await starting;
  }

  /**
   * Falls silent and deletes the record, so that nobody waits for it. Interrupts whatever is under
   * way. Never rejects: what could not be deleted expires by itself.
   */
  stop(): Promise<void> {
    return (this.#stopped ??= this.#end());
  }

  /** As `stop`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  /**
   * Says whether it can do its work; told at once. The lifecycle monitor calls it NotReady while
   * it says that it is not, and never evicts it for that. Resolves when it has been told, or when
   * nobody can be told any more; at once before the start, whose first write tells it.
   *
   * @throws LeaseError `invalid-configuration` for what is no boolean, or no text.
   */
  async setReady(ready: boolean, reason = ''): Promise<void> {
    if (typeof (ready as unknown) !== 'boolean') {
      throw invalid(`ready is ${show(ready)}; it must be true or false.`);
    }
    if (typeof (reason as unknown) !== 'string') {
      throw invalid(`reason is ${show(reason)}; it must be a text.`);
    }
    this.#pulse.unready = ready ? undefined : reason;
    const tells = ['starting', 'beating', 'lost'].includes(this.#state) && !this.#isStopped();
    if (!tells || this.#options.disabled) return;
    await new Promise<void>((resolve) => {
      this.#untold.push(resolve);
      this.#wake();
    });
  }

  /** Its identity while it is published. */
  get holderIdentity(): string | undefined {
    return this.#pulse.tenure?.holderIdentity;
  }

  /** Whether the record is known to be fresh. Compares the clocks at each call. */
  isPublished(): boolean {
    return this.#options.disabled ? this.#state === 'beating' : this.#pulse.tenure !== undefined;
  }

  /** For a liveness check of this process's own: whether others can see that it is alive. */
  health(): PulseHealth {
    const { tenure, world, clockStatus } = this.#pulse;
    const sinceMs =
      this.#renewedAtMs === undefined
        ? Infinity
        : world.timeline.look().elapsedMs - this.#renewedAtMs;
    const problems: string[] = [];
    if (this.#state === 'replaced') {
      problems.push(`${this.#what} was taken over by ${this.#other() ?? 'somebody'}.`);
    } else if (this.#state === 'lost' || (this.#state === 'beating' && !this.isPublished())) {
      const why = this.#lastFailure === undefined ? '' : ` (${describeError(this.#lastFailure)})`;
      problems.push(`${this.#what} could not be renewed in time${why}.`);
    } else if (this.#state !== 'beating') {
      problems.push(
        `${this.#what} is ${this.#state === 'starting' ? 'not yet' : 'not'} published.`,
      );
    }
    if (clockStatus.kind === 'wrong') problems.push('The clock of this machine is wrong.');
    return {
      healthy: problems.length === 0,
      problems,
      state: this.#state,
      ready: this.#pulse.unready === undefined,
      holderIdentity: tenure?.holderIdentity,
      fencingToken: tenure?.fencingToken,
      sinceRenewalSeconds: sinceMs / 1_000,
    };
  }

  get #what(): string {
    return `Lease "${this.#pulse.lock.lease}"`;
  }

  async #begin(ended: Promise<void> | undefined): Promise<void> {
    await ended;
    this.#state = 'starting';
    try {
      if (!this.#isStopped()) await this.#take();
      this.#assertStarted();
    } catch (error) {
      this.#state = 'stopped';
      throw error;
    }
  }

  async #take(): Promise<void> {
    if (this.#options.disabled) {
      this.#state = 'beating';
      return;
    }
    // A new one: who starts again is a new incarnation, and knows nothing of the last.
    const { unready } = this.#pulse;
    this.#pulse = this.#makePulse();
    this.#pulse.unready = unready;
    this.#renewedAtMs = undefined;
    this.#lastFailure = undefined;
    await this.#untilTaken({ evenHeld: this.#options.replace }, (error, isRefusal) => {
      if (isRefusal || !MENDED_BY_WAITING.includes(error.code)) throw error;
      return false;
    });
  }

  #assertStarted(): void {
    if (!this.#isStopped()) return;
    throw new LeaseError('lease-stopped', `${this.#what} was stopped before it was published.`, {
      reason: 'stopped',
    });
  }

  /** Until the record is ours, or `giveUp` says so or throws. */
  async #untilTaken(
    options: AcquireOptions,
    giveUp: (error: LeaseError, isRefusal: boolean) => boolean,
  ): Promise<void> {
    for (let pauseMs = FIRST_BACKOFF_MS; !this.#isStopped(); pauseMs *= 2) {
      const told = this.#untold.splice(0);
      const answer = await this.#pulse.take(options);
      if (answer.kind === 'acquired') {
        this.#renewed(told);
        return;
      }
      this.#untold.unshift(...told);
      if (this.#isStopped()) return;
      const isRefusal = answer.kind === 'refused';
      const error = isRefusal ? refusalError(answer.record, answer.waiting) : answer.error;
      if (giveUp(error, isRefusal)) return;
      this.#report(error);
      await this.#pause(Math.min(pauseMs, LONGEST_BACKOFF_MS), false);
    }
  }

  async #run(): Promise<void> {
    if (this.#options.disabled) return;
    while (!this.#isStopped() && this.#state !== 'replaced') {
      const { timing, world } = this.#pulse;
      try {
        await this.#pause(timing.retryPeriodMs * (1 + JITTER * world.random.fraction()), true);
        if (!this.#isStopped()) await this.#beat();
      } catch (error) {
        // Whatever it is, the next interval may be without it.
        this.#report(error);
        await this.#pause(timing.retryPeriodMs, false);
      }
    }
    this.#nobodyIsTold();
  }

  #nobodyIsTold(): void {
    for (const resolve of this.#untold.splice(0)) resolve();
  }

  /** One renewal: quickly tried again, but not for long. The next interval comes anyway. */
  async #beat(): Promise<void> {
    const told = this.#untold.splice(0);
    for (let attempt = 1; attempt <= ATTEMPTS && !this.#isStopped(); attempt++) {
      const answer = await this.#pulse.renew();
      if (answer.kind === 'renewed') {
        this.#renewed(told);
        return;
      }
      if (answer.kind === 'lost') {
        this.#untold.unshift(...told);
        if (answer.reason === 'taken over') this.#replaced();
        else await this.#comeBack(answer.reason);
        return;
      }
      if (this.#isStopped()) break;
      // One failure is nothing to speak of; the second says that something is wrong.
      if (attempt === 2) this.#report(answer.error);
      else this.#lastFailure = answer.error;
      if (attempt < ATTEMPTS) await this.#pause(FIRST_PAUSE_MS * 2 ** (attempt - 1), false);
    }
    // The next renewal says it all the same; who waits for it waits on.
    this.#untold.unshift(...told);
    this.#unheard = true;
  }

  /** Takes what is vacant or was its own, and nothing that another took meanwhile. */
  async #comeBack(reason: string): Promise<void> {
    this.#state = 'lost';
    this.#pulse.world.logger.warn('A heartbeat or identity was lost; it is published again.', {
      lease: this.#pulse.lock.lease,
      reason,
    });
    await this.#untilTaken({ onlyOwn: true }, (error, isRefusal) => {
      const another = isRefusal && error.code === 'lease-held';
      if (another) this.#replaced();
      return another;
    });
  }

  #renewed(told: readonly (() => void)[]): void {
    const { tenure, world } = this.#pulse;
    this.#renewedAtMs = tenure?.believed?.base.elapsedMs ?? world.timeline.look().elapsedMs;
    this.#lastFailure = undefined;
    this.#unheard = false;
    this.#state = 'beating';
    for (const resolve of told) resolve();
  }

  #replaced(): void {
    this.#state = 'replaced';
    const holderIdentity = this.#other();
    this.#pulse.world.logger.error('Another incarnation took over: this one falls silent.', {
      lease: this.#pulse.lock.lease,
      by: holderIdentity,
    });
    this.#call(() => this.#options.onReplaced?.(holderIdentity));
  }

  #other(): string | undefined {
    return this.#pulse.seen?.holderIdentity;
  }

  async #end(): Promise<void> {
    const wasReplaced = () => this.#state === 'replaced';
    const wasStopped = this.#state === 'stopped';
    this.#stop.abort();
    this.#wake();
    this.#pulse.interrupt();
    await this.#running;
    this.#pulse.resume();
    if (!wasReplaced() && !wasStopped && !this.#options.disabled) {
      const answer = await this.#pulse.remove();
      if (answer.kind === 'unknown') {
        this.#pulse.world.logger.warn('A record may not have been deleted; it expires by itself.', {
          lease: this.#pulse.lock.lease,
          error: describeError(answer.error),
        });
      }
    }
    this.#state = 'stopped';
  }

  /** Sleeps; `untilUntold`: shorter when there is something new to tell. */
  async #pause(delayMs: number, untilUntold: boolean): Promise<void> {
    if (untilUntold && this.#untold.length > 0 && !this.#unheard) return;
    this.#unheard = false;
    const over = new AbortController();
    this.#wake = () => {
      if (untilUntold || this.#isStopped()) over.abort();
    };
    if (this.#isStopped()) return;
    await sleep(this.#pulse.world.clock, delayMs, over.signal);
  }

  #report(error: unknown): void {
    this.#lastFailure = error;
    this.#pulse.world.logger.warn('A heartbeat or identity could not be renewed.', {
      lease: this.#pulse.lock.lease,
      error: describeError(error),
      permanent: isPermanent(error),
    });
    this.#call(() => this.#options.onError?.(error));
  }

  /** Nobody waits for a callback. One that is async may reject, and no process shall die of it. */
  #call(callback: () => unknown): void {
    const failed = (error: unknown) => {
      this.#pulse.world.logger.error('A callback threw.', { error: describeError(error) });
    };
    try {
      Promise.resolve(callback()).catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  #isStopped(): boolean {
    return this.#stop.signal.aborted;
  }
}
