// A lease for a block of code, in any process: taken, renewed in the background, and released when
// the block is left.

import { sleep } from './clock.ts';
import { contend } from './contention.ts';
import { readEnvironment } from './environment.ts';
import { LeaseError } from './errors.ts';
import { Holding } from './holding.ts';
import { pretendedLease, type Lease } from './lease-handle.ts';
import type { AcquireAnswer } from './answers.ts';
import {
  checkNames,
  invalid,
  leaseKey,
  milliseconds,
  resolveTiming,
  seconds,
  show,
  TIMING_OPTIONS,
  type TimingOptions,
} from './options.ts';
import { refusalError } from './refusal.ts';
import {
  checkCommonOptions,
  COMMON_OPTIONS,
  makeLock,
  makeWorld,
  type CommonOptions,
} from './setup.ts';

/** Options of `acquireLease`. */
export interface AcquireLeaseOptions extends CommonOptions, TimingOptions {
  /** The lease's name. There is no default. */
  readonly name: string;
  /** Stand by for this long while another holds it. Default 0: try once. */
  readonly maxWaitSeconds?: number;
  /** Gives up waiting; and once the lease is held, asks its work to finish. */
  readonly signal?: AbortSignal;
  /** Lets the lease expire after this long, so that work that hangs is not renewed for ever. */
  readonly maxHoldSeconds?: number;
}

const OPTIONS = [
  ...COMMON_OPTIONS,
  'name',
  ...TIMING_OPTIONS,
  'maxWaitSeconds',
  'signal',
  'maxHoldSeconds',
] as const satisfies readonly (keyof AcquireLeaseOptions)[];

/**
 * Takes a lease and keeps it renewed until it is released:
 * `await using lease = await acquireLease({ name: 'migration' });`
 *
 * A held lease keeps the process alive.
 *
 * @throws LeaseError `lease-held`, with the holder, its token and its expiry, when another holds
 * it; `store-unavailable` when nobody can tell; `invalid-configuration` before anything is sent.
 */
export async function acquireLease(options: AcquireLeaseOptions): Promise<Lease> {
  checkNames('acquireLease', options, OPTIONS);
  checkCommonOptions(options);
  const timing = resolveTiming(options);
  const maxWaitSeconds =
    options.maxWaitSeconds === 0 ? undefined : seconds(options, 'maxWaitSeconds');
  const maxHoldSeconds = seconds(options, 'maxHoldSeconds');
  const { signal } = options;
  if (signal !== undefined && !((signal as unknown) instanceof AbortSignal)) {
    throw invalid(`signal is ${show(signal)}; it must be an AbortSignal.`);
  }
  const environment = readEnvironment();
  const key = leaseKey(options.name, options.namespace, environment);
  if (environment.disabled) return pretendedLease(key);
  const world = makeWorld(options, environment);
  const lock = makeLock({ name: options.name, options, environment, ...timing }, world);
  const termsAt = () => timing;
  const stopped = signal ?? new AbortController().signal;

  let answer: AcquireAnswer | { readonly kind: 'aborted' };
  let refused: AcquireAnswer | undefined;
  if (maxWaitSeconds === undefined) {
    answer = stopped.aborted ? { kind: 'aborted' } : await lock.tryAcquire(termsAt);
  } else {
    const over = new AbortController();
    const done = new AbortController();
    void sleep(world.clock, milliseconds(maxWaitSeconds), done.signal).then(() => over.abort());
    answer = await contend(lock, {
      ...world,
      retryPeriodMs: timing.retryPeriodMs,
      termsAt,
      signal: AbortSignal.any([stopped, over.signal]),
      onRefused: (last) => (refused = last),
      onError: (error) => (refused = { kind: 'failed', error }),
    });
    done.abort();
  }
  world.tellUnverifiable(lock, timing.toleranceMs);

  if (answer.kind === 'acquired') {
    const { tenure } = answer;
    if (stopped.aborted) {
      await lock.release(tenure, 'stopped');
    } else {
      const holding = new Holding(lock, tenure, {
        ...world,
        termsAt,
        renewEveryMs: timing.retryPeriodMs,
        drainMs: Infinity,
        lossDrainMs: timing.toleranceMs / 2,
        releaseWithinMs: () => 2 * timing.requestTimeoutMs,
        maxHoldMs: maxHoldSeconds === undefined ? undefined : milliseconds(maxHoldSeconds),
      });
      const stop = () => holding.stop('stopped');
      stopped.addEventListener('abort', stop);
      void holding.concluded.then(() => stopped.removeEventListener('abort', stop));
      return holding.lease;
    }
  }
  const last = answer.kind === 'aborted' && !stopped.aborted ? refused : answer;
  if (last?.kind === 'failed') throw last.error;
  if (last?.kind === 'refused') throw refusalError(last.record, last.waiting);
  throw new LeaseError('lease-stopped', `Waiting for lease "${lock.lease}" was given up.`, {
    reason: 'stopped',
    cause: stopped.reason,
  });
}
