// A function with a heartbeat or an identity beside its handler: invoked now and then, frozen in
// between.

import { sleep } from '../../../src/clock.ts';
import { withHeartbeat } from '../../../src/heartbeat.ts';
import { withIdentity } from '../../../src/identity.ts';
import type { Main } from '../host.ts';
import type { WorkerPlan } from '../plan.ts';
import { WorkFailed } from './work.ts';

interface Context {
  getRemainingTimeInMillis(): number;
}

export function beatingMain(plan: WorkerPlan): Main {
  return async (process, stage) => {
    const { dice, machine, client, logger, stopping } = process;
    const { time } = stage.network;
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
    const wrapped = plan.kind === 'heartbeat' ? withHeartbeat : withIdentity;
    const handler = wrapped<number, undefined, Context>(options, async (forMs) => {
      await machine.wait(forMs);
      if (!stage.calm && dice.chance(0.1)) throw new WorkFailed('The handler failed.');
      return undefined;
    });
    while (!stopping.aborted) {
      const endsAtMs = time.nowMs + durationMs * dice.pick([0.1, 0.5]);
      const killed = time.at(endsAtMs, process.die);
      try {
        await handler(dice.mostlyLittle(durationMs / (stage.calm ? 20 : 4)), {
          getRemainingTimeInMillis: () => endsAtMs - time.nowMs,
        });
      } catch (error) {
        if (!(error instanceof WorkFailed)) throw error;
      }
      killed.cancel();
      const pauseMs = dice.mostlyLittle(durationMs * 1.5) + 1;
      if (!stage.calm && dice.chance(0.5)) {
        machine.freeze(pauseMs, dice.pick(['both clocks', 'the wall clock']));
      }
      await sleep(machine, stage.calm ? durationMs / 4 : pauseMs, stopping);
    }
  };
}
