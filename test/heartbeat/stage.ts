// Workers on virtual time: each with its own client of one table, and a log of what it was told.

import { describeError, isLeaseError } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { Heartbeat, type HeartbeatOptions } from '../../src/heartbeat.ts';
import { isoTime, readLease, type Item, type LeaseRecord } from '../../src/lease.ts';
import type { MemoryStore } from '../../src/memory-store.ts';
import { SeededRandom, silent } from '../election/harness.ts';
import { ScriptedStore, type Fault, type Script } from '../support/scripted-store.ts';

export const LEASE = 'default/worker';
export const SECOND = 1_000;

export interface WorkerOptions extends Partial<HeartbeatOptions> {
  readonly clock: FakeClock;
  readonly memory?: MemoryStore;
  readonly script?: Script;
  readonly id?: string;
}

export class Worker {
  readonly clock: FakeClock;
  readonly store: ScriptedStore;
  readonly heartbeat: Heartbeat;
  readonly errors: string[] = [];
  readonly replacedBy: (string | undefined)[] = [];

  constructor({ clock, memory, script, id = 'a', ...own }: WorkerOptions) {
    this.clock = clock;
    this.store = new ScriptedStore({
      clock,
      ...(memory === undefined ? {} : { memory }),
      ...(script === undefined ? {} : { script }),
    });
    this.heartbeat = new Heartbeat({
      name: 'worker',
      clock,
      store: this.store,
      logger: silent,
      random: new SeededRandom(1, id),
      onError: (error) => this.errors.push(isLeaseError(error) ? error.code : describeError(error)),
      onReplaced: (by) => this.replacedBy.push(by),
      ...own,
    });
  }

  get record(): LeaseRecord | undefined {
    const item = this.store.memory.peek(LEASE);
    return item && readLease(LEASE, item);
  }

  /** Forgets the calls so far. */
  forget(): void {
    this.store.calls.length = 0;
  }
}

export async function started(options: Partial<WorkerOptions> = {}): Promise<Worker> {
  const worker = new Worker({ clock: new FakeClock(), ...options });
  await settled(worker.clock, worker.heartbeat.start());
  worker.forget();
  return worker;
}

/** Lets time pass until `promise` settles, and gives what it gives. */
export async function settled<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  const over = { yet: false };
  const mark = () => (over.yet = true);
  promise.then(mark, mark);
  for (let rounds = 0; !over.yet; rounds++) {
    if (rounds > 20_000) throw new Error('It has not settled.');
    await clock.advance(rounds < 10 ? 0 : 50);
  }
  return promise;
}

/** The record of another incarnation, renewed so long ago. */
export function other(clock: FakeClock, agoMs = 0, attributes: Item = {}): Item {
  const renewedMs = clock.read().wallMs - agoMs;
  return {
    lease: { S: LEASE },
    kind: { S: 'heartbeat' },
    holderIdentity: { S: 'host/2/other' },
    leaseDurationSeconds: { N: '40' },
    acquireTime: { S: isoTime(renewedMs) },
    renewTime: { S: isoTime(renewedMs) },
    expireTime: { N: String(renewedMs + 40 * SECOND) },
    leaseTransitions: { N: '7' },
    version: { N: '70' },
    ...attributes,
  };
}

export const DOWN: Fault = { fail: 'store-unavailable' };
