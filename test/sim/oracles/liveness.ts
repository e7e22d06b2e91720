// What must come right by itself once nothing goes wrong any more.

import { boundsOf } from '../bounds.ts';
import type { Found, Oracle } from './violation.ts';

export const somebodyLeads: Oracle = {
  holds: 'once faults end, somebody leads within the lease, two retries and the round trips',
  check: (history, plan) => {
    const settled = history.find(({ kind }) => kind === 'settled');
    if (settled === undefined) return [];
    const bounds = boundsOf(plan);
    const keys = new Set(plan.contenders.map(({ leaseName }) => `default/${leaseName}`));
    return [...keys].flatMap((key): Found[] => {
      const patient =
        plan.contenders.some((it) => `default/${it.leaseName}` === key && !it.trustClocks) ||
        history.some(
          (it) =>
            (it.kind === 'applied' && it.lease === key && it.by === 'table') ||
            (it.kind === 'stopped' && it.lease === key && it.atMs > settled.atMs - bounds.leadMs),
        );
      const boundMs = patient ? bounds.leadPatientlyMs : bounds.leadMs;
      const led = history.some(
        (it) =>
          (it.kind === 'started' || (it.kind === 'looked' && it.held)) &&
          it.lease === key &&
          it.atMs >= settled.atMs &&
          it.atMs <= settled.atMs + boundMs,
      );
      if (led) return [];
      const message = `Nobody led ${key} within ${boundMs / 1_000} s after the last fault.`;
      return [{ atMs: settled.atMs + boundMs, message }];
    });
  },
};
