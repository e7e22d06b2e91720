// What a lock answers. Expected outcomes are values, not errors: held by another, lost, and the one
// that most protocols forget, nobody can tell.

import type { Decision } from './decide.ts';
import { asLeaseError, LeaseError } from './errors.ts';
import type { LeaseRecord } from './lease.ts';
import type { EndReason, Tenure } from './tenure.ts';

export type Waiting = Extract<Decision, { kind: 'wait' }>;

export interface AcquireOptions {
  /**
   * Takes also what another holds, exactly as it was read: for a newcomer that replaces its
   * predecessor by rule. It learns of that by its next renewal.
   */
  readonly evenHeld?: boolean;
  /** Takes what is vacant, or was held by this lock: nothing of another, expired or not. */
  readonly onlyOwn?: boolean;
}

export type AcquireAnswer =
  | { readonly kind: 'acquired'; readonly tenure: Tenure; readonly record: LeaseRecord }
  /** `raced`: another took it while we were trying. */
  | {
      readonly kind: 'refused';
      readonly waiting: Waiting;
      readonly record: LeaseRecord;
      readonly raced: boolean;
    }
  | { readonly kind: 'failed'; readonly error: LeaseError };

export type LookAnswer =
  | { readonly kind: 'seen'; readonly record: LeaseRecord; readonly decision: Decision }
  | { readonly kind: 'failed'; readonly error: LeaseError };

export type RenewAnswer =
  | { readonly kind: 'renewed'; readonly record: LeaseRecord }
  | { readonly kind: 'lost'; readonly reason: EndReason }
  | { readonly kind: 'unknown'; readonly error: LeaseError };

export type ReleaseAnswer =
  { readonly kind: 'released' } | { readonly kind: 'unknown'; readonly error: LeaseError };

/** Held by somebody, and nothing is known of how long. */
export const HELD: Waiting = { kind: 'wait', because: 'held', forMs: 0 };

export function lost(tenure: Tenure): RenewAnswer {
  return { kind: 'lost', reason: tenure.endReason ?? 'expired' };
}

export function failed(error: unknown): { kind: 'failed'; error: LeaseError } {
  return { kind: 'failed', error: asLeaseError(error) };
}

/** Other writes of its own came before it, each time: the lease is held, the note not written. */
export function overtaken(lease: string): RenewAnswer {
  const message = `Lease "${lease}": other writes came before this one.`;
  return { kind: 'unknown', error: new LeaseError('store-unavailable', message) };
}
