// A worker of which only one works at a time, however often and wherever it is invoked; on a
// schedule, one for each tick of it, however often that is delivered.
//
// The invocation that gets the lease does its work in small steps, and looks before each step
// whether it still holds the lease. The others are told who does, and return at once.

import { setTimeout as sleep } from 'node:timers/promises';
import { scheduledSingleton, withLease, type LambdaContext, type Lease } from '../src/index.ts';

export interface WorkEvent {
  /** How many steps there are to do. Default: `WORK_STEPS`, or 10. */
  readonly steps?: number;
  /** How long each of them takes. Default: `WORK_STEP_MS`, or 1000. */
  readonly stepMs?: number;
  /** The tick, when a schedule invokes it. */
  readonly scheduledTime?: string;
}

export interface WorkResult {
  readonly steps: number;
  readonly completed: boolean;
  readonly fencingToken: number;
}

const { LEASE_NAME, LEASE_DURATION_SECONDS, LEASE_PERIOD_SECONDS } = process.env;
const { WORK_URL, WORK_STEPS, WORK_STEP_MS } = process.env;

// Two jobs must never share a lease by accident: there is no default name.
if (!LEASE_NAME) throw new Error('LEASE_NAME is not set: name the lease that this worker needs.');

const options = {
  name: LEASE_NAME,
  // Without a duration the lease covers the whole invocation. With a short one it is renewed while
  // the work goes on, and a worker that crashes is replaced that much sooner.
  ...(LEASE_DURATION_SECONDS ? { leaseDurationSeconds: Number(LEASE_DURATION_SECONDS) } : {}),
};

const onSchedule = scheduledSingleton(
  // With its period the monitor tells of a tick that was not completed in time.
  { ...options, ...(LEASE_PERIOD_SECONDS ? { periodSeconds: Number(LEASE_PERIOD_SECONDS) } : {}) },
  work,
);
const onDemand = withLease(options, work);

export const handler = (event: WorkEvent, context: LambdaContext) =>
  event.scheduledTime === undefined ? onDemand(event, context) : onSchedule(event, context);

async function work(event: WorkEvent, { lease }: { lease: Lease }): Promise<WorkResult> {
  const steps = event.steps ?? Number(WORK_STEPS ?? 10);
  const stepMs = event.stepMs ?? Number(WORK_STEP_MS ?? 1_000);

  await tell(lease, { do: 'begin' });
  let done = 0;
  while (done < steps && !lease.signal.aborted) {
    done += 1;
    await tell(lease, { do: 'step', step: done });
    await sleep(stepMs);
  }
  if (!lease.signal.aborted) await tell(lease, { do: 'end' });
  return { steps: done, completed: done === steps, fencingToken: lease.fencingToken };
}

/** The visible part of the work: a log line, and a request to another system where there is one. */
async function tell(lease: Lease, message: { do: string; step?: number }): Promise<void> {
  const { fencingToken, holderIdentity } = lease;
  const body = JSON.stringify({ ...message, fencingToken, holderIdentity });
  console.log(body);
  if (!WORK_URL) return;

  // The token tells that system whose work is the newer; the signal takes back a request that is
  // still on its way when the lease is lost.
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(WORK_URL, { method: 'POST', headers, body, signal: lease.signal });
  if (!response.ok) throw new Error(`${WORK_URL} answered ${response.status}.`);
  await response.arrayBuffer();
}
