// Looks at who believes: through the same `Lease` that the work was handed, when it matters most.
// That is when a record has changed hands, when a machine goes on after having stood still, and
// when belief should just have ended.
//
// A process that stands still is not asked: it cannot act. It is asked the moment it goes on.

import type { Lease } from '../../src/lease-handle.ts';
import { isLeaseError } from '../../src/errors.ts';
import { shortName, type Applied, type Happening } from './history.ts';
import type { Machine } from './machine.ts';
import type { VirtualTime } from './time.ts';

export interface Held {
  readonly lease: Lease;
  readonly machine: Machine;
  readonly toleranceMs: number;
  readonly elector: boolean;
  /** How long work may take to finish: when told to, and after a loss. */
  readonly drainMs: number;
  readonly lossDrainMs: number;
  /** Work that has settled may still be held while its last renewal is under way. */
  readonly hasSettled?: () => boolean;
}

interface Watched extends Held {
  readonly tenure: number;
  readonly key: string;
  readonly holder: string;
  /** Looks since it was first seen to be over. */
  looksAfter: number;
}

interface Cover {
  readonly sentAtMs: number;
  readonly durationMs: number;
}

/** What is over is looked at a few times more: nothing may revive it. */
const LOOKS_AFTER = 3;

export class Watch {
  readonly #time: VirtualTime;
  readonly #record: (happening: Happening) => void;
  readonly #watched = new Map<string, Watched[]>();
  readonly #covers = new Map<string, Cover>();
  #tenures = 0;

  constructor(time: VirtualTime, record: (happening: Happening) => void) {
    this.#time = time;
    this.#record = record;
  }

  /** To be called when work starts under a lease. */
  begin(held: Held): number {
    const { lease, machine, toleranceMs, elector } = held;
    const key = `${lease.namespace}/${lease.name}`;
    const holder = shortName(lease.holderIdentity);
    const watched: Watched = { ...held, tenure: this.#tenures++, key, holder, looksAfter: 0 };
    const { tenure } = watched;
    this.#watched.set(key, [...(this.#watched.get(key) ?? []), watched]);
    this.#record({
      kind: 'started',
      atMs: this.#time.nowMs,
      lease: key,
      by: machine.name,
      holder,
      token: lease.fencingToken,
      tenure,
      toleranceMs,
      elector,
    });
    this.#look(watched, 'start');
    lease.signal.addEventListener('abort', () => {
      const drainMs = boundOf(held);
      const boundMs = drainMs + slackMs(drainMs) + 2;
      const lookAtBound = () => {
        if (held.hasSettled?.() === false) this.#look(watched, 'its bound');
      };
      if (drainMs !== Infinity) this.#time.after(boundMs, lookAtBound);
      this.#record({
        kind: 'signalled',
        atMs: this.#time.nowMs,
        tenure,
        holder,
        by: machine.name,
        drainMs,
        stoodMs: machine.stoodMs,
      });
    });
    this.#lookAtEnd(watched);
    return tenure;
  }

  /** A write of a holder: its belief may last longer now. */
  applied({ operation, after, sentAtMs }: Applied): void {
    if ((operation !== 'acquire' && operation !== 'renew') || after.holder === undefined) return;
    this.#covers.set(after.holder, { sentAtMs, durationMs: after.durationMs });
  }

  lookAll(key: string, why: string): void {
    for (const watched of this.#watched.get(key) ?? []) this.#look(watched, why);
  }

  lookAt(machine: Machine, why: string): void {
    for (const all of this.#watched.values()) {
      for (const watched of all) if (watched.machine === machine) this.#look(watched, why);
    }
  }

  lookEverywhere(why: string): void {
    for (const key of this.#watched.keys()) this.lookAll(key, why);
  }

  #look(watched: Watched, why: string): void {
    const { lease, machine, key, holder, tenure } = watched;
    if (machine.still) return;
    // In this order: the signal and the time left are to agree with what is asked first.
    const held = lease.isHeld();
    this.#record({
      kind: 'looked',
      atMs: this.#time.nowMs,
      lease: key,
      tenure,
      holder,
      token: lease.fencingToken,
      held,
      remainingMs: Math.round(lease.remainingMs()),
      aborted: lease.signal.aborted,
      why,
    });
    if (!held && ++watched.looksAfter > LOOKS_AFTER) this.#forget(watched);
  }

  /** Just after the last moment up to which any write of this tenure can cover it. */
  #lookAtEnd(watched: Watched): void {
    const { holder, toleranceMs, machine } = watched;
    const cover = this.#covers.get(holder);
    if (cover === undefined || machine.crashed || watched.looksAfter > 0) return;
    const beliefMs = cover.durationMs - toleranceMs;
    const endMs = cover.sentAtMs + beliefMs + slackMs(beliefMs) + 1;
    if (endMs > this.#time.nowMs) this.#time.at(endMs, () => this.#lookAtEnd(watched));
    else this.#look(watched, 'end');
  }

  #forget(watched: Watched): void {
    const others = (this.#watched.get(watched.key) ?? []).filter((other) => other !== watched);
    this.#watched.set(watched.key, others);
  }
}

/** How long work may still take, now that its signal has aborted. */
function boundOf({ lease, drainMs, lossDrainMs }: Held): number {
  const reason: unknown = lease.signal.reason;
  if (isLeaseError(reason, 'lease-lost')) return lossDrainMs;
  // Given back by the work itself, it is held until the renewal that is under way is answered.
  return isLeaseError(reason) && reason.reason === 'completed' ? Infinity : drainMs;
}

/** A machine's clocks run 50 parts in a million slow at most, and are read in whole ms. */
export function slackMs(lastsMs: number): number {
  return 3 + lastsMs * 60e-6;
}
