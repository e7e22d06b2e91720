// The leases of a table, or of one namespace of it, for somebody to look at: by a scan that is
// bounded in records, in pages and in time, and that says whether it has seen everything.

import { bounded } from './bounded.ts';
import type { Clock } from './clock.ts';
import type { Condition } from './condition.ts';
import { asText, readLease, type LeaseRecord } from './lease.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import type { ScanAnswer, WatchableStore } from './store.ts';

export interface ListBounds {
  /** How many are kept; the others of the pages that were read are counted. */
  readonly mostLeases: number;
  /** A page is a megabyte of the table at most, whatever the namespace. */
  readonly mostPages: number;
  /** For all pages together: no page is begun after that. The last may take as long again. */
  readonly withinMs: number;
}

export interface LeaseList<T> {
  readonly leases: readonly T[];
  /** How many there are in what was read; more than are kept, or the same. */
  readonly matched: number;
  /** How many items were read, whatever they are. */
  readonly scanned: number;
  /** False when there may be more, in what was not read. */
  readonly complete: boolean;
}

export interface Pages {
  readonly filter: Condition;
  /** For messages. */
  readonly what: string;
  /** For each page. */
  readonly timeoutMs: number;
}

/** A scan, page by page: none is asked for before the last one has been dealt with. */
export async function* pagesOf(
  store: WatchableStore,
  clock: Clock,
  { filter, what, timeoutMs }: Pages,
): AsyncGenerator<ScanAnswer> {
  let after: string | undefined;
  do {
    const from = after;
    const page: ScanAnswer = await bounded(clock, timeoutMs, what, (signal) =>
      store.scan({
        signal,
        attempt: () => () => undefined,
        filter,
        segment: 0,
        segments: 1,
        after: from,
      }),
    );
    yield page;
    after = page.after;
  } while (after !== undefined);
}

/**
 * In no order. What `view` makes of a record is kept, the record is not: items may be large.
 * Eventually consistent: half a read unit for each 4 KB of the table that is read.
 * @throws LeaseError of the store.
 */
export async function listLeases<T>(
  store: WatchableStore,
  clock: Clock,
  namespace: string | undefined,
  bounds: ListBounds,
  view: (record: LeaseRecord) => T,
): Promise<LeaseList<T>> {
  const startMs = clock.read().monotonicMs;
  const spentMs = () => clock.read().monotonicMs - startMs;
  const leases: T[] = [];
  let matched = 0;
  let scanned = 0;
  let pages = 0;
  const all = pagesOf(store, clock, {
    filter: within(namespace),
    what: `A page of the list of ${store.description}`,
    timeoutMs: bounds.withinMs,
  });
  for await (const { items, after, scanned: read } of all) {
    pages += 1;
    scanned += read;
    for (const item of items) {
      const lease = asText(item[KEY_ATTRIBUTE]) ?? '';
      // Stores may compare texts by bytes or by code units; a prefix is one either way.
      if (namespace !== undefined && !lease.startsWith(`${namespace}/`)) continue;
      matched += 1;
      if (leases.length < bounds.mostLeases) leases.push(view(readLease(lease, item)));
    }
    if (after === undefined) break;
    const enough = matched >= bounds.mostLeases || pages >= bounds.mostPages;
    if (enough || spentMs() >= bounds.withinMs) {
      return { leases, matched, scanned, complete: false };
    }
  }
  return { leases, matched, scanned, complete: true };
}

/** Evaluated in the server, so that other namespaces are not sent. */
function within(namespace: string | undefined): Condition {
  if (namespace === undefined) return { all: [{ not: { absent: KEY_ATTRIBUTE } }] };
  // '0' is the character after the slash.
  return {
    all: [
      { after: [KEY_ATTRIBUTE, `${namespace}/`] },
      { not: { after: [KEY_ATTRIBUTE, `${namespace}0`] } },
    ],
  };
}
