// Who may write one record next, of one holder: its renewals, and the transactions of its work.
// They meet on one item, and DynamoDB refuses one of two that meet ("TransactionConflict").
// Renewals first, for a lease that is not renewed is lost.

import { sleep, type Clock } from './clock.ts';

export class Turns {
  readonly #clock: Clock;
  #renewal: Promise<unknown> | undefined;
  #transaction: Promise<unknown> | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** At once, or after what is under way; but for a transaction no longer than `patienceMs`. */
  renewal<T>(patienceMs: number, run: () => Promise<T>): Promise<T> {
    const turn =
      this.#renewal === undefined && this.#transaction === undefined
        ? run()
        : this.#inTurn(patienceMs, run);
    this.#renewal = turn;
    return turn.finally(() => {
      if (this.#renewal === turn) this.#renewal = undefined;
    });
  }

  /** After all renewals that are under way or due, and every earlier transaction. */
  async transaction<T>(run: () => Promise<T>): Promise<T> {
    for (;;) {
      const before = this.#renewal ?? this.#transaction;
      if (before === undefined) break;
      await settled(before);
    }
    const turn = run();
    this.#transaction = turn;
    try {
      return await turn;
    } finally {
      this.#transaction = undefined;
    }
  }

  async #inTurn<T>(patienceMs: number, run: () => Promise<T>): Promise<T> {
    if (this.#renewal !== undefined) await settled(this.#renewal);
    if (this.#transaction !== undefined) {
      const enough = new AbortController();
      await Promise.race([
        settled(this.#transaction),
        sleep(this.#clock, patienceMs, enough.signal),
      ]);
      enough.abort();
    }
    return run();
  }
}

function settled(promise: Promise<unknown>): Promise<unknown> {
  return promise.catch(() => undefined);
}
