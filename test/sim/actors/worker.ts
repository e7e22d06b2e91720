// A process that says that it is alive: a heartbeat or an identity.

import { isLeaseError } from '../../../src/errors.ts';
import { sleep } from '../../../src/clock.ts';
import { Heartbeat } from '../../../src/heartbeat.ts';
import { Identity } from '../../../src/identity.ts';
import type { Main } from '../host.ts';
import type { WorkerPlan } from '../plan.ts';

export function workerMain(plan: WorkerPlan): Main {
  return async (process, stage) => {
    const { dice, machine, client, logger, stopping } = process;
    const durationMs = plan.durationSeconds * 1_000;
    const options = {
      name: plan.leaseName,
      leaseDurationSeconds: plan.durationSeconds,
      store: client,
      clock: machine,
      random: dice,
      logger,
      trustClocks: plan.trustClocks,
      ...(plan.zone === undefined ? {} : { labels: { zone: plan.zone } }),
    };
    const publisher =
      plan.kind === 'heartbeat'
        ? new Heartbeat({ ...options, replace: dice.chance(0.5) })
        : new Identity(options);
    const over = () => stopping.aborted || publisher.health().state === 'replaced';
    while (!stopping.aborted) {
      try {
        await publisher.start();
        while (!over()) {
          await sleep(machine, durationMs * dice.between(0.2, 3), stopping);
          if (!stage.calm && dice.chance(0.2)) void publisher.setReady(dice.chance(0.5), 'busy');
          else if (stage.calm) void publisher.setReady(true);
          if (!stage.calm && dice.chance(0.05)) {
            await publisher.stop();
            await sleep(machine, durationMs * dice.between(0, 2), stopping);
            break;
          }
        }
      } catch (error) {
        if (!isLeaseError(error)) throw error;
        await sleep(machine, durationMs / 4, stopping);
      }
    }
    await publisher.stop();
  };
}
