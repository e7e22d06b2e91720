// What is there, and what changes: `get`, `watch`, `identities` and `describe`.

import {
  canBeSorted,
  IDENTITY_COLUMNS,
  inNamespaces,
  LEASE_COLUMNS,
  listed,
  sorted,
  stateOf,
  WIDE_COLUMNS,
  type Listed,
} from './cli-columns.ts';
import { changesOf } from './cli-changes.ts';
import { describeLease } from './cli-describe.ts';
import { leaseListManifest, leaseManifest } from './cli-manifest.ts';
import type { Host } from './cli-process.ts';
import {
  CliError,
  explain,
  keyOf,
  namespaceOf,
  notFound,
  openTable,
  readNamed,
  type CliTable,
  type GlobalOptions,
} from './cli-table.ts';
import { coloured, plain, printable, layTable, type Column, type Paint } from './cli-text.ts';
import { yamlOf } from './cli-yaml.ts';
import { sleep } from './clock.ts';
import { isPermanent } from './errors.ts';
import { isoTime, splitLeaseKey, type LeaseRecord } from './lease.ts';
import { invalid, show } from './options.ts';
import { KEY_ATTRIBUTE, LEASE_KINDS } from './schema.ts';
import { parseSelector } from './selector.ts';

export const OUTPUTS = ['wide', 'json', 'yaml', 'name'] as const;
type Output = (typeof OUTPUTS)[number];

export interface GetOptions extends GlobalOptions {
  readonly allNamespaces?: boolean;
  readonly selector?: string;
  readonly kind?: string;
  readonly output?: string;
  readonly sortBy?: string;
  readonly watch?: boolean;
  readonly headers?: boolean;
}

/** Between two looks of whoever watches. */
const LOOK_EVERY_MS = 2_000;

export async function getLeases(
  host: Host,
  names: readonly string[],
  options: GetOptions,
  identities = false,
): Promise<number> {
  const output = outputOf(options.output);
  const query = queryOf(names, options, identities ? 'identity' : options.kind);
  sorted([], options.sortBy);
  if (options.watch === true && output !== undefined && output !== 'wide' && output !== 'name') {
    throw invalid(`--watch prints tables and names; it cannot be combined with -o ${output}.`);
  }
  const table = await openTable(options);
  const columns = identities ? IDENTITY_COLUMNS : output === 'wide' ? WIDE_COLUMNS : LEASE_COLUMNS;
  const print = printer(host, options, output, columns);
  const found = await look(table, query);
  await tellMissing(host, table, query, found);
  if (!canBeSorted(found.rows, options.sortBy)) {
    throw new CliError(
      `error: --sort-by is ${show(options.sortBy)}; none of these leases has such a field`,
    );
  }
  if (options.watch !== true) {
    await print(found.rows, options.headers !== false, names.length === 1);
    return found.missing.length > 0 ? 1 : 0;
  }
  await print(found.rows, options.headers !== false, false);
  const seen = new Map(found.rows.map((row) => [row.record.lease, stateOf(row)]));
  return everyLook(host, table, query, async ({ rows }) => {
    const changed = rows.filter((row) => seen.get(row.record.lease) !== stateOf(row));
    for (const row of rows) seen.set(row.record.lease, stateOf(row));
    if (changed.length > 0) await print(changed, false, false);
  });
}

/** What changes, in words, one line for each. */
export async function watchLeases(
  host: Host,
  names: readonly string[],
  options: GetOptions,
): Promise<number> {
  const query = queryOf(names, options, options.kind);
  const table = await openTable(options);
  let before = new Map<string, LeaseRecord>();
  let beforeMs = 0;
  const say = ({ rows, nowMs }: Look, first: boolean) => {
    const looked = { beforeMs, first };
    const after = new Map(rows.map(({ record }) => [record.lease, record]));
    for (const lease of new Set([...before.keys(), ...after.keys()])) {
      for (const change of changesOf(before.get(lease), after.get(lease), nowMs, looked)) {
        host.out(`${isoTime(nowMs)}  ${printable(lease)}  ${printable(change)}\n`);
      }
    }
    before = after;
    beforeMs = nowMs;
  };
  const found = await look(table, query);
  await tellMissing(host, table, query, found);
  say(found, true);
  return everyLook(host, table, query, (next) => say(next, false));
}

export async function describeLeases(
  host: Host,
  names: readonly string[],
  options: GlobalOptions,
): Promise<number> {
  const keys = names.map((name) => keyOf(name, options));
  const table = await openTable(options);
  let exitCode = 0;
  let described = 0;
  for (const key of keys) {
    const record = await readNamed(table, key, options.namespace === undefined);
    if (record === undefined) {
      host.err(`${(await notFound(key, table)).message}\n`);
      exitCode = 1;
      continue;
    }
    const lines = describeLease(record, table.nowMs(), paintOf(host));
    host.out(`${described++ === 0 ? '' : '\n\n'}${lines.join('\n')}\n`);
  }
  return exitCode;
}

function outputOf(output: string | undefined): Output | undefined {
  const known = OUTPUTS.find((each) => each === output);
  if (output !== undefined && known === undefined) {
    throw invalid(`-o is ${show(output)}; it must be one of ${OUTPUTS.join(', ')}.`);
  }
  return known;
}

export function paintOf(host: Host): Paint {
  return host.colour ? coloured : plain;
}

export interface Query {
  readonly keys: readonly string[];
  /** Whether a name may have its namespace in front. */
  readonly withNamespace: boolean;
  readonly namespace: string | undefined;
  readonly selector: string | undefined;
  readonly kind: string | undefined;
}

/** Checks everything that can be checked before a table is opened. */
export function queryOf(
  names: readonly string[],
  options: GetOptions,
  kind: string | undefined,
): Query {
  const { allNamespaces = false, selector } = options;
  if (names.length > 0 && (allNamespaces || selector !== undefined || options.kind !== undefined)) {
    throw invalid('A name cannot be combined with -A, -l or --kind.');
  }
  if (allNamespaces && options.namespace !== undefined) {
    throw invalid('-A and -n exclude each other: give one of them.');
  }
  if (kind !== undefined && !(LEASE_KINDS as readonly string[]).includes(kind)) {
    throw invalid(`--kind is ${show(kind)}; it must be one of ${LEASE_KINDS.join(', ')}.`);
  }
  parseSelector(selector ?? '');
  return {
    keys: [...new Set(names.map((name) => keyOf(name, options)))],
    withNamespace: options.namespace === undefined,
    namespace: allNamespaces ? undefined : namespaceOf(options),
    selector,
    kind,
  };
}

export interface Look {
  readonly rows: readonly Listed[];
  readonly missing: readonly string[];
  /** How many items were read for it. */
  readonly scanned: number;
  readonly complete: boolean;
  readonly nowMs: number;
}

export async function look(table: CliTable, query: Query): Promise<Look> {
  const missing: string[] = [];
  const named = new Map<string, LeaseRecord>();
  for (const key of query.keys) {
    const record = await readNamed(table, key, query.withNamespace);
    if (record === undefined) missing.push(key);
    else named.set(record.lease, record);
  }
  const { leases, scanned, complete } =
    query.keys.length === 0
      ? await table.list(query)
      : { leases: [...named.values()], scanned: named.size, complete: true };
  const nowMs = table.nowMs();
  const rows = leases.map((record) => listed(record, nowMs));
  return { rows, missing, scanned, complete, nowMs };
}

async function tellMissing(host: Host, table: CliTable, query: Query, found: Look): Promise<void> {
  for (const key of found.missing) {
    host.err(`${(await notFound(key, table)).message}\n`);
    // As one would tell kubectl what to get.
    if (/\/leases?$/.test(key)) host.err('To list leases, leave that word out: get, get NAME.\n');
  }
  if (!found.complete) {
    host.err('Warning: the table was not read to its end in time; there may be more leases.\n');
  }
  if (query.keys.length > 0 || found.rows.length > 0) return;
  await refuseForeign(table, found);
  const { namespace, kind, selector } = query;
  const [ofKind, labelled, within] = [
    kind === undefined ? '' : ` of kind ${kind}`,
    selector === undefined ? '' : ' with these labels',
    namespace === undefined ? '' : `namespace "${namespace}" of `,
  ];
  host.err(`No leases${ofKind}${labelled} in ${within}${await table.place()}.\n`);
  const elsewhere = found.scanned > 0 && kind === undefined && selector === undefined;
  if (elsewhere && namespace !== undefined) host.err('Other namespaces have some: get -A.\n');
}

/** Of a table that has another key, or of another Region: it is not empty, it is the wrong one. */
export async function refuseForeign(table: CliTable, { rows, scanned }: Look): Promise<void> {
  if (rows.length > 0 || scanned === 0) return;
  const attributes = await table.foreign();
  if (attributes === undefined) return;
  const some = attributes.slice(0, 8).map(printable).join(', ');
  throw new CliError(
    `error: ${await table.place()} is no table of leases: its items have no "${KEY_ATTRIBUTE}", ` +
      `but ${some}${attributes.length > 8 ? ', …' : ''}. Check --table and --region; ` +
      'lambda-lease doctor tells more',
  );
}

/** Looks again and again, until a signal ends it. A table that is out of reach is looked for. */
export async function everyLook(
  host: Host,
  table: CliTable,
  query: Query,
  onLook: (look: Look) => void | Promise<void>,
  quit?: AbortSignal,
): Promise<number> {
  const stop = new AbortController();
  quit?.addEventListener('abort', () => stop.abort());
  const forget = host.onSignal((signal) => stop.abort(signal));
  let failed = false;
  try {
    while (!stop.signal.aborted) {
      await sleep(table.clock, LOOK_EVERY_MS, stop.signal);
      if (isAborted(stop.signal)) break;
      try {
        await onLook(await look(table, query));
        failed = false;
      } catch (error) {
        if (isPermanent(error)) throw error;
        if (!failed) host.err(`${explain(error, host, table.options)}\nLooking again.\n`);
        failed = true;
      }
    }
  } finally {
    forget();
  }
  return stop.signal.reason === 'SIGINT' ? 130 : 143;
}

function isAborted(signal: AbortSignal): boolean {
  return signal.aborted;
}

type Print = (rows: readonly Listed[], headers: boolean, single: boolean) => Promise<void>;

function printer(
  host: Host,
  options: GetOptions,
  output: Output | undefined,
  columns: readonly Column<Listed>[],
): Print {
  let after: readonly number[] | undefined;
  return async (rows, headers, single) => {
    const inOrder = sorted(rows, options.sortBy);
    if (output === 'name') {
      const names = inOrder.map(({ record }) => splitLeaseKey(record.lease).name);
      host.out(names.map((name) => `lease/${printable(name)}\n`).join(''));
    } else if (output === 'json' || output === 'yaml') {
      await printManifests(host, output, inOrder, single);
    } else if (inOrder.length > 0) {
      const all = options.allNamespaces === true ? inNamespaces(columns) : columns;
      // Wide means all of it, as what is read by a program does.
      const width = output === 'wide' ? undefined : host.size()?.columns;
      const style = { paint: paintOf(host), width, headers, after };
      const { lines, widths } = layTable(all, inOrder, style);
      after = widths;
      host.out(`${lines.join('\n')}\n`);
    }
  };
}

async function printManifests(
  host: Host,
  output: 'json' | 'yaml',
  rows: readonly Listed[],
  single: boolean,
): Promise<void> {
  const items = rows.map(({ record, nowMs }) => leaseManifest(record, nowMs));
  const [only] = items;
  if (single && only === undefined) return;
  const document = single && only !== undefined ? only : leaseListManifest(items);
  host.out(
    output === 'json' ? `${JSON.stringify(document, undefined, 4)}\n` : await yamlOf(document),
  );
}
