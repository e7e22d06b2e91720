// The columns in which leases are listed, and the orders they can be listed in. Pure.

import { humanDuration } from './ages.ts';
import { leaseManifest, timeOf, type LeaseManifest } from './cli-manifest.ts';
import type { Colour, Column } from './cli-text.ts';
import { summarise, SUMMARY_STATUSES, type LeaseSummary } from './lease-summary.ts';
import { splitLeaseKey, type LeaseRecord } from './lease.ts';
import { invalid, show } from './options.ts';

/** A record as it is listed at one moment. */
export interface Listed {
  readonly record: LeaseRecord;
  readonly summary: LeaseSummary;
  readonly nowMs: number;
}

export function listed(record: LeaseRecord, nowMs: number): Listed {
  return { record, summary: summarise(record, nowMs), nowMs };
}

const STATUS_COLOURS: Record<LeaseSummary['status'], Colour> = {
  Evicted: 'red',
  NotReady: 'red',
  Expired: 'yellow',
  Unknown: 'yellow',
  Suspended: 'cyan',
  Vacant: 'grey',
  Ready: 'green',
};

const namespace: Column<Listed> = {
  title: 'NAMESPACE',
  cell: ({ record }) => splitLeaseKey(record.lease).namespace,
  shrinksTo: 9,
};
const name: Column<Listed> = {
  title: 'NAME',
  cell: ({ record }) => splitLeaseKey(record.lease).name,
  shrinksTo: 12,
};
const holder: Column<Listed> = { title: 'HOLDER', cell: holderOf, shrinksTo: 8 };
const status: Column<Listed> = {
  title: 'STATUS',
  cell: ({ summary }) => summary.status,
  colour: ({ summary }) => STATUS_COLOURS[summary.status],
};
const age: Column<Listed> = {
  title: 'AGE',
  cell: ({ summary }) => (summary.ageMs === undefined ? '<none>' : humanDuration(summary.ageMs)),
};
const expires: Column<Listed> = { title: 'EXPIRES', cell: expiryOf };
const token: Column<Listed> = {
  title: 'TOKEN',
  cell: ({ summary }) => String(summary.token ?? '<unknown>'),
};
const detail: Column<Listed> = {
  title: 'DETAIL',
  cell: ({ summary }) => summary.detail ?? '<none>',
  shrinksTo: 8,
};

export const LEASE_COLUMNS = [name, holder, status, age, expires, token];

export const WIDE_COLUMNS: readonly Column<Listed>[] = [
  ...LEASE_COLUMNS,
  { title: 'KIND', cell: ({ record }) => record.kind ?? '<none>' },
  {
    title: 'DURATION',
    cell: ({ record: { leaseDurationMs } }) =>
      leaseDurationMs === undefined ? '<unknown>' : humanDuration(leaseDurationMs),
  },
  { title: 'VERSION', cell: ({ record }) => String(record.version ?? '<none>') },
  detail,
  { title: 'LOG-STREAM', cell: ({ summary }) => summary.logStream ?? '<none>' },
];

export const TOP_COLUMNS = [
  name,
  holder,
  status,
  age,
  expires,
  token,
  { title: 'DETAIL', cell: ({ summary }: Listed) => summary.detail ?? '', shrinksTo: 2 },
];

export const IDENTITY_COLUMNS: readonly Column<Listed>[] = [
  name,
  {
    title: 'ALIVE',
    cell: ({ record, summary }) =>
      record.vacant ? 'no' : summary.leftMs === undefined ? '<unknown>' : yes(summary.leftMs >= 0),
    colour: ({ summary: { leftMs } }) =>
      leftMs === undefined ? undefined : leftMs >= 0 ? 'green' : 'red',
  },
  { title: 'READY', cell: ({ record }) => yes(record.annotations['ready'] !== 'false') },
  { title: 'FUNCTION', cell: ({ record }) => record.labels['function'] ?? '<none>', shrinksTo: 8 },
  { title: 'VERSION', cell: ({ record }) => record.labels['version'] ?? '<none>' },
  { title: 'ALIAS', cell: ({ record }) => record.labels['alias'] ?? '<none>' },
  { title: 'REGION', cell: ({ record }) => record.labels['region'] ?? '<none>' },
  age,
];

/** With the namespaces in front, where leases of several are listed. */
export function inNamespaces(columns: readonly Column<Listed>[]): readonly Column<Listed>[] {
  return [namespace, ...columns];
}

function yes(is: boolean): string {
  return is ? 'yes' : 'no';
}

export function holderOf({ summary }: Listed): string {
  if (summary.vacant) return '<none>';
  return summary.holderIdentity ?? '<unknown>';
}

function expiryOf({ summary: { vacant, leftMs } }: Listed): string {
  if (vacant) return '<none>';
  if (leftMs === undefined) return '<unknown>';
  return leftMs >= 0 ? `in ${humanDuration(leftMs)}` : `${humanDuration(-leftMs)} ago`;
}

type Key = string | number | undefined;
export const ORDERS: Readonly<Record<string, (row: Listed) => Key>> = {
  name: ({ record }) => record.lease,
  namespace: ({ record }) => record.lease,
  holder: ({ summary }) => summary.holderIdentity,
  status: ({ summary }) => SUMMARY_STATUSES.indexOf(summary.status),
  age: ({ summary }) => summary.ageMs,
  expires: ({ summary }) => summary.leftMs,
  token: ({ summary }) => summary.token,
  kind: ({ record }) => record.kind,
};

/**
 * By a column, or by a field of the manifest as kubectl's `--sort-by=.spec.renewTime`; what has no
 * value comes last, and what is equal goes by name.
 * @throws LeaseError `invalid-configuration` for what is neither.
 */
export function sorted(rows: readonly Listed[], by = 'name'): Listed[] {
  const key = orderOf(by);
  return rows
    .map((row) => ({ row, key: key(row) }))
    .sort((a, b) => compare(a.key, b.key) || compare(a.row.record.lease, b.row.record.lease))
    .map(({ row }) => row);
}

/** Whether there is anything to sort by: a field that none has is most likely misspelled. */
export function canBeSorted(rows: readonly Listed[], by = 'name'): boolean {
  const key = orderOf(by);
  return !by.includes('.') || rows.length === 0 || rows.some((row) => key(row) !== undefined);
}

function orderOf(by: string): (row: Listed) => Key {
  const known = Object.hasOwn(ORDERS, by) ? ORDERS[by] : undefined;
  if (known !== undefined) return known;
  const path = /^\{?\.([A-Za-z.]+)\}?$/.exec(by)?.[1]?.split('.');
  if (path === undefined) {
    throw invalid(
      `--sort-by is ${show(by)}; it must be one of ${Object.keys(ORDERS).join(', ')}, or a ` +
        'field such as .spec.renewTime.',
    );
  }
  return ({ record, nowMs }) => fieldAt(leaseManifest(record, nowMs), path);
}

function fieldAt(manifest: LeaseManifest, path: readonly string[]): Key {
  let value: unknown = manifest;
  for (const part of path) {
    const here: unknown = value;
    value =
      typeof here === 'object' && here !== null && Object.hasOwn(here, part)
        ? (here as Record<string, unknown>)[part]
        : undefined;
  }
  return typeof value === 'number' || typeof value === 'string' ? value : undefined;
}

function compare(a: Key, b: Key): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined);
  return a < b ? -1 : a > b ? 1 : 0;
}

/** What distinguishes one look at a lease from the next; renewals alone are no difference. */
export function stateOf({ record, summary }: Listed): string {
  return JSON.stringify([
    record.kind,
    record.raw['holderIdentity'],
    record.leaseTransitions,
    summary.status,
    summary.detail,
    record.stepDownRequested?.since,
    timeOf(record.lastTickMs),
  ]);
}
