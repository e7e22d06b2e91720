// What has changed of a lease between two looks, in words. Pure. Renewals are no change.

import { humanDuration } from './ages.ts';
import { summarise, type LeaseSummary } from './lease-summary.ts';
import type { Intervention, LeaseRecord } from './lease.ts';
import { lastRunOf } from './job.ts';

export interface LookedBefore {
  /** When `before` was looked at: what only time has changed since is a change. */
  readonly beforeMs: number;
  /** Everything is new, and is told as it stands. */
  readonly first: boolean;
}

export function changesOf(
  before: LeaseRecord | undefined,
  after: LeaseRecord | undefined,
  nowMs: number,
  { beforeMs, first }: LookedBefore,
): string[] {
  if (after === undefined) return before === undefined ? [] : ['record deleted'];
  if (before === undefined)
    return [first ? asItStands(after, nowMs) : `new: ${asItStands(after, nowMs)}`];
  const was = summarise(before, beforeMs);
  const is = summarise(after, nowMs);
  const changes: string[] = [];
  const acquired =
    after.leaseTransitions !== before.leaseTransitions ||
    (!after.vacant && after.holderIdentity !== before.holderIdentity);
  if (acquired && !after.vacant) {
    changes.push(`acquired by ${holderOf(after)} (token ${tokenIn(is)})`);
  } else if (after.vacant && (!before.vacant || acquired)) {
    changes.push(is.status === 'Evicted' ? `evicted: ${holderOf(before)}` : 'vacant');
  }
  if (isPast(is) && !isPast(was)) changes.push(expiry(after, is));
  changes.push(...statement('suspended', 'resumed', before.suspended, after.suspended));
  if (after.stepDownRequested?.since !== before.stepDownRequested?.since) {
    changes.push(...statement('asked to step down', '', undefined, after.stepDownRequested));
  }
  const [ranBefore, ran] = [lastRunOf(before), lastRunOf(after)];
  if (ran !== undefined && ran.end?.getTime() !== ranBefore?.end?.getTime()) {
    changes.push(`run ${ran.outcome ?? 'ended'}${ran.error === undefined ? '' : `: ${ran.error}`}`);
  }
  const told = changes.length > 0 || after.suspended !== undefined;
  // Of a holder only: what is vacant may be taken again by and by.
  const another = is.status !== was.status || (!after.vacant && is.detail !== was.detail);
  if (another && !told) {
    changes.push(is.detail === undefined ? is.status : `${is.status}: ${is.detail}`);
  }
  return changes;
}

function isPast({ leftMs }: LeaseSummary): boolean {
  return leftMs !== undefined && leftMs < 0;
}

/** The first sign that a holder was killed: nobody says goodbye. */
function expiry({ renewTime }: LeaseRecord, { leftMs = 0 }: LeaseSummary): string {
  const since = renewTime === undefined ? '' : `, not renewed since ${renewTime}`;
  return `expired ${humanDuration(-leftMs)} ago${since}`;
}

function tokenIn({ token }: LeaseSummary): string {
  return String(token ?? '<unknown>');
}

function asItStands(record: LeaseRecord, nowMs: number): string {
  const summary = summarise(record, nowMs);
  const { status, detail, leftMs } = summary;
  const words = [status.toLowerCase()];
  if (detail !== undefined) words.push(`(${detail})`);
  if (record.vacant) return words.join(' ');
  words.push(`held by ${holderOf(record)} (token ${tokenIn(summary)})`);
  if (leftMs !== undefined) {
    words.push(
      leftMs >= 0 ? `expires in ${humanDuration(leftMs)}` : `expired ${humanDuration(-leftMs)} ago`,
    );
  }
  return words.join(', ').replace(', (', ' (');
}

function holderOf(record: LeaseRecord): string {
  return record.holderIdentity ?? 'somebody';
}

function statement(
  set: string,
  lifted: string,
  before: Intervention | undefined,
  after: Intervention | undefined,
): string[] {
  if (before === undefined && after === undefined) return [];
  if (after === undefined) return [lifted];
  if (before !== undefined && before.since === after.since) return [];
  const { by, why } = after;
  return [`${set}${by === undefined ? '' : ` by ${by}`}${why === undefined ? '' : `: ${why}`}`];
}
