// What the work is about: a resource that refuses who no longer holds the lease. Two guards: a
// condition on the lease's record, checked in the transaction of the write itself; and the fencing
// token, remembered by the resource.

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

  /** Sends one write with each guard. `tick`: which scheduled time of a job it is the effect of. */
  write(client: Client, lease: Lease, tick?: number): void {
    client.tell(() => this.#checked(lease, tick));
    client.tell(() => this.#fenced(lease, tick));
  }

  /** `holderIdentity = :me AND leaseTransitions = :token`, at the moment of the write. */
  #checked(lease: Lease, tick: number | undefined): void {
    const applied = this.#table.check(keyOf(lease), {
      all: [
        { equals: ['holderIdentity', { S: lease.holderIdentity }] },
        { equals: ['leaseTransitions', { N: String(lease.fencingToken) }] },
      ],
    });
    this.#effect(lease, 'condition check', applied, tick);
  }

  /** `attribute_not_exists(fencingToken) OR fencingToken <= :token`. */
  #fenced(lease: Lease, tick: number | undefined): void {
    const known = this.#tokens.get(keyOf(lease));
    const applied = known === undefined || known <= lease.fencingToken;
    if (applied) this.#tokens.set(keyOf(lease), lease.fencingToken);
    this.#effect(lease, 'fencing token', applied, tick);
  }

  #effect(
    lease: Lease,
    guard: 'condition check' | 'fencing token',
    applied: boolean,
    tick: number | undefined,
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
