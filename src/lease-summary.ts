// What a person wants to know of a lease at a glance: who holds it, for how long already, how much
// longer, and whether that is well. Pure: a record and a moment in, plain values out.

import { logLink } from './log-link.ts';
import { asCount, asText, type LeaseRecord } from './lease.ts';
import { markOf, readVerdict, type Verdict } from './stored-verdict.ts';
import { latestExpiry, REPORTED, reportsUnready } from './verdict.ts';

/** The worst first: in this order they are sorted. */
export const SUMMARY_STATUSES = [
  /** The monitor gave the holder up, and nobody has taken the lease since. */
  'Evicted',
  /** The monitor has found the holder silent, or the holder says so itself. */
  'NotReady',
  /** Held, and past its expireTime; the monitor has not judged it yet. */
  'Expired',
  /** The record cannot be used, or it has no time to judge it by and no verdict yet. */
  'Unknown',
  /** An operator has stopped it. */
  'Suspended',
  'Vacant',
  'Ready',
] as const;
export type SummaryStatus = (typeof SUMMARY_STATUSES)[number];

export interface LeaseSummary {
  readonly lease: string;
  /** Undefined when vacant, or when the record has one that is no text. */
  readonly holderIdentity: string | undefined;
  readonly vacant: boolean;
  readonly status: SummaryStatus;
  /** Why, in a few words. */
  readonly detail: string | undefined;
  /** When an operator or the monitor set the status; undefined for what the times alone tell. */
  readonly sinceMs: number | undefined;
  /** Since its holder acquired it; undefined when vacant. */
  readonly ageMs: number | undefined;
  /** Until it expires, negative since it has; undefined when vacant or when no time tells. */
  readonly leftMs: number | undefined;
  /** Undefined when the record's is no count. */
  readonly token: number | undefined;
  /** The last holder's logs in the CloudWatch console. */
  readonly logLink: string | undefined;
  readonly logStream: string | undefined;
}

/** Nobody's own texts are longer; a record that was tampered with shall not fill the memory. */
const LONGEST_TEXT = 512;

export function summarise(record: LeaseRecord, nowMs: number): LeaseSummary {
  const { vacant, acquireTime, expireTimeMs, annotations } = record;
  const acquiredMs = vacant || acquireTime === undefined ? NaN : Date.parse(acquireTime);
  // Further ahead than any lease lasts is no expiry, as the monitor sees it.
  const expires = !vacant && expireTimeMs !== undefined && expireTimeMs < latestExpiry(nowMs);
  const leftMs = expires ? expireTimeMs - nowMs : undefined;
  return {
    lease: shorten(record.lease),
    holderIdentity: shortenIfAny(record.holderIdentity),
    vacant,
    ...judged(record, leftMs, nowMs),
    ageMs: Number.isNaN(acquiredMs) ? undefined : nowMs - acquiredMs,
    leftMs,
    token: tokenOf(record),
    logLink: logLink(shortened(annotations)),
    logStream: shortenIfAny(annotations['logStream']),
  };
}

/** The fencing token; undefined when the record's is no count, and so no token at all. */
export function tokenOf({ raw, leaseTransitions }: LeaseRecord): number | undefined {
  const stored = raw['leaseTransitions'];
  return stored === undefined ? leaseTransitions : asCount(stored);
}

type Judged = Pick<LeaseSummary, 'status' | 'detail' | 'sinceMs'>;

function judged(record: LeaseRecord, leftMs: number | undefined, nowMs: number): Judged {
  const { suspended, corrupt, vacant, raw } = record;
  if (corrupt !== undefined) {
    const unusable = 'version or leaseTransitions is not a whole number';
    return { status: 'Unknown', detail: unusable, sinceMs: undefined };
  }
  if (suspended !== undefined) {
    const { since, by, why } = suspended;
    const words = [by === undefined ? undefined : `by ${by}`, why].filter(isText);
    return {
      status: 'Suspended',
      detail: shortenIfAny(words.length === 0 ? undefined : words.join(': ')),
      sinceMs: moment(since === undefined ? NaN : Date.parse(since)),
    };
  }
  const verdict = readVerdict(record);
  if (verdict !== undefined && verdict.status !== 'Ready' && stands(verdict, record)) {
    const { status, reason, sinceMs } = verdict;
    return { status, detail: wordsFor(record, reason), sinceMs: moment(sinceMs) };
  }
  if (vacant) {
    const waits = record.notBeforeMs !== undefined && record.notBeforeMs > nowMs;
    const detail = waits ? 'not to be taken yet' : undefined;
    return { status: 'Vacant', detail, sinceMs: undefined };
  }
  if (leftMs === undefined) {
    // Only the monitor, who watches the version, can tell.
    return verdict === undefined
      ? { status: 'Unknown', detail: 'no expireTime to judge by', sinceMs: undefined }
      : { status: 'Ready', detail: 'no expireTime: watched', sinceMs: undefined };
  }
  if (leftMs < 0) return { status: 'Expired', detail: undefined, sinceMs: undefined };
  // Held by somebody whose name is no text, and so cannot be told.
  const nameless = asText(raw['holderIdentity']) === undefined;
  const detail = nameless ? 'unreadable holder' : complaint(record);
  return { status: 'Ready', detail, sinceMs: undefined };
}

/** A verdict is about one version; of who reports itself unready, it stands through renewals. */
function stands(verdict: Verdict, record: LeaseRecord): boolean {
  if (verdict.seen === markOf(record)) return true;
  return verdict.reason === REPORTED && record.annotations['ready'] === 'false';
}

function wordsFor(record: LeaseRecord, reason: string | undefined): string | undefined {
  return reason === REPORTED ? said(record, 'says so itself') : shortenIfAny(reason);
}

function said({ annotations }: LeaseRecord, what: string): string {
  const why = annotations['readyReason'];
  return shorten(why === undefined ? what : `${what}: ${why}`);
}

/** NotReady is the monitor's word; before it, or without one, the worker's own is shown. */
function complaint(record: LeaseRecord): string | undefined {
  return reportsUnready(record) ? said(record, 'says that it is not ready') : undefined;
}

/** What is shown as a time must be one. */
function moment(epochMs: number): number | undefined {
  return epochMs > 0 && epochMs <= 8.64e15 ? epochMs : undefined;
}

function shortened(texts: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, text.slice(0, LONGEST_TEXT)]),
  );
}

function shortenIfAny(text: string | undefined): string | undefined {
  return text === undefined ? undefined : shorten(text);
}

/** By code points: half a character is none. */
function shorten(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  const end = /[\ud800-\udbff]$/.test(text.slice(0, LONGEST_TEXT))
    ? LONGEST_TEXT - 1
    : LONGEST_TEXT;
  return `${text.slice(0, end)}…`;
}

function isText(text: string | undefined): text is string {
  return text !== undefined;
}
