// What may stand at the cursor (`__complete`): commands, options and their values as they are
// declared, and the names of leases and namespaces, asked of the table that the line itself names.

import { listed, ORDERS } from './cli-columns.ts';
import { OUTPUTS } from './cli-get.ts';
import type { Host } from './cli-process.ts';
import { IMPATIENT, namespaceOf, openTable, type GlobalOptions } from './cli-table.ts';
import { printable } from './cli-text.ts';
import { systemClock } from './clock.ts';
import { splitLeaseKey } from './lease.ts';
import { LEASE_KINDS } from './schema.ts';

/** A command, or the program itself. */
export interface Completable {
  readonly name: string;
  readonly description: string;
  readonly options: readonly CompletableOption[];
  readonly commands: readonly Completable[];
  /** What it is given beside options. */
  readonly takes: 'name' | 'names' | readonly string[];
}

export interface CompletableOption {
  /** Short and long, as they are typed; the long one last. */
  readonly flags: readonly string[];
  readonly description: string;
  readonly takesValue: boolean;
}

export interface Candidate {
  readonly word: string;
  readonly description: string;
}

export type Completion =
  | { readonly kind: 'words'; readonly words: readonly Candidate[] }
  /** These are asked of the table. */
  | { readonly kind: 'leases'; readonly of: GlobalOptions; readonly except: readonly string[] }
  | { readonly kind: 'namespaces'; readonly of: GlobalOptions };

const VALUES: Readonly<Record<string, readonly string[]>> = {
  '--output': OUTPUTS,
  '--kind': LEASE_KINDS,
  '--sort-by': Object.keys(ORDERS),
};

/** `words`: those behind the program's name, up to the one at the cursor, which may be empty. */
export function completionOf(program: Completable, words: readonly string[]): Completion {
  const current = words.at(-1) ?? '';
  const given: Record<string, string> = {};
  const operands: string[] = [];
  let command = program;
  let awaited: CompletableOption | undefined;
  const optionOf = (flag: string) =>
    [...command.options, ...program.options].find(({ flags }) => flags.includes(flag));

  for (const word of words.slice(0, -1)) {
    if (awaited !== undefined) {
      given[longOf(awaited)] = word;
      awaited = undefined;
    } else if (word === '--') {
      return none();
    } else if (word.startsWith('-')) {
      const [flag = '', ...value] = word.split('=');
      const option = optionOf(flag);
      if (option?.takesValue !== true) continue;
      if (value.length === 0) awaited = option;
      else given[longOf(option)] = value.join('=');
    } else {
      const next = command.commands.find(({ name }) => name === word);
      if (next === undefined) operands.push(word);
      else command = next;
    }
  }

  const of: GlobalOptions = Object.fromEntries(
    Object.entries(given).map(([flag, value]) => [
      flag.slice(2).replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()),
      value,
    ]),
  );
  if (awaited !== undefined) return valuesOf(longOf(awaited), '', of);
  const [flag = '', ...value] = current.split('=');
  if (current.startsWith('-')) {
    const option = optionOf(flag);
    if (value.length > 0) return option ? valuesOf(longOf(option), `${flag}=`, of) : none();
    const options = [...command.options, ...program.options];
    return wordsOf(options.map((each) => [longOf(each), each.description]));
  }
  if (command.commands.length > 0 && operands.length === 0) {
    return wordsOf(command.commands.map(({ name, description }) => [name, description]));
  }
  const { takes } = command;
  if (takes === 'names' || (takes === 'name' && operands.length === 0)) {
    return { kind: 'leases', of, except: operands };
  }
  return typeof takes === 'string' || operands.length > 0
    ? none()
    : wordsOf(takes.map((word) => [word, '']));
}

function longOf({ flags }: CompletableOption): string {
  return flags.at(-1) ?? '';
}

function none(): Completion {
  return { kind: 'words', words: [] };
}

function wordsOf(pairs: readonly (readonly [string, string])[]): Completion {
  return { kind: 'words', words: pairs.map(([word, description]) => ({ word, description })) };
}

function valuesOf(flag: string, before: string, of: GlobalOptions): Completion {
  if (flag === '--namespace' && before === '') return { kind: 'namespaces', of };
  return wordsOf((VALUES[flag] ?? []).map((value) => [before + value, '']));
}

/** Prints a word a line, with what it is behind a tab. */
export async function complete(
  host: Host,
  program: Completable,
  words: readonly string[],
): Promise<number> {
  const current = words.at(-1) ?? '';
  const completion = completionOf(program, words);
  const found = completion.kind === 'words' ? completion.words : await candidatesOf(completion);
  for (const { word, description } of found) {
    // What cannot be printed cannot be typed either.
    if (!word.startsWith(current) || printable(word) !== word) continue;
    host.out(`${word}${description === '' ? '' : `\t${printable(description)}`}\n`);
  }
  return 0;
}

async function candidatesOf(
  completion: Exclude<Completion, { kind: 'words' }>,
): Promise<readonly Candidate[]> {
  const table = await openTable(completion.of, systemClock, IMPATIENT);
  if (completion.kind === 'namespaces') {
    const { leases } = await table.list({ namespace: undefined });
    const namespaces = leases.map(({ lease }) => splitLeaseKey(lease).namespace);
    return [...new Set(namespaces)].sort().map((word) => ({ word, description: '' }));
  }
  const { leases } = await table.list({ namespace: namespaceOf(completion.of) });
  return leases
    .map((record) => ({
      word: splitLeaseKey(record.lease).name,
      description: listed(record, table.nowMs()).summary.status,
    }))
    .filter(({ word }) => !completion.except.includes(word))
    .sort((a, b) => (a.word < b.word ? -1 : 1));
}
