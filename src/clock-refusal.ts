// What a contender is told whose clock cannot be trusted with a lease.

import type { ClockStatus } from './clock-check.ts';
import { LeaseError } from './errors.ts';

type Wrong = Extract<ClockStatus, { kind: 'wrong' }>;

export function clockWrong(lease: string, store: string, status: Wrong): LeaseError {
  const offset = [status.lowerMs, status.upperMs].map((ms) => Math.round(-ms) / 1_000);
  return new LeaseError(
    'clock-wrong',
    `Lease "${lease}": this machine's clock is wrong by ${offset[1] ?? 0} to ` +
      `${offset[0] ?? 0} s against ${store}. Nothing is taken with it. ` +
      'Synchronise the clock (NTP), or set trustClocks to false.',
  );
}

export function clockUnproven(
  lease: string,
  store: string,
  { toleranceMs }: { readonly toleranceMs: number },
): LeaseError {
  return new LeaseError(
    'clock-unproven',
    `Lease "${lease}": ${store} answered too slowly to prove this ` +
      `machine's clock within the tolerance of ${toleranceMs / 1_000} s. The ` +
      'lease was given back. A longer leaseDurationSeconds allows slower answers.',
  );
}
