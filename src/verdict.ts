// What the lifecycle monitor thinks of a lease. Pure: a record, the verdict stored with it, a
// moment and the circumstances in, one thing to do out.
//
// Level-triggered: it says what is to be done now, whatever was done before, so a monitor that is
// killed between any two effects leaves nothing that the next pass does not complete. A verdict
// carries the version it saw: eviction rests on that same version still being there, never on
// stamps alone, for the holder's clock may be wrong.

import { clip } from './holder.ts';
import { UNREADABLE_DURATION_MS, asNumber, isoTime, type LeaseRecord } from './lease.ts';
import { BYTE_BUDGET, LONGEST_DURATION_SECONDS } from './schema.ts';
import {
  markOf,
  readVerdict,
  type EventType,
  type PendingEvent,
  type Verdict,
} from './stored-verdict.ts';

export interface Circumstances {
  /** The monitor's wall clock, which has been checked. */
  readonly nowMs: number;
  readonly graceMs: number;
  readonly tolerationMs: number;
  /** How long an evicted heartbeat or identity is kept. */
  readonly retentionMs: number;
  /** Until then the monitor was blind, or away: nothing new is held against anybody. */
  readonly frozenUntilMs: number;
  /** From when tolerations count, at the earliest. */
  readonly tolerationsFromMs: number;
  /** More patience where a whole zone is silent: the fault is likelier ours. */
  readonly extraTolerationMs: number;
}

/** A lease may carry its own patience: the longest silence that is nothing unusual. */
export function withOwnPatience(record: LeaseRecord, at: Circumstances): Circumstances {
  const own = (name: string) => {
    const seconds = asNumber({ N: record.annotations[name] ?? '' });
    const sensible = seconds !== undefined && seconds > 0 && seconds <= LONGEST_DURATION_SECONDS;
    return sensible ? seconds * 1_000 : undefined;
  };
  return {
    ...at,
    graceMs: own('graceSeconds') ?? at.graceMs,
    tolerationMs: own('tolerationSeconds') ?? at.tolerationMs,
  };
}

export type Action =
  | { readonly kind: 'nothing' }
  /** Publish what is recorded first; nothing overwrites it. */
  | { readonly kind: 'publish'; readonly event: PendingEvent }
  | { readonly kind: 'flag'; readonly verdict: Verdict }
  | { readonly kind: 'evict'; readonly verdict: Verdict }
  | { readonly kind: 'collect' };

/** How far ahead a renewTime may lie before it counts as one from the future. */
const FUTURE_MS = 5_000;

/** The reason of a holder that is alive and says itself that it is not ready. */
export const REPORTED = 'reported';

export function judge(record: LeaseRecord, at: Circumstances): Action {
  const stored = readVerdict(record);
  if (stored?.event !== undefined) return { kind: 'publish', event: stored.event };
  const verdict = stored ?? firstVerdict(at.nowMs);
  const action =
    missedSchedule(record, verdict, at) ??
    (record.vacant ? judgeVacant(record, verdict, at) : judgeHeld(record, verdict, at));
  return 'verdict' in action
    ? { ...action, verdict: { ...action.verdict, count: verdict.count + 1 } }
    : action;
}

function judgeVacant(record: LeaseRecord, verdict: Verdict, at: Circumstances): Action {
  // An eviction stands until somebody takes the lease: that moves the version on.
  if (verdict.status === 'Evicted' && verdict.seen === markOf(record)) return { kind: 'nothing' };
  if (verdict.status === 'Ready' && !verdict.mistrusted) return { kind: 'nothing' };
  return { kind: 'flag', verdict: ready(record, verdict, at, 'vacant') };
}

function judgeHeld(record: LeaseRecord, verdict: Verdict, at: Circumstances): Action {
  const unchanged = verdict.seen === markOf(record);
  if (verdict.status === 'Evicted' && unchanged) return judgeEvicted(record, verdict, at);
  const unready = verdict.status === 'NotReady' && verdict.reason === REPORTED;
  if (verdict.status === 'NotReady' && !unready && unchanged) {
    return judgeNotReady(record, verdict, at);
  }
  const overdue = isOverdueByStamps(record, at);
  const reports = reportsUnready(record);
  if (verdict.status !== 'Ready' && !(unready && reports)) {
    // The version has moved on: it is alive, whatever its stamps say.
    const alive = reports
      ? notReady(record, verdict, at, REPORTED)
      : ready(record, verdict, at, 'renewed');
    const mistrusted = overdue === true || (overdue === false && isBehind(record, verdict));
    return { kind: 'flag', verdict: { ...alive, mistrusted } };
  }
  const silent = verdict.mistrusted ? unchanged : overdue === true;
  if (verdict.status === 'Ready' && reports && !silent) {
    return { kind: 'flag', verdict: notReady(record, verdict, at, REPORTED) };
  }
  const changed = leaderChanged(record, verdict, at);
  if (changed !== undefined) return changed;

  if (overdue === undefined || verdict.mistrusted) {
    return judgeByObservation(record, verdict, at, unchanged, overdue);
  }
  return overdue && at.nowMs >= at.frozenUntilMs
    ? { kind: 'flag', verdict: notReady(record, verdict, at, 'expired') }
    : { kind: 'nothing' };
}

/** Stamps that are missing, lie in the future or have lied before: the version is watched. */
function judgeByObservation(
  record: LeaseRecord,
  verdict: Verdict,
  at: Circumstances,
  unchanged: boolean,
  overdue: boolean | undefined,
): Action {
  const trusted = overdue === false && !unchanged && !isBehind(record, verdict);
  if (verdict.mistrusted && trusted) {
    return { kind: 'flag', verdict: { ...watched(record, verdict, at), mistrusted: false } };
  }
  if (!unchanged || verdict.sinceMs > at.nowMs) {
    return { kind: 'flag', verdict: watched(record, verdict, at) };
  }
  const silentMs = at.nowMs - Math.max(verdict.sinceMs, at.tolerationsFromMs);
  return silentMs > durationOf(record) + at.graceMs && at.nowMs >= at.frozenUntilMs
    ? { kind: 'flag', verdict: notReady(record, verdict, at, 'unchanged') }
    : { kind: 'nothing' };
}

function judgeNotReady(record: LeaseRecord, verdict: Verdict, at: Circumstances): Action {
  if (verdict.sinceMs > at.nowMs + FUTURE_MS) {
    // Whoever wrote that had another clock: it counts from now.
    return { kind: 'flag', verdict: watched(record, verdict, at) };
  }
  const fromMs = Math.max(verdict.sinceMs, at.tolerationsFromMs);
  const patienceMs = Math.max(at.tolerationMs, durationOf(record)) + at.extraTolerationMs;
  if (at.nowMs < at.frozenUntilMs || at.nowMs - fromMs < patienceMs) return { kind: 'nothing' };
  return { kind: 'evict', verdict: evicted(record, verdict, at.nowMs, verdict.reason) };
}

/** What an eviction at `nowMs` leaves behind; an event that is not published yet stands. */
export function evicted(
  record: LeaseRecord,
  verdict: Verdict,
  nowMs: number,
  reason: string | undefined,
): Verdict {
  const leader = record.kind !== 'heartbeat' && record.kind !== 'identity';
  return {
    ...(verdict.event === undefined ? withEvent(verdict, 'Evicted', record, nowMs) : verdict),
    status: 'Evicted',
    reason,
    sinceMs: nowMs,
    // Vacating a leader's lease moves its version on.
    seen: leader ? String((record.version ?? nowMs) + 1) : markOf(record),
  };
}

function judgeEvicted(record: LeaseRecord, verdict: Verdict, at: Circumstances): Action {
  const collectable = record.kind === 'heartbeat' || record.kind === 'identity';
  const collect = collectable && at.nowMs - verdict.sinceMs > at.retentionMs;
  return collect ? { kind: 'collect' } : { kind: 'nothing' };
}

/** A leader's lease that stands evicted: nobody has taken it since, or is told to stay away. */
export function isLeaderless(record: LeaseRecord): boolean {
  const verdict = readVerdict(record);
  const stands = verdict?.status === 'Evicted' && verdict.seen === markOf(record);
  return stands && record.kind === 'leader' && record.vacant && record.suspended === undefined;
}

/** Only of who is watched for its own sake; a leader says nothing at its renewals. */
export function reportsUnready(record: LeaseRecord): boolean {
  const speaks = record.kind === 'heartbeat' || record.kind === 'identity';
  return speaks && record.annotations['ready'] === 'false';
}

function leaderChanged(
  record: LeaseRecord,
  verdict: Verdict,
  at: Circumstances,
): Action | undefined {
  if (record.kind !== 'leader' || record.leaseTransitions <= verdict.token) return undefined;
  return {
    kind: 'flag',
    verdict: {
      ...withEvent(verdict, 'LeaderChanged', record, at.nowMs),
      token: record.leaseTransitions,
    },
  };
}

/** A job whose next completion is overdue; reported once for each dueTime. */
function missedSchedule(
  record: LeaseRecord,
  verdict: Verdict,
  at: Circumstances,
): Action | undefined {
  const dueMs = asNumber(record.raw['dueTime']);
  if (dueMs === undefined || dueMs >= at.nowMs || record.suspended !== undefined) return undefined;
  if (verdict.missedDueTimeMs === dueMs || at.nowMs < at.frozenUntilMs) return undefined;
  return {
    kind: 'flag',
    verdict: {
      ...withEvent(verdict, 'ScheduleMissed', record, at.nowMs),
      missedDueTimeMs: dueMs,
    },
  };
}

/**
 * True: expired for longer than the grace. Undefined: the stamps tell nothing. They are compared as
 * the filter compares them, so that whatever is judged here is seen there.
 */
function isOverdueByStamps(record: LeaseRecord, at: Circumstances): boolean | undefined {
  const { expireTimeMs, renewTime } = record;
  if (expireTimeMs === undefined || expireTimeMs >= latestExpiry(at.nowMs)) return undefined;
  if (renewTime !== undefined && renewTime > latestRenewal(at.nowMs)) return undefined;
  return at.nowMs > expireTimeMs + at.graceMs;
}

/** The version that this verdict has seen is newer than the stamp of the one after it. */
function isBehind({ renewTime }: LeaseRecord, { sinceMs }: Verdict): boolean {
  return renewTime !== undefined && Date.parse(renewTime) < sinceMs - FUTURE_MS;
}

/** A renewTime that sorts after this one lies in the future, or is none. */
export function latestRenewal(nowMs: number): string {
  return isoTime(nowMs + FUTURE_MS);
}

/** An expireTime from here on lies further ahead than any lease lasts. */
export function latestExpiry(nowMs: number): number {
  return nowMs + FUTURE_MS + LONGEST_DURATION_SECONDS * 1_000;
}

function ready(record: LeaseRecord, verdict: Verdict, at: Circumstances, reason: string): Verdict {
  const announced =
    verdict.status === 'Ready' ? verdict : withEvent(verdict, 'Ready', record, at.nowMs);
  return {
    ...announced,
    status: 'Ready',
    reason,
    sinceMs: at.nowMs,
    seen: markOf(record),
    mistrusted: false,
  };
}

function notReady(
  record: LeaseRecord,
  verdict: Verdict,
  at: Circumstances,
  reason: string,
): Verdict {
  return {
    ...withEvent(verdict, 'NotReady', record, at.nowMs),
    status: 'NotReady',
    reason,
    sinceMs: at.nowMs,
    seen: markOf(record),
  };
}

function watched(record: LeaseRecord, verdict: Verdict, at: Circumstances): Verdict {
  return { ...verdict, sinceMs: at.nowMs, seen: markOf(record) };
}

function withEvent(
  verdict: Verdict,
  type: EventType,
  { holderIdentity: holder, leaseTransitions: token }: LeaseRecord,
  atMs: number,
): Verdict {
  // Another client's may be as long as the record, which has no room for it twice.
  const holderIdentity = holder && clip(holder, BYTE_BUDGET.holderIdentity);
  return { ...verdict, event: { type, atMs, holderIdentity, token } };
}

/** Of a record that nobody has judged yet. */
export function firstVerdict(nowMs: number): Verdict {
  return {
    status: 'Ready',
    reason: undefined,
    sinceMs: nowMs,
    seen: '',
    token: 0,
    count: 0,
    event: undefined,
    missedDueTimeMs: undefined,
    mistrusted: false,
  };
}

function durationOf(record: LeaseRecord): number {
  return record.leaseDurationMs ?? UNREADABLE_DURATION_MS;
}
