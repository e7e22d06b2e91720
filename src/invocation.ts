// The lease of one invocation of a Lambda handler: opened before the handler runs, settled when
// its work has. The wrapper and the middleware are both thin layers over this.
//
// All state is per invocation: on Managed Instances many invocations share one process. The one
// exception is a sticky lease, which is kept between the warm invocations of one environment.

import { sleep } from './clock.ts';
import { contend } from './contention.ts';
import { readEnvironment, type Environment } from './environment.ts';
import { LeaseError } from './errors.ts';
import { Holding, type Lease } from './holding.ts';
import type { AcquireAnswer, Lock } from './lock.ts';
import {
  checkNames,
  invalid,
  leaseKey,
  milliseconds,
  resolveTiming,
  seconds,
  splitLeaseKey,
  type Timing,
  type TimingOptions,
} from './options.ts';
import { refusalError, skipped, type Skipped } from './refusal.ts';
import {
  checkCommonOptions,
  COMMON_OPTIONS,
  makeLock,
  makeWorld,
  type CommonOptions,
  type World,
} from './setup.ts';
import type { Tenure, TermsAt } from './tenure.ts';

/** What is needed of Lambda's context. Structural, so that no version of its types is imposed. */
export interface LambdaContext {
  readonly awsRequestId?: string;
  getRemainingTimeInMillis(): number;
}

export interface InvocationOptions<TEvent, TContext> extends CommonOptions, TimingOptions {
  /** The lease's name, or a function that tells it. There is no default. */
  readonly name: string | ((event: TEvent, context: TContext) => string);
  /**
   * Without a duration the lease covers the invocation's remaining time plus the tolerance, and
   * is never renewed: two requests in all. With one it is renewed in the background.
   */
  readonly leaseDurationSeconds?: number;
  /** How far any two clocks may differ, where no duration is given. Default 5. */
  readonly toleranceSeconds?: number;
  /**
   * What to do when another holds the lease. `skip` (the default) returns a `Skipped` instead of
   * running the handler, `throw` throws a LeaseError, `wait` stands by for it.
   */
  readonly whenHeld?: 'skip' | 'throw' | 'wait';
  /** How long `wait` waits before it throws. Default: half of the invocation's remaining time. */
  readonly maxWaitSeconds?: number;
  /**
   * Keep the lease between warm invocations of this environment, until it expires. Needs a
   * duration. A killed environment is then replaced after that duration.
   */
  readonly sticky?: boolean;
  /** Ends a tenure whose work hangs. Default: the invocation's end does. */
  readonly maxHoldSeconds?: number;
}

export const INVOCATION_OPTIONS = [
  ...COMMON_OPTIONS,
  'name',
  'leaseDurationSeconds',
  'renewDeadlineSeconds',
  'retryPeriodSeconds',
  'requestTimeoutSeconds',
  'toleranceSeconds',
  'whenHeld',
  'maxWaitSeconds',
  'sticky',
  'maxHoldSeconds',
] as const;

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

const DEFAULT_TOLERANCE_SECONDS = 5;
const REQUEST_TIMEOUT_MS = 3_000;

/** What differs between a lease that covers its invocation and one that is renewed. */
interface Plan {
  readonly timing: Timing;
  readonly termsAt: TermsAt;
  readonly renewed: boolean;
}

export class InvocationLeases<TEvent, TContext extends LambdaContext> {
  readonly #options: InvocationOptions<TEvent, TContext>;
  readonly #kept = new Map<string, Sticky>();
  #world: World | undefined;

  constructor(who: string, options: InvocationOptions<TEvent, TContext>, also: string[] = []) {
    checkNames(who, options, [...INVOCATION_OPTIONS, ...also]);
    checkInvocationOptions(options);
    this.#options = Object.freeze({ ...options });
  }

  async open(event: TEvent, context: TContext | undefined): Promise<Opened> {
    const environment = readEnvironment();
    const { name, whenHeld = 'skip', sticky = false } = this.#options;
    const leaseName = typeof name === 'function' ? name(event, context!) : name;
    const key = leaseKey(leaseName, this.#options.namespace, environment);
    if (environment.disabled) return { kind: 'opened', open: disabled(key) };

    const world = (this.#world ??= makeWorld(this.#options, environment));
    if (sticky && environment.managedInstances) {
      throw invalid('sticky is not possible on Managed Instances: invocations share the process.');
    }
    const deadlineMs = this.#deadlineMs(world, context);
    const plan = this.#plan(world, deadlineMs, environment);
    const invocation = { world, plan, deadlineMs, environment };

    const kept = this.#kept.get(key);
    if (kept !== undefined && !kept.inUse && (await this.#stillHeld(kept, plan))) {
      return this.#opened(invocation, kept.lock, kept.tenure, kept);
    }
    const lock = makeLock(
      {
        name: leaseName,
        options: this.#options,
        environment,
        ...plan.timing,
        requestId: context?.awsRequestId,
      },
      world,
    );
    const answer = await this.#acquire(lock, invocation, whenHeld);
    world.tellUnverifiable(lock, plan.timing.toleranceMs);
    switch (answer.kind) {
      case 'acquired': {
        const slot = sticky ? { lock, tenure: answer.tenure, inUse: false } : undefined;
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
    whenHeld: 'skip' | 'throw' | 'wait',
  ): Promise<AcquireAnswer> {
    if (whenHeld !== 'wait') return lock.tryAcquire(plan.termsAt);

    const leftMs = deadlineMs - world.timeline.look().elapsedMs;
    const boundMs = this.#options.maxWaitSeconds
      ? milliseconds(this.#options.maxWaitSeconds)
      : leftMs / 2;
    const over = new AbortController();
    const done = new AbortController();
    void sleep(world.clock, Math.min(boundMs, leftMs), done.signal).then(() => over.abort());
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

  /** The first thing after a thaw is a check; then a renewal, where the lease is not fresh. */
  async #stillHeld({ lock, tenure }: Sticky, { timing, termsAt }: Plan): Promise<boolean> {
    const leftMs = tenure.remainingMs();
    if (leftMs > timing.renewDeadlineMs - timing.retryPeriodMs) return true;
    if (leftMs > 0) await lock.renew(tenure, termsAt);
    return tenure.isHeld();
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
    let askedToGo = false;
    const holding = new Holding(lock, tenure, {
      ...world,
      termsAt,
      ...(plan.renewed ? { renewEveryMs: timing.retryPeriodMs } : {}),
      // Past the deadline nothing is to be kept: Lambda ends the work there.
      worthRenewing: () => this.#outlives(environment) || tenure.remainingMs() < leftMs(),
      drainMs: Infinity,
      lossDrainMs: timing.toleranceMs,
      releaseWithinMs: () =>
        this.#outlives(environment)
          ? 2 * timing.requestTimeoutMs
          : Math.min(2 * timing.requestTimeoutMs, leftMs()),
      maxHoldMs: maxHoldSeconds === undefined ? undefined : milliseconds(maxHoldSeconds),
      onRecord: ({ suspended, stepDownRequested }) => {
        // A job finishes its run; only a lease that would be kept is given up.
        askedToGo = suspended !== undefined || stepDownRequested !== undefined;
      },
    });
    const deadline =
      environment.managedInstances && deadlineMs !== Infinity
        ? world.clock.setTimer(leftMs(), () => holding.stop('deadline'))
        : undefined;
    if (slot !== undefined) slot.inUse = true;

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
          if (slot !== undefined && outcome === 'completed' && !askedToGo) holding.keep();
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

  /** Whether work goes on after the invocation's deadline, as far as Lambda is concerned. */
  #outlives(environment: Environment): boolean {
    return environment.managedInstances;
  }

  /** In the timeline's elapsed ms; Infinity where there is no context to tell. */
  #deadlineMs(world: World, context: TContext | undefined): number {
    const explicit = this.#options.leaseDurationSeconds !== undefined;
    if (typeof context?.getRemainingTimeInMillis !== 'function') {
      if (explicit) return Infinity;
      throw invalid(
        'leaseDurationSeconds is missing: without it the lease covers the remaining time of the ' +
          'invocation, and the handler was called with no context that tells it ' +
          '(getRemainingTimeInMillis).',
      );
    }
    const leftMs: unknown = context.getRemainingTimeInMillis();
    if (typeof leftMs !== 'number' || !Number.isFinite(leftMs)) {
      throw invalid(
        `context.getRemainingTimeInMillis() is ${String(leftMs)}; it must be a number.`,
      );
    }
    if (leftMs <= 0) {
      throw new LeaseError('lease-stopped', 'The invocation has no time left to hold a lease.', {
        reason: 'deadline',
      });
    }
    return world.timeline.look().elapsedMs + leftMs;
  }

  #plan(world: World, deadlineMs: number, environment: Environment): Plan {
    const explicit = this.#options.leaseDurationSeconds !== undefined;
    if (!explicit && !environment.managedInstances) {
      const toleranceMs = milliseconds(this.#options.toleranceSeconds ?? DEFAULT_TOLERANCE_SECONDS);
      const termsAt: TermsAt = (now) => {
        const renewDeadlineMs = Math.max(0, deadlineMs - now.elapsedMs);
        return { renewDeadlineMs, leaseDurationMs: Math.round(renewDeadlineMs + toleranceMs) };
      };
      const terms = termsAt(world.timeline.look());
      const timing = {
        ...terms,
        toleranceMs,
        requestTimeoutMs: Math.min(REQUEST_TIMEOUT_MS, terms.renewDeadlineMs),
        retryPeriodMs: Math.min(
          milliseconds(this.#options.retryPeriodSeconds ?? 2),
          terms.renewDeadlineMs / 4,
        ),
      };
      return { timing, termsAt, renewed: false };
    }
    const timing = resolveTiming(this.#options);
    const clamped = !environment.managedInstances && this.#options.sticky !== true;
    const termsAt: TermsAt = (now) => {
      // Where Lambda ends the work at its deadline, nobody shall wait longer than that and T.
      const longestMs = clamped ? deadlineMs - now.elapsedMs + timing.toleranceMs : Infinity;
      const leaseDurationMs = Math.floor(
        Math.max(timing.toleranceMs, Math.min(timing.leaseDurationMs, longestMs)),
      );
      return { leaseDurationMs, renewDeadlineMs: leaseDurationMs - timing.toleranceMs };
    };
    return { timing, termsAt, renewed: true };
  }
}

interface Invocation {
  readonly world: World;
  readonly plan: Plan;
  readonly deadlineMs: number;
  readonly environment: Environment;
}

function checkInvocationOptions<TEvent, TContext>(
  options: InvocationOptions<TEvent, TContext>,
): void {
  checkCommonOptions(options);
  const { name, leaseDurationSeconds, whenHeld, sticky } = options;
  if (typeof name !== 'function') leaseKey(name, options.namespace ?? 'x', readEnvironment());
  seconds(options, 'toleranceSeconds');
  seconds(options, 'maxWaitSeconds');
  seconds(options, 'maxHoldSeconds');
  if (leaseDurationSeconds !== undefined) {
    resolveTiming(options);
    if (options.toleranceSeconds !== undefined) {
      throw invalid(
        'toleranceSeconds and leaseDurationSeconds exclude each other: with a duration, the ' +
          'tolerance is leaseDurationSeconds less renewDeadlineSeconds.',
      );
    }
  } else {
    seconds(options, 'retryPeriodSeconds');
    for (const needsDuration of ['renewDeadlineSeconds', 'requestTimeoutSeconds'] as const) {
      if (options[needsDuration] !== undefined) {
        throw invalid(`${needsDuration} needs leaseDurationSeconds beside it.`);
      }
    }
    if (sticky === true) {
      throw invalid('sticky needs leaseDurationSeconds: how long the lease is kept at most.');
    }
  }
  if (whenHeld !== undefined && !['skip', 'throw', 'wait'].includes(whenHeld)) {
    throw invalid(`whenHeld is "${whenHeld}"; it must be "skip", "throw" or "wait".`);
  }
}

/** `LEASE_DISABLED`: everybody holds everything, and nothing is sent. */
function disabled(key: string): OpenInvocation {
  const release = () => Promise.resolve();
  return {
    lease: {
      ...splitLeaseKey(key),
      holderIdentity: 'LEASE_DISABLED',
      fencingToken: 0,
      signal: new AbortController().signal,
      isHeld: () => true,
      remainingMs: () => Infinity,
      release,
      [Symbol.asyncDispose]: release,
    },
    settle: release,
    abandon: () => undefined,
  };
}
