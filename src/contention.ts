// Standing by for a lease until it can be taken. Contenders read, at a tenth of the price of a
// refused write, and write when the record looks free; or when it changes hands so fast that a look
// tells nothing. A crash is taken over one round trip after expiry, for the contender that knows
// when that is sleeps until then.

import { sleep, type Clock } from './clock.ts';
import { isFinal } from './decide.ts';
import { isPermanent, type LeaseError } from './errors.ts';
import type { LeaseRecord } from './lease.ts';
import type { AcquireAnswer, Waiting } from './answers.ts';
import { Pace } from './pace.ts';
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
  const pace = new Pace(options.retryPeriodMs);
  /** Whether a takeover was lost to a rival: then many may stand by, and all of them know. */
  let rivals = false;
  for (;;) {
    if (isAborted(signal)) {
      await lock.withdraw();
      return { kind: 'aborted' };
    }
    const answer = await lock.tryAcquire(termsAt);
    pace.tried(lock.strained);
    if (answer.kind === 'acquired') {
      if (!isAborted(signal)) return answer;
      await lock.release(answer.tenure, 'stopped');
      return { kind: 'aborted' };
    }
    if (answer.kind === 'failed') {
      if (isPermanent(answer.error)) return answer;
      options.onError?.(answer.error);
    } else {
      pace.saw(answer.record);
      options.onRecord?.(answer.record, false);
      options.onRefused?.(answer);
      if (isFinal(answer.waiting)) return answer;
      rivals ||= answer.raced;
    }
    const waiting = answer.kind === 'refused' ? answer.waiting : undefined;
    await standBy(lock, waiting, { ...options, rivals, pace });
    // Whoever was last in the queue of one takeover need not be wary for ever.
    if (random.fraction() < 0.1) rivals = false;
  }
}

interface Standing extends ContentionOptions {
  readonly rivals: boolean;
  readonly pace: Pace;
}

/** Returns when the lease is worth a write, or the wait is in vain. */
async function standBy(
  lock: Contender,
  first: Waiting | undefined,
  options: Standing,
): Promise<void> {
  const { clock, random, retryPeriodMs, signal, rivals, pace } = options;
  let waiting = first;
  while (!isAborted(signal)) {
    const periodMs = jittered(random, pace.periodMs);
    const knownMs = waiting?.forMs ?? Infinity;
    const soon = waiting?.because !== 'clock unchecked' && knownMs <= periodMs;
    await sleep(clock, soon ? knownMs + SPREAD_MS * random.fraction() : periodMs, signal);
    if (isAborted(signal)) return;
    if ((soon && !rivals && !pace.spares) || pace.writes) return;
    if (soon) await sleep(clock, (retryPeriodMs / 4) * random.fraction(), signal);

    const seen = await lock.look();
    pace.tried(lock.strained);
    if (seen.kind === 'failed') {
      options.onError?.(seen.error);
      // Perhaps of reading only; where it is not, the next attempt fails for good.
      if (isPermanent(seen.error)) return;
      waiting = undefined;
      continue;
    }
    pace.saw(seen.record);
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
