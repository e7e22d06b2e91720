// Standing by for a lease until it can be taken. Contenders read, at a tenth of the price of a
// refused write, and write only when the record looks free; a crash is taken over one round trip
// after expiry, for the contender that knows when that is sleeps until then.

import { sleep, type Clock } from './clock.ts';
import { isFinal } from './decide.ts';
import { isPermanent, type LeaseError } from './errors.ts';
import type { LeaseRecord } from './lease.ts';
import type { AcquireAnswer, Waiting } from './answers.ts';
import { jittered, type Random } from './random.ts';
import type { Contender } from './slots.ts';
import type { TermsAt } from './tenure.ts';

export interface ContentionOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly retryPeriodMs: number;
  readonly termsAt: TermsAt;
  /** Ends the wait. A lease that was taken at that very moment is released again. */
  readonly signal: AbortSignal;
  /** Called with each record seen, by an attempt or a look; `free` when it may be taken. */
  readonly onRecord?: (record: LeaseRecord, free: boolean) => void;
  /** Called with what stands in the way, as an attempt or a look shows it. */
  readonly onRefused?: (answer: Extract<AcquireAnswer, { kind: 'refused' }>) => void;
  /** Called with each failure that does not end the wait. */
  readonly onError?: (error: LeaseError) => void;
}

/** The attempt that ended the wait: acquired, refused or failed for good; or aborted. */
export type ContentionAnswer = AcquireAnswer | { readonly kind: 'aborted' };

/**
 * After the expiry each contender waits up to this long at random, so that two that know the same
 * moment do not always meet.
 */
const SPREAD_MS = 20;

export async function contend(
  lock: Contender,
  options: ContentionOptions,
): Promise<ContentionAnswer> {
  const { random, termsAt, signal } = options;
  /** Whether a takeover was lost to a rival: then many may stand by, and all of them know. */
  let rivals = false;
  for (;;) {
    if (isAborted(signal)) {
      await lock.withdraw();
      return { kind: 'aborted' };
    }
    const answer = await lock.tryAcquire(termsAt);
    if (answer.kind === 'acquired') {
      if (!isAborted(signal)) return answer;
      await lock.release(answer.tenure, 'stopped');
      return { kind: 'aborted' };
    }
    if (answer.kind === 'failed') {
      if (isPermanent(answer.error)) return answer;
      options.onError?.(answer.error);
    } else {
      options.onRecord?.(answer.record, false);
      options.onRefused?.(answer);
      if (isFinal(answer.waiting)) return answer;
      rivals ||= answer.raced;
    }
    await standBy(lock, answer.kind === 'refused' ? answer.waiting : undefined, rivals, options);
    // Whoever was last in the queue of one takeover need not be wary for ever.
    if (random.fraction() < 0.1) rivals = false;
  }
}

/** Returns when the lease looks free, or the wait is in vain. */
async function standBy(
  lock: Contender,
  first: Waiting | undefined,
  rivals: boolean,
  options: ContentionOptions,
): Promise<void> {
  const { clock, random, retryPeriodMs, signal } = options;
  let waiting = first;
  while (!isAborted(signal)) {
    const periodMs = jittered(random, retryPeriodMs);
    const knownMs = waiting?.forMs ?? Infinity;
    const soon = waiting?.because !== 'clock unchecked' && knownMs <= periodMs;
    await sleep(clock, soon ? knownMs + SPREAD_MS * random.fraction() : periodMs, signal);
    if (isAborted(signal)) return;
    if (soon && !rivals) return;
    if (soon) await sleep(clock, (retryPeriodMs / 4) * random.fraction(), signal);

    const seen = await lock.look();
    if (seen.kind === 'failed') {
      options.onError?.(seen.error);
      // Perhaps of reading only; where it is not, the next attempt fails for good.
      if (isPermanent(seen.error)) return;
      waiting = undefined;
      continue;
    }
    options.onRecord?.(seen.record, seen.decision.kind === 'take');
    if (seen.decision.kind === 'take') return;
    waiting = seen.decision;
    if (isFinal(waiting)) return;
    options.onRefused?.({ kind: 'refused', record: seen.record, waiting, raced: false });
  }
}

/** As a call, so that the compiler does not take an earlier answer for a later one. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
