// Who takes part. A new kind of actor is a `Main` more: it gets a process with clocks, a client and
// chances, and the stage; it tells the watch of each lease that it holds, and writes its effects
// through the resource. A job on a schedule passes its tick there, which an oracle counts.

import type { Main } from '../host.ts';
import type { Plan } from '../plan.ts';
import { blocksMain } from './blocks.ts';
import { electorMain } from './elector.ts';
import { invocationsMain } from './invocations.ts';
import { monitorMain } from './monitor.ts';
import { workerMain } from './worker.ts';

export interface Actor {
  readonly host: string;
  readonly main: Main;
  readonly trustClocks: boolean;
}

const CONTENDERS = { elector: electorMain, handler: invocationsMain, block: blocksMain } as const;

export function actorsOf({ contenders, workers, monitors }: Plan): Actor[] {
  return [
    ...contenders.map((plan) => ({ ...plan, main: CONTENDERS[plan.kind](plan) })),
    ...workers.map((plan) => ({ ...plan, main: workerMain(plan) })),
    ...monitors.map((plan) => ({ ...plan, main: monitorMain(plan), trustClocks: true })),
  ];
}
