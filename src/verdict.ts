// What the lifecycle monitor thinks of a lease. Pure: a record, the verdict stored with it, a
// moment and the circumstances in, one thing to do out.
//
// Level-triggered: it says what is to be done now, whatever was done before, so a monitor that is
// killed between any two effects leaves nothing that the next pass does not complete. A verdict
// carries the version it saw: eviction rests on that same version still being there, never on
// stamps alone, for the holder's clock may be wrong.

import { asNumber, asText, isoTime, type Item, type LeaseRecord, type Value } from './lease.ts';

export type LeaseStatus = 'Ready' | 'NotReady' | 'Evicted';

export type EventType = 'NotReady' | 'Ready' | 'Evicted' | 'LeaderChanged' | 'ScheduleMissed';

/** An event that is recorded and not published yet. */
export interface PendingEvent {
  readonly type: EventType;
  readonly atMs: number;
  /** The holder that it is about: an eviction removes it from the record. */
  readonly holderIdentity: string | undefined;
}

/** The verdict stored in a record. */
export interface Verdict {
  readonly status: LeaseStatus;
  readonly reason: string | undefined;
  /** Since when `seen` has been there, by the monitor's clock. */
  readonly sinceMs: number;
  /** The version that was judged or is watched, as text; see `markOf`. */
  readonly seen: string;
  /** The last token whose holder has been announced. */
  readonly token: number;
  /** Rises with every event, so that each has an id of its own. */
  readonly count: number;
  readonly event: PendingEvent | undefined;
  /** The dueTime that has been reported as missed. */
  readonly missedDueTimeMs: number | undefined;
  /** Its holder renews with stamps that look expired: only observation counts. */
  readonly mistrusted: boolean;
}

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

export type Action =
  | { readonly kind: 'nothing' }
  /** Publish what is recorded first; nothing overwrites it. */
  | { readonly kind: 'publish'; readonly event: PendingEvent }
  | { readonly kind: 'flag'; readonly verdict: Verdict }
  | { readonly kind: 'evict'; readonly verdict: Verdict }
  | { readonly kind: 'collect' };

/** How far ahead a renewTime may lie before it counts as one from the future. */
const FUTURE_MS = 5_000;
const UNREADABLE_DURATION_MS = 60_000;

/** The reason of a holder that is alive and says itself that it is not ready. */
export const REPORTED = 'reported';

export function judge(record: LeaseRecord, at: Circumstances): Action {
  const stored = readVerdict(record);
  if (stored?.event !== undefined) return { kind: 'publish', event: stored.event };
  const verdict = stored ?? firstVerdict(at.nowMs);

  const missed = missedSchedule(record, verdict, at);
  if (missed !== undefined) return missed;
  return record.vacant ? judgeVacant(record, verdict, at) : judgeHeld(record, verdict, at);
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
    return { kind: 'flag', verdict: { ...alive, mistrusted: overdue === true } };
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
  if (verdict.mistrusted && overdue === false) {
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
  const fromMs = Math.max(verdict.sinceMs, at.tolerationsFromMs);
  const patienceMs = Math.max(at.tolerationMs, durationOf(record)) + at.extraTolerationMs;
  if (at.nowMs < at.frozenUntilMs || at.nowMs - fromMs < patienceMs) return { kind: 'nothing' };
  const leader = record.kind !== 'heartbeat' && record.kind !== 'identity';
  return {
    kind: 'evict',
    verdict: {
      ...withEvent(verdict, 'Evicted', record.holderIdentity, at),
      status: 'Evicted',
      reason: verdict.reason,
      sinceMs: at.nowMs,
      // Vacating a leader's lease moves its version on.
      seen: leader ? String((record.version ?? at.nowMs) + 1) : markOf(record),
    },
  };
}

function judgeEvicted(record: LeaseRecord, verdict: Verdict, at: Circumstances): Action {
  const collectable = record.kind === 'heartbeat' || record.kind === 'identity';
  const collect = collectable && at.nowMs - verdict.sinceMs > at.retentionMs;
  return collect ? { kind: 'collect' } : { kind: 'nothing' };
}

/** Only of who is watched for its own sake; a leader says nothing at its renewals. */
function reportsUnready(record: LeaseRecord): boolean {
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
      ...withEvent(verdict, 'LeaderChanged', record.holderIdentity, at),
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
      ...withEvent(verdict, 'ScheduleMissed', record.holderIdentity, at),
      missedDueTimeMs: dueMs,
    },
  };
}

/** True: expired for longer than the grace. Undefined: the stamps tell nothing. */
function isOverdueByStamps(record: LeaseRecord, at: Circumstances): boolean | undefined {
  const { expireTimeMs, renewTime } = record;
  const renewMs = renewTime === undefined ? Number.NaN : Date.parse(renewTime);
  if (expireTimeMs === undefined || Number.isNaN(renewMs)) return undefined;
  if (renewMs > at.nowMs + FUTURE_MS) return undefined;
  return at.nowMs > expireTimeMs + at.graceMs;
}

function ready(record: LeaseRecord, verdict: Verdict, at: Circumstances, reason: string): Verdict {
  const announced =
    verdict.status === 'Ready' ? verdict : withEvent(verdict, 'Ready', record.holderIdentity, at);
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
    ...withEvent(verdict, 'NotReady', record.holderIdentity, at),
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
  holderIdentity: string | undefined,
  at: Circumstances,
): Verdict {
  return {
    ...verdict,
    count: verdict.count + 1,
    event: { type, atMs: at.nowMs, holderIdentity },
  };
}

function firstVerdict(nowMs: number): Verdict {
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

/** What tells one state of a record from the next: its version, or what V compares without one. */
export function markOf(record: LeaseRecord): string {
  return record.version === undefined
    ? `~${record.holderIdentity ?? ''}~${record.renewTime ?? ''}`.slice(0, 64)
    : String(record.version);
}

/** Whether the monitor has to look at the record again, though its lease may be well. */
export function isOpen(verdict: Verdict): boolean {
  return verdict.status !== 'Ready' || verdict.event !== undefined || verdict.mistrusted;
}

/** The stored verdict, or undefined where none can be read. */
export function readVerdict(record: LeaseRecord): Verdict | undefined {
  const value = record.raw['condition'];
  if (value === undefined || !('M' in value)) return undefined;
  const map = value.M;
  const status = asText(map['status']);
  if (status !== 'Ready' && status !== 'NotReady' && status !== 'Evicted') return undefined;
  return {
    status,
    reason: asText(map['reason']),
    sinceMs: asNumber(map['since']) ?? 0,
    seen: asText(map['seen']) ?? String(asNumber(map['seen']) ?? ''),
    token: asNumber(map['token']) ?? 0,
    count: asNumber(map['count']) ?? 0,
    event: readEvent(map['event']),
    missedDueTimeMs: asNumber(map['missed']),
    mistrusted: map['mistrusted'] !== undefined,
  };
}

function readEvent(value: Value | undefined): PendingEvent | undefined {
  if (value === undefined || !('M' in value)) return undefined;
  const type = asText(value.M['type']);
  if (type === undefined) return undefined;
  return {
    type: type as EventType,
    atMs: asNumber(value.M['at']) ?? 0,
    holderIdentity: asText(value.M['holder']),
  };
}

/** As it is stored: an absent part is absent, and every byte counts. */
export function writeVerdict(verdict: Verdict): Value {
  const { event } = verdict;
  const entries: [string, Value | undefined][] = [
    ['status', { S: verdict.status }],
    ['reason', textOf(verdict.reason)],
    ['since', { N: String(verdict.sinceMs) }],
    // A version is stored as a number, so that a filter can compare it with the record's.
    ['seen', /^\d+$/.test(verdict.seen) ? { N: verdict.seen } : textOf(verdict.seen)],
    ['token', { N: String(verdict.token) }],
    ['count', { N: String(verdict.count) }],
    [
      'event',
      event && {
        M: present([
          ['type', { S: event.type }],
          ['at', { N: String(event.atMs) }],
          ['holder', textOf(event.holderIdentity)],
        ]),
      },
    ],
    ['missed', numberOf(verdict.missedDueTimeMs)],
    ['mistrusted', verdict.mistrusted ? { BOOL: true } : undefined],
  ];
  return { M: present(entries) };
}

/** The same for every publisher of the same event: consumers can tell a repetition. */
export function eventId(record: LeaseRecord, verdict: Verdict): string {
  const atMs = verdict.event?.atMs ?? 0;
  return `${record.lease}#${record.leaseTransitions}#${verdict.count}#${isoTime(atMs)}`;
}

function textOf(text: string | undefined): Value | undefined {
  return text === undefined || text === '' ? undefined : { S: text };
}

function numberOf(number: number | undefined): Value | undefined {
  return number === undefined ? undefined : { N: String(number) };
}

function present(entries: readonly (readonly [string, Value | undefined])[]): Item {
  return Object.fromEntries(
    entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
