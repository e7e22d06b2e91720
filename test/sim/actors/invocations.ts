// A Lambda function behind withLease: invoked again and again, frozen in between, killed when it
// outlasts its time.

import { isLeaseError } from '../../../src/errors.ts';
import { sleep } from '../../../src/clock.ts';
import type { Lease } from '../../../src/lease-handle.ts';
import { withLease } from '../../../src/with-lease.ts';
import type { Main } from '../host.ts';
import { toleranceOf, type ContenderPlan } from '../plan.ts';
import { WorkFailed } from './work.ts';

interface Context {
  readonly lease?: Lease;
  getRemainingTimeInMillis(): number;
}

export function invocationsMain({ leaseName, timing, trustClocks }: ContenderPlan): Main {
  return async (process, stage) => {
    const { dice, machine, client, logger, stopping } = process;
    const { watch, resource, network } = stage;
    const { time } = network;
    const leaseMs = timing.leaseDurationSeconds * 1_000;
    const toleranceMs = toleranceOf(timing) * 1_000;
    const way = dice.pick(['cover', 'cover', 'renewed', 'sticky'] as const);
    const freezes = dice.chance(0.6);
    const handler = withLease<number, undefined, Context>(
      {
        name: leaseName,
        store: client,
        clock: machine,
        random: dice,
        logger,
        trustClocks,
        ...(way === 'cover' ? { toleranceSeconds: toleranceMs / 1_000 } : timing),
        ...(way === 'sticky' ? { sticky: true } : {}),
        whenHeld: dice.pick(['skip', 'throw', 'wait'] as const),
        ...(dice.chance(0.1) ? { maxHoldSeconds: leaseMs / 2_000 } : {}),
      },
      async (forMs, { lease }) => {
        watch.begin({
          lease,
          machine,
          toleranceMs,
          elector: false,
          drainMs: Infinity,
          lossDrainMs: toleranceMs,
        });
        await machine.wait(forMs / 2);
        resource.write(client, lease);
        if (!stage.calm && dice.chance(0.1)) await lease.release();
        await machine.wait(forMs / 2);
        if (!stage.calm && dice.chance(0.1)) throw new WorkFailed('The handler failed.');
        return undefined;
      },
    );
    while (!stopping.aborted) {
      const timeoutMs = leaseMs * dice.pick([0.2, 0.5, 1, 1.5]);
      const endsAtMs = time.nowMs + timeoutMs;
      const killed = time.at(endsAtMs, process.die);
      const lasting = stage.calm ? 0.3 : dice.pick([0.05, 0.3, 0.6, 0.85, 1.2]);
      try {
        await handler(lasting * timeoutMs, {
          getRemainingTimeInMillis: () => endsAtMs - time.nowMs,
        });
      } catch (error) {
        if (!isLeaseError(error) && !(error instanceof WorkFailed)) throw error;
      }
      killed.cancel();
      const pauseMs = leaseMs * dice.pick([0.05, 0.3, 1, 2]) * dice.fraction() + 1;
      if (freezes && !stage.calm) {
        machine.freeze(pauseMs, dice.pick(['both clocks', 'the wall clock']));
      }
      await sleep(machine, freezes ? 1 : pauseMs, stopping);
      if (stage.calm && freezes) await sleep(machine, pauseMs, stopping);
    }
  };
}
