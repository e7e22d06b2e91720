// What may be set for the lease of an invocation, and for how long such a lease is taken. Two
// ways: without a duration it covers the remaining time and needs no renewal, and so no event loop
// that could be starved; with one it is renewed.

import { readEnvironment } from './environment.ts';
import { LeaseError } from './errors.ts';
import {
  checkFlag,
  invalid,
  leaseKey,
  milliseconds,
  resolveTiming,
  seconds,
  show,
  type Timing,
  type TimingOptions,
} from './options.ts';
import { LONGEST_DURATION_SECONDS } from './schema.ts';
import { checkCommonOptions, COMMON_OPTIONS, type CommonOptions } from './setup.ts';
import { checkSlots, longestName } from './slots.ts';
import type { TermsAt } from './tenure.ts';
import type { Timeline } from './timeline.ts';

/** What is needed of Lambda's context. Structural, so that no version of its types is imposed. */
export interface LambdaContext {
  /** Written to the record, to find the invocation in its logs. */
  readonly awsRequestId?: string;
  /** How long until Lambda ends the invocation, in ms. */
  getRemainingTimeInMillis(): number;
}

/** What to do when another holds the lease: see `WithLeaseOptions.whenHeld`. */
export type WhenHeld = 'skip' | 'throw' | 'wait';

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
  readonly whenHeld?: WhenHeld;
  /**
   * How long `wait` waits before it throws. Default: half of the invocation's remaining time; at
   * most nine tenths of it.
   */
  readonly maxWaitSeconds?: number;
  /**
   * Keep the lease between warm invocations of this environment, until it expires. Needs a
   * duration. A killed environment is then replaced after that duration.
   */
  readonly sticky?: boolean;
  /**
   * Lets so many invocations run at once, from 1 to 100, each under a lease of its own: `name/0` to
   * `name/<slots - 1>`. Each has its `lease.slot`, and its own sequence of fencing tokens. Default:
   * one, under `name` itself. All who share the name must give the same number.
   *
   * The record of `name` has no holder: `suspended` there stops all slots, but no run that goes on;
   * in the record of one slot, that slot. A slot whose record is corrupt, or of another kind, is
   * logged and passed by.
   *
   * An acquisition reads the record of `name` (half a read unit) and writes at a slot chosen by
   * chance (one write unit); only where that is held it looks at the others, one after the other
   * (half a read unit each), and writes where one is free. So it takes 2 requests when that slot is
   * free, and `slots + 1` when all are held, as does a look while waiting, but without the write.
   */
  readonly slots?: number;
  /** Ends a tenure whose work hangs. Default: the invocation's end does. */
  readonly maxHoldSeconds?: number;
  /**
   * After a run that returned sooner than this, nobody may take the lease until so long after it
   * was acquired: against an event that is delivered twice, one soon after the other. Default 0.
   */
  readonly minimumHoldSeconds?: number;
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
  'slots',
  'maxHoldSeconds',
  'minimumHoldSeconds',
] as const;

const DEFAULT_TOLERANCE_SECONDS = 5;
const LONGEST_TOLERANCE_SECONDS = LONGEST_DURATION_SECONDS / 2;
const REQUEST_TIMEOUT_MS = 3_000;
const RETRY_PERIOD_MS = 2_000;
/** Of a lease without a duration, where the invocation's end ends no work. */
const RENEW_DEADLINE_SECONDS = 10;

/** @throws LeaseError `invalid-configuration` for options that cannot work. */
export function checkInvocationOptions<TEvent, TContext>(
  options: InvocationOptions<TEvent, TContext>,
): void {
  checkCommonOptions(options);
  const { name, leaseDurationSeconds, whenHeld, sticky } = options;
  checkSlots(options.slots);
  const longest = longestName(typeof name === 'function' ? 'x' : name, options.slots);
  leaseKey(longest, options.namespace, readEnvironment());
  if (options.slots !== undefined && sticky === true) {
    throw invalid('slots and sticky exclude each other.');
  }
  checkFlag('sticky', sticky);
  const tolerance = seconds(options, 'toleranceSeconds');
  if (tolerance !== undefined && (tolerance < 0.001 || tolerance > LONGEST_TOLERANCE_SECONDS)) {
    throw invalid(
      `toleranceSeconds is ${tolerance}; it must be at least 0.001 and at most ` +
        `${LONGEST_TOLERANCE_SECONDS}, for the lease lasts that much longer than its invocation.`,
    );
  }
  seconds(options, 'maxWaitSeconds');
  seconds(options, 'maxHoldSeconds');
  if (seconds(options, 'minimumHoldSeconds') !== undefined) {
    // Both need what the other forbids: a time in the record that everybody goes by.
    if (options.trustClocks === false) {
      throw invalid('minimumHoldSeconds and trustClocks: false exclude each other.');
    }
    if (sticky === true) throw invalid('minimumHoldSeconds and sticky exclude each other.');
    if (options.slots !== undefined) {
      throw invalid(
        'minimumHoldSeconds and slots exclude each other: an event that is delivered twice would ' +
          'find another slot free.',
      );
    }
  }
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
    throw invalid(`whenHeld is ${show(whenHeld)}; it must be "skip", "throw" or "wait".`);
  }
  if (options.maxWaitSeconds !== undefined && whenHeld !== 'wait') {
    throw invalid('maxWaitSeconds needs whenHeld to be "wait".');
  }
}

/**
 * When Lambda ends the invocation, in the timeline's elapsed ms; Infinity where there is no context
 * to tell, and a duration instead.
 */
export function deadlineOf(
  context: Partial<LambdaContext> | undefined,
  timeline: Timeline,
  { leaseDurationSeconds }: TimingOptions,
): number {
  if (typeof context?.getRemainingTimeInMillis !== 'function') {
    if (leaseDurationSeconds !== undefined) return Infinity;
    throw invalid(
      'leaseDurationSeconds is missing: without it the lease covers the remaining time of the ' +
        'invocation, and the handler was called with no context that tells it ' +
        '(getRemainingTimeInMillis).',
    );
  }
  const leftMs: unknown = context.getRemainingTimeInMillis();
  if (typeof leftMs !== 'number' || !Number.isFinite(leftMs)) {
    throw invalid(`context.getRemainingTimeInMillis() is ${String(leftMs)}; it must be a number.`);
  }
  if (leftMs <= 0) {
    throw new LeaseError('lease-stopped', 'The invocation has no time left to hold a lease.', {
      reason: 'deadline',
    });
  }
  return timeline.look().elapsedMs + leftMs;
}

/** What differs between a lease that covers its invocation and one that is renewed. */
export interface Plan {
  readonly timing: Timing;
  readonly termsAt: TermsAt;
  readonly renewed: boolean;
}

export interface PlanOptions extends TimingOptions {
  readonly toleranceSeconds?: number;
  readonly sticky?: boolean;
}

/** `enforced`: Lambda ends the work at its deadline. Managed Instances do not. */
export function planOf(
  options: PlanOptions,
  deadlineMs: number,
  timeline: Timeline,
  enforced: boolean,
): Plan {
  const { leaseDurationSeconds, toleranceSeconds = DEFAULT_TOLERANCE_SECONDS } = options;
  if (leaseDurationSeconds !== undefined) {
    return renewedPlan(options, enforced && options.sticky !== true ? deadlineMs : Infinity);
  }
  if (!enforced) {
    const renewDeadlineSeconds = RENEW_DEADLINE_SECONDS;
    const duration = renewDeadlineSeconds + toleranceSeconds;
    const timing = { ...options, leaseDurationSeconds: duration, renewDeadlineSeconds };
    return renewedPlan(timing, Infinity);
  }
  const toleranceMs = milliseconds(toleranceSeconds);
  // A record that says more reads as one of unknown duration.
  const longestMs = milliseconds(LONGEST_DURATION_SECONDS) - toleranceMs;
  const termsAt: TermsAt = (now) => {
    const renewDeadlineMs = Math.max(0, Math.min(deadlineMs - now.elapsedMs, longestMs));
    return { renewDeadlineMs, leaseDurationMs: Math.round(renewDeadlineMs + toleranceMs) };
  };
  const terms = termsAt(timeline.look());
  const retryPeriodMs =
    options.retryPeriodSeconds === undefined
      ? RETRY_PERIOD_MS
      : milliseconds(options.retryPeriodSeconds);
  const timing = {
    ...terms,
    toleranceMs,
    requestTimeoutMs: Math.min(REQUEST_TIMEOUT_MS, terms.renewDeadlineMs),
    retryPeriodMs: Math.min(retryPeriodMs, terms.renewDeadlineMs / 4),
  };
  return { timing, termsAt, renewed: false };
}

function renewedPlan(options: TimingOptions, deadlineMs: number): Plan {
  const timing = resolveTiming(options);
  const termsAt: TermsAt = (now) => {
    // Where Lambda ends the work at its deadline, nobody shall wait longer than that and T.
    const longestMs = deadlineMs - now.elapsedMs + timing.toleranceMs;
    const leaseDurationMs = Math.max(
      timing.toleranceMs,
      Math.min(timing.leaseDurationMs, Math.floor(longestMs)),
    );
    return { leaseDurationMs, renewDeadlineMs: leaseDurationMs - timing.toleranceMs };
  };
  return { timing, termsAt, renewed: true };
}
