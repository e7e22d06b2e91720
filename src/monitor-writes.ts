// What the lifecycle monitor asks of the table, as data: which records it needs to look at, and its
// four writes. None of them can make a live holder lose a race: a verdict leaves the version alone,
// and an eviction is conditional on the version that was judged (L1).

import type { Condition } from './condition.ts';
import type { LeaseRecord } from './lease.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import { isOpen, writeVerdict, type Verdict } from './stored-verdict.ts';
import { latestExpiry, latestRenewal } from './verdict.ts';
import { unchanged, type Write } from './writes.ts';

/**
 * The records in which something may have to be done. Evaluated in the server; filters know no
 * arithmetic, so grace and toleration are left to the verdict.
 */
export function suspects(nowMs: number, retentionMs: number): Condition {
  const held: Condition = { not: { absent: 'holderIdentity' } };
  const evictedAsItIs: Condition = {
    all: [
      { equals: ['condition.status', { S: 'Evicted' }] },
      { same: ['condition.seen', 'version'] },
      { absent: 'condition.event' },
    ],
  };
  return {
    any: [
      {
        all: [
          { not: evictedAsItIs },
          {
            any: [
              { all: [held, { below: ['expireTime', nowMs] }] },
              { all: [held, { not: { below: ['expireTime', latestExpiry(nowMs)] } }] },
              { all: [held, { after: ['renewTime', latestRenewal(nowMs)] }] },
              { not: { absent: 'openVerdict' } },
              {
                all: [
                  held,
                  { equals: ['annotations.ready', { S: 'false' }] },
                  { not: { equals: ['kind', { S: 'leader' }] } },
                ],
              },
              {
                all: [
                  held,
                  { equals: ['kind', { S: 'leader' }] },
                  { not: { same: ['leaseTransitions', 'condition.token'] } },
                ],
              },
            ],
          },
        ],
      },
      {
        all: [
          { below: ['dueTime', nowMs] },
          { absent: 'suspended' },
          { not: { same: ['dueTime', 'condition.missed'] } },
        ],
      },
      {
        all: [
          evictedAsItIs,
          {
            any: [
              // Nothing is to be done for a lease without a leader, but it is counted.
              {
                all: [
                  { equals: ['kind', { S: 'leader' }] },
                  { absent: 'holderIdentity' },
                  { absent: 'suspended' },
                ],
              },
              // Heartbeats and identities that have been kept long enough.
              {
                all: [
                  { below: ['condition.since', nowMs - retentionMs] },
                  {
                    any: [
                      { equals: ['kind', { S: 'heartbeat' }] },
                      { equals: ['kind', { S: 'identity' }] },
                    ],
                  },
                ],
              },
            ],
          },
        ],
      },
    ],
  };
}

/** The heartbeats of a zone that count for its state: all that are held and not evicted. */
export function heartbeatsOfZones(): Condition {
  return {
    all: [
      { equals: ['kind', { S: 'heartbeat' }] },
      { not: { absent: 'holderIdentity' } },
      { not: { equals: ['condition.status', { S: 'Evicted' }] } },
    ],
  };
}

/** Of a record that is there: what somebody deleted meanwhile is not put back. */
export function flag(judged: LeaseRecord, verdict: Verdict): Write {
  const exists: Condition = { not: { absent: KEY_ATTRIBUTE } };
  return {
    condition: { all: [exists, unchanged(judged), verdictAsRead(judged)] },
    ...stored(verdict),
  };
}

/** A leader's lease is vacated and keeps its token (L2); of the others, the verdict is enough. */
export function evict(judged: LeaseRecord, verdict: Verdict, nowMs: number): Write {
  const write = flag(judged, verdict);
  if (judged.kind === 'heartbeat' || judged.kind === 'identity') return write;
  return {
    condition: write.condition,
    set: { ...write.set, version: { incrementFrom: nowMs } },
    remove: [...write.remove, 'holderIdentity', 'expireTime'],
  };
}

/** The record may have moved on since; the verdict has not. */
export function published(judged: LeaseRecord, verdict: Verdict): Write {
  return {
    condition: { all: [verdictAsRead(judged), { not: { absent: 'condition.event' } }] },
    ...stored({ ...verdict, event: undefined }),
  };
}

/** Conditional on what was judged: a renewal between the read and the delete survives. */
export function collect(judged: LeaseRecord): Condition {
  return {
    all: [
      unchanged(judged),
      verdictAsRead(judged),
      { not: { equals: ['kind', { S: 'leader' }] } },
      { not: { absent: 'kind' } },
    ],
  };
}

/** By its count, which rises with every verdict: some servers find no map equal to any. */
function verdictAsRead({ raw }: LeaseRecord): Condition {
  const { condition } = raw;
  const count = condition !== undefined && 'M' in condition ? condition.M['count'] : undefined;
  return count === undefined
    ? { absent: 'condition.count' }
    : { equals: ['condition.count', count] };
}

function stored(verdict: Verdict): Pick<Write, 'set' | 'remove'> {
  const condition = writeVerdict(verdict);
  return isOpen(verdict)
    ? { set: { condition, openVerdict: { N: String(verdict.sinceMs) } }, remove: [] }
    : { set: { condition }, remove: ['openVerdict'] };
}
