// What is said of a clock that took no lease: by how much it is off, and what to do.

import type { ClockStatus } from './clock-check.ts';
import { LeaseError } from './errors.ts';
import type { LeaseStore } from './store.ts';

export function clockWrong(
  lease: string,
  store: LeaseStore,
  status: Extract<ClockStatus, { kind: 'wrong' }>,
): LeaseError {
  const [most, least] = [status.lowerMs, status.upperMs].map((ms) => Math.round(-ms) / 1_000);
  return new LeaseError(
    'clock-wrong',
    `Lease "${lease}": this machine's clock is wrong by ${least ?? 0} to ${most ?? 0} s against ` +
      `${store.description}. Nothing is taken with it. Synchronise the clock (NTP), or set ` +
      'trustClocks to false.',
  );
}

export function clockUnproven(lease: string, store: LeaseStore, toleranceMs: number): LeaseError {
  return new LeaseError(
    'clock-unproven',
    `Lease "${lease}": ${store.description} answered too slowly to prove this machine's clock ` +
      `within the tolerance of ${toleranceMs / 1_000} s. The lease was given back. A longer ` +
      'leaseDurationSeconds allows slower answers.',
  );
}
