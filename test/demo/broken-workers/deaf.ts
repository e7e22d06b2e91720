// A worker that takes the lease, and then never asks whether it still holds it.

import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkEvent, WorkResult } from '../../../functions/singleton-worker.ts';
import { withLease } from '../../../src/index.ts';

const { LEASE_NAME = '', LEASE_DURATION_SECONDS, WORK_URL = '' } = process.env;

export const handler = withLease(
  { name: LEASE_NAME, leaseDurationSeconds: Number(LEASE_DURATION_SECONDS) },
  async ({ steps = 10, stepMs = 100 }: WorkEvent, { lease }): Promise<WorkResult> => {
    const { fencingToken, holderIdentity } = lease;
    const tell = (what: object) =>
      fetch(WORK_URL, {
        method: 'POST',
        body: JSON.stringify({ ...what, fencingToken, holderIdentity }),
      });
    await tell({ do: 'begin' });
    for (let step = 1; step <= steps; step++) {
      await tell({ do: 'step', step });
      await sleep(stepMs);
    }
    await tell({ do: 'end' });
    return { steps, completed: true, fencingToken };
  },
);
