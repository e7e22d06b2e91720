// The seam between the protocol and what keeps the records. Two implementations, one contract
// suite: DynamoDB, and memory.

import type { Item } from './lease.ts';
import type { Write } from './writes.ts';

export interface LeaseStore {
  /** For messages: which table, where. */
  readonly description: string;

  /** The item, or undefined when there is none. */
  read(lease: string, call: ReadCall): Promise<Item | undefined>;

  /** Carries out one conditional update; creates the item when its condition allows. */
  write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer>;
}

/**
 * Both calls reject with a LeaseError. `store-unavailable` means that nobody can tell: the write
 * may have happened, or may still happen (L7). Every other code means that it has not.
 */
export interface StoreCall {
  readonly signal: AbortSignal;
  /**
   * Called before each attempt to send; what it returns is called with the answer's `Date` header
   * when that attempt is answered, be it with an error.
   */
  readonly attempt: () => (date: string | undefined) => void;
}

export interface ReadCall extends StoreCall {
  /** An eventually consistent read costs half, and may show the past. */
  readonly consistent: boolean;
}

export type WriteAnswer =
  | { readonly kind: 'applied'; readonly item: Item }
  /** The condition failed. The item is missing when there is no record, or the server keeps it. */
  | { readonly kind: 'refused'; readonly item: Item | undefined };
