// A process that takes a lease for a block of code, now and then.

import { acquireLease } from '../../../src/acquire-lease.ts';
import { isLeaseError } from '../../../src/errors.ts';
import { sleep } from '../../../src/clock.ts';
import type { Main } from '../host.ts';
import { toleranceOf, type ContenderPlan } from '../plan.ts';

export function blocksMain({ leaseName, timing, trustClocks }: ContenderPlan): Main {
  return async (process, stage) => {
    const { dice, machine, client, logger, stopping } = process;
    const { watch, resource } = stage;
    const leaseMs = timing.leaseDurationSeconds * 1_000;
    const toleranceMs = toleranceOf(timing) * 1_000;
    while (!stopping.aborted) {
      try {
        const lease = await acquireLease({
          name: leaseName,
          ...timing,
          store: client,
          clock: machine,
          random: dice,
          logger,
          trustClocks,
          signal: stopping,
          ...(dice.chance(0.6) ? { maxWaitSeconds: (leaseMs / 1_000) * dice.between(0.1, 2) } : {}),
          ...(dice.chance(0.15)
            ? { maxHoldSeconds: (leaseMs / 1_000) * dice.between(0.1, 2) }
            : {}),
        });
        watch.begin({
          lease,
          machine,
          toleranceMs,
          elector: false,
          drainMs: Infinity,
          lossDrainMs: toleranceMs / 2,
        });
        const forMs = dice.mostlyLittle(2 * leaseMs);
        await sleep(machine, forMs / 2, stopping);
        resource.write(client, lease);
        await sleep(machine, forMs / 2, stopping);
        await lease.release();
      } catch (error) {
        if (!isLeaseError(error)) throw error;
      }
      await sleep(machine, leaseMs * dice.between(0.05, 1.5), stopping);
    }
  };
}
