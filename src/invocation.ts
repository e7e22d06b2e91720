// The lease of one invocation of a Lambda handler: opened before the handler runs, settled when
// its work has. The wrapper and the middleware are both thin layers over this.
//
// All state is per invocation: on Managed Instances many invocations share one process. The one
// exception is a sticky lease, which is kept between the warm invocations of one environment.

import { clockCounts } from './clock-check.ts';
import { sleep } from './clock.ts';
import { contend } from './contention.ts';
import { isFinal } from './decide.ts';
import { readEnvironment, type Environment } from './environment.ts';
import { Holding } from './holding.ts';
import { pretendedLease, type Lease } from './lease-handle.ts';
import {
  checkInvocationOptions,
  deadlineOf,
  INVOCATION_OPTIONS,
  planOf,
  type InvocationOptions,
  type LambdaContext,
  type Plan,
  type WhenHeld,
} from './invocation-options.ts';
import type { AcquireAnswer, Waiting } from './answers.ts';
import { isoTime, vacantLease, type LeaseRecord } from './lease.ts';
import type { Lock } from './lock.ts';
import { checkNames, invalid, leaseKey, milliseconds } from './options.ts';
import { refusalError, skipped, type Skipped } from './refusal.ts';
import { makeContender, makeWorld, type World } from './setup.ts';
import { slotName, takenOf, type Contender } from './slots.ts';
import type { EndReason, Tenure } from './tenure.ts';
import type { JobNote } from './writes.ts';

export type Opened =
  | { readonly kind: 'opened'; readonly open: OpenInvocation }
  | { readonly kind: 'skipped'; readonly result: Skipped };

/** What a scheduled job adds. */
export interface Job {
  readonly tickMs: number;
  /** Each time that something is seen to stand in the way. */
  onRefused(waiting: Waiting): void;
  /** What to write with the release, and until when the lease is not to be taken again. */
  noteAtRelease(run: EndingRun): {
    readonly note?: JobNote;
    readonly restUntilMs?: number | undefined;
  };
}

export interface EndingRun {
  readonly reason: EndReason;
  readonly startMs: number;
  readonly endMs: number;
  readonly fencingToken: number;
  /** The record as this tenure's acquisition found it. */
  readonly found: LeaseRecord;
}

export interface OpenInvocation {
  readonly lease: Lease;
  /** The record as the acquisition found it; what it does not write itself is from before. */
  readonly found: LeaseRecord;
  /** Writes what is known of the job so far. No record when the lease was lost. */
  write(note: JobNote): Promise<LeaseRecord | undefined>;
  /**
   * The work has returned or thrown. Releases the lease, waits for that, and tells why the tenure
   * ended. Never rejects.
   */
  settle(outcome: 'completed' | 'failed'): Promise<EndReason | 'kept'>;
  /** The work may still be running: neither renews nor releases. The lease expires by itself. */
  abandon(): void;
}

interface Sticky {
  readonly lock: Lock;
  readonly tenure: Tenure;
  inUse: boolean;
}

/** Of the remaining time, however long a wait was asked for: the rest is to report, or to work. */
const LONGEST_WAIT = 0.9;

export class InvocationLeases<TEvent, TContext extends LambdaContext> {
  readonly #options: InvocationOptions<TEvent, TContext>;
  readonly #kept = new Map<string, Sticky>();
  #world: World | undefined;

  constructor(who: string, options: InvocationOptions<TEvent, TContext>, also: string[] = []) {
    checkNames(who, options, [...INVOCATION_OPTIONS, ...also]);
    checkInvocationOptions(options);
    this.#options = Object.freeze({ ...options });
  }

  async open(event: TEvent, context: TContext, job?: Job): Promise<Opened> {
    const environment = readEnvironment();
    const { name, whenHeld = 'skip', sticky = false, slots } = this.#options;
    const leaseName = typeof name === 'function' ? name(event, context) : name;
    const key = leaseKey(leaseName, this.#options.namespace, environment);
    if (environment.disabled) return { kind: 'opened', open: disabled(key, slots) };

    const world = (this.#world ??= makeWorld(this.#options, environment));
    if (sticky && environment.managedInstances) {
      throw invalid('sticky is not possible on Managed Instances: invocations share the process.');
    }
    const deadlineMs = deadlineOf(context, world.timeline, this.#options);
    const enforced = !environment.managedInstances;
    const plan = planOf(this.#options, deadlineMs, world.timeline, enforced);
    const invocation = { world, plan, deadlineMs, environment, job };

    const kept = this.#kept.get(key);
    if (kept !== undefined && !kept.inUse) {
      // At once: while the check below waits, another invocation may come by.
      kept.inUse = true;
      if (await this.#stillHeld(kept, plan, world)) {
        const found = kept.lock.seen ?? vacantLease(key);
        return this.#opened(invocation, kept.lock, kept.tenure, found, kept);
      }
      this.#forget(key, kept);
    }
    const contender = makeContender(
      {
        name: leaseName,
        options: this.#options,
        environment,
        ...plan.timing,
        tickMs: job?.tickMs,
        requestId: (context as TContext | undefined)?.awsRequestId,
      },
      slots,
      world,
    );
    const answer = await this.#acquire(contender, invocation, whenHeld);
    if (answer.kind === 'refused') job?.onRefused(answer.waiting);
    world.tellUnverifiable(contender, plan.timing.toleranceMs);
    switch (answer.kind) {
      case 'acquired': {
        const { tenure, record } = answer;
        const { lock, slot } = takenOf(contender);
        const keeping = sticky ? { lock, tenure, inUse: true } : undefined;
        if (keeping !== undefined) this.#kept.set(key, keeping);
        return this.#opened({ ...invocation, slot }, lock, tenure, record, keeping);
      }
      case 'refused': {
        const result = skipped(answer.record, answer.waiting);
        world.logger.info('A lease is not free.', { ...result });
        // A tick that is done is no matter of patience, and no reason to try again.
        if (whenHeld === 'skip' || isFinal(answer.waiting)) return { kind: 'skipped', result };
        throw refusalError(answer.record, answer.waiting);
      }
      case 'failed':
        throw answer.error;
    }
  }

  async #acquire(
    lock: Contender,
    { world, plan, deadlineMs, job }: Invocation,
    whenHeld: WhenHeld,
  ): Promise<AcquireAnswer> {
    if (whenHeld !== 'wait') return lock.tryAcquire(plan.termsAt);

    const leftMs = deadlineMs - world.timeline.look().elapsedMs;
    const { maxWaitSeconds } = this.#options;
    const boundMs = maxWaitSeconds === undefined ? leftMs / 2 : milliseconds(maxWaitSeconds);
    const over = new AbortController();
    const done = new AbortController();
    const longestMs = LONGEST_WAIT * leftMs;
    void sleep(world.clock, Math.min(boundMs, longestMs), done.signal).then(() => over.abort());
    let last: AcquireAnswer | undefined;
    const answer = await contend(lock, {
      ...world,
      retryPeriodMs: plan.timing.retryPeriodMs,
      termsAt: plan.termsAt,
      signal: over.signal,
      onError: (error) => (last = { kind: 'failed', error }),
      onRefused: (refused) => {
        last = refused;
        job?.onRefused(refused.waiting);
      },
    });
    done.abort();
    if (answer.kind !== 'aborted') return answer;
    return last ?? lock.tryAcquire(plan.termsAt);
  }

  /**
   * The first thing after a thaw is a check; then a renewal, where the lease is not fresh. What is
   * over, or suspended, is given back: the record may name its holder for a while yet.
   */
  async #stillHeld(kept: Sticky, { timing, termsAt }: Plan, { timeline }: World): Promise<boolean> {
    const { lock, tenure } = kept;
    const leftMs = tenure.remainingMs();
    const fresh = leftMs > timing.renewDeadlineMs - timing.retryPeriodMs;
    if (leftMs > 0 && !fresh) await lock.renew(tenure, termsAt);
    if (tenure.isHeld() && lock.seen?.suspended === undefined) return true;

    const { believed, endReason = 'expired' } = tenure;
    const expiresAtMs =
      believed === undefined ? 0 : believed.base.elapsedMs + believed.leaseDurationMs;
    if (endReason === 'expired' && timeline.look().elapsedMs <= expiresAtMs) {
      await lock.release(tenure, 'suspended', 2 * timing.requestTimeoutMs);
    }
    return false;
  }

  #opened(
    { world, plan, deadlineMs, environment, job, slot }: Invocation,
    lock: Lock,
    tenure: Tenure,
    found: LeaseRecord,
    kept: Sticky | undefined,
  ): Opened {
    const { timing, termsAt } = plan;
    const { maxHoldSeconds } = this.#options;
    const startMs = world.timeline.look().wallMs;
    const leftMs = () => deadlineMs - world.timeline.look().elapsedMs;
    // A job finishes its run; only a lease that would be kept is given up.
    const askedToGo = () =>
      lock.seen?.suspended !== undefined || lock.seen?.stepDownRequested !== undefined;
    const holding = new Holding(lock, tenure, {
      ...world,
      slot,
      termsAt,
      ...(plan.renewed ? { renewEveryMs: timing.retryPeriodMs } : {}),
      // Past the deadline nothing is to be kept: Lambda ends the work there. Durations are whole
      // milliseconds, clocks are not: what a renewal would add must be more than the difference.
      worthRenewing: () => environment.managedInstances || tenure.remainingMs() < leftMs() - 1,
      drainMs: Infinity,
      lossDrainMs: timing.toleranceMs,
      releaseWithinMs: () =>
        environment.managedInstances
          ? 2 * timing.requestTimeoutMs
          : Math.min(2 * timing.requestTimeoutMs, leftMs()),
      maxHoldMs: maxHoldSeconds === undefined ? undefined : milliseconds(maxHoldSeconds),
      noteAtRelease: (reason) =>
        this.#noteAtRelease(reason, { lock, tenure, found, startMs, job, world }),
    });
    const deadline =
      environment.managedInstances && deadlineMs !== Infinity
        ? world.clock.setTimer(leftMs(), () => holding.stop('deadline'))
        : undefined;
    const details = {
      lease: lock.lease,
      holderIdentity: tenure.holderIdentity,
      fencingToken: tenure.fencingToken,
    };
    world.logger.info('A lease was acquired.', details);
    return {
      kind: 'opened',
      open: {
        lease: holding.lease,
        found,
        write: (note) => holding.write(note),
        settle: async (outcome) => {
          deadline?.cancel();
          if (kept !== undefined && outcome === 'completed' && !askedToGo()) holding.keep();
          else holding.workSettled(outcome);
          const { reason, released } = await holding.concluded;
          if (kept !== undefined) {
            kept.inUse = false;
            if (reason !== 'kept') this.#forget(lock.lease, kept);
          }
          const over = { ...details, reason, released };
          if (reason === outcome || reason === 'kept') {
            world.logger.info('A lease was given back.', over);
          } else {
            world.logger.error('A lease ended before its work did.', over);
          }
          return reason;
        },
        abandon: () => {
          deadline?.cancel();
          holding.abandon();
          if (kept !== undefined) this.#forget(lock.lease, kept);
        },
      },
    };
  }

  /** A time that others shall wait for is written by a clock only that counts. */
  #noteAtRelease(reason: EndReason, { lock, tenure, found, startMs, job, world }: Run): JobNote {
    const { minimumHoldSeconds = 0, trustClocks = true } = this.#options;
    const endMs = world.timeline.look().wallMs;
    const { fencingToken } = tenure;
    const told = job?.noteAtRelease({ reason, startMs, endMs, fencingToken, found });
    const heldUntilMs = reason === 'completed' ? startMs + milliseconds(minimumHoldSeconds) : 0;
    const restUntilMs = Math.ceil(Math.max(heldUntilMs, told?.restUntilMs ?? 0));
    const { set = {}, remove = [] } = told?.note ?? {};
    if (restUntilMs <= endMs) return { set, remove };
    if (trustClocks && clockCounts(lock.clockStatus)) {
      return { set: { ...set, notBefore: { N: String(restUntilMs) } }, remove };
    }
    world.logger.warn('A lease may be taken at once: this clock cannot tell until when not.', {
      lease: lock.lease,
      restUntil: isoTime(restUntilMs),
    });
    return { set, remove };
  }

  #forget(key: string, kept: Sticky): void {
    if (this.#kept.get(key) === kept) this.#kept.delete(key);
  }
}

interface Run {
  readonly lock: Lock;
  readonly tenure: Tenure;
  readonly found: LeaseRecord;
  readonly startMs: number;
  readonly job: Job | undefined;
  readonly world: World;
}

interface Invocation {
  readonly slot?: number | undefined;
  readonly job: Job | undefined;
  readonly world: World;
  readonly plan: Plan;
  readonly deadlineMs: number;
  readonly environment: Environment;
}

/** `LEASE_DISABLED`: nothing is sent. */
function disabled(key: string, slots: number | undefined): OpenInvocation {
  return {
    lease: slots === undefined ? pretendedLease(key) : pretendedLease(slotName(key, 0), 0),
    found: vacantLease(key),
    write: () => Promise.resolve(vacantLease(key)),
    settle: (outcome) => Promise.resolve(outcome),
    abandon: () => undefined,
  };
}
