// The seam between the protocol and what keeps the records. Two implementations, one contract
// suite: DynamoDB, and memory.

import type { Condition } from './condition.ts';
import type { Item } from './lease.ts';
import type { Write } from './writes.ts';

/** What keeps the records: reads one, and writes one conditionally. */
export interface LeaseStore {
  /** For messages: which table, where. */
  readonly description: string;
  /** For transactions that span a lease and other items; where there is one. */
  readonly tableName?: string;

  /** The item, or undefined when there is none. */
  read(lease: string, call: ReadCall): Promise<Item | undefined>;

  /** Carries out one conditional update; creates the item when its condition allows. */
  write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer>;
}

/** What heartbeats and identities need besides: a clean stop leaves nothing behind. */
export interface RemovableStore extends LeaseStore {
  /** Deletes the item if the condition holds. An absent item never satisfies a condition on it. */
  remove(lease: string, condition: Condition, call: StoreCall): Promise<RemoveAnswer>;
}

/** What keeping watch over all leases needs besides. */
export interface WatchableStore extends RemovableStore {
  /** One page of one segment of the table: the items in it that pass the filter. */
  scan(call: ScanCall): Promise<ScanAnswer>;
}

/**
 * All calls reject with a LeaseError. `store-unavailable` means that nobody can tell: the write
 * may have happened, or may still happen (L7). Every other code means that it has not.
 */
export interface StoreCall {
  /** Gives the call up. It may have happened all the same. */
  readonly signal: AbortSignal;
  /**
   * Called before each attempt to send; what it returns is called with the answer's `Date` header
   * when that attempt is answered, be it with an error.
   */
  readonly attempt: () => (date: string | undefined) => void;
}

export function canRemove(store: LeaseStore): store is RemovableStore {
  return typeof (store as Partial<RemovableStore>).remove === 'function';
}

export interface ReadCall extends StoreCall {
  /** An eventually consistent read costs half, and may show the past. */
  readonly consistent: boolean;
}

export type WriteAnswer =
  | { readonly kind: 'applied'; readonly item: Item }
  /** The condition failed. The item is missing when there is no record, or the server keeps it. */
  | { readonly kind: 'refused'; readonly item: Item | undefined };

export type RemoveAnswer =
  { readonly kind: 'applied' } | { readonly kind: 'refused'; readonly item: Item | undefined };

export interface ScanCall extends StoreCall {
  /** Evaluated in the server: what it drops is paid for, but not sent. */
  readonly filter: Condition;
  readonly segment: number;
  readonly segments: number;
  /** Where the last page ended. */
  readonly after?: string | undefined;
}

/** One page of a scan. */
export interface ScanAnswer {
  readonly items: readonly Item[];
  /** Undefined after the last page. */
  readonly after: string | undefined;
  /** How many items were looked at. */
  readonly scanned: number;
}
