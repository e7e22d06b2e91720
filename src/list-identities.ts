// Who is alive, and which version runs where: the identities in the table, by a scan whose filter
// is evaluated in the server.
//
// Alive is what a clock says: an identity whose expireTime has not passed by this machine's wall
// clock. It may have died since its last renewal, and a frozen Lambda environment that nobody
// invokes looks as one that is gone.

import { systemClock, type Clock } from './clock.ts';
import type { Condition } from './condition.ts';
import type { DynamoDBStoreOptions } from './dynamodb-store.ts';
import { readEnvironment } from './environment.ts';
import { asText, readLease, splitLeaseKey, type LeaseRecord } from './lease.ts';
import { pagesOf } from './list-leases.ts';
import { checkMethods, checkNames, invalid } from './options.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import { parseSelector } from './selector.ts';
import { chooseStore } from './setup.ts';
import type { WatchableStore } from './store.ts';

/** Options of `listIdentities`. */
export interface ListIdentitiesOptions extends Partial<DynamoDBStoreOptions> {
  /** Equality-based, as kubectl's: `function=api,version!=7,alias,!draining`. Default: all. */
  readonly selector?: string;
  /** Only of this namespace. Default: of all. */
  readonly namespace?: string;
  /** Another store instead of a table, such as a MemoryStore in tests. */
  readonly store?: WatchableStore;
  /** Another clock, for tests. Default: the system's. */
  readonly clock?: Clock;
}

/** One identity, as its record tells of it. */
export interface ListedIdentity {
  /** The instance's name. */
  readonly name: string;
  /** Its namespace. */
  readonly namespace: string;
  /** This start of it. */
  readonly holderIdentity: string | undefined;
  /** By expireTime and this machine's wall clock; undefined where the record has no expireTime. */
  readonly alive: boolean | undefined;
  /** False while it says so itself. */
  readonly ready: boolean;
  /** `function`, `version`, `alias`, `region`, `initializationType` and its own. */
  readonly labels: Readonly<Record<string, string>>;
  /** Where to look: log stream, host and pid, and its own. */
  readonly annotations: Readonly<Record<string, string>>;
  /** When this start of it took the name, ISO 8601. */
  readonly acquireTime: string | undefined;
  /** When it was last renewed, ISO 8601. */
  readonly renewTime: string | undefined;
  /** When it expires unless it is renewed, epoch ms. */
  readonly expireTimeMs: number | undefined;
  /** How often the name has changed hands: starts, as a rule. */
  readonly leaseTransitions: number;
}

const PAGE_TIMEOUT_MS = 10_000;

/** Sorted by namespace and name. Reads the whole table: half a read unit for each 4 KB of it. */
export async function listIdentities(
  options: ListIdentitiesOptions = {},
): Promise<ListedIdentity[]> {
  const known = ['selector', 'namespace', 'store', 'clock', 'tableName', 'client', 'clientConfig'];
  checkNames('listIdentities', options, known);
  const { selector = '', namespace, clock = systemClock } = options;
  const filter: Condition = {
    all: [{ equals: ['kind', { S: 'identity' }] }, ...parseSelector(selector)],
  };
  const store = chooseStore(options, readEnvironment());
  checkMethods('store', store, ['scan']);
  if (!isWatchable(store)) throw invalid(`${store.description} cannot be listed.`);

  const found: ListedIdentity[] = [];
  const what = `The list in ${store.description}`;
  const pages = pagesOf(store, clock, { filter, what, timeoutMs: PAGE_TIMEOUT_MS });
  for await (const { items } of pages) {
    for (const item of items) {
      const lease = asText(item[KEY_ATTRIBUTE]) ?? '';
      const identity = describe(readLease(lease, item), clock.read().wallMs);
      if (namespace === undefined || identity.namespace === namespace) found.push(identity);
    }
  }
  const key = (identity: ListedIdentity) => `${identity.namespace}/${identity.name}`;
  return found.sort((a, b) => (key(a) < key(b) ? -1 : 1));
}

function describe(record: LeaseRecord, nowMs: number): ListedIdentity {
  const { vacant, expireTimeMs, holderIdentity, labels, annotations, leaseTransitions } = record;
  return {
    ...splitLeaseKey(record.lease),
    holderIdentity,
    alive: vacant ? false : expireTimeMs === undefined ? undefined : expireTimeMs >= nowMs,
    ready: annotations['ready'] !== 'false',
    labels,
    annotations,
    acquireTime: record.acquireTime,
    renewTime: record.renewTime,
    expireTimeMs,
    leaseTransitions,
  };
}

function isWatchable(store: object): store is WatchableStore {
  return 'scan' in store;
}
