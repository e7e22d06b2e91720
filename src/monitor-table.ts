// The lifecycle monitor's way to the table: bounded calls, whole scans in pages, and what its
// answers tell of the clock. Every call rejects when the table is out of reach.

import { bounded } from './bounded.ts';
import { ClockCheck, clockCounts, type ClockStatus } from './clock-check.ts';
import type { Clock } from './clock.ts';
import type { Condition } from './condition.ts';
import { LeaseError } from './errors.ts';
import type { Item } from './lease.ts';
import { MONITOR_LEASE } from './schema.ts';
import type { RemoveAnswer, ScanAnswer, StoreCall, WatchableStore, WriteAnswer } from './store.ts';
import type { Timeline } from './timeline.ts';
import type { Write } from './writes.ts';

/** The clock must be right to within what any lease tolerates. */
const CLOCK_TOLERANCE_MS = 5_000;
const REQUEST_TIMEOUT_MS = 3_000;
/** A page of a scan is a megabyte that the server has to read and filter. */
const SCAN_TIMEOUT_MS = 10_000;
const MOST_SAMPLES = 3;

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
   * Stops where `enough` says so. Resolves with how many records were looked at.
   */
  async scanAll(
    filter: Condition,
    attend: (items: readonly Item[]) => Promise<void>,
    enough: () => boolean = () => false,
  ): Promise<number> {
    const segments = this.#segments;
    let scanned = 0;
    let failed = false;
    await Promise.all(
      Array.from({ length: segments }, async (_, segment) => {
        let after: string | undefined;
        try {
          do {
            const from = after;
            const page: ScanAnswer = await this.#call(
              'scan',
              (call) => this.#store.scan({ ...call, filter, segment, segments, after: from }),
              SCAN_TIMEOUT_MS,
            );
            scanned += page.scanned;
            await attend(page.items);
            after = page.after;
          } while (after !== undefined && !failed && !enough());
        } catch (error) {
          failed = true;
          throw error;
        }
      }),
    );
    return scanned;
  }

  /**
   * By the answers so far; a slow one proves nothing, and is asked for again.
   * @throws LeaseError `clock-wrong` for a clock that decides nothing.
   */
  async checkClock(): Promise<void> {
    for (let again = 0; again < MOST_SAMPLES && this.#clockStatus.kind === 'unchecked'; again++) {
      await this.read(`${MONITOR_LEASE.namespace}/${MONITOR_LEASE.name}`);
    }
    this.assertClock();
  }

  /** @throws LeaseError `clock-wrong` when the clock was set or stood still since its check. */
  assertClock(): void {
    const status = this.#clockStatus;
    if (clockCounts(status)) return;
    throw new LeaseError(
      'clock-wrong',
      status.kind === 'wrong'
        ? `The monitor's clock is wrong: what must be added lies between ${status.lowerMs} and ` +
            `${status.upperMs} ms. Set the clock of its host.`
        : "The monitor's clock could not be checked: answers were slow, or the clock was set.",
    );
  }

  get #clockStatus(): ClockStatus {
    return this.#clockCheck.status(CLOCK_TOLERANCE_MS);
  }

  async #call<T>(
    verb: string,
    send: (call: StoreCall) => Promise<T>,
    timeoutMs = REQUEST_TIMEOUT_MS,
  ): Promise<T> {
    const what = `The monitor's ${verb} in ${this.#store.description}`;
    const { attempt, told } = this.#clockCheck.call();
    const answer = await bounded(this.#clock, timeoutMs, what, (signal) =>
      send({ signal, attempt }),
    );
    told();
    return answer;
  }
}
