// The lifecycle monitor's way to the table: bounded calls, whole scans in pages, and what its
// answers tell of the clock. Every call rejects when the table is out of reach.

import { bounded } from './bounded.ts';
import { ClockCheck, type ClockStatus } from './clock-check.ts';
import type { Clock } from './clock.ts';
import type { Condition } from './condition.ts';
import type { Item } from './lease.ts';
import { MONITOR_LEASE } from './schema.ts';
import type { RemoveAnswer, ScanAnswer, StoreCall, WatchableStore, WriteAnswer } from './store.ts';
import type { Timeline } from './timeline.ts';
import type { Write } from './writes.ts';

/** The clock must be right to within what any lease tolerates. */
const CLOCK_TOLERANCE_MS = 5_000;
const REQUEST_TIMEOUT_MS = 3_000;

export class MonitorTable {
  readonly #store: WatchableStore;
  readonly #clock: Clock;
  readonly #clockCheck: ClockCheck;
  readonly #segments: number;

  constructor(store: WatchableStore, clock: Clock, timeline: Timeline, segments: number) {
    this.#store = store;
    this.#clock = clock;
    this.#clockCheck = new ClockCheck(timeline);
    this.#segments = segments;
  }

  /** Consistently; an empty item where there is none. */
  async read(lease: string): Promise<Item> {
    const item = await this.#call('read', (call) =>
      this.#store.read(lease, { ...call, consistent: true }),
    );
    return item ?? {};
  }

  write(lease: string, write: Write): Promise<WriteAnswer> {
    return this.#call('write', (call) => this.#store.write(lease, write, call));
  }

  remove(lease: string, condition: Condition): Promise<RemoveAnswer> {
    return this.#call('delete', (call) => this.#store.remove(lease, condition, call));
  }

  /**
   * All segments side by side, each page by page: what is in memory does not grow with the table.
   * Resolves with how many records were looked at.
   */
  async scanAll(
    filter: Condition,
    attend: (items: readonly Item[]) => Promise<void>,
  ): Promise<number> {
    const segments = this.#segments;
    let scanned = 0;
    await Promise.all(
      Array.from({ length: segments }, async (_, segment) => {
        let after: string | undefined;
        do {
          const from = after;
          const page: ScanAnswer = await this.#call('scan', (call) =>
            this.#store.scan({ ...call, filter, segment, segments, after: from }),
          );
          scanned += page.scanned;
          await attend(page.items);
          after = page.after;
        } while (after !== undefined);
      }),
    );
    return scanned;
  }

  /** By the answers so far; a slow one proves nothing and is asked for again. */
  async clockStatus(): Promise<ClockStatus> {
    const status = this.#clockCheck.status(CLOCK_TOLERANCE_MS);
    if (status.kind !== 'unchecked') return status;
    await this.read(`${MONITOR_LEASE.namespace}/${MONITOR_LEASE.name}`);
    return this.#clockCheck.status(CLOCK_TOLERANCE_MS);
  }

  #call<T>(verb: string, send: (call: StoreCall) => Promise<T>): Promise<T> {
    const what = `The monitor's ${verb} in ${this.#store.description}`;
    return bounded(this.#clock, REQUEST_TIMEOUT_MS, what, (signal) =>
      send({ signal, attempt: this.#clockCheck.attempt }),
    );
  }
}
