// The work under a lease, as users write it: good, short, failing, slow to finish, deaf.

import type { Lease } from '../../../src/lease-handle.ts';
import type { Process, Stage } from '../host.ts';

export class WorkFailed extends Error {}

export interface WorkOptions {
  /** How often it writes to its resource. */
  readonly everyMs: number;
  /** What counts as long here: about the duration of the lease. */
  readonly leaseMs: number;
}

/** Works until it is told to finish, or until chance says so. */
export async function work(
  lease: Lease,
  process: Process,
  stage: Stage,
  { everyMs, leaseMs }: WorkOptions,
): Promise<void> {
  const { dice, machine, client } = process;
  const manner = stage.calm ? 0 : dice.fraction();
  const act = () => stage.resource.write(client, lease);
  if (manner < 0.5) {
    await until(lease.signal, process, everyMs, act);
    // A little to finish.
    if (dice.chance(0.5)) await machine.wait(dice.mostlyLittle(leaseMs / 5));
  } else if (manner < 0.65) {
    await spend(process, dice.mostlyLittle(2 * leaseMs), everyMs, act, lease.signal);
  } else if (manner < 0.72) {
    await spend(process, dice.mostlyLittle(leaseMs), everyMs, act, lease.signal);
    throw new WorkFailed('The work failed.');
  } else if (manner < 0.82) {
    // Gives its lease back by itself, and tidies up after that.
    await spend(process, dice.mostlyLittle(leaseMs), everyMs, act, lease.signal);
    const released = lease.release();
    if (dice.chance(0.5)) await released;
    await machine.wait(dice.mostlyLittle(leaseMs / 5));
  } else {
    // Hears no signal: acts on, held or not. Only the guards of its resource stop it.
    await spend(process, dice.between(0.2, 2.5) * leaseMs, everyMs, act);
  }
}

/** Acts now and then, as long as it is held, until the signal aborts. */
async function until(
  signal: AbortSignal,
  { machine }: Process,
  everyMs: number,
  act: () => void,
): Promise<void> {
  await new Promise<void>((resolve) => {
    const next = () => {
      act();
      timer = machine.setTimer(everyMs, next);
    };
    let timer = machine.setTimer(everyMs / 4, next);
    const finish = () => {
      timer.cancel();
      resolve();
    };
    if (signal.aborted) finish();
    else signal.addEventListener('abort', finish, { once: true });
  });
}

async function spend(
  { machine }: Process,
  forMs: number,
  everyMs: number,
  act: () => void,
  signal?: AbortSignal,
): Promise<void> {
  for (let leftMs = forMs; leftMs > 0; leftMs -= everyMs) {
    await machine.wait(Math.min(everyMs, leftMs));
    // Asked, not awaited: as work that looks up now and then.
    if (signal?.aborted === true) return;
    act();
  }
}
