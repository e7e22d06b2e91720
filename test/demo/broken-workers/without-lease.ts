// A worker that asks for no lease: whoever is invoked works.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkEvent, WorkResult } from '../../../functions/singleton-worker.ts';

const { WORK_URL = '', AWS_LAMBDA_LOG_STREAM_NAME = '' } = process.env;

export async function handler({ steps = 10, stepMs = 100 }: WorkEvent): Promise<WorkResult> {
  const holderIdentity = `${AWS_LAMBDA_LOG_STREAM_NAME}/${randomUUID()}`;
  const tell = (what: object) =>
    fetch(WORK_URL, {
      method: 'POST',
      body: JSON.stringify({ ...what, fencingToken: 1, holderIdentity }),
    });
  await tell({ do: 'begin' });
  for (let step = 1; step <= steps; step++) {
    await tell({ do: 'step', step });
    await sleep(stepMs);
  }
  await tell({ do: 'end' });
  return { steps, completed: true, fencingToken: 1 };
}
