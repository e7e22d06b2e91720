// Standing by for a lease until it can be taken. Contenders read, at a tenth of the price of a
// refused write, and write only when the record looks free; a crash is taken over one round trip
// after expiry, for the contender that knows when that is sleeps until then.

import { sleep, type Clock } from './clock.ts';
import type { Courtesy, Place } from './courtesy.ts';
import { isFinal } from './decide.ts';
import { isPermanent, type LeaseError } from './errors.ts';
import type { LeaseRecord } from './lease.ts';
import type { AcquireAnswer, Waiting } from './answers.ts';
import { jittered, type Random } from './random.ts';
import type { Contender } from './slots.ts';
import type { TermsAt } from './tenure.ts';
import type { Timeline } from './timeline.ts';

export interface ContentionOptions {
  readonly clock: Clock;
  readonly timeline: Timeline;
  /** Remembers who had to wait, so that turns are taken. Absent: they are not. */
  readonly courtesy?: Courtesy | undefined;
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

/** While the store is strained, one that stands by looks half as often each time, down to this. */
const MOST_DOUBLINGS = 3;

export async function contend(
  lock: Contender,
  options: ContentionOptions,
): Promise<ContentionAnswer> {
  const { clock, random, termsAt, signal, courtesy, timeline, retryPeriodMs } = options;
  const sinceMs = timeline.look().elapsedMs;
  const place = courtesy?.place(lock.lease, sinceMs, retryPeriodMs);
  /** The token that stood in the way first. */
  let seenToken: number | undefined;
  const onRecord = (record: LeaseRecord, free: boolean) => {
    if (!record.vacant) seenToken ??= record.leaseTransitions;
    options.onRecord?.(record, free);
  };
  const standing = { ...options, onRecord, place };
  if (place?.alone === true) await sleep(clock, jittered(random, retryPeriodMs), signal);
  else if (place !== undefined) await standBy(lock, undefined, false, standing);
  /** Whether a takeover was lost to a rival: then many may stand by, and all of them know. */
  let rivals = false;
  for (;;) {
    if (isAborted(signal)) {
      await lock.withdraw();
      return { kind: 'aborted' };
    }
    const answer = await lock.tryAcquire(termsAt);
    if (answer.kind === 'acquired') {
      const waitedMs = timeline.look().elapsedMs - sinceMs;
      courtesy?.acquired(lock.lease, answer.tenure.fencingToken, seenToken, waitedMs);
      if (!isAborted(signal)) return answer;
      await lock.release(answer.tenure, 'stopped');
      return { kind: 'aborted' };
    }
    if (answer.kind === 'failed') {
      if (isPermanent(answer.error)) return answer;
      options.onError?.(answer.error);
    } else {
      onRecord(answer.record, false);
      options.onRefused?.(answer);
      if (isFinal(answer.waiting)) return answer;
      rivals ||= answer.raced;
      place?.refused();
    }
    await standBy(lock, answer.kind === 'refused' ? answer.waiting : undefined, rivals, standing);
    // Whoever was last in the queue of one takeover need not be wary for ever.
    if (random.fraction() < 0.1) rivals = false;
  }
}

/** Returns when the lease looks free, or the wait is in vain. */
async function standBy(
  lock: Contender,
  first: Waiting | undefined,
  rivals: boolean,
  options: ContentionOptions & { readonly place: Place | undefined },
): Promise<void> {
  const { clock, random, retryPeriodMs, signal, place, timeline } = options;
  let waiting = first;
  let doublings = 0;
  /** Who is not next leaves what is free to those that are, for one look. */
  let left = false;
  while (!isAborted(signal)) {
    const token = lock.seen?.leaseTransitions ?? place?.token ?? 0;
    const nowMs = timeline.look().elapsedMs;
    const patienceMs = place?.patienceMs(token, nowMs, retryPeriodMs) ?? retryPeriodMs;
    const periodMs = jittered(random, (left ? retryPeriodMs / 2 : patienceMs) * 2 ** doublings);
    const knownMs = waiting?.forMs ?? Infinity;
    const soon = waiting?.because !== 'clock unchecked' && knownMs <= periodMs;
    await sleep(clock, soon ? knownMs + SPREAD_MS * random.fraction() : periodMs, signal);
    if (isAborted(signal)) return;
    if (soon && !rivals) return;
    if (place?.isNext(token) === true) return;
    if (soon) await sleep(clock, (retryPeriodMs / 4) * random.fraction(), signal);

    const seen = await lock.look();
    if (seen.kind === 'failed') {
      options.onError?.(seen.error);
      // Perhaps of reading only; where it is not, the next attempt fails for good.
      if (isPermanent(seen.error)) return;
      waiting = undefined;
      continue;
    }
    // The table is for the holder first: its renewals must get through.
    doublings = seen.strained === true ? Math.min(MOST_DOUBLINGS, doublings + 1) : doublings >> 1;
    options.onRecord?.(seen.record, seen.decision.kind === 'take');
    if (seen.decision.kind === 'take') {
      const ahead = place?.ahead(seen.record.leaseTransitions) ?? 0;
      if (ahead <= 0 || left || seen.record.leaseTransitions === place?.token) return;
      left = true;
      waiting = undefined;
      continue;
    }
    left = false;
    waiting = seen.decision;
    if (isFinal(waiting)) return;
    options.onRefused?.({ kind: 'refused', record: seen.record, waiting, raced: false });
  }
}

/** As a call, so that the compiler does not take an earlier answer for a later one. */
function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}
