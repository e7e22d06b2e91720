// A lease as Kubernetes writes one: a coordination.k8s.io/v1 Lease where its fields exist there,
// and all that is ours in its status. Pure.

import { lastRunOf } from './job.ts';
import { summarise, tokenOf } from './lease-summary.ts';
import {
  asNumber,
  isCalendarTime,
  isoTime,
  splitLeaseKey,
  type Intervention,
  type LeaseRecord,
} from './lease.ts';
import { readNotes } from './operator-writes.ts';
import { readVerdict } from './stored-verdict.ts';

export interface LeaseManifest {
  readonly apiVersion: 'coordination.k8s.io/v1';
  readonly kind: 'Lease';
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly holderIdentity?: string;
    /** Whole seconds, as Kubernetes has it: rounded up. The exact one is in the status. */
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    /** Left out when the record's is no count. */
    readonly leaseTransitions?: number;
  };
  readonly status: Readonly<Record<string, unknown>>;
}

export interface LeaseListManifest {
  readonly apiVersion: 'coordination.k8s.io/v1';
  readonly kind: 'LeaseList';
  readonly metadata: Readonly<Record<string, never>>;
  readonly items: readonly LeaseManifest[];
}

/** The most that Kubernetes' leaseTransitions and leaseDurationSeconds can say. */
const LARGEST_INT32 = 2 ** 31 - 1;

export function leaseListManifest(items: readonly LeaseManifest[]): LeaseListManifest {
  return { apiVersion: 'coordination.k8s.io/v1', kind: 'LeaseList', metadata: {}, items };
}

export function leaseManifest(record: LeaseRecord, nowMs: number): LeaseManifest {
  const { version, holderIdentity, leaseDurationMs } = record;
  const token = tokenOf(record);
  const { labels, annotations } = textsOf(record);
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      ...splitLeaseKey(record.lease),
      ...present({
        resourceVersion: version === undefined ? undefined : String(version),
        labels: Object.keys(labels).length === 0 ? undefined : labels,
        annotations: Object.keys(annotations).length === 0 ? undefined : annotations,
      }),
    },
    spec: {
      ...present({
        holderIdentity,
        leaseDurationSeconds:
          leaseDurationMs === undefined ? undefined : Math.ceil(leaseDurationMs / 1_000),
        acquireTime: microTime(record.acquireTime),
        renewTime: microTime(record.renewTime),
        leaseTransitions: token === undefined ? undefined : Math.min(token, LARGEST_INT32),
      }),
    },
    status: statusOf(record, nowMs),
  };
}

/** The holder's and the operators' together; of what the holder says of itself, the holder's. */
export function textsOf(record: LeaseRecord) {
  const notes = readNotes(record);
  return {
    labels: { ...notes.labels, ...record.labels },
    annotations: { ...notes.annotations, ...record.annotations },
  };
}

function statusOf(record: LeaseRecord, nowMs: number): Record<string, unknown> {
  const { raw, leaseDurationMs } = record;
  const summary = summarise(record, nowMs);
  const verdict = readVerdict(record);
  const run = lastRunOf(record);
  return present({
    phase: summary.status,
    reason: summary.detail,
    kind: record.kind,
    fencingToken: summary.token,
    leaseDurationSeconds: leaseDurationMs === undefined ? undefined : leaseDurationMs / 1_000,
    expireTime: timeOf(record.expireTimeMs),
    notBefore: timeOf(record.notBeforeMs),
    corrupt: record.corrupt,
    suspended: statement(record.suspended),
    stepDownRequested: statement(record.stepDownRequested),
    lastTick: timeOf(record.lastTickMs),
    dueTime: timeOf(asNumber(raw['dueTime'])),
    lastRun: run && {
      ...present({
        start: run.start?.toISOString(),
        end: run.end?.toISOString(),
        outcome: run.outcome,
        error: run.error,
        fencingToken: run.fencingToken,
      }),
      failures: run.failures,
    },
    condition:
      verdict &&
      present({
        status: verdict.status,
        reason: verdict.reason,
        since: timeOf(verdict.sinceMs),
        seenVersion: verdict.seen === '' ? undefined : verdict.seen,
        unpublishedEvent: verdict.event?.type,
      }),
    logs: summary.logLink,
  });
}

function statement(intervention: Intervention | undefined): object | undefined {
  return intervention && present({ ...intervention });
}

export function timeOf(epochMs: number | undefined): string | undefined {
  return epochMs === undefined || !isCalendarTime(epochMs) ? undefined : isoTime(epochMs);
}

/** Kubernetes' MicroTime: RFC 3339 with six digits. What is no time is left out. */
function microTime(text: string | undefined): string | undefined {
  const epochMs = text === undefined ? NaN : Date.parse(text);
  if (Number.isNaN(epochMs)) return undefined;
  const iso = isoTime(epochMs);
  // Beyond the year 9999 ISO 8601 has a sign, which RFC 3339 has not.
  return /^\d{4}-/.test(iso) ? iso.replace(/Z$/, '000Z') : undefined;
}

type Present<T> = { readonly [Name in keyof T]?: Exclude<T[Name], undefined> };

function present<T extends object>(all: T): Present<T> {
  return Object.fromEntries(
    Object.entries(all).filter(([, value]) => value !== undefined),
  ) as Present<T>;
}
