// What the doctor thinks of what it has found: each finding with its fix. Pure.

import { humanDuration } from './ages.ts';
import type { LeaseRecord } from './lease.ts';
import { readPassMemory } from './pass-memory.ts';
import { KEY_ATTRIBUTE, MONITOR_LEASE, TIME_TO_LIVE_ATTRIBUTE } from './schema.ts';
import type { TableFacts, TimeToLiveFacts } from './table-doctor.ts';

export interface Finding {
  readonly level: 'ok' | 'note' | 'warning' | 'error';
  readonly what: string;
  readonly fix?: string;
}

const ok = (what: string): Finding => ({ level: 'ok', what });
const warning = (what: string, fix: string): Finding => ({ level: 'warning', what, fix });
const failure = (what: string, fix: string): Finding => ({ level: 'error', what, fix });

export function judgeTable(tableName: string, facts: TableFacts): Finding[] {
  const table = `Table "${tableName}"`;
  const { keys, status, consistency, replicas } = facts;
  const findings: Finding[] = [];
  findings.push(
    status === 'ACTIVE' || status === 'UPDATING'
      ? ok(`${table} is ${status}${facts.arn === undefined ? '' : ` (${facts.arn})`}`)
      : failure(`${table} is ${status ?? 'in no known state'}`, 'Wait until it is ACTIVE.'),
  );
  const [partition, sort] = keys;
  const right = partition?.name === KEY_ATTRIBUTE && partition.type === 'S' && sort === undefined;
  const found = keys.map(({ name, type }) => `${name} (${type})`).join(', ');
  findings.push(
    right
      ? ok(`Its key is "${KEY_ATTRIBUTE}" of type String`)
      : failure(
          `Its key is ${found === '' ? 'unknown' : found}; it must be "${KEY_ATTRIBUTE}" of type ` +
            'String, without a sort key',
          'A key cannot be changed: create another table (`lambda-lease table create`).',
        ),
  );
  if (consistency === 'EVENTUAL') {
    findings.push(
      failure(
        `It is a global table (${replicas.join(', ')}) with eventual consistency: two Regions ` +
          'can hold one lease at once, and the last writer wins',
        'Use the leases from one Region only, without replicas; or a new table with ' +
          'multi-Region strong consistency.',
      ),
    );
  } else if (consistency === 'STRONG') {
    findings.push(ok(`It is a global table with strong consistency (${replicas.join(', ')})`));
  } else {
    findings.push(ok('It is in one Region'));
  }
  if (!facts.deletionProtection) {
    findings.push(
      warning(
        'It can be deleted, and with it all fencing tokens would start again',
        `aws dynamodb update-table --table-name ${tableName} --deletion-protection-enabled`,
      ),
    );
  }
  if (facts.billing === 'PROVISIONED') {
    findings.push({
      level: 'note',
      what: 'Its capacity is provisioned: throttled renewals lose leases',
      fix: 'Alarm on throttling, or use on-demand capacity.',
    });
  }
  return findings;
}

export function judgeTimeToLive(
  tableName: string,
  { status, attribute }: TimeToLiveFacts,
  consistency: TableFacts['consistency'],
): Finding {
  const enabled = status === 'ENABLED' || status === 'ENABLING';
  if (enabled && attribute === TIME_TO_LIVE_ATTRIBUTE) {
    return ok(`Time to Live clears away what is long gone (attribute "${attribute}")`);
  }
  if (enabled) {
    return failure(
      `Time to Live is on attribute "${attribute ?? ''}": DynamoDB may delete records of leases, ` +
        'and with them their fencing tokens',
      `Disable it, and enable it on "${TIME_TO_LIVE_ATTRIBUTE}".`,
    );
  }
  if (consistency === 'STRONG') {
    return ok('Time to Live does not exist on such tables: the lifecycle monitor clears away');
  }
  if (status === 'UNSUPPORTED') return ok('This server knows no Time to Live; AWS does');
  return warning(
    'Time to Live is off: heartbeats and identities that are gone stay, unless the lifecycle ' +
      'monitor collects them',
    `aws dynamodb update-time-to-live --table-name ${tableName} --time-to-live-specification ` +
      `Enabled=true,AttributeName=${TIME_TO_LIVE_ATTRIBUTE}`,
  );
}

export interface Probe {
  readonly action: string;
  readonly who: string;
  /** What stands in the way; undefined when it is allowed. */
  readonly error: string | undefined;
  readonly denied: boolean;
}

export function judgeProbe({ action, who, error, denied }: Probe): Finding {
  if (error === undefined) return ok(`${action} is allowed (${who})`);
  return denied
    ? warning(`${action} is denied (${who})`, `Allow ${action} on the table to whoever needs it.`)
    : failure(`${action} failed (${who})`, error);
}

/** `lowerMs` to `upperMs` is what must be added to this clock to be right, as far as is known. */
export function judgeOffset(bounds: readonly { lowerMs: number; upperMs: number }[]): Finding {
  if (bounds.length === 0) {
    return {
      level: 'note',
      what: 'The server sends no Date: this clock cannot be checked',
      fix: 'Nothing, where the server is an embedded one; AWS sends it.',
    };
  }
  const lowerMs = Math.max(...bounds.map((each) => each.lowerMs));
  const upperMs = Math.min(...bounds.map((each) => each.upperMs));
  const seconds = (value: number) => `${(Math.abs(value) / 1_000).toFixed(1)} s`;
  if (lowerMs > CLOCK_LIMIT_MS || upperMs < -CLOCK_LIMIT_MS) {
    const behind = lowerMs > 0;
    return failure(
      `This machine's clock is ${behind ? 'behind' : 'ahead'} by ` +
        `${seconds(behind ? lowerMs : upperMs)} at least`,
      'Synchronise it (chrony, NTP). Holders with such a clock are refused.',
    );
  }
  const within = Math.max(Math.abs(lowerMs), Math.abs(upperMs));
  return within > CLOCK_LIMIT_MS
    ? warning(
        `This machine's clock is right to within ${seconds(within)}, which proves nothing`,
        'The answers were slow: try again.',
      )
    : ok(`This machine's clock is right to within ${seconds(within)}`);
}

/** Three eighths of 5 s: what a clock that judges leases is held to. */
const CLOCK_LIMIT_MS = 1_875;

export function judgeRecords(records: readonly LeaseRecord[], nowMs: number): Finding[] {
  const named = (list: readonly LeaseRecord[]) =>
    `${list
      .slice(0, 5)
      .map((record) => record.lease)
      .join(', ')}${list.length > 5 ? ` and ${list.length - 5} more` : ''}`;
  const findings: Finding[] = [ok(`${records.length} records`)];
  const corrupt = records.filter((record) => record.corrupt !== undefined);
  if (corrupt.length > 0) {
    findings.push(
      failure(
        `${corrupt.length} of them cannot be used: ${named(corrupt)}`,
        '`lambda-lease describe` says what to set, and to what; do not delete the records.',
      ),
    );
  }
  const fading = records.filter(
    (record) => record.kind === 'leader' && record.raw[TIME_TO_LIVE_ATTRIBUTE] !== undefined,
  );
  if (fading.length > 0) {
    findings.push(
      failure(
        `${fading.length} leader leases will be deleted by Time to Live: ${named(fading)}`,
        `Remove the attribute ${TIME_TO_LIVE_ATTRIBUTE} from them.`,
      ),
    );
  }
  const suspended = records.filter((record) => record.suspended !== undefined);
  if (suspended.length > 0) {
    findings.push({
      level: 'note',
      what: `${suspended.length} are suspended: ${named(suspended)}`,
      fix: 'lambda-lease resume NAME, when they shall run again.',
    });
  }
  findings.push(judgeMonitor(records, nowMs));
  return findings;
}

const LONGEST_ABSENCE_MS = 120_000;

function judgeMonitor(records: readonly LeaseRecord[], nowMs: number): Finding {
  const key = `${MONITOR_LEASE.namespace}/${MONITOR_LEASE.name}`;
  const own = records.find((record) => record.lease === key);
  const pass = own && readPassMemory(own.raw);
  if (pass === undefined) {
    return {
      level: 'note',
      what: 'No lifecycle monitor has looked at this table: silent holders are not told of',
      fix: 'Deploy the construct LifecycleMonitor of lambda-lease/cdk.',
    };
  }
  const agoMs = nowMs - pass.atMs;
  const when = `The lifecycle monitor's last pass was ${humanDuration(Math.max(0, agoMs))} ago`;
  return agoMs > LONGEST_ABSENCE_MS
    ? warning(when, 'Look at its function: its schedule, its errors, its lease.')
    : ok(when);
}
