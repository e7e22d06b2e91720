// A lease that is held, as the work under it sees it: its token, its signal, and what to put into
// a transaction so that it commits only under this tenure.

import type { Clock } from './clock.ts';
import type { LeaseError } from './errors.ts';
import { splitLeaseKey, type LeaseRecord } from './lease.ts';
import type { Random } from './random.ts';
import type { Tenure } from './tenure.ts';
import {
  conditionCheckItem,
  type ConditionCheckItem,
  type ItemFormat,
  type NativeConditionCheckItem,
  type Target,
} from './transaction-items.ts';
import { stillHeld } from './writes.ts';

/** A lease that is held, as the work under it sees it. */
export interface Lease extends AsyncDisposable {
  /** Its name, without the namespace. Of a slot: with its number. */
  readonly name: string;
  /** Its namespace. */
  readonly namespace: string;
  /** Who holds it: this tenure, and no other. */
  readonly holderIdentity: string;
  /**
   * Higher than that of every earlier tenure of this lease. Pass it to whatever must refuse a
   * holder that is over: only such a fence covers work that ignores its signal.
   */
  readonly fencingToken: number;
  /** Which of the slots this is, from 0, where several may be held at once. */
  readonly slot?: number;
  /**
   * Aborts when the lease is lost, or the work is to finish. `aborted` compares the clocks at each
   * look: after a freeze it is true before any timer has had a chance to fire.
   */
  readonly signal: AbortSignal;
  /** Whether this tenure may still act. Compares the clocks at each call. */
  isHeld(): boolean;
  /** How long it may still act if no further renewal succeeds; 0 once it is over. */
  remainingMs(): number;
  /**
   * For the `TransactItems` of a transaction of your own: it commits if and only if this tenure
   * still holds the lease at that moment, whatever any clock says. `sendGuarded` adds it by itself.
   * Native values, for TransactWriteCommand; with `{ marshalled: true }` for
   * TransactWriteItemsCommand.
   */
  conditionCheck(format?: { readonly marshalled?: false }): NativeConditionCheckItem;
  /** The same with marshalled values. */
  conditionCheck(format: { readonly marshalled: true }): ConditionCheckItem;
  /** Ends the tenure now, as if the work had returned: releases the lease, and waits for that. */
  release(): Promise<void>;
}

/**
 * The way from a lease to what keeps it, for the transactions of its work. A registered symbol: a
 * program may carry two copies of this package.
 */
const GUARD: unique symbol = Symbol.for('lambda-lease.guard') as never;

/**
 * Of the lease of a scheduled run: how often the completion of its tick has been given away. Where
 * it was more than once, nobody can tell which one completed it.
 */
export const COMPLETIONS: unique symbol = Symbol.for('lambda-lease.completions') as never;

export interface Guard {
  readonly clock: Clock;
  readonly random: Random;
  /** `namespace/name`. */
  readonly lease: string;
  readonly tableName: string;
  /** Runs when neither a renewal nor another transaction of this holder is under way. */
  inTurn<T>(run: () => Promise<T>): Promise<T>;
  /**
   * The check of a transaction failed on this record, where the server showed it. Ends the tenure
   * and tells why; undefined when the tenure goes on: then what failed was not about it.
   */
  refused(record: LeaseRecord | undefined): Promise<LeaseError | undefined>;
  /** A transaction that completes a tick has raised the version. */
  versionRaised(): void;
}

/** Undefined for a lease that nothing keeps: one that is only pretended. */
export function guardOf(lease: unknown): Guard | undefined {
  return (lease as { [GUARD]?: Guard } | undefined)?.[GUARD];
}

/** What keeps a lease, as far as its handle needs it. */
export interface Keeper extends Guard {
  readonly tenure: Tenure;
  readonly slot?: number | undefined;
  readonly abort: AbortController;
  readonly isHeld: () => boolean;
  readonly abortReason: () => LeaseError;
  readonly release: () => Promise<void>;
}

export function leaseHandle(keeper: Keeper): Lease {
  const { lease, tenure, slot, abort, isHeld, release, abortReason } = keeper;
  const { holderIdentity, fencingToken } = tenure;
  const { signal } = abort;
  // A timer may fire late, and after a freeze other callbacks may come before it: so the signal
  // itself compares the clocks when it is asked.
  Object.defineProperties(signal, {
    aborted: { get: () => !isHeld() || isAborted(signal) },
    throwIfAborted: {
      value: () => {
        if (isHeld() && !isAborted(signal)) return;
        throw isAborted(signal) ? signal.reason : abortReason();
      },
    },
  });
  const handle: Lease = {
    ...splitLeaseKey(lease),
    holderIdentity,
    fencingToken,
    ...(slot === undefined ? {} : { slot }),
    signal,
    isHeld,
    remainingMs: () => (isHeld() ? tenure.remainingMs() : 0),
    conditionCheck: checkOf(keeper, holderIdentity, fencingToken),
    release,
    [Symbol.asyncDispose]: release,
  };
  return Object.defineProperty(handle, GUARD, { value: keeper, enumerable: false });
}

function checkOf(target: Target, holderIdentity: string, fencingToken: number) {
  const check = (format?: ItemFormat) =>
    conditionCheckItem(target, stillHeld(holderIdentity, fencingToken), format);
  return check as Lease['conditionCheck'];
}

/** Which record a transaction under this lease has to do with. */
export function transactionTarget(lease: Lease): Target {
  const { tableName = PRETENDED_HOLDER } = guardOf(lease) ?? {};
  return { tableName, lease: `${lease.namespace}/${lease.name}` };
}

/** What the signal itself says, which may be late. */
export function isAborted(signal: AbortSignal): boolean {
  return Reflect.get(AbortSignal.prototype, 'aborted', signal);
}

/** The identity under `LEASE_DISABLED`, where everybody holds everything. */
export const PRETENDED_HOLDER = 'LEASE_DISABLED';

export function pretendedLease(key: string, slot?: number): Lease {
  const release = () => Promise.resolve();
  return {
    ...splitLeaseKey(key),
    holderIdentity: PRETENDED_HOLDER,
    fencingToken: 0,
    ...(slot === undefined ? {} : { slot }),
    signal: new AbortController().signal,
    isHeld: () => true,
    remainingMs: () => Infinity,
    conditionCheck: checkOf({ tableName: PRETENDED_HOLDER, lease: key }, PRETENDED_HOLDER, 0),
    release,
    [Symbol.asyncDispose]: release,
  };
}
