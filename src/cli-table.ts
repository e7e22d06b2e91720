// The way of the command line to its table: which one, with whose credentials, and what to do when
// it does not answer. The SDK is loaded only when a command needs it.

import { bounded } from './bounded.ts';
import type { Host } from './cli-process.ts';
import { systemClock, type Clock } from './clock.ts';
import type { Condition } from './condition.ts';
import { holds } from './condition.ts';
import { textsOf } from './cli-manifest.ts';
import type { DynamoDBStore } from './dynamodb-store.ts';
import { readEnvironment } from './environment.ts';
import { describeError, isLeaseError, type LeaseError, type LeaseErrorCode } from './errors.ts';
import { readLease, splitLeaseKey, type LeaseRecord, type Value } from './lease.ts';
import { listLeases } from './list-leases.ts';
import { checkFilled, invalid, leaseKey, show } from './options.ts';
import { DEFAULT_NAMESPACE, KEY_ATTRIBUTE } from './schema.ts';
import { parseSelector } from './selector.ts';
import type { WatchableStore, WriteAnswer } from './store.ts';
import type { Write } from './writes.ts';

/** What every command takes. */
export interface GlobalOptions {
  readonly table?: string;
  readonly namespace?: string;
  readonly region?: string;
  readonly profile?: string;
  readonly endpointUrl?: string;
}

/** An error whose message is the whole line, and what the process ends with. */
export class CliError extends Error {
  override readonly name = 'CliError';
  readonly exitCode: number;

  constructor(message: string, exitCode = 1) {
    super(message);
    this.exitCode = exitCode;
  }
}

const CALL_TIMEOUT_MS = 15_000;
const LIST_TIMEOUT_MS = 60_000;

export interface CliTable {
  /** By which it was opened. */
  readonly options: GlobalOptions;
  readonly store: WatchableStore;
  readonly tableName: string;
  readonly clock: Clock;
  nowMs(): number;
  /** Consistently; undefined when there is no such lease. */
  read(lease: string): Promise<LeaseRecord | undefined>;
  write(lease: string, write: Write): Promise<WriteAnswer>;
  /** All leases of a namespace, or of all, in no order. */
  list(filter: ListFilter): Promise<Listing>;
  /** Which attributes an item has that is no lease; undefined when there is none at hand. */
  foreign(): Promise<readonly string[] | undefined>;
  /** `table "name" (Region)`. */
  place(): Promise<string>;
}

export interface Listing {
  readonly leases: readonly LeaseRecord[];
  /** How many items were read, whatever they are. */
  readonly scanned: number;
  readonly complete: boolean;
}

export interface ListFilter {
  readonly namespace: string | undefined;
  readonly selector?: string | undefined;
  readonly kind?: string | undefined;
}

export function tableNameOf(options: GlobalOptions): string {
  const name = options.table ?? readEnvironment().tableName;
  if (name === undefined) {
    throw invalid('No table is named: give --table, or set the variable LEASE_TABLE_NAME.');
  }
  checkFilled('--table', name);
  return name;
}

/** What the SDK is told beside its own chain of profiles, variables and roles. */
export function clientConfigOf({ region, profile, endpointUrl }: GlobalOptions) {
  if (endpointUrl !== undefined && !(URL.canParse(endpointUrl) && /^https?:/i.test(endpointUrl))) {
    throw invalid(
      `--endpoint-url is ${show(endpointUrl)}; it must be a URL, with http:// or https://.`,
    );
  }
  return {
    ...(region === undefined ? {} : { region }),
    ...(profile === undefined ? {} : { profile }),
    ...(endpointUrl === undefined ? {} : { endpoint: endpointUrl }),
  };
}

/** A person's network is further away than a function's, and nobody's lease waits for it. */
export const PATIENT = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 3_000, requestTimeout: 10_000, throwOnRequestTimeout: true },
} as const;

/** Nobody waits longer for a key to answer. */
export const IMPATIENT = {
  maxAttempts: 1,
  requestHandler: { connectionTimeout: 1_000, requestTimeout: 2_000, throwOnRequestTimeout: true },
} as const;

export async function openTable(
  options: GlobalOptions,
  clock = systemClock,
  patience: typeof PATIENT | typeof IMPATIENT = PATIENT,
): Promise<CliTable> {
  const tableName = tableNameOf(options);
  const { DynamoDBStore } = await import('./dynamodb-store.ts');
  const clientConfig = { ...patience, ...clientConfigOf(options) };
  return tableOf(new DynamoDBStore({ tableName, clientConfig }), clock, options);
}

function tableOf(store: DynamoDBStore, clock: Clock, options: GlobalOptions): CliTable {
  const call = <T>(what: string, make: (signal: AbortSignal) => Promise<T>) =>
    bounded(clock, CALL_TIMEOUT_MS, `The ${what} of ${store.description}`, make);
  const attempt = () => () => undefined;
  return {
    options,
    store,
    tableName: store.tableName,
    clock,
    nowMs: () => clock.read().wallMs,
    read: async (lease) => {
      const item = await call('read', (signal) =>
        store.read(lease, { signal, attempt, consistent: true }),
      );
      return item && readLease(lease, item);
    },
    write: (lease, write) =>
      call('write', (signal) => store.write(lease, write, { signal, attempt })),
    list: async ({ namespace, selector = '', kind }) => {
      const wanted: Condition = { all: parseSelector(selector) };
      const bounds = { mostLeases: Infinity, mostPages: Infinity, withinMs: LIST_TIMEOUT_MS };
      const list = await listLeases(store, clock, namespace, bounds, (record) => record);
      const leases = list.leases.filter(
        (record) => (kind === undefined || record.kind === kind) && isSelected(record, wanted),
      );
      return { leases, scanned: list.scanned, complete: list.complete };
    },
    foreign: async () => {
      const filter: Condition = { all: [{ absent: KEY_ATTRIBUTE }] };
      const { items } = await call('scan', (signal) =>
        store.scan({ signal, attempt, filter, segment: 0, segments: 1, after: undefined }),
      );
      const [item] = items;
      return item && Object.keys(item).sort();
    },
    place: async () => `${store.description} (${(await store.region()) ?? 'no Region'})`,
  };
}

/** Of the labels of its holder and of operators together. */
function isSelected(record: LeaseRecord, wanted: Condition): boolean {
  const labels: Record<string, Value> = Object.fromEntries(
    Object.entries(textsOf(record).labels).map(([name, text]) => [name, { S: text }]),
  );
  return holds(wanted, { labels: { M: labels } });
}

export function namespaceOf({ namespace }: GlobalOptions): string {
  const found = namespace ?? readEnvironment().namespace ?? DEFAULT_NAMESPACE;
  // Checked as that of any lease.
  return splitLeaseKey(leaseKey('x', found, readEnvironment())).namespace;
}

export function keyOf(name: string, options: GlobalOptions): string {
  // As kubectl's, `lease/name` and `leases/name` mean the same; a slot's name has its slash behind.
  const bare = /^leases?\/(.+)$/.exec(name)?.[1] ?? name;
  return leaseKey(bare, options.namespace, readEnvironment());
}

/**
 * As logs print it, a name has its namespace in front: so it is understood where no lease has that
 * name here, and nothing else was asked for.
 */
export async function readNamed(
  table: CliTable,
  lease: string,
  withNamespace: boolean,
): Promise<LeaseRecord | undefined> {
  return (
    (await table.read(lease)) ?? (withNamespace ? await readAsWritten(table, lease) : undefined)
  );
}

async function readAsWritten(table: CliTable, lease: string): Promise<LeaseRecord | undefined> {
  const { name } = splitLeaseKey(lease);
  return name.includes('/') ? table.read(name) : undefined;
}

export async function notFound(lease: string, table: CliTable): Promise<CliError> {
  const { namespace, name } = splitLeaseKey(lease);
  const other = await readAsWritten(table, lease);
  const there = other && splitLeaseKey(other.lease);
  return new CliError(
    `Error from server (NotFound): leases "${name}" not found in namespace "${namespace}" of ` +
      table.store.description +
      (there === undefined ? '' : `\nDid you mean -n ${there.namespace} ${there.name}?`),
  );
}

const REASONS: Partial<Record<LeaseErrorCode, string>> = {
  'access-denied': 'Forbidden',
  'table-not-found': 'NotFound',
  'store-unavailable': 'ServiceUnavailable',
  'request-refused': 'BadRequest',
  'lease-held': 'Conflict',
};

/** What a person is told of whatever went wrong. */
export function explain(
  error: unknown,
  host: Pick<Host, 'variable'>,
  { profile = host.variable('AWS_PROFILE') }: GlobalOptions = {},
): string {
  if (error instanceof CliError) return error.message;
  if (!isLeaseError(error)) return `error: ${describeError(error)}`;
  const reason = REASONS[error.code];
  const first =
    reason === undefined
      ? `error: ${error.message}`
      : `Error from server (${reason}): ${error.message}`;
  const hint = hintFor(error, profile);
  return hint === undefined ? first : `${first}\n${hint}`;
}

/** The usual causes, by the name that the SDK gives them. */
function hintFor(error: LeaseError, profile: string | undefined): string | undefined {
  const { cause, message } = error;
  const said = cause instanceof Error ? `${cause.name}: ${cause.message}` : message;
  const login = `aws sso login${profile === undefined ? '' : ` --profile ${profile}`}`;
  if (/\bSSO\b|Token(?:Provider)?Error|token.*expired|ExpiredToken/i.test(said)) {
    return `The credentials have expired: run \`${login}\`, or renew them.`;
  }
  if (/CredentialsProviderError|Could not load credentials/.test(said)) {
    return profile === undefined
      ? `There are no AWS credentials: set AWS_PROFILE or --profile, or run \`${login}\`.`
      : `Profile ${show(profile)} has no AWS credentials: check its name, or run \`${login}\`.`;
  }
  if (/UnrecognizedClient|InvalidSignature|InvalidClientTokenId/.test(said)) {
    return 'AWS does not know these credentials: check the profile, its account and this clock.';
  }
  if (/Region is missing|region=""/i.test(said))
    return 'There is no Region: set AWS_REGION, or --region.';
  if (/Region not accepted/i.test(said)) return 'Check the Region: AWS_REGION, or --region.';
  if (/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|EHOSTUNREACH/.test(said)) {
    return 'The endpoint cannot be reached: check the network, the Region and --endpoint-url.';
  }
  if (/TimeoutError|not answered within/.test(said)) {
    return 'The endpoint does not answer: check the network, a proxy, and --endpoint-url.';
  }
  if (/^(?:Unknown|SyntaxError|Error: Parse Error)/.test(said)) {
    return 'What answers is no DynamoDB: check --endpoint-url, or AWS_ENDPOINT_URL_DYNAMODB.';
  }
  return undefined;
}
