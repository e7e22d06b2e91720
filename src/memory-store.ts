// The records in memory, for users' own tests and for simulations. Conditions and effects mean
// what they mean in DynamoDB, garbage included: one contract suite holds both stores to it.

import { holds, type Condition } from './condition.ts';
import type { Item, Value } from './lease.ts';
import { asNumber } from './lease.ts';
import { LeaseError } from './errors.ts';
import type {
  ReadCall,
  RemoveAnswer,
  ScanAnswer,
  ScanCall,
  StoreCall,
  WatchableStore,
  WriteAnswer,
} from './store.ts';
import type { Increment, Write } from './writes.ts';

/** Options of a `MemoryStore`. */
export interface MemoryStoreOptions {
  /** The server's clock, for the `Date` header that a real one sends. Default: none is sent. */
  readonly serverTimeMs?: () => number;
  /** How many items a scan looks at before it answers. Default 1000. */
  readonly pageSize?: number;
}

/** The records in memory: a table for tests, in one process. */
export class MemoryStore implements WatchableStore {
  readonly description = 'a table in memory';
  /** No transaction of a real database finds it. */
  readonly tableName = 'in-memory';
  readonly #items = new Map<string, Item>();
  readonly #serverTimeMs: (() => number) | undefined;
  readonly #pageSize: number;

  /** An empty table. */
  constructor(options: MemoryStoreOptions = {}) {
    this.#serverTimeMs = options.serverTimeMs;
    this.#pageSize = options.pageSize ?? 1_000;
  }

  async read(lease: string, call: ReadCall): Promise<Item | undefined> {
    return this.#answer(call, () => this.#items.get(lease));
  }

  async write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer> {
    return this.#answer(call, () => {
      const old = this.#items.get(lease);
      if (!holds(write.condition, old ?? {})) return { kind: 'refused', item: old };
      const item = applied(lease, old ?? {}, write);
      this.#items.set(lease, item);
      return { kind: 'applied', item };
    });
  }

  async remove(lease: string, condition: Condition, call: StoreCall): Promise<RemoveAnswer> {
    return this.#answer(call, () => {
      const old = this.#items.get(lease);
      if (!holds(condition, old ?? {})) return { kind: 'refused', item: old };
      this.#items.delete(lease);
      return { kind: 'applied' };
    });
  }

  /** In the order of the keys, so that a page ends at the same place whatever has gone since. */
  async scan(call: ScanCall): Promise<ScanAnswer> {
    return this.#answer(call, () => {
      const { after = '', segment, segments } = call;
      const keys = [...this.#items.keys()]
        .filter((key) => key > after && hash(key) % segments === segment)
        .sort();
      const page = keys.slice(0, this.#pageSize);
      const items = page.map((key) => this.#items.get(key) ?? {});
      return {
        items: items.filter((item) => holds(call.filter, item)),
        after: keys.length > page.length ? page.at(-1) : undefined,
        scanned: items.length,
      };
    });
  }

  /** The item as it is: for tests. */
  peek(lease: string): Item | undefined {
    return this.#items.get(lease);
  }

  /** Replaces or removes an item, as another client of the table could: for tests. */
  poke(lease: string, item: Item | undefined): void {
    if (item === undefined) this.#items.delete(lease);
    else this.#items.set(lease, item);
  }

  async #answer<T>(call: StoreCall, act: () => T): Promise<T> {
    const answered = call.attempt();
    await Promise.resolve();
    if (call.signal.aborted) {
      throw new LeaseError('store-unavailable', 'The call was aborted.', {
        cause: call.signal.reason,
      });
    }
    try {
      return act();
    } finally {
      const timeMs = this.#serverTimeMs?.();
      answered(timeMs === undefined ? undefined : new Date(timeMs).toUTCString());
    }
  }
}

function applied(lease: string, old: Item, write: Write): Item {
  const item: Record<string, Value> = { ...old, lease: { S: lease } };
  for (const [name, effect] of Object.entries(write.set)) {
    item[name] = isIncrement(effect) ? incremented(old[name], effect) : effect;
  }
  return Object.fromEntries(
    Object.entries(item).filter(([name]) => !(write.remove as readonly string[]).includes(name)),
  );
}

function incremented(old: Value | undefined, effect: Increment): Value {
  if (old === undefined) return { N: String(effect.incrementFrom + 1) };
  const number = asNumber(old);
  if (number === undefined) {
    throw new LeaseError('request-refused', 'An attribute to be incremented is no number.');
  }
  return { N: String(number + 1) };
}

function isIncrement(effect: Value | Increment): effect is Increment {
  return 'incrementFrom' in effect;
}

/** Which segment of a scan a key belongs to, now and later. */
function hash(key: string): number {
  let sum = 7;
  for (const letter of key) sum = (sum * 31 + (letter.codePointAt(0) ?? 0)) >>> 0;
  return sum;
}
