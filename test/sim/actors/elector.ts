// A process that runs for leader, is stopped and started again, and steps down now and then.

import { getEventListeners } from 'node:events';
import { LeaderElector } from '../../../src/elector.ts';
import { isLeaseError } from '../../../src/errors.ts';
import { sleep } from '../../../src/clock.ts';
import { shortName } from '../history.ts';
import type { Main } from '../host.ts';
import { toleranceOf, type ContenderPlan } from '../plan.ts';
import { work, WorkFailed } from './work.ts';

export function electorMain({ leaseName, timing, trustClocks }: ContenderPlan): Main {
  return async (process, stage) => {
    const { dice, machine, client, logger, name, stopping } = process;
    const { record, watch, network } = stage;
    const leaseMs = timing.leaseDurationSeconds * 1_000;
    const toleranceMs = toleranceOf(timing) * 1_000;
    const drainSeconds = dice.pick([0.1, 0.7, 2]) * timing.leaseDurationSeconds;
    const works = new Set<Promise<void>>();
    let holder: string | undefined;
    const elector = new LeaderElector({
      name: leaseName,
      ...timing,
      trustClocks,
      store: client,
      clock: machine,
      random: dice,
      logger,
      drainSeconds,
      ...(dice.chance(0.15) ? { maxHoldSeconds: dice.between(1, 4) * drainSeconds } : {}),
      onStartedLeading: async (lease) => {
        holder = shortName(lease.holderIdentity);
        const drains = { drainMs: drainSeconds * 1_000, lossDrainMs: toleranceMs / 2 };
        let done = false;
        const hasSettled = () => done;
        watch.begin({ lease, machine, toleranceMs, elector: true, hasSettled, ...drains });
        const doing = work(lease, process, stage, { everyMs: leaseMs / 2, leaseMs });
        const settle = () => {
          done = true;
        };
        const settled = doing.then(settle, settle);
        works.add(settled);
        void settled.then(() => works.delete(settled));
        await doing;
      },
      onStoppedLeading: (reason) => {
        const { nowMs: atMs } = network.time;
        record({ kind: 'stopped', atMs, lease: `default/${leaseName}`, by: name, holder, reason });
        holder = undefined;
        if (dice.chance(0.03)) throw new WorkFailed('A callback failed.');
      },
      onNewLeader: (leader) => {
        const { nowMs: atMs } = network.time;
        record({ kind: 'new leader', atMs, by: name, holder: shortName(leader) });
        if (!stage.calm && dice.chance(0.03)) void elector.stepDown();
      },
      onError: () => {
        if (dice.chance(0.03)) throw new WorkFailed('A callback failed.');
      },
    });
    while (!stopping.aborted) {
      const stop = new AbortController();
      const forward = () => stop.abort();
      stopping.addEventListener('abort', forward);
      const early =
        !stage.calm && dice.chance(0.2)
          ? machine.setTimer(dice.mostlyLittle(8 * leaseMs), forward)
          : undefined;
      try {
        await elector.run({ signal: stop.signal, once: !stage.calm && dice.chance(0.15) });
      } catch (error) {
        if (!isLeaseError(error) && !(error instanceof WorkFailed)) throw error;
      }
      early?.cancel();
      stopping.removeEventListener('abort', forward);
      const listeners = getEventListeners(stop.signal, 'abort').length;
      record({ kind: 'run over', atMs: network.time.nowMs, by: name, listeners });
      elector.health();
      await sleep(machine, dice.mostlyLittle(2_000) + 1, stopping);
    }
    // Work that outlives its tenure is still this process's.
    await Promise.all(works);
  };
}
