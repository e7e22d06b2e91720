// Who may act. The only place that says so: a plain function of what was last seen of a lease,
// the clocks, and how far this machine's wall clock may be trusted.

import { clockCounts, type ClockStatus } from './clock-check.ts';
import type { Reading } from './clock.ts';
import { UNREADABLE_DURATION_MS, type LeaseRecord, type Value } from './lease.ts';

/** A record, and since when by our own monotonic clock it has been seen at this version. */
export interface Sighting {
  readonly record: LeaseRecord;
  /** When the answer that first showed this version arrived. */
  readonly sinceMonotonicMs: number;
}

export interface Judge {
  readonly now: Reading;
  readonly clock: ClockStatus;
  /** False: times that other machines wrote mean nothing; only observation frees a held lease. */
  readonly trustClocks: boolean;
  /** The contender's own duration. It counts only where the record's cannot be read. */
  readonly leaseDurationMs: number;
  /** A scheduled job's: the tick that the lease is wanted for, in epoch ms. */
  readonly tickMs?: number | undefined;
}

export type Decision =
  | {
      readonly kind: 'take';
      /** `asRead`: the write must find exactly this record; else the store judges by the clock. */
      readonly how: 'vacant or expired' | 'asRead';
    }
  | {
      readonly kind: 'wait';
      readonly because:
        'held' | 'not before' | 'suspended' | 'clock unchecked' | 'tick done' | 'newer tick done';
      /** Until there may be something to decide, if nothing changes. May be Infinity. */
      readonly forMs: number;
    };

export function decide(seen: Sighting, judge: Judge): Decision {
  const { record } = seen;
  // First, because it is final: nothing that may change reopens a tick.
  const { lastTickMs } = record;
  if (judge.tickMs !== undefined && lastTickMs !== undefined && lastTickMs >= judge.tickMs) {
    return wait(lastTickMs > judge.tickMs ? 'newer tick done' : 'tick done', Infinity);
  }
  if (record.suspended !== undefined) return wait('suspended', Infinity);

  const byClock = judge.trustClocks && clockCounts(judge.clock);
  return record.vacant ? decideVacant(record, judge, byClock) : decideHeld(seen, judge, byClock);
}

function decideVacant(record: LeaseRecord, judge: Judge, byClock: boolean): Decision {
  const how = byClock ? 'vacant or expired' : 'asRead';
  if (record.notBeforeMs === undefined) return { kind: 'take', how };
  if (judge.trustClocks && !byClock) return wait('clock unchecked', 0);
  // A contender that trusts no clocks has nothing else here to go by. A wrong one ends a minimum
  // hold or a backoff early or late; it cannot make two leaders.
  const leftMs = record.notBeforeMs - judge.now.wallMs;
  return leftMs < 0 ? { kind: 'take', how } : wait('not before', leftMs + 1);
}

function decideHeld(seen: Sighting, judge: Judge, byClock: boolean): Decision {
  const { record } = seen;
  const expiredInMs =
    record.expireTimeMs === undefined ? Infinity : record.expireTimeMs - judge.now.wallMs;
  if (byClock && expiredInMs < 0) return { kind: 'take', how: 'vacant or expired' };

  // Observation needs no clocks to agree. The record's own duration counts, never the
  // contender's, and the monotonic clock only: it may stand still, which makes us wait longer,
  // and cannot be set forward, which would make us wait too little.
  const durationMs =
    record.leaseDurationMs ?? Math.max(judge.leaseDurationMs, UNREADABLE_DURATION_MS);
  const observedInMs = seen.sinceMonotonicMs + durationMs - judge.now.monotonicMs;
  if (observedInMs <= 0) return { kind: 'take', how: 'asRead' };

  if (byClock) return wait('held', Math.min(observedInMs, expiredInMs + 1));
  return judge.trustClocks && expiredInMs < 0
    ? wait('clock unchecked', 0)
    : wait('held', observedInMs);
}

function wait(because: Extract<Decision, { kind: 'wait' }>['because'], forMs: number): Decision {
  return { kind: 'wait', because, forMs };
}

/** Whether waiting is in vain. */
export function isFinal(decision: Decision): boolean {
  return decision.kind === 'wait' && ['tick done', 'newer tick done'].includes(decision.because);
}

/** What to remember of a lease after it has been seen once more. */
export function sight(
  before: Sighting | undefined,
  record: LeaseRecord,
  arrivedMonotonicMs: number,
): Sighting {
  const unchanged =
    before !== undefined &&
    before.record.version === record.version &&
    // Where there is no version, the write that takes it will compare these two.
    sameValue(before.record.raw['holderIdentity'], record.raw['holderIdentity']) &&
    sameValue(before.record.raw['renewTime'], record.raw['renewTime']);
  return {
    record,
    sinceMonotonicMs: unchanged ? before.sinceMonotonicMs : arrivedMonotonicMs,
  };
}

function sameValue(a: Value | undefined, b: Value | undefined): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
