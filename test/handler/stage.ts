// A stage for handlers: a table in memory behind a store that remembers what was asked of it and
// can be disturbed, a clock that goes only when it is told to, contexts like Lambda's, and a
// logger that remembers.

import { FakeClock } from '../../src/fake-clock.ts';
import { isoTime, readLease, type Item, type LeaseRecord } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { systemRandom } from '../../src/random.ts';
import type { LeaseStore, ReadCall, StoreCall, WriteAnswer } from '../../src/store.ts';
import type { Write } from '../../src/writes.ts';

export type Sent = 'acquire' | 'renew' | 'release' | 'read';

/** Passes everything on, and remembers it. */
export class WatchedStore implements LeaseStore {
  readonly description = 'a watched table';
  /** What was asked, in order. */
  readonly sent: Sent[] = [];
  readonly writes: Write[] = [];
  /** Awaited before a call reaches the table: may wait, or throw, or never settle. */
  before: (what: Sent) => Promise<void> | void = () => undefined;
  /** Awaited before the answer of the table goes back. */
  after: (what: Sent) => Promise<void> | void = () => undefined;
  readonly #table: MemoryStore;

  constructor(table: MemoryStore) {
    this.#table = table;
  }

  async read(lease: string, call: ReadCall): Promise<Item | undefined> {
    return this.#pass('read', () => this.#table.read(lease, call));
  }

  async write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer> {
    this.writes.push(write);
    return this.#pass(kindOf(write), () => this.#table.write(lease, write, call));
  }

  count(what: Sent): number {
    return this.sent.filter((sent) => sent === what).length;
  }

  async #pass<T>(what: Sent, ask: () => Promise<T>): Promise<T> {
    this.sent.push(what);
    await this.before(what);
    const answer = await ask();
    await this.after(what);
    return answer;
  }
}

function kindOf(write: Write): Sent {
  if (write.set.acquireTime !== undefined) return 'acquire';
  return write.remove.includes('holderIdentity') ? 'release' : 'renew';
}

export interface Logged {
  readonly level: 'debug' | 'info' | 'warn' | 'error';
  readonly message: string;
  readonly details: Readonly<Record<string, unknown>>;
}

export class Stage {
  readonly clock = new FakeClock();
  readonly table = new MemoryStore({ serverTimeMs: () => this.clock.read().wallMs });
  readonly store = new WatchedStore(this.table);
  readonly logged: Logged[] = [];
  #seed = 1;

  /** What a user would pass to every way to use a lease. */
  get options() {
    const at =
      (level: Logged['level']) =>
      (message: string, details: object = {}) => {
        this.logged.push({ level, message, details: { ...details } });
      };
    return {
      store: this.store,
      clock: this.clock,
      random: { fraction: () => this.#fraction(), uuid: () => systemRandom.uuid() },
      logger: { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') },
    };
  }

  /** Jitter that is the same in each run (the minimal standard generator). */
  #fraction(): number {
    this.#seed = (this.#seed * 48_271) % 2_147_483_647;
    return this.#seed / 2_147_483_647;
  }

  get nowMs(): number {
    return this.clock.read().wallMs;
  }

  errors(): readonly Logged[] {
    return this.logged.filter(({ level }) => level === 'error');
  }

  /** A context whose deadline is `remainingMs` from now, by the wall clock as Lambda's. */
  context(remainingMs = 60_000, awsRequestId = 'request-1') {
    const deadlineMs = this.nowMs + remainingMs;
    return { awsRequestId, getRemainingTimeInMillis: () => deadlineMs - this.nowMs };
  }

  /** The record as it is; one that reads as vacant when there is none. */
  record(name: string, namespace = 'default'): LeaseRecord {
    const lease = `${namespace}/${name}`;
    return readLease(lease, this.table.peek(lease) ?? {});
  }

  /** Another holds this lease for `forMs` from now, unless it renews. */
  holds(holderIdentity: string, name: string, forMs: number, fencingToken = 7): void {
    const lease = `default/${name}`;
    this.table.poke(lease, {
      lease: { S: lease },
      kind: { S: 'leader' },
      holderIdentity: { S: holderIdentity },
      leaseDurationSeconds: { N: String(forMs / 1_000) },
      acquireTime: { S: isoTime(this.nowMs) },
      renewTime: { S: isoTime(this.nowMs) },
      expireTime: { N: String(this.nowMs + forMs) },
      leaseTransitions: { N: String(fencingToken) },
      version: { N: String(this.nowMs) },
    });
  }

  /** Changes attributes of a record, as an operator or a newer version would. */
  mark(name: string, attributes: Item): void {
    const lease = `default/${name}`;
    this.table.poke(lease, { ...this.table.peek(lease), ...attributes });
  }

  /** When each write so far said that the lease expires, in epoch ms. */
  expiries(): number[] {
    return this.store.writes.flatMap(({ set: { expireTime } }) =>
      expireTime !== undefined && 'N' in expireTime ? [Number(expireTime.N)] : [],
    );
  }

  /** Lets time pass until `promise` settles. */
  async until<T>(promise: Promise<T>, limitMs = 3_600_000): Promise<T> {
    const over = { settled: false };
    const mark = () => (over.settled = true);
    promise.then(mark, mark);
    for (let passedMs = 0; !over.settled; passedMs += 50) {
      if (passedMs > limitMs) throw new Error('It has not settled.');
      await this.clock.advance(50);
    }
    return promise;
  }
}

export interface Gate {
  readonly opened: Promise<void>;
  open(): void;
}

/** Something to wait for that the test decides. */
export function gate(): Gate {
  let open: () => void = () => undefined;
  const opened = new Promise<void>((resolve) => (open = resolve));
  return { opened, open: () => open() };
}

/** What `promise` rejects with. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    (value) => {
      throw new Error(`It did not reject but gave ${JSON.stringify(value)}.`);
    },
    (error: unknown) => error,
  );
}
