// Who takes part. A new kind of actor is a `Main` more: it gets a process with clocks, a client and
// chances, and the stage; it tells the watch of each lease that it holds, and writes its effects
// through the resource.

import type { Main } from '../host.ts';
import type { Plan } from '../plan.ts';
import { Deliveries } from '../deliveries.ts';
import { beatingMain } from './beating.ts';
import { blocksMain } from './blocks.ts';
import { electorMain } from './elector.ts';
import { invocationsMain } from './invocations.ts';
import { jobMain } from './job.ts';
import { monitorMain } from './monitor.ts';
import { workerMain } from './worker.ts';

export interface Actor {
  readonly host: string;
  readonly main: Main;
  readonly trustClocks: boolean;
}

const CONTENDERS = { elector: electorMain, handler: invocationsMain, block: blocksMain } as const;

export function actorsOf({ seed, contenders, workers, monitors, jobs }: Plan): Actor[] {
  return [
    ...contenders.map((plan) => ({ ...plan, main: CONTENDERS[plan.kind](plan) })),
    ...workers.map((plan) => ({
      ...plan,
      main: plan.beside ? beatingMain(plan) : workerMain(plan),
    })),
    ...monitors.map((plan) => ({ ...plan, main: monitorMain(plan), trustClocks: true })),
    ...jobs.flatMap((plan) => {
      const main = jobMain(plan, new Deliveries(seed, plan));
      return plan.hosts.map((host) => ({ host, main, trustClocks: plan.trustClocks }));
    }),
  ];
}
