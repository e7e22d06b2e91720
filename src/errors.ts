// The one class of error. `code` says what happened; test it, or use isLeaseError: a program may
// carry two copies of this package, and `instanceof` would tell them apart.

import type { LeaseRecord } from './lease.ts';

/** What happened. */
export type LeaseErrorCode =
  /** An option or a lease name is wrong. Nothing was sent. */
  | 'invalid-configuration'
  /** Another holds the lease. `record` says who, with which token, until when. */
  | 'lease-held'
  /** An operator has stopped this lease. `record.suspended` says since when, by whom and why. */
  | 'lease-suspended'
  /** The lease is not to be taken yet. `record.notBeforeMs` says from when on. */
  | 'lease-not-before'
  /** A scheduled job's tick, or a newer one, has been completed already. */
  | 'tick-done'
  /** The event tells no tick that can be used. Nothing was sent. */
  | 'invalid-tick'
  /** A condition of your own in a guarded transaction failed; `cause` is the SDK's error. */
  | 'condition-failed'
  /** This tenure is over before its work was. `reason` says why. */
  | 'lease-lost'
  /** This tenure is to end: its work is asked to finish. `reason` says why. */
  | 'lease-stopped'
  /** No answer told what happened: time-out, reset, throttling, server error, credentials. */
  | 'store-unavailable'
  /** The role lacks a permission on the table. The message names the action. */
  | 'access-denied'
  /** There is no such table in this Region. */
  | 'table-not-found'
  /** The store refused the request itself: wrong key schema, wrong type of a value. */
  | 'request-refused'
  /** This machine's clock is off by more than the tolerance allows. Nothing is held. */
  | 'clock-wrong'
  /** The store answered too slowly to prove this machine's clock. Nothing is held. */
  | 'clock-unproven'
  /** Another client wrote a version or a token that is no count into the record. */
  | 'corrupt-record'
  /** The record has another kind: a heartbeat and a leader cannot share one name. */
  | 'kind-mismatch';

/** What an error may carry besides its code and its message. */
export interface LeaseErrorDetails {
  /** What was thrown below, as with any Error. */
  readonly cause?: unknown;
  /** The record that the store showed, where it did. */
  readonly record?: LeaseRecord;
  /** Why a tenure ended. */
  readonly reason?: string;
}

/** The one class of error. Test its `code`, or use `isLeaseError`. */
export class LeaseError extends Error {
  /** Always `LeaseError`. */
  override readonly name = 'LeaseError';
  /** What happened. */
  readonly code: LeaseErrorCode;
  /** The record that the store showed, where it did. */
  readonly record: LeaseRecord | undefined;
  /** Why a tenure ended, with `lease-lost` and `lease-stopped`. */
  readonly reason: string | undefined;

  /** For stores of your own; the message is for people. */
  constructor(code: LeaseErrorCode, message: string, details: LeaseErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.record = details.record;
    this.reason = details.reason;
  }
}

/** True for a LeaseError of any copy of this package, and of that code when one is given. */
export function isLeaseError(error: unknown, code?: LeaseErrorCode): error is LeaseError {
  return (
    error instanceof Error &&
    error.name === 'LeaseError' &&
    'code' in error &&
    (code === undefined || error.code === code)
  );
}

/** One line about whatever was thrown. */
export function describeError(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

export function asLeaseError(error: unknown): LeaseError {
  return isLeaseError(error)
    ? error
    : new LeaseError('store-unavailable', describeError(error), { cause: error });
}

/** Errors that no retry mends: somebody has to change something first. */
export function isPermanent(error: unknown): boolean {
  return (
    isLeaseError(error) &&
    [
      'invalid-configuration',
      'access-denied',
      'table-not-found',
      'request-refused',
      'corrupt-record',
      'kind-mismatch',
    ].includes(error.code)
  );
}
