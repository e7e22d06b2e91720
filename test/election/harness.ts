// Electors on virtual time: each with its own client of one table, and a log of what it was told.

import { LeaderElector, type LeaderElectorOptions } from '../../src/elector.ts';
import type { Logger } from '../../src/environment.ts';
import { isLeaseError } from '../../src/errors.ts';
import type { Clock } from '../../src/clock.ts';
import type { FakeClock } from '../../src/fake-clock.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { isoTime, readLease, type Item, type LeaseRecord } from '../../src/lease.ts';
import type { MemoryStore } from '../../src/memory-store.ts';
import type { Random } from '../../src/random.ts';
import { ScriptedStore, type Script } from '../support/scripted-store.ts';

export const LEASE = 'default/job';
/** client-go's, and the elector's own defaults: tolerance 5 s, request time-out 3 s. */
export const TIMING = {
  leaseDurationSeconds: 15,
  renewDeadlineSeconds: 10,
  retryPeriodSeconds: 2,
} as const;
export const SECOND = 1_000;

export const silent: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
};

/** The same chances for the same seed. Identities end in the name and a count. */
export class SeededRandom implements Random {
  #state: number;
  #uuids = 0;
  readonly #name: string;

  constructor(seed: number, name = 'random') {
    this.#state = seed >>> 0;
    this.#name = name;
  }

  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  uuid(): string {
    this.#uuids += 1;
    return `${this.#name}-${this.#uuids}`;
  }
}

export type Work = (lease: Lease) => Promise<unknown>;

/** Well-behaved work: goes on until it is told to finish, and then for `drainMs`. */
export function untilTold(clock?: FakeClock, drainMs = 0): Work {
  return async ({ signal }) => {
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    if (clock !== undefined && drainMs > 0) {
      await new Promise<void>((resolve) => clock.setTimer(drainMs, resolve));
    }
  };
}

export interface CandidateOptions extends Partial<LeaderElectorOptions> {
  readonly clock: Clock;
  /** Where the table lives, when its time is not the machine's. */
  readonly network?: Clock;
  readonly memory?: MemoryStore;
  readonly script?: Script;
  readonly name?: string;
  readonly seed?: number;
  readonly work?: Work | undefined;
}

export class Candidate {
  readonly name: string;
  readonly store: ScriptedStore;
  readonly elector: LeaderElector;
  /** What its callbacks were told, in order. */
  readonly log: string[] = [];
  readonly leases: Lease[] = [];
  /** Set once `run` or `observe` has settled; `error` when it rejected. */
  ended: { readonly error?: unknown } | undefined;
  #stop = new AbortController();

  constructor({
    clock,
    network,
    memory,
    script,
    name = 'a',
    seed = 1,
    work,
    ...own
  }: CandidateOptions) {
    this.name = name;
    this.store = new ScriptedStore({
      clock,
      ...(network === undefined ? {} : { network }),
      ...(memory === undefined ? {} : { memory }),
      ...(script === undefined ? {} : { script }),
    });
    this.elector = new LeaderElector({
      ...TIMING,
      clock,
      store: this.store,
      random: new SeededRandom(seed, name),
      logger: silent,
      onStartedLeading: (lease) => {
        this.leases.push(lease);
        this.log.push(`started ${shortName(lease.holderIdentity)}, token ${lease.fencingToken}`);
        return (work ?? untilTold())(lease);
      },
      onStoppedLeading: (reason) => this.log.push(`stopped: ${reason}`),
      ...(own.slots === undefined
        ? {
            onNewLeader: (identity: string) => this.log.push(`new leader ${shortName(identity)}`),
          }
        : {}),
      onError: (error) =>
        this.log.push(`error: ${isLeaseError(error) ? error.code : String(error)}`),
      ...own,
      name: 'job',
    });
  }

  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  get isLeader(): boolean {
    return this.elector.isLeader();
  }

  /** The work's lease of the last tenure. */
  get lease(): Lease {
    return this.leases.at(-1)!;
  }

  run(options: { readonly once?: boolean } = {}): this {
    return this.#start((signal) => this.elector.run({ ...options, signal }));
  }

  observe(): this {
    return this.#start((signal) => this.elector.observe({ signal }));
  }

  stop(): void {
    this.#stop.abort();
  }

  /** The entries of the log that begin so. */
  told(beginning: string): string[] {
    return this.log.filter((entry) => entry.startsWith(beginning));
  }

  #start(begin: (signal: AbortSignal) => Promise<void>): this {
    this.ended = undefined;
    if (this.#stop.signal.aborted) this.#stop = new AbortController();
    begin(this.#stop.signal).then(
      () => (this.ended = {}),
      (error: unknown) => (this.ended = { error }),
    );
    return this;
  }
}

/** A promise to be settled from outside. */
export function deferred(): {
  readonly promise: Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
} {
  let resolve: () => void = () => undefined;
  let reject: (error: unknown) => void = () => undefined;
  const promise = new Promise<void>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** What sets one acquisition apart: the end of its identity. */
export function shortName(identity: string): string {
  return identity.slice(identity.lastIndexOf('/') + 1);
}

export function recordIn(memory: MemoryStore): LeaseRecord {
  return readLease(LEASE, memory.peek(LEASE) ?? {});
}

/** Changes attributes of the record as another client of the table could; undefined removes. */
export function change(
  memory: MemoryStore,
  attributes: Readonly<Record<string, Item[string] | undefined>>,
): void {
  const item = Object.entries({ ...memory.peek(LEASE), ...attributes });
  memory.poke(
    LEASE,
    Object.fromEntries(
      item.flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    ),
  );
}

export interface Held {
  readonly by?: string;
  readonly durationSeconds?: number;
  readonly renewedAgoMs?: number;
  readonly token?: number;
  readonly version?: number;
}

/** The record of a lease that somebody holds, as that holder wrote it. */
export function held(clock: FakeClock, options: Held = {}): Item {
  const { by = 'host/1/other', durationSeconds = 15, renewedAgoMs = 0 } = options;
  const { token = 7, version = 70 } = options;
  const renewedMs = clock.read().wallMs - renewedAgoMs;
  return {
    lease: { S: LEASE },
    kind: { S: 'leader' },
    holderIdentity: { S: by },
    leaseDurationSeconds: { N: String(durationSeconds) },
    acquireTime: { S: isoTime(renewedMs) },
    renewTime: { S: isoTime(renewedMs) },
    expireTime: { N: String(renewedMs + durationSeconds * SECOND) },
    leaseTransitions: { N: String(token) },
    version: { N: String(version) },
  };
}

/** The record of a lease that was released. */
export function vacant(clock: FakeClock, options: Held = {}): Item {
  return Object.fromEntries(
    Object.entries(held(clock, options)).filter(
      ([name]) => name !== 'holderIdentity' && name !== 'expireTime',
    ),
  );
}

/** Another holder takes the lease, whatever its state: its next write has a higher token. */
export function usurp(memory: MemoryStore, clock: FakeClock, by = 'host/1/usurper'): void {
  const { leaseTransitions, version } = recordIn(memory);
  memory.poke(LEASE, held(clock, { by, token: leaseTransitions + 1, version: (version ?? 0) + 1 }));
}
