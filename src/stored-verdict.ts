// The monitor's verdict as it is kept in a record, with the event that is not published yet.

import { clip, clipFront } from './holder.ts';
import { asNumber, asText, isoTime, type Item, type LeaseRecord, type Value } from './lease.ts';

export type LeaseStatus = 'Ready' | 'NotReady' | 'Evicted';

const EVENT_TYPES = ['NotReady', 'Ready', 'Evicted', 'LeaderChanged', 'ScheduleMissed'] as const;
export type EventType = (typeof EVENT_TYPES)[number];

/** An event that is recorded and not published yet. */
export interface PendingEvent {
  readonly type: EventType;
  readonly atMs: number;
  /** The holder that it is about: an eviction removes it from the record. */
  readonly holderIdentity: string | undefined;
  /** That holder's token: somebody else may hold the lease when the event is published. */
  readonly token: number;
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
  /** Rises with every verdict: an older one never replaces a newer, and each event has its id. */
  readonly count: number;
  readonly event: PendingEvent | undefined;
  /** The dueTime that has been reported as missed. */
  readonly missedDueTimeMs: number | undefined;
  /** Its holder renews with stamps that lie in the past: only observation counts. */
  readonly mistrusted: boolean;
}

/** What tells one state of a record from the next: its version, or what V compares without one. */
export function markOf({ version, renewTime = '', holderIdentity = '' }: LeaseRecord): string {
  return version === undefined
    ? `~${clip(renewTime, 32)}~${clipFront(holderIdentity, 36)}`
    : String(version);
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
  const type = EVENT_TYPES.find((known) => known === asText(value.M['type']));
  const atMs = asNumber(value.M['at']);
  if (type === undefined || atMs === undefined || !isMoment(atMs)) return undefined;
  return {
    type,
    atMs,
    holderIdentity: asText(value.M['holder']),
    token: asNumber(value.M['token']) ?? 0,
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
          ['token', { N: String(event.token) }],
        ]),
      },
    ],
    ['missed', numberOf(verdict.missedDueTimeMs)],
    ['mistrusted', verdict.mistrusted ? { BOOL: true } : undefined],
  ];
  return { M: present(entries) };
}

/** The same for every publisher of the same event: consumers can tell a repetition. */
export function eventId(lease: string, count: number, { atMs, token }: PendingEvent): string {
  return `${lease}#${token}#${count}#${isoTime(atMs)}`;
}

/** What an ISO time of four digits for the year can be made of: EventBridge takes no other. */
function isMoment(epochMs: number): boolean {
  return epochMs >= 0 && epochMs < Date.UTC(10_000, 0);
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
