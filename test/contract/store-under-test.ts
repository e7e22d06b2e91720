// What the contracts ask of whoever sets up a store, and the values that they all write into it.

import type { Item, Value } from '../../src/lease.ts';
import type { StoreCall, WatchableStore } from '../../src/store.ts';

export interface StoreUnderTest extends AsyncDisposable {
  readonly store: WatchableStore;
  /** False for a server that keeps the old item to itself when a condition fails. */
  readonly showsRefusedItem: boolean;
  /** False for a server that finds no list or map equal to any: one defect of dynalite. */
  readonly comparesLists: boolean;
  /** False for a server that forgets where a scan was when that record goes: dynoxide's defect. */
  readonly keepsItsPlace: boolean;
  /** Writes unconditionally, as another client of the table could. */
  put(lease: string, attributes: Item): Promise<void>;
}

export type MakeStore = () => Promise<StoreUnderTest>;

/** Endless patience, and no interest in the clock. */
export function call(): StoreCall {
  return { signal: new AbortController().signal, attempt: () => () => undefined };
}

/** What may stand where a number should. */
export const NOT_A_NUMBER: Readonly<Record<string, Value>> = {
  'a text of digits': { S: '7' },
  'an empty text': { S: '' },
  NULL: { NULL: true },
  'a list': { L: [{ N: '7' }] },
  'a map': { M: { N: { S: '7' } } },
  'a boolean': { BOOL: false },
  bytes: { B: new Uint8Array([7]) },
  'a set of numbers': { NS: ['7'] },
};

/** A user's attributes, or a newer version's: no write of ours knows them. */
export const UNKNOWN: Item = {
  team: { S: 'payments' },
  'with space': { M: { deep: { L: [{ N: '1' }, { NULL: true }] } } },
  size: { N: '42' },
};
