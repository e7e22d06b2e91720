// Every write of a leader's lease, as data. A store carries them out; it decides nothing.
//
// Each is one conditional update of one item (L1). Attributes that a write does not name survive
// it, a user's and a newer version's too. Every effect is a plain value but one: the count that
// goes up by one wherever it stands.

import type { Condition } from './condition.ts';
import { isoTime, type LeaseRecord, type Value } from './lease.ts';
import type { AttributeName, LeaseKind } from './schema.ts';

/** The attribute's value plus one, or `from` plus one where there is none. */
export interface Increment {
  readonly incrementFrom: number;
}

export interface Write {
  readonly condition: Condition;
  readonly set: Readonly<Partial<Record<AttributeName, Value | Increment>>>;
  readonly remove: readonly AttributeName[];
}

/** What a holder writes of itself, at acquisition and at each renewal. */
export interface Claim {
  readonly holderIdentity: string;
  /** The moment of this write, read before it was sent, in epoch ms. */
  readonly stampMs: number;
  readonly leaseDurationMs: number;
  /** False for a holder that trusts no clocks: nobody shall judge it by one. */
  readonly writeExpireTime: boolean;
  /**
   * Epoch seconds: when DynamoDB may clear the record away. Moves with each renewal. Never on a
   * leader's lease, whose token must last (L2).
   */
  readonly timeToLive?: number | undefined;
  /** Annotations that a holder writes at every renewal, such as its readiness. */
  readonly says?: Readonly<Record<string, string>> | undefined;
}

/** What an acquisition writes besides. */
export interface Acquisition extends Claim {
  readonly kind: LeaseKind;
  /** The wall clock before this write was sent, in epoch ms: what judges the record's times. */
  readonly nowMs: number;
  /** The highest token known for this lease: a record created anew starts above it (L2). */
  readonly knownTransitions: number;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  /** A scheduled job's: taken only for a tick later than the last completed one. Epoch ms. */
  readonly tickMs?: number | undefined;
}

/** What a scheduled job writes of its run, with a write that its holder makes anyway. */
export interface JobNote {
  readonly set: Readonly<Partial<Record<'lastTick' | 'dueTime' | 'run' | 'notBefore', Value>>>;
  readonly remove: readonly 'dueTime'[];
}

/** Which leases an acquisition may take. */
export type Takeable =
  /** Vacant, or expired by a clock that has been checked. */
  | 'vacant or expired'
  /** Only vacant, with nothing about it that a clock must judge. */
  | 'vacant'
  /** Exactly what was read, whatever it says: judged already, by observation or after reading. */
  | { readonly asRead: LeaseRecord };

const VACANT: Condition = { absent: 'holderIdentity' };

export function acquire(claim: Acquisition, takeable: Takeable): Write {
  return {
    condition: { all: [mayTake(takeable, claim.nowMs), gate(claim)] },
    set: {
      kind: { S: claim.kind },
      acquireTime: { S: isoTime(claim.stampMs) },
      ...claimed(claim),
      leaseTransitions: { incrementFrom: claim.knownTransitions },
      // Starting at the epoch, a record that was deleted and created again never meets a version
      // of its former life.
      version: { incrementFrom: claim.stampMs },
      annotations: { M: textMap(claim.annotations) },
      ...(Object.keys(claim.labels).length > 0 ? { labels: { M: textMap(claim.labels) } } : {}),
    },
    remove: [
      ...(claim.writeExpireTime ? [] : (['expireTime'] as const)),
      'notBefore',
      'stepDownRequested',
    ],
  };
}

/** `version` is the one known before this write; the write makes it one more. */
export function renew(claim: Claim, version: number, note?: JobNote): Write {
  return {
    condition: heldAt(claim.holderIdentity, version),
    set: { ...claimed(claim), ...note?.set, version: { N: String(version + 1) } },
    remove: [...(claim.writeExpireTime ? [] : (['expireTime'] as const)), ...(note?.remove ?? [])],
  };
}

/** Vacates the lease and keeps the record, with its token (L2). */
export function release(holderIdentity: string, version: number, note?: JobNote): Write {
  return {
    condition: heldAt(holderIdentity, version),
    set: { ...note?.set, version: { N: String(version + 1) } },
    remove: ['holderIdentity', 'expireTime', ...(note?.remove ?? [])],
  };
}

/**
 * The tenure still holds the lease, whatever its version: for a transaction of its work. No clock
 * is involved, and no renewal disturbs it.
 */
export function stillHeld(holderIdentity: string, fencingToken: number): Condition {
  return {
    all: [
      { equals: ['holderIdentity', { S: holderIdentity }] },
      { equals: ['leaseTransitions', { N: String(fencingToken) }] },
    ],
  };
}

/**
 * The same, and the completion of a tick, which commits with the work's own effects. `dueMs`: when
 * the next completion is overdue; a run that is killed after this says no more.
 */
export function completeTick(
  holderIdentity: string,
  fencingToken: number,
  tickMs: number,
  dueMs?: number,
): Write {
  return {
    condition: { all: [stillHeld(holderIdentity, fencingToken), tickOpen(tickMs)] },
    set: {
      lastTick: { N: String(tickMs) },
      ...(dueMs === undefined ? {} : { dueTime: { N: String(dueMs) } }),
      // A record that is held has a version.
      version: { incrementFrom: 0 },
    },
    remove: [],
  };
}

/** Deletes the record of a clean stop: not for a leader's lease, which keeps its token (L2). */
export function remove(holderIdentity: string, version: number): Condition {
  return heldAt(holderIdentity, version);
}

function claimed(claim: Claim): Write['set'] {
  return {
    holderIdentity: { S: claim.holderIdentity },
    leaseDurationSeconds: { N: String(claim.leaseDurationMs / 1_000) },
    renewTime: { S: isoTime(claim.stampMs) },
    ...(claim.writeExpireTime
      ? { expireTime: { N: String(claim.stampMs + claim.leaseDurationMs) } }
      : {}),
    ...(claim.timeToLive === undefined ? {} : { timeToLive: { N: String(claim.timeToLive) } }),
    ...(claim.says === undefined ? {} : { annotations: { M: textMap(claim.says) } }),
  };
}

function mayTake(takeable: Takeable, nowMs: number): Condition {
  if (takeable === 'vacant or expired') {
    return { any: [VACANT, { below: ['expireTime', nowMs] }] };
  }
  if (takeable === 'vacant') return { all: [VACANT, { absent: 'notBefore' }] };
  return unchanged(takeable.asRead);
}

/** V: the record is still the one that was read. */
export function unchanged({ version, raw }: LeaseRecord): Condition {
  if (version !== undefined) return { equals: ['version', { N: String(version) }] };
  return {
    all: [{ absent: 'version' }, asRead('holderIdentity', raw), asRead('renewTime', raw)],
  };
}

/** What every way to take a lease asks besides. */
function gate(claim: Acquisition): Condition {
  return {
    all: [
      { any: [{ absent: 'kind' }, { equals: ['kind', { S: claim.kind }] }] },
      { absent: 'suspended' },
      { any: [{ not: { isNumber: 'notBefore' } }, { below: ['notBefore', claim.nowMs] }] },
      ...(claim.tickMs === undefined ? [] : [tickOpen(claim.tickMs)]),
    ],
  };
}

/** No tick as late as this one has been completed. A garbage lastTick is none. */
function tickOpen(tickMs: number): Condition {
  return { any: [{ not: { isNumber: 'lastTick' } }, { below: ['lastTick', tickMs] }] };
}

function heldAt(holderIdentity: string, version: number): Condition {
  return {
    all: [
      { equals: ['version', { N: String(version) }] },
      { equals: ['holderIdentity', { S: holderIdentity }] },
    ],
  };
}

export function asRead(name: AttributeName, raw: LeaseRecord['raw']): Condition {
  const value = raw[name];
  return value === undefined ? { absent: name } : { equals: [name, value] };
}

function textMap(texts: Readonly<Record<string, string>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(texts).map(([name, text]) => [name, { S: text }]));
}
