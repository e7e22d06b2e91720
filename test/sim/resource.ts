// What the work is about: a resource that refuses who no longer holds the lease. Two guards: a
// condition on the lease's record, checked in the transaction of the write itself; and the fencing
// token, remembered by the resource. The effect of a tick completes it in the same transaction.

import type { Lease } from '../../src/lease-handle.ts';
import { shortName, type Happening } from './history.ts';
import type { Client } from './client.ts';
import type { Table } from './table.ts';
import type { VirtualTime } from './time.ts';

export class Resource {
  readonly #time: VirtualTime;
  readonly #table: Table;
  readonly #record: (happening: Happening) => void;
  readonly #tokens = new Map<string, number>();

  constructor(time: VirtualTime, table: Table, record: (happening: Happening) => void) {
    this.#time = time;
    this.#table = table;
    this.#record = record;
  }

  /** Sends one write with each guard. */
  write(client: Client, lease: Lease): void {
    client.tell(() => this.#checked(lease));
    client.tell(() => this.#fenced(lease));
  }

  /** The effect of a tick of a job has been written, in the transaction that completed it. */
  completed(lease: Lease, tick: number): void {
    this.#effect(lease, 'completion', true, tick);
  }

  /** `holderIdentity = :me AND leaseTransitions = :token`, at the moment of the write. */
  #checked(lease: Lease): void {
    const applied = this.#table.check(keyOf(lease), {
      all: [
        { equals: ['holderIdentity', { S: lease.holderIdentity }] },
        { equals: ['leaseTransitions', { N: String(lease.fencingToken) }] },
      ],
    });
    this.#effect(lease, 'condition check', applied);
  }

  /** `attribute_not_exists(fencingToken) OR fencingToken <= :token`. */
  #fenced(lease: Lease): void {
    const known = this.#tokens.get(keyOf(lease));
    const applied = known === undefined || known <= lease.fencingToken;
    if (applied) this.#tokens.set(keyOf(lease), lease.fencingToken);
    this.#effect(lease, 'fencing token', applied);
  }

  #effect(
    lease: Lease,
    guard: 'condition check' | 'fencing token' | 'completion',
    applied: boolean,
    tick?: number,
  ): void {
    this.#record({
      kind: 'effect',
      atMs: this.#time.nowMs,
      lease: keyOf(lease),
      guard,
      holder: shortName(lease.holderIdentity),
      token: lease.fencingToken,
      applied,
      ...(tick === undefined ? {} : { tick }),
    });
  }
}

function keyOf({ namespace, name }: Lease): string {
  return `${namespace}/${name}`;
}
