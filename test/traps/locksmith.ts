// Single contenders on virtual time: each a Lock with its own machine (clocks) and client.

import { ClockCheck } from '../../src/clock-check.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { readLease, type Item, type LeaseRecord } from '../../src/lease.ts';
import { Lock } from '../../src/lock.ts';
import type { MemoryStore } from '../../src/memory-store.ts';
import type { Tenure, Terms } from '../../src/tenure.ts';
import { Timeline } from '../../src/timeline.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

export const LEASE = 'default/trap';
export const START = Date.UTC(2026, 0, 1);

export interface ContenderOptions {
  readonly memory?: MemoryStore;
  /** True time. Default: this machine's own clock is right. */
  readonly network?: FakeClock;
  readonly clock?: FakeClock;
  readonly terms?: Terms;
  readonly trustClocks?: boolean;
  readonly requestTimeoutMs?: number;
}

const TERMS: Terms = { leaseDurationMs: 15_000, renewDeadlineMs: 10_000 };

export class Contender {
  readonly clock: FakeClock;
  readonly timeline: Timeline;
  readonly store: ScriptedStore;
  readonly lock: Lock;
  readonly terms: Terms;
  #identities = 0;

  constructor(name: string, options: ContenderOptions = {}) {
    const {
      terms = TERMS,
      trustClocks = true,
      requestTimeoutMs = 3_000,
      memory,
      network,
    } = options;
    this.clock = options.clock ?? new FakeClock(START + 500);
    this.timeline = new Timeline(this.clock);
    this.terms = terms;
    this.store = new ScriptedStore({
      clock: this.clock,
      ...(memory === undefined ? {} : { memory }),
      ...(network === undefined ? {} : { network }),
    });
    this.lock = new Lock(
      {
        lease: LEASE,
        kind: 'leader',
        trustClocks,
        toleranceMs: terms.leaseDurationMs - terms.renewDeadlineMs,
        requestTimeoutMs,
        leaseDurationMs: terms.leaseDurationMs,
        newIdentity: () => `${name}-${++this.#identities}`,
        annotations: {},
        labels: {},
      },
      {
        store: this.store,
        clock: this.clock,
        timeline: this.timeline,
        clockCheck: new ClockCheck(this.timeline),
      },
    );
  }

  tryAcquire() {
    return this.lock.tryAcquire(() => this.terms);
  }

  renew(tenure: Tenure) {
    return this.lock.renew(tenure, () => this.terms);
  }

  /** Takes the lease, which must be free. */
  async acquire(): Promise<Tenure> {
    const answer = await this.during(this.tryAcquire());
    if (answer.kind !== 'acquired') throw new Error(`not acquired: ${JSON.stringify(answer)}`);
    return answer.tenure;
  }

  /** Lets `ms` of virtual time pass while `promise` is under way. */
  async during<T>(promise: Promise<T>, ms = 0): Promise<T> {
    await this.clock.advance(ms);
    return promise;
  }

  record(): LeaseRecord {
    return readLease(LEASE, this.store.memory.peek(LEASE) ?? {});
  }
}

export function change(
  memory: MemoryStore,
  attributes: Readonly<Record<string, Item[string] | undefined>>,
): void {
  const entries = Object.entries({ ...memory.peek(LEASE), ...attributes });
  memory.poke(
    LEASE,
    Object.fromEntries(
      entries.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
  );
}

/** Something to hold a call at the table with. */
export function gate(): { readonly opened: Promise<void>; open: () => void } {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open };
}
