// What a holder writes of itself: from its options and one attempt to a claim.

import type { LeaseKind } from './schema.ts';
import type { Attempt, Attempts } from './tenure.ts';
import type { Acquisition, Claim } from './writes.ts';

export interface Claimant {
  readonly kind: LeaseKind;
  readonly trustClocks: boolean;
  readonly annotations: Readonly<Record<string, string>>;
  readonly labels: Readonly<Record<string, string>>;
  readonly published?: Published | undefined;
  /** A scheduled job's: see Acquisition. */
  readonly tickMs?: number | undefined;
}

/** What a heartbeat or an identity writes at every renewal besides: never a leader. */
export interface Published {
  /** How long after its expiry the record may be cleared away. */
  readonly retentionMs: number;
  readonly annotations: () => Readonly<Record<string, string>>;
}

export function claimOf(claimant: Claimant, { holderIdentity }: Attempts, attempt: Attempt): Claim {
  const { published } = claimant;
  const { stampMs, leaseDurationMs } = attempt;
  const claim = { holderIdentity, stampMs, leaseDurationMs, writeExpireTime: claimant.trustClocks };
  if (published === undefined) return claim;
  const clearedMs = stampMs + leaseDurationMs + published.retentionMs;
  return {
    ...claim,
    timeToLive: Math.ceil(clearedMs / 1_000),
    says: published.annotations(),
  };
}

export function acquisitionOf(
  claimant: Claimant,
  candidacy: Attempts,
  attempt: Attempt,
  knownTransitions: number,
): Acquisition {
  const claim = claimOf(claimant, candidacy, attempt);
  return {
    ...claim,
    kind: claimant.kind,
    nowMs: attempt.nowMs,
    knownTransitions,
    annotations: claim.says ?? claimant.annotations,
    labels: claimant.labels,
    tickMs: claimant.tickMs,
  };
}
