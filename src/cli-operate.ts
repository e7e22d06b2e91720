// What an operator does to a lease: release, evict, suspend, resume, ask to step down, label and
// annotate. Says what it means before it is done, and writes only to what was looked at.

import { humanDuration } from './ages.ts';
import { holderOf, listed } from './cli-columns.ts';
import type { Host } from './cli-process.ts';
import {
  CliError,
  keyOf,
  notFound,
  openTable,
  type CliTable,
  type GlobalOptions,
} from './cli-table.ts';
import { printable } from './cli-text.ts';
import { sameValue } from './condition.ts';
import { clip } from './holder.ts';
import { itemBytes, WRITE_UNIT_BYTES } from './item-size.ts';
import { isoTime, readLease, type LeaseRecord } from './lease.ts';
import {
  complaintAbout,
  evict,
  readNotes,
  requestStepDown,
  resume,
  suspend,
  vacate,
  writeNotes,
  type OperatorNotes,
  type Statement,
} from './operator-writes.ts';
import { invalid, show } from './options.ts';
import { BYTE_BUDGET } from './schema.ts';
import { readVerdict } from './stored-verdict.ts';
import type { Write } from './writes.ts';

export interface OperateOptions extends GlobalOptions {
  readonly yes?: boolean;
  readonly reason?: string;
  readonly by?: string;
  readonly overwrite?: boolean;
}

/** A live holder renews while an operator reads: only the version moves on. */
const MOST_ATTEMPTS = 5;

export async function releaseLease(host: Host, name: string, options: OperateOptions) {
  return endTenure(host, name, options, {
    verb: 'release',
    done: 'released',
    means: '',
    write: (seen, { atMs }) => vacate(seen, atMs),
    // By its holder meanwhile, or by us; an eviction is something else, and says so.
    isDone: (seen, now) =>
      now.vacant &&
      now.leaseTransitions === seen.leaseTransitions &&
      sameValue(now.raw['condition'], seen.raw['condition']),
  });
}

export async function evictHolder(host: Host, name: string, options: OperateOptions) {
  return endTenure(host, name, options, {
    verb: 'evict',
    done: 'evicted',
    means:
      'The record says Evicted until somebody takes it; the lifecycle monitor publishes ' +
      '"Lease Evicted".\n',
    write: (seen, statement) => evict(seen, statement),
    isDone: (_, now, atMs) => {
      const verdict = readVerdict(now);
      return verdict?.status === 'Evicted' && verdict.sinceMs === atMs;
    },
  });
}

interface Ending {
  readonly verb: 'release' | 'evict';
  readonly done: string;
  readonly means: string;
  readonly write: (seen: LeaseRecord, statement: Statement) => Write;
  /**
   * Whether what was asked for has been done all the same (L7): the SDK repeats a write whose
   * answer was lost, and then its own first attempt refuses it.
   */
  readonly isDone: (seen: LeaseRecord, now: LeaseRecord, atMs: number) => boolean;
}

async function endTenure(
  host: Host,
  name: string,
  options: OperateOptions,
  { verb, done, means, write, isDone }: Ending,
): Promise<number> {
  const key = keyOf(name, options);
  const statement = statementOf(host, options);
  const table = await openTable(options);
  const first = await found(table, key);
  const publishes = first.kind === 'heartbeat' || first.kind === 'identity';
  if (verb === 'release' && publishes) {
    throw new CliError(
      `error: ${printable(key)} is of kind ${first.kind}: its worker would take it again at ` +
        `once. To have it judged dead: lambda-lease evict ${printable(name)}`,
    );
  }
  if (first.vacant) throw new CliError(`error: lease ${printable(key)} is vacant already`);
  refuseCorrupt(first);
  const question = publishes ? whatJudgingMeans(first, table.nowMs()) : whatItMeans(first, table);
  host.err(question + means);
  await confirm(host, options, `${verb} ${printable(key)}?`);

  let seen = first;
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const pending = readVerdict(seen)?.event;
    const atMs = Math.floor(table.nowMs());
    const answer = await table.write(key, write(seen, { ...statement, atMs }));
    if (answer.kind === 'applied') {
      host.out(`lease/${printable(name)} ${done}\n`);
      if (verb === 'evict' && pending !== undefined) {
        host.err(
          `No event tells of it: "${pending.type}" of this lease has not been published yet, and ` +
            'is not overwritten.\n',
        );
      }
      return 0;
    }
    const now = await table.read(key);
    if (now === undefined) throw await notFound(key, table);
    if (isDone(seen, now, atMs)) {
      host.out(`lease/${printable(name)} ${done}\n`);
      return 0;
    }
    if (isAnotherTenure(first, now)) {
      throw new CliError(
        `Error from server (Conflict): lease ${printable(key)} has changed hands meanwhile: ` +
          (now.vacant ? 'it is vacant' : `it is held by ${described(now)}`) +
          '. Nothing was written.',
      );
    }
    refuseCorrupt(now);
    seen = now;
  }
  throw new CliError(
    `Error from server (Conflict): the record of lease ${printable(key)} changed at each of ` +
      `${MOST_ATTEMPTS} attempts. Nothing was written; try again.`,
  );
}

/** A renewal in between is no reason to ask again; another tenure is. */
function isAnotherTenure(first: LeaseRecord, now: LeaseRecord): boolean {
  return (
    now.vacant ||
    now.holderIdentity !== first.holderIdentity ||
    now.leaseTransitions !== first.leaseTransitions
  );
}

function whatItMeans(record: LeaseRecord, table: CliTable): string {
  const { leftMs } = listed(record, table.nowMs()).summary;
  const alive =
    leftMs !== undefined && leftMs < 0
      ? `Its holder lets it lapse: it expired ${humanDuration(-leftMs)} ago.\n`
      : 'If its holder lives, it goes on until its next renewal is refused' +
        (leftMs === undefined ? '' : `, for ${humanDuration(leftMs)} at most`) +
        ': in that time two may act, and only what is fenced by the token is safe.\n';
  return (
    `Lease ${printable(record.lease)} is held by ${described(record)}. Anybody may take it ` +
    `once it is vacant, its holder too.\n${alive}` +
    (record.suspended === undefined
      ? 'To keep everybody out, suspend it first; to ask a living holder instead: step-down.\n'
      : '')
  );
}

function whatJudgingMeans(record: LeaseRecord, nowMs: number): string {
  const { leftMs } = listed(record, nowMs).summary;
  return (
    `${record.kind === 'identity' ? 'Identity' : 'Heartbeat'} ${printable(record.lease)} is of ` +
    `${described(record)}${(leftMs ?? 0) > 0 ? ', which is alive by its times' : ''}.\n` +
    'Whoever listens for evictions treats it as dead. A worker that lives is Ready again at its ' +
    'next renewal.\n'
  );
}

function described(record: LeaseRecord): string {
  const at = listed(record, 0);
  return `${printable(holderOf(at))} (token ${at.summary.token ?? '<unknown>'})`;
}

export async function suspendLease(
  host: Host,
  name: string,
  options: OperateOptions,
): Promise<number> {
  const key = keyOf(name, options);
  const statement = statementOf(host, options);
  const table = await openTable(options);
  const seen = await table.read(key);
  // The record that stops all slots of a lease is made by this.
  const slots = seen === undefined && (await table.read(`${key}/0`)) !== undefined;
  if (seen === undefined && !slots) throw await notFound(key, table);
  const stated = { ...statement, atMs: Math.floor(table.nowMs()) };
  const answer = await table.write(key, suspend(stated, slots));
  const after = answer.item && readLease(key, answer.item);
  if (answer.kind === 'refused') {
    const now = after ?? (await found(table, key));
    const { since, by, why } = now.suspended ?? {};
    if (since === isoTime(stated.atMs) && by === stated.by) {
      // Our own, whose answer was lost (L7).
      host.out(`lease/${printable(name)} suspended\n`);
      return 0;
    }
    host.out(
      printable(
        `lease/${name} already suspended${since === undefined ? '' : ` since ${since}`}` +
          `${by === undefined ? '' : ` by ${by}`}${why === undefined ? '' : `: ${why}`}`,
      ) + '\n',
    );
    return 0;
  }
  host.out(`lease/${printable(name)} suspended\n`);
  tellCorrupt(host, after);
  tellSize(host, after);
  if (after?.vacant === false) {
    host.err(
      `It is held by ${described(after)}: an elector gives it back at its next renewal; a job, a ` +
        'handler or a `run` finishes first. Nobody takes it after that.\n',
    );
  }
  return 0;
}

export async function resumeLease(
  host: Host,
  name: string,
  options: GlobalOptions,
): Promise<number> {
  const key = keyOf(name, options);
  const table = await openTable(options);
  const seen = await found(table, key);
  if (seen.raw['suspended'] === undefined) {
    host.out(`lease/${printable(name)} not suspended\n`);
    return 0;
  }
  const answer = await table.write(key, resume(seen));
  if (answer.kind === 'refused') {
    const now = await found(table, key);
    if (now.raw['suspended'] !== undefined) {
      throw new CliError(
        `Error from server (Conflict): lease ${printable(key)} was suspended again meanwhile` +
          `${now.suspended?.by === undefined ? '' : ` by ${printable(now.suspended.by)}`}.`,
      );
    }
  }
  host.out(`lease/${printable(name)} resumed\n`);
  tellCorrupt(host, seen);
  return 0;
}

export async function stepDown(host: Host, name: string, options: OperateOptions): Promise<number> {
  const key = keyOf(name, options);
  const statement = statementOf(host, options);
  const table = await openTable(options);
  const seen = await found(table, key);
  if (seen.kind === 'heartbeat' || seen.kind === 'identity') {
    throw new CliError(
      `error: ${printable(key)} is of kind ${seen.kind}; only a leader can step down`,
    );
  }
  if (seen.vacant) throw new CliError(`error: lease ${printable(key)} is vacant already`);
  const answer = await table.write(
    key,
    requestStepDown(seen, { ...statement, atMs: table.nowMs() }),
  );
  if (answer.kind === 'refused') {
    throw new CliError(
      `Error from server (Conflict): lease ${printable(key)} has changed hands meanwhile. ` +
        'Nothing was written.',
    );
  }
  host.out(`lease/${printable(name)} asked to step down\n`);
  tellCorrupt(host, seen);
  host.err('An elector gives it back at its next renewal; a job, a handler or a `run` finishes.\n');
  return 0;
}

/** `key=value` sets, `key-` removes, as kubectl's. */
export async function noteOnLease(
  host: Host,
  kind: keyof OperatorNotes,
  name: string,
  changes: readonly string[],
  options: OperateOptions,
): Promise<number> {
  const key = keyOf(name, options);
  const parsed = changes.map(parseChange);
  const table = await openTable(options);
  for (let attempt = 1; attempt <= MOST_ATTEMPTS; attempt++) {
    const seen = await found(table, key);
    const notes = readNotes(seen);
    const next = { ...notes[kind] };
    for (const { entry, value } of parsed) {
      if (Object.hasOwn(seen[kind], entry)) {
        throw new CliError(
          `error: "${printable(entry)}" is written by the holder of ${printable(key)} itself, at ` +
            'each acquisition; choose another key',
        );
      }
      if (value === undefined) {
        Reflect.deleteProperty(next, entry);
      } else if (options.overwrite !== true && (next[entry] ?? value) !== value) {
        throw new CliError(
          `error: "${printable(entry)}" is ${show(next[entry])} already; to change it, give ` +
            '--overwrite',
        );
      } else next[entry] = value;
    }
    const both = { ...notes, [kind]: next };
    const complaint = complaintAbout({ notes: both });
    if (complaint !== undefined) throw invalid(complaint);
    const answer = await table.write(key, writeNotes(seen, both));
    if (answer.kind === 'refused') continue;
    host.out(`lease/${printable(name)} ${kind === 'labels' ? 'labeled' : 'annotated'}\n`);
    tellCorrupt(host, seen);
    tellSize(host, readLease(key, answer.item));
    return 0;
  }
  throw new CliError(
    `Error from server (Conflict): others note on ${printable(key)} at the same time. Try again.`,
  );
}

function parseChange(change: string): { entry: string; value: string | undefined } {
  const [, entry = '', value] = /^([^\s=]+)=(.*)$/su.exec(change) ?? [];
  if (entry !== '') return { entry, value };
  const removed = /^([^\s=]+)-$/.exec(change)?.[1];
  if (removed !== undefined) return { entry: removed, value: undefined };
  throw invalid(`${show(change)} is neither key=value, which sets, nor key-, which removes.`);
}

function statementOf(host: Host, options: OperateOptions): Statement {
  const {
    reason: why,
    by = options.by === undefined ? clip(host.whoami, BYTE_BUDGET.operator.by) : '',
  } = options;
  if (by === '' || why === '') {
    throw invalid('--by and --reason must have at least one character.');
  }
  const complaint = complaintAbout({ by, ...(why === undefined ? {} : { why }) });
  if (complaint !== undefined) throw invalid(complaint);
  return { atMs: 0, by, why };
}

async function found(table: CliTable, key: string): Promise<LeaseRecord> {
  const record = await table.read(key);
  if (record === undefined) throw await notFound(key, table);
  return record;
}

async function confirm(host: Host, options: OperateOptions, question: string): Promise<void> {
  if (options.yes === true) return;
  if (host.ask === undefined) {
    throw new CliError('error: there is nobody to ask; to go ahead without asking, give --yes');
  }
  const answer = await host.ask(`${question} [y/N] `);
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new CliError('Nothing was written.');
}

/** Its version cannot be compared, so no write of a holder's kind can be conditional on it. */
function refuseCorrupt(record: LeaseRecord): void {
  if (record.corrupt !== undefined) {
    throw new CliError(`error: nothing was written. ${printable(record.corrupt)}`);
  }
}

function tellCorrupt(host: Host, record: LeaseRecord | undefined): void {
  if (record?.corrupt !== undefined) host.err(`Warning: ${printable(record.corrupt)}\n`);
}

function tellSize(host: Host, record: LeaseRecord | undefined): void {
  const bytes = record === undefined ? 0 : itemBytes(record.raw);
  if (bytes <= WRITE_UNIT_BYTES) return;
  host.err(
    `Warning: the record has ${bytes} bytes now: each renewal costs ` +
      `${Math.ceil(bytes / WRITE_UNIT_BYTES)} write units instead of one.\n`,
  );
}
