// The Lease record, and the rules for reading one.
//
// A Lease says who may act, for how long, and how often that has changed hands. Its fields are
// those of a Kubernetes coordination.k8s.io/v1 Lease, plus what DynamoDB needs to compare and
// swap. Nothing here reads a clock or touches a network.
//
// Invariants, cited by number in the code and in the tests:
//
//   L1. Every write is conditional. A holder's write names the version it knows and itself; a
//       write that takes a lease is conditional on its being vacant, expired, or watched unchanged.
//   L2. Every acquisition raises leaseTransitions, the fencing token. Nothing lowers it: a release
//       or an eviction keeps the record.
//   L3. An absent holderIdentity means vacant: anyone may take it, from notBefore on, unless it is
//       suspended.
//   L4. A holder stops believing before anyone else may start. Belief ends once: nothing revives
//       that tenure, not even a late success.
//   L5. An expired lease taken again by its former holder is a new tenure with a new token: it may
//       have slept through somebody else's.
//   L6. Correctness never depends on DynamoDB's Time to Live, on a timer firing on time, on a
//       release happening, on the lifecycle monitor running, or on an event being delivered.
//   L7. No answer is not an answer: after a time-out, a reset or a server error a write may have
//       happened, or may still happen later. A failed condition whose record carries my identity
//       and my token is never a loss: it is an earlier write of mine.

import { LONGEST_DURATION_SECONDS, type AttributeName } from './schema.ts';

/** How long a lease is taken to last whose record does not say, at least. */
export const UNREADABLE_DURATION_MS = 60_000;

/** A value as DynamoDB types it. Kept as read: a string where a number should be is evidence. */
export type Value =
  | { readonly S: string }
  | { readonly N: string }
  | { readonly M: Readonly<Record<string, Value>> }
  | { readonly BOOL: boolean }
  | { readonly NULL: boolean }
  | { readonly L: readonly Value[] }
  | { readonly B: Uint8Array }
  | { readonly SS: readonly string[] }
  | { readonly NS: readonly string[] }
  | { readonly BS: readonly Uint8Array[] };

export type Item = Readonly<Record<string, Value>>;

/**
 * A record as read. Optional attributes that are missing or unreadable are `undefined`; `raw`
 * tells the two apart.
 */
export interface LeaseRecord {
  /** `<namespace>/<name>`. */
  readonly lease: string;
  /** True when there is no holderIdentity at all. An unreadable one is somebody, without a name. */
  readonly vacant: boolean;
  /** `leader`, `heartbeat` or `identity`. */
  readonly kind: string | undefined;
  /** Who holds it; undefined when vacant or unreadable. */
  readonly holderIdentity: string | undefined;
  /** How long a renewal lasts, in ms. */
  readonly leaseDurationMs: number | undefined;
  /** When the holder acquired it, ISO 8601. */
  readonly acquireTime: string | undefined;
  /** When the holder last renewed it, ISO 8601. */
  readonly renewTime: string | undefined;
  /** When it expires unless it is renewed, epoch ms. */
  readonly expireTimeMs: number | undefined;
  /** The fencing token; 0 when nobody has ever held the lease. */
  readonly leaseTransitions: number;
  /** Raised by every write of a holder, a contender or an eviction. */
  readonly version: number | undefined;
  /** Nobody may take it before, epoch ms. */
  readonly notBeforeMs: number | undefined;
  /** A scheduled job's: the last completed tick. */
  readonly lastTickMs: number | undefined;
  /** An operator's stop: since, by, why. */
  readonly suspended: Intervention | undefined;
  /** An operator's request to the holder to step down. */
  readonly stepDownRequested: Intervention | undefined;
  /** The verdict of the lifecycle monitor, as far as it concerns a holder. */
  readonly evicted: boolean;
  /** Where to look: the holder's function, log stream, request id; and the user's own. */
  readonly annotations: Readonly<Record<string, string>>;
  /** For selectors. */
  readonly labels: Readonly<Record<string, string>>;
  /** What makes the record unusable, as a sentence: a version or a token that is no count. */
  readonly corrupt: string | undefined;
  /** The item as it is in the table. */
  readonly raw: Item;
}

/** What an operator did to a lease, as far as it says so. */
export interface Intervention {
  /** ISO 8601. */
  readonly since: string | undefined;
  /** Who. */
  readonly by: string | undefined;
  /** The reason that was given. */
  readonly why: string | undefined;
}

/** Reads an item, and never throws: a record is reported as it is. */
export function readLease(lease: string, item: Item): LeaseRecord {
  const text = (name: AttributeName) => asText(item[name]);
  const number = (name: AttributeName) => asNumber(item[name]);
  const durationSeconds = number('leaseDurationSeconds');
  return {
    lease,
    vacant: item['holderIdentity'] === undefined,
    kind: text('kind'),
    holderIdentity: text('holderIdentity'),
    leaseDurationMs:
      durationSeconds !== undefined &&
      durationSeconds > 0 &&
      durationSeconds <= LONGEST_DURATION_SECONDS
        ? Math.round(durationSeconds * 1_000)
        : undefined,
    acquireTime: text('acquireTime'),
    renewTime: text('renewTime'),
    expireTimeMs: number('expireTime'),
    leaseTransitions: asCount(item['leaseTransitions']) ?? 0,
    version: asCount(item['version']),
    notBeforeMs: number('notBefore'),
    lastTickMs: number('lastTick'),
    suspended: intervention(item['suspended']),
    stepDownRequested: intervention(item['stepDownRequested']),
    evicted: asText(asMap(item['condition'])?.['status']) === 'Evicted',
    annotations: texts(item['annotations']),
    labels: texts(item['labels']),
    corrupt: corruption(lease, 'version', item) ?? corruption(lease, 'leaseTransitions', item),
    raw: item,
  };
}

/** A record that does not exist reads as vacant. */
export function vacantLease(lease: string): LeaseRecord {
  return readLease(lease, {});
}

export function asText(value: Value | undefined): string | undefined {
  return value !== undefined && 'S' in value ? value.S : undefined;
}

export function asNumber(value: Value | undefined): number | undefined {
  if (value === undefined || !('N' in value)) return undefined;
  const number = Number(value.N);
  return Number.isFinite(number) ? number : undefined;
}

export function asMap(value: Value | undefined): Item | undefined {
  return value !== undefined && 'M' in value ? value.M : undefined;
}

function texts(value: Value | undefined): Record<string, string> {
  const entries = Object.entries(asMap(value) ?? {});
  return Object.fromEntries(
    entries.flatMap(([name, entry]) => {
      const text = asText(entry);
      return text === undefined ? [] : [[name, text]];
    }),
  );
}

function intervention(value: Value | undefined): Intervention | undefined {
  if (value === undefined) return undefined;
  const map = asMap(value) ?? {};
  return { since: asText(map['since']), by: asText(map['by']), why: asText(map['why']) };
}

export function asCount(value: Value | undefined): number | undefined {
  const number = asNumber(value);
  return number !== undefined && Number.isSafeInteger(number) && number >= 0 ? number : undefined;
}

/** A low number would be as bad as none: tokens, or versions, would be given a second time. */
const MENDED = {
  version: 'the epoch in milliseconds',
  leaseTransitions:
    'more than any token given so far (see the logs; in doubt, the epoch in seconds)',
};

/** Without these two nothing can be compared, and no token can be promised to rise. */
function corruption(lease: string, name: keyof typeof MENDED, item: Item): string | undefined {
  const value = item[name];
  if (value === undefined || asCount(value) !== undefined) return undefined;
  return (
    `The record of lease "${lease}" cannot be used: its ${name} is ${JSON.stringify(value)}, ` +
    `which is no count. Set it to ${MENDED[name]}; do not delete the record: that would restart ` +
    'its fencing tokens.'
  );
}

/** ISO 8601 in UTC with milliseconds, as every time of a record is written. */
export function isoTime(epochMs: number): string {
  return new Date(epochMs).toISOString();
}

/** Whether a number of epoch ms is a time of the calendar. */
export function isCalendarTime(epochMs: number): boolean {
  return Math.abs(epochMs) <= 8.64e15;
}

/** Where the namespace ends and the name begins. */
export function splitLeaseKey(key: string): { namespace: string; name: string } {
  const slash = key.indexOf('/');
  return { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
