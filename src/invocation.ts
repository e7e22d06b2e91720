// The lease of one invocation of a Lambda handler: opened before the handler runs, settled when
// its work has. The wrapper and the middleware are both thin layers over this.
//
// All state is per invocation: on Managed Instances many invocations share one process. The one
// exception is a sticky lease, which is kept between the warm invocations of one environment.

import { sleep } from './clock.ts';
import { contend } from './contention.ts';
import { readEnvironment, type Environment } from './environment.ts';
import { Holding, pretendedLease, type Lease } from './holding.ts';
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
import type { AcquireAnswer } from './answers.ts';
import type { Lock } from './lock.ts';
import { checkNames, invalid, leaseKey, milliseconds } from './options.ts';
import { refusalError, skipped, type Skipped } from './refusal.ts';
import { makeLock, makeWorld, type World } from './setup.ts';
import type { Tenure } from './tenure.ts';

export type Opened =
  | { readonly kind: 'opened'; readonly open: OpenInvocation }
  | { readonly kind: 'skipped'; readonly result: Skipped };

export interface OpenInvocation {
  readonly lease: Lease;
  /** The work has returned or thrown. Releases the lease, and waits for that. Never rejects. */
  settle(outcome: 'completed' | 'failed'): Promise<void>;
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

  async open(event: TEvent, context: TContext): Promise<Opened> {
    const environment = readEnvironment();
    const { name, whenHeld = 'skip', sticky = false } = this.#options;
    const leaseName = typeof name === 'function' ? name(event, context) : name;
    const key = leaseKey(leaseName, this.#options.namespace, environment);
    if (environment.disabled) return { kind: 'opened', open: disabled(key) };

    const world = (this.#world ??= makeWorld(this.#options, environment));
    if (sticky && environment.managedInstances) {
      throw invalid('sticky is not possible on Managed Instances: invocations share the process.');
    }
    const deadlineMs = deadlineOf(context, world.timeline, this.#options);
    const enforced = !environment.managedInstances;
    const plan = planOf(this.#options, deadlineMs, world.timeline, enforced);
    const invocation = { world, plan, deadlineMs, environment };

    const kept = this.#kept.get(key);
    if (kept !== undefined && !kept.inUse) {
      // At once: while the check below waits, another invocation may come by.
      kept.inUse = true;
      if (await this.#stillHeld(kept, plan, world)) {
        return this.#opened(invocation, kept.lock, kept.tenure, kept);
      }
      this.#forget(key, kept);
    }
    const lock = makeLock(
      {
        name: leaseName,
        options: this.#options,
        environment,
        ...plan.timing,
        requestId: (context as TContext | undefined)?.awsRequestId,
      },
      world,
    );
    const answer = await this.#acquire(lock, invocation, whenHeld);
    world.tellUnverifiable(lock, plan.timing.toleranceMs);
    switch (answer.kind) {
      case 'acquired': {
        const slot = sticky ? { lock, tenure: answer.tenure, inUse: true } : undefined;
        if (slot !== undefined) this.#kept.set(key, slot);
        return this.#opened(invocation, lock, answer.tenure, slot);
      }
      case 'refused':
        world.logger.info('A lease is not free.', { ...skipped(answer.record, answer.waiting) });
        if (whenHeld === 'skip') {
          return { kind: 'skipped', result: skipped(answer.record, answer.waiting) };
        }
        throw refusalError(answer.record, answer.waiting);
      case 'failed':
        throw answer.error;
    }
  }

  async #acquire(
    lock: Lock,
    { world, plan, deadlineMs }: Invocation,
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
      onRefused: (refused) => (last = refused),
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
    { world, plan, deadlineMs, environment }: Invocation,
    lock: Lock,
    tenure: Tenure,
    slot: Sticky | undefined,
  ): Opened {
    const { timing, termsAt } = plan;
    const { maxHoldSeconds } = this.#options;
    const leftMs = () => deadlineMs - world.timeline.look().elapsedMs;
    // A job finishes its run; only a lease that would be kept is given up.
    const askedToGo = () =>
      lock.seen?.suspended !== undefined || lock.seen?.stepDownRequested !== undefined;
    const holding = new Holding(lock, tenure, {
      ...world,
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
        settle: async (outcome) => {
          deadline?.cancel();
          if (slot !== undefined && outcome === 'completed' && !askedToGo()) holding.keep();
          else holding.workSettled(outcome);
          const { reason, released } = await holding.concluded;
          if (slot !== undefined) {
            slot.inUse = false;
            if (reason !== 'kept') this.#forget(lock.lease, slot);
          }
          const over = { ...details, reason, released };
          if (reason === outcome || reason === 'kept') {
            world.logger.info('A lease was given back.', over);
          } else {
            world.logger.error('A lease ended before its work did.', over);
          }
        },
        abandon: () => {
          deadline?.cancel();
          holding.abandon();
          if (slot !== undefined) this.#forget(lock.lease, slot);
        },
      },
    };
  }

  #forget(key: string, slot: Sticky): void {
    if (this.#kept.get(key) === slot) this.#kept.delete(key);
  }
}

interface Invocation {
  readonly world: World;
  readonly plan: Plan;
  readonly deadlineMs: number;
  readonly environment: Environment;
}

/** `LEASE_DISABLED`: nothing is sent. */
function disabled(key: string): OpenInvocation {
  return {
    lease: pretendedLease(key),
    settle: () => Promise.resolve(),
    abandon: () => undefined,
  };
}
