// The doctor: looks at the table, the permissions and the clock, and says what to mend. Writes
// nothing: what it tries to write has a condition that no record can fulfil.

import {
  judgeOffset,
  judgeProbe,
  judgeRecords,
  judgeTable,
  judgeTimeToLive,
  type Finding,
  type Probe,
} from './cli-findings.ts';
import { paintOf } from './cli-get.ts';
import type { Host } from './cli-process.ts';
import {
  clientConfigOf,
  CliError,
  explain,
  openTable,
  PATIENT,
  tableNameOf,
  type CliTable,
  type GlobalOptions,
} from './cli-table.ts';
import { printable, type Colour } from './cli-text.ts';
import { bounded } from './bounded.ts';
import { systemClock } from './clock.ts';
import type { Condition } from './condition.ts';
import { describeError, isLeaseError, LeaseError } from './errors.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import type { StoreCall } from './store.ts';

const PROBE_KEY = 'lambda-lease/doctor';
const NEVER: Condition = {
  all: [{ absent: KEY_ATTRIBUTE }, { not: { absent: KEY_ATTRIBUTE } }],
};
const PROBE_TIMEOUT_MS = 10_000;

export async function doctor(host: Host, options: GlobalOptions): Promise<number> {
  const tableName = tableNameOf(options);
  const table = await openTable(options);
  const levels: Finding['level'][] = [];
  const tell = (finding: Finding) => {
    levels.push(finding.level);
    print(host, finding);
  };

  const { tableAdmin } = await import('./table-doctor.ts');
  const admin = tableAdmin(tableName, { ...PATIENT, ...clientConfigOf(options) });
  const region = await admin.region();
  if (region === undefined || region === '') {
    tell({ level: 'error', what: 'There is no Region', fix: 'Set AWS_REGION, or give --region.' });
    return 1;
  }
  tell({ level: 'ok', what: `Region ${region}` });

  const bounds: Bounds[] = [];
  const read = await probe(
    host,
    table,
    bounds,
    'GetItem',
    'whoever holds or reads leases',
    (call) => table.store.read(PROBE_KEY, { ...call, consistent: true }),
  );
  if (read.error !== undefined && !read.denied) {
    tell({ level: 'error', what: read.error, fix: read.hint ?? 'Mend that first.' });
    return 1;
  }
  let consistency: 'EVENTUAL' | 'STRONG' | undefined;
  await describing('dynamodb:DescribeTable', tell, async () => {
    const facts = await admin.describe();
    consistency = facts.consistency;
    judgeTable(tableName, facts).forEach(tell);
  });
  await describing('dynamodb:DescribeTimeToLive', tell, async () => {
    tell(judgeTimeToLive(tableName, await admin.timeToLive(), consistency));
  });
  tell(judgeProbe(read));
  tell(
    judgeProbe(
      await probe(host, table, bounds, 'UpdateItem', 'whoever holds leases', (call) =>
        table.store.write(
          PROBE_KEY,
          { condition: NEVER, set: { version: { incrementFrom: 0 } }, remove: [] },
          call,
        ),
      ),
    ),
  );
  const remove = await probe(host, table, bounds, 'DeleteItem', 'heartbeats, identities', (call) =>
    'remove' in table.store ? table.store.remove(PROBE_KEY, NEVER, call) : Promise.resolve(),
  );
  tell(judgeProbe(remove));
  try {
    const { leases, complete } = await table.list({ namespace: undefined });
    tell({ level: 'ok', what: 'dynamodb:Scan is allowed (the monitor, get, top)' });
    judgeRecords(leases, table.nowMs()).forEach(tell);
    if (!complete) tell({ level: 'note', what: 'The table was not read to its end in time' });
  } catch (error) {
    const denied = isLeaseError(error, 'access-denied');
    const who = 'the monitor, get, top';
    tell(judgeProbe({ action: 'dynamodb:Scan', who, error: describeError(error), denied }));
  }
  tell(judgeOffset(bounds));
  return levels.includes('error') ? 1 : 0;
}

async function describing(
  action: string,
  say: (finding: Finding) => void,
  run: () => Promise<void>,
): Promise<void> {
  try {
    await run();
  } catch (error) {
    const denied = error instanceof Error && error.name === 'AccessDeniedException';
    say(judgeProbe({ action, who: 'the doctor only', error: describeError(error), denied }));
  }
}

async function probe(
  host: Host,
  on: CliTable,
  seen: Bounds[],
  action: string,
  who: string,
  run: (call: StoreCall) => Promise<unknown>,
): Promise<Probe & { readonly hint?: string }> {
  const named = { action: `dynamodb:${action}`, who };
  try {
    await bounded(on.clock, PROBE_TIMEOUT_MS, `${action} on ${on.store.description}`, (signal) =>
      run({ signal, attempt: () => measure(seen) }),
    );
    return { ...named, error: undefined, denied: false };
  } catch (error) {
    const [first = '', hint] = explain(error, host, on.options).split('\n');
    return {
      ...named,
      error: first,
      denied: isLeaseError(error, 'access-denied'),
      ...(hint === undefined ? {} : { hint }),
    };
  }
}

interface Bounds {
  readonly lowerMs: number;
  readonly upperMs: number;
}

/** As every lease checks its clock: the header has whole seconds. */
function measure(bounds: Bounds[]): (date: string | undefined) => void {
  const sentMs = systemClock.read().wallMs;
  return (date) => {
    const dateMs = date === undefined ? NaN : Date.parse(date);
    if (Number.isNaN(dateMs)) return;
    const receivedMs = systemClock.read().wallMs;
    bounds.push({ lowerMs: dateMs - receivedMs, upperMs: dateMs + 1_000 - sentMs });
  };
}

const COLOUR: Record<Finding['level'], Colour> = {
  ok: 'green',
  note: 'cyan',
  warning: 'yellow',
  error: 'red',
};

function print(host: Host, { level, what, fix }: Finding): void {
  const word = level.padEnd(8);
  host.out(`${paintOf(host)(COLOUR[level], word)} ${printable(what)}\n`);
  if (fix !== undefined && level !== 'ok') host.out(`         ${printable(fix)}\n`);
}

export interface CreateTableOptions extends GlobalOptions {
  readonly deletionProtection?: boolean;
}

const CREATION_MS = 120_000;

export async function createLeaseTable(host: Host, options: CreateTableOptions): Promise<number> {
  const tableName = tableNameOf(options);
  const { tableAdmin } = await import('./table-doctor.ts');
  const admin = tableAdmin(tableName, { ...PATIENT, ...clientConfigOf(options) });
  const where = `table "${tableName}" in Region ${(await admin.region()) ?? '<none>'}`;
  try {
    await admin.create({
      deletionProtection: options.deletionProtection !== false,
      clock: systemClock,
      withinMs: CREATION_MS,
    });
  } catch (error) {
    const name = error instanceof Error ? error.name : '';
    if (name === 'ResourceInUseException') {
      throw new CliError(
        `Error from server (AlreadyExists): ${where} exists already, and was left as it is. ` +
          'Look at it with: lambda-lease doctor',
      );
    }
    if (name === 'AccessDeniedException') {
      throw new CliError(
        `Error from server (Forbidden): ${where} needs dynamodb:CreateTable, ` +
          `dynamodb:DescribeTable and dynamodb:UpdateTimeToLive (${describeError(error)}).`,
      );
    }
    throw new LeaseError('store-unavailable', `${where}: ${describeError(error)}`, {
      cause: error,
    });
  }
  host.out(`table/${tableName} created\n`);
  return 0;
}
