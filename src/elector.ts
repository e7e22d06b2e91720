// Leader election for processes that run long: contends, leads, renews, steps down, and contends
// again. One tenure at a time, and none while the work of the last one still runs.

import { sleep } from './clock.ts';
import { contend } from './contention.ts';
import { readEnvironment } from './environment.ts';
import { describeError, isPermanent, LeaseError } from './errors.ts';
import { judgeHealth, type Health } from './health.ts';
import { Holding } from './holding.ts';
import type { Lease } from './lease-handle.ts';
import type { LeaseRecord } from './lease.ts';
import {
  checkNames,
  invalid,
  leaseKey,
  milliseconds,
  resolveTiming,
  seconds,
  type Timing,
  TIMING_OPTIONS,
  type TimingOptions,
} from './options.ts';
import { jittered } from './random.ts';
import {
  checkCommonOptions,
  COMMON_OPTIONS,
  makeContender,
  makeWorld,
  type CommonOptions,
  type World,
} from './setup.ts';
import { checkSlots, longestName, Slots, takenOf } from './slots.ts';
import type { EndReason, Tenure } from './tenure.ts';

/** Options of a `LeaderElector`. */
export interface LeaderElectorOptions extends CommonOptions, TimingOptions {
  /** The lease's name. There is no default: two jobs must never share one by accident. */
  readonly name: string;
  /**
   * The work of a leader. Its promise settles when the work is over, which ends the tenure; it
   * should watch `lease.signal`. Not needed to observe only.
   */
  readonly onStartedLeading?: (lease: Lease) => Promise<unknown>;
  /** Called once for each tenure that started: its work has settled, or its time for that is up. */
  readonly onStoppedLeading?: (reason: EndReason) => void;
  /** Called when another holder is seen than before, this one included. */
  readonly onNewLeader?: (holderIdentity: string) => void;
  /** Called with what goes wrong and is tried again: a store out of reach, a throwing callback. */
  readonly onError?: (error: unknown) => void;
  /**
   * Lets so many lead at once, from 1 to 100, each under a lease of its own, `name/0` and so on, as
   * withLease's option does. `getLeader()` then names one of them. Default: one, under `name`.
   */
  readonly slots?: number;
  /** How long the work may take to settle when told to stop; renewed meanwhile. Default 30. */
  readonly drainSeconds?: number;
  /** Ends a tenure after this long, so that work that hangs is not renewed for ever. */
  readonly maxHoldSeconds?: number;
}

const OPTIONS = [
  ...COMMON_OPTIONS,
  'name',
  ...TIMING_OPTIONS,
  'onStartedLeading',
  'onStoppedLeading',
  'onNewLeader',
  'onError',
  'slots',
  'drainSeconds',
  'maxHoldSeconds',
] as const satisfies readonly (keyof LeaderElectorOptions)[];

/** Options of `LeaderElector.run`. */
export interface RunOptions {
  /** Stops: a leader drains and releases, a contender leaves. Then `run` resolves. */
  readonly signal?: AbortSignal;
  /** End after one tenure instead of contending again. Its work's error rejects `run`. */
  readonly once?: boolean;
}

const NO_ONE_LEADER = 'With slots there is no one leader: leave out onNewLeader and observe().';
/** controller-runtime's default for a graceful shutdown. */
const DEFAULT_DRAIN_SECONDS = 30;

/** Leader election for a process that runs long; `run` does it, one tenure after the other. */
export class LeaderElector {
  readonly #options: LeaderElectorOptions;
  readonly #timing: Timing;
  readonly #world: World;
  readonly #lock: ReturnType<typeof makeContender>;
  #running = false;
  #holding: Holding | undefined;
  #tenure: Tenure | undefined;
  #leader: string | undefined;
  #reportedLeader: string | undefined;
  #leaderSeenAtMs: number;
  #startedAtMs: number;
  /** Work that has outlived its tenure, until it settles. */
  #unsettledWork: Promise<void> | undefined;
  #lastFailure: unknown;

  /** @throws LeaseError `invalid-configuration` for options that cannot work. Sends nothing. */
  constructor(options: LeaderElectorOptions) {
    checkNames('LeaderElector', options, OPTIONS);
    checkCommonOptions(options);
    seconds(options, 'drainSeconds');
    seconds(options, 'maxHoldSeconds');
    const environment = readEnvironment();
    checkSlots(options.slots);
    const { name, slots, namespace } = options;
    leaseKey(longestName(name, slots), namespace, environment);
    if (slots !== undefined && options.onNewLeader !== undefined) throw invalid(NO_ONE_LEADER);
    this.#options = Object.freeze({ ...options });
    this.#timing = resolveTiming(options);
    this.#world = makeWorld(options, environment);
    const setup = { name, options, environment, ...this.#timing };
    this.#lock = makeContender(setup, slots, this.#world);
    this.#startedAtMs = this.#nowMs();
    this.#leaderSeenAtMs = this.#startedAtMs;
  }

  /**
   * Contends for the lease and leads while it is held, again and again until `signal` aborts.
   *
   * @throws LeaseError what no retry mends (a missing table or permission, a corrupt record),
   * unless a usable record has been seen before; then it is reported and tried again.
   */
  async run({ signal, once = false }: RunOptions = {}): Promise<void> {
    if (this.#options.onStartedLeading === undefined) {
      throw invalid('onStartedLeading is missing: to follow the leader only, call observe().');
    }
    await this.#exclusively(signal, async (stopped) => {
      await this.#outwait(stopped);
      while (!stopped.aborted) {
        const answer = await this.#contend(stopped);
        if (answer.kind === 'aborted') return;
        if (answer.kind === 'failed') {
          if (this.#lock.seen === undefined) throw answer.error;
          this.#report(answer.error);
          await this.#pause(stopped);
        } else if (answer.kind === 'acquired') {
          const reason = await this.#lead(answer.tenure, answer.record, stopped, once);
          if (once) return;
          await this.#makeRoom(reason, stopped);
        }
      }
    });
  }

  /** Follows the leader without being a candidate, until `signal` aborts. */
  async observe({ signal }: Pick<RunOptions, 'signal'> = {}): Promise<void> {
    if (this.#lock instanceof Slots) throw invalid(NO_ONE_LEADER);
    await this.#exclusively(signal, async (stopped) => {
      while (!stopped.aborted) {
        const seen = await this.#lock.look();
        if (seen.kind === 'seen') this.#saw(seen.record, seen.decision.kind === 'take');
        else if (isPermanent(seen.error) && this.#lock.seen === undefined) throw seen.error;
        else this.#report(seen.error);
        await this.#pause(stopped);
      }
    });
  }

  /** Whether this elector may act now. Compares the clocks at each call. */
  isLeader(): boolean {
    return this.#holding?.lease.isHeld() ?? false;
  }

  /** The holder that was last seen, this one included; undefined while there is none. */
  getLeader(): string | undefined {
    return this.isLeader() ? this.#tenure?.holderIdentity : this.#leader;
  }

  /**
   * Ends the tenure, if there is one, as an operator's request would: the work is asked to finish,
   * the lease is released, and others get a lease duration's time to take it.
   */
  async stepDown(): Promise<void> {
    this.#holding?.stop('stepped down');
    await this.#holding?.concluded;
  }

  /** For a liveness or readiness check: red when leading is overdue, or the store out of reach. */
  health(): Health {
    const now = this.#nowMs();
    return judgeHealth({
      lease: this.#lock.lease,
      timing: this.#timing,
      running: this.#running,
      leading: this.isLeader(),
      leader: this.getLeader(),
      sinceContactMs: now - (this.#lock.lastAnswerAtMs ?? this.#startedAtMs),
      sinceLeaderMs: this.getLeader() === undefined ? now - this.#leaderSeenAtMs : 0,
      renewalOverdueMs: this.#holding?.overdueMs() ?? 0,
      unsettledWork: this.#unsettledWork !== undefined,
      clock: this.#options.trustClocks === false ? { kind: 'checked' } : this.#lock.clockStatus,
      lastFailure: this.#lastFailure,
    });
  }

  async #exclusively(
    signal: AbortSignal | undefined,
    body: (stopped: AbortSignal) => Promise<void>,
  ): Promise<void> {
    if (this.#running) throw invalid('This elector is running already.');
    this.#running = true;
    this.#startedAtMs = this.#nowMs();
    this.#leaderSeenAtMs = this.#startedAtMs;
    try {
      await body(signal ?? new AbortController().signal);
    } finally {
      this.#running = false;
    }
  }

  #contend(signal: AbortSignal) {
    const terms = { ...this.#timing };
    return contend(this.#lock, {
      ...this.#world,
      retryPeriodMs: this.#timing.retryPeriodMs,
      termsAt: () => terms,
      signal,
      onRecord: (record, free) => this.#saw(record, free),
      onError: (error) => this.#report(error),
    });
  }

  async #lead(
    tenure: Tenure,
    record: LeaseRecord,
    stopped: AbortSignal,
    once: boolean,
  ): Promise<EndReason> {
    const holding = this.#hold(tenure);
    this.#holding = holding;
    this.#tenure = tenure;
    this.#lastFailure = undefined;
    this.#world.tellUnverifiable(this.#lock, this.#timing.toleranceMs);
    this.#saw(record);
    const stop = () => holding.stop('stopped');
    stopped.addEventListener('abort', stop);
    if (stopped.aborted) stop();

    // A stop that came meanwhile, in onNewLeader say, leaves nothing to start.
    const started = !holding.lease.signal.aborted;
    let failure: { readonly error: unknown } | undefined;
    const doing = { settled: false };
    const work = (started ? this.#startWork(holding.lease) : Promise.resolve()).then(
      () => {
        doing.settled = true;
        holding.workSettled('completed');
      },
      (error: unknown) => {
        doing.settled = true;
        failure = { error };
        holding.workSettled('failed');
      },
    );
    const conclusion = await holding.concluded;
    stopped.removeEventListener('abort', stop);
    this.#leaderSeenAtMs = this.#nowMs();
    // An elector keeps no lease between tenures.
    const reason = conclusion.reason === 'kept' ? 'completed' : conclusion.reason;
    if (started) void this.#call(() => this.#options.onStoppedLeading?.(reason));
    // Work that has released its lease by itself may be at it yet.
    if (doing.settled) {
      if (failure !== undefined && !once) this.#report(failure.error, true);
    } else {
      // Work that gave its lease back by itself is expected to clean up; other work is not.
      if (reason !== 'completed') this.#reportOutlived();
      this.#outlived(work, () => {
        if (failure !== undefined && (!once || stopped.aborted)) this.#report(failure.error, true);
      });
      await this.#outwait(stopped);
    }
    this.#holding = undefined;
    this.#tenure = undefined;
    if (conclusion.released) this.#leader = undefined;
    if (failure !== undefined && once) throw failure.error;
    return reason;
  }

  #hold(tenure: Tenure): Holding {
    const { retryPeriodMs, requestTimeoutMs, toleranceMs } = this.#timing;
    const { drainSeconds = DEFAULT_DRAIN_SECONDS, maxHoldSeconds } = this.#options;
    const terms = { ...this.#timing };
    const { lock, slot } = takenOf(this.#lock);
    return new Holding(lock, tenure, {
      ...this.#world,
      slot,
      termsAt: () => terms,
      renewEveryMs: retryPeriodMs,
      drainMs: milliseconds(drainSeconds),
      // Within the tolerance, so that a process can still end itself before others start.
      lossDrainMs: toleranceMs / 2,
      releaseWithinMs: () => 2 * requestTimeoutMs,
      maxHoldMs: maxHoldSeconds === undefined ? undefined : milliseconds(maxHoldSeconds),
      onRecord: (record) => {
        this.#saw(record);
        if (record.suspended !== undefined) this.#holding?.stop('suspended');
        if (record.stepDownRequested !== undefined) this.#holding?.stop('stepped down');
      },
    });
  }

  async #startWork(lease: Lease): Promise<void> {
    await this.#options.onStartedLeading?.(lease);
  }

  #outlived(work: Promise<void>, onSettled: () => void): void {
    this.#unsettledWork = work.then(() => {
      this.#unsettledWork = undefined;
      onSettled();
    });
  }

  #reportOutlived(): void {
    this.#report(
      new LeaseError(
        'lease-stopped',
        `The work under lease "${this.#lock.lease}" goes on though its tenure is over. This ` +
          'process does not contend again until that work has settled.',
      ),
    );
  }

  /** Two tenures' work in one process would be two leaders: waits for that of the last one. */
  async #outwait(stopped: AbortSignal): Promise<void> {
    if (this.#unsettledWork === undefined) return;
    const over = new AbortController();
    void this.#unsettledWork.then(() => over.abort());
    await sleep(this.#world.clock, Infinity, AbortSignal.any([over.signal, stopped]));
  }

  /** Between two tenures: others shall have their turn, and work that fails at once its rest. */
  async #makeRoom(reason: EndReason, stopped: AbortSignal): Promise<void> {
    const { leaseDurationMs } = this.#timing;
    const untilMs = this.#nowMs() + (reason === 'stepped down' ? leaseDurationMs : 0);
    for (;;) {
      await this.#pause(stopped);
      if (stopped.aborted || this.#nowMs() >= untilMs) return;
      await this.#watch();
    }
  }

  async #watch(): Promise<void> {
    const seen = await this.#lock.look();
    if (seen.kind === 'seen') this.#saw(seen.record, seen.decision.kind === 'take');
    else this.#report(seen.error);
  }

  #pause(stopped: AbortSignal): Promise<void> {
    const { clock, random } = this.#world;
    return sleep(clock, jittered(random, this.#timing.retryPeriodMs), stopped);
  }

  /** `free`: the record may still name a holder, but anyone may take it. */
  #saw({ holderIdentity }: LeaseRecord, free = false): void {
    // An empty name, which only another client can have written, is nobody to report.
    this.#leader = free || holderIdentity === '' ? undefined : holderIdentity;
    if (this.#leader === undefined || holderIdentity === undefined) return;
    this.#leaderSeenAtMs = this.#nowMs();
    if (holderIdentity === this.#reportedLeader) return;
    this.#reportedLeader = holderIdentity;
    void this.#call(() => this.#options.onNewLeader?.(holderIdentity));
  }

  #report(error: unknown, failed = false): void {
    if (failed) this.#lastFailure = error;
    this.#world.logger.warn('Leader election met an error.', {
      lease: this.#lock.lease,
      error: describeError(error),
    });
    void this.#notify(error);
  }

  async #notify(error: unknown): Promise<void> {
    const onError: ((error: unknown) => unknown) | undefined = this.#options.onError;
    try {
      await onError?.(error);
    } catch (thrown) {
      this.#world.logger.error('onError threw.', { error: describeError(thrown) });
    }
  }

  /** Nobody waits for a callback. One that is async may reject, and no process shall die of it. */
  async #call(callback: () => unknown): Promise<void> {
    try {
      await callback();
    } catch (error) {
      this.#report(error);
    }
  }

  #nowMs(): number {
    return this.#world.timeline.look().elapsedMs;
  }
}
