// True time, which nobody in the simulation can read but the table and the oracles. It goes from
// one event to the next; between two of them everything that is ready to go on does so.

export interface Scheduled {
  cancel(): void;
}

interface Entry {
  readonly atMs: number;
  readonly order: number;
  run: (() => void) | undefined;
}

/** So often the real event loop gets its turn, and tells of rejections that nobody handles. */
const EVENTS_PER_TURN = 128;

export class VirtualTime {
  #nowMs = 0;
  #order = 0;
  readonly #heap: Entry[] = [];

  get nowMs(): number {
    return this.#nowMs;
  }

  at(atMs: number, run: () => void): Scheduled {
    const entry: Entry = { atMs: Math.max(atMs, this.#nowMs), order: this.#order++, run };
    this.#push(entry);
    return { cancel: () => (entry.run = undefined) };
  }

  after(delayMs: number, run: () => void): Scheduled {
    return this.at(this.#nowMs + Math.max(0, delayMs), run);
  }

  /** Lets everything happen that is due until then. */
  runUntil(endMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let events = 0;
      const later = () => {
        // A microtask queued now runs after those that are ready, and whatever they make ready;
        // the tick it asks for, after all of them. That is much cheaper than a real turn.
        if (++events % EVENTS_PER_TURN === 0) setImmediate(step);
        else process.nextTick(step);
      };
      const step = () => {
        try {
          const next = this.#takeDue(endMs);
          if (next === undefined) {
            this.#nowMs = Math.max(this.#nowMs, endMs);
            resolve();
            return;
          }
          next();
          queueMicrotask(later);
        } catch (error) {
          reject(error instanceof Error ? error : new Error(String(error)));
        }
      };
      setImmediate(step);
    });
  }

  #takeDue(endMs: number): (() => void) | undefined {
    for (let first = this.#heap[0]; first !== undefined; first = this.#heap[0]) {
      if (first.run !== undefined && first.atMs > endMs) return undefined;
      this.#pop();
      if (first.run === undefined) continue;
      this.#nowMs = first.atMs;
      return first.run;
    }
    return undefined;
  }

  #push(entry: Entry): void {
    const heap = this.#heap;
    let place = heap.push(entry) - 1;
    while (place > 0) {
      const parent = (place - 1) >> 1;
      if (!before(entry, heap[parent]!)) break;
      heap[place] = heap[parent]!;
      place = parent;
    }
    heap[place] = entry;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let place = 0;
    for (;;) {
      let child = 2 * place + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && before(heap[child + 1]!, heap[child]!)) child += 1;
      if (!before(heap[child]!, last)) break;
      heap[place] = heap[child]!;
      place = child;
    }
    heap[place] = last;
  }
}

function before(a: Entry, b: Entry): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}
