// Runs spin over the model of the lease protocol: what must hold, and what must break when a rule
// is broken.

import { execFile } from 'node:child_process';
import { copyFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const MODEL = fileURLToPath(new URL('lease.pml', import.meta.url));
const SEARCH_DEPTH = 2_000_000;
const MEMORY_MB = 4_000;

const run = promisify(execFile);

export interface Configuration {
  readonly title: string;
  /** What the model is told: see the comments in it. */
  readonly flags: readonly string[];
}

/** Every state is visited, and the claims hold in each. */
export const HOLDS: readonly Configuration[] = [
  {
    title: '2 contenders, late and lost messages, two of A under way at once',
    flags: ['SLOTS=2', 'LEADERS', 'NAMED', 'ONCE'],
  },
  {
    title: "2 contenders, A's clock unchecked, wrong and set at will",
    flags: ['STEPS', 'LEADERS', 'NAMED', 'ONCE'],
  },
  {
    title: '2 contenders and their guarded writes',
    flags: ['LEADERS', 'NAMED', 'ONCE', 'FENCE'],
  },
  { title: '3 contenders', flags: ['N=3', 'LEADERS', 'NAMED', 'ONCE'] },
  {
    title: 'clocks beyond the tolerance: the fence, and belief ends once',
    flags: ['SKEW=2', 'ONCE', 'FENCE'],
  },
];

/** The claims that a broken rule can make fail, and what one sees then. */
export const SEEN = {
  LEADERS: 'two believe at once',
  ONCE: 'belief that has ended is revived',
  FENCE: 'a guarded write commits after its tenure',
} as const;

export interface BrokenConfiguration extends Configuration {
  /** The claim that fails, as the model names it. */
  readonly failing: keyof typeof SEEN;
}

/** One rule is broken, and the one claim that is checked fails. */
export const BREAKS: readonly BrokenConfiguration[] = [
  { title: 'clocks beyond the tolerance', failing: 'LEADERS', flags: ['SKEW=2'] },
  broken('belief counts from the arrival of the answer', 'LEADERS', 'BELIEF_FROM_ANSWER'),
  broken('an unchecked clock takes expired leases', 'LEADERS', 'UNCHECKED_CLOCK_TAKES', 'STEPS'),
  broken(
    'an acquisition counts without proof of the clock',
    'LEADERS',
    'UNPROVEN_ACQUISITION_COUNTS',
    'STEPS',
  ),
  broken('renewal without version', 'LEADERS', 'RENEW_WITHOUT_VERSION', 'SLOTS=2'),
  broken('release without condition', 'LEADERS', 'RELEASE_WITHOUT_CONDITION'),
  broken('a late success revives a tenure', 'ONCE', 'LATE_SUCCESS_REVIVES'),
  broken('no new token when the former holder takes it again', 'FENCE', 'NO_NEW_TOKEN'),
  broken('a guarded write without its condition', 'FENCE', 'GUARD_WITHOUT_CONDITION'),
];

function broken(
  title: string,
  failing: BrokenConfiguration['failing'],
  rule: string,
  ...flags: readonly string[]
): BrokenConfiguration {
  return { title, failing, flags: [`BROKEN=${rule}`, ...flags] };
}

export interface Search {
  readonly states: number;
  readonly errors: number;
  /** Why not every state was visited; empty when all were. */
  readonly incomplete: readonly string[];
  /** How often each line of a story was reached, by its line in the model. */
  readonly told: ReadonlyMap<number, number>;
}

/** Visits every state, depth first, each stored in full. */
export async function search({ flags }: Configuration): Promise<Search> {
  return inScratch(async (folder) => {
    const output = await verify(
      folder,
      [...flags, 'COUNT'],
      ['-O1'],
      [`-m${SEARCH_DEPTH}`, '-w24'],
    );
    return {
      ...figures(output),
      incomplete: [
        ...(output.match(/max search depth too small|out of memory|Search not completed/gi) ?? []),
        ...(output.includes('Full statespace search for:') ? [] : ['not a full search']),
      ],
      told: new Map(
        [...output.matchAll(/^told (\d+) (\d+)$/gm)].map((m) => [Number(m[1]), Number(m[2])]),
      ),
    };
  });
}

export interface CounterExample {
  readonly states: number;
  readonly errors: number;
  readonly violated: string | undefined;
  readonly story: readonly string[];
}

/** Searches breadth first: what it finds is as short as any. */
export async function counterExample(it: BrokenConfiguration): Promise<CounterExample> {
  const flags = [...it.flags, it.failing];
  return inScratch(async (folder) => {
    const output = await verify(folder, flags, ['-O0', '-DBFS'], ['-w22']);
    const found = figures(output);
    const violated = /assertion violated (.*) \(at depth/.exec(output)?.[1];
    if (found.errors === 0) return { ...found, violated, story: [] };
    const trail = await run('spin', ['-t', '-T', ...defines(flags), 'lease.pml'], { cwd: folder });
    const lines = trail.stdout.split('\n');
    const end = lines.findIndex((line) => /^spin: (?:.*Error: |trail ends)/.test(line));
    // It may warn that the model is no older than the trail.
    const story = lines.slice(0, end).filter((line) => line !== '' && !line.startsWith('spin:'));
    return { ...found, violated, story };
  });
}

/** The lines of the model that tell a story, by number. */
export async function storyLines(): Promise<ReadonlyMap<number, string>> {
  const lines = (await readFile(MODEL, 'utf8')).split('\n');
  return new Map(
    lines.flatMap((line, index) => {
      const text = /\btell\("(.*)\\n"/.exec(line)?.[1];
      return text === undefined ? [] : [[index + 1, text] as const];
    }),
  );
}

/** What to install, or undefined where all that is needed is there. */
export async function missingTools(): Promise<string | undefined> {
  const tools = await Promise.all(
    (['spin -V', 'gcc --version'] as const).map(async (command) => {
      const [tool = '', option = ''] = command.split(' ');
      return run(tool, [option]).then(
        () => undefined,
        () => tool,
      );
    }),
  );
  const missing = tools.filter((tool) => tool !== undefined);
  return missing.length === 0
    ? undefined
    : `The model of the protocol needs ${missing.join(' and ')}. ` +
        `On Debian: apt-get install -y ${missing.join(' ')}`;
}

/** spin writes a verifier for one configuration, gcc compiles it, and it searches. */
async function verify(
  folder: string,
  flags: readonly string[],
  compile: readonly string[],
  verifier: readonly string[],
): Promise<string> {
  const cwd = folder;
  await copyFile(MODEL, join(folder, 'lease.pml'));
  await run('spin', [...defines(flags), '-a', 'lease.pml'], { cwd });
  const memory = `-DMEMLIM=${MEMORY_MB}`;
  // Every step reads what all the others write: partial order reduction would only cost time.
  const options = ['-w', '-DSAFETY', '-DNOREDUCE', memory, ...compile];
  await run('gcc', [...options, '-o', 'pan', 'pan.c'], { cwd });
  return (await run('./pan', [...verifier], { cwd, maxBuffer: 64 * 1_024 * 1_024 })).stdout;
}

function figures(output: string): { readonly states: number; readonly errors: number } {
  const number = (pattern: RegExp) => {
    const text = pattern.exec(output)?.[1];
    if (text === undefined) throw new Error(`The verifier did not say ${pattern}:\n${output}`);
    return Number(text);
  };
  return { states: number(/(\S+) states, stored/), errors: number(/errors: (\d+)/) };
}

function defines(flags: readonly string[]): readonly string[] {
  return flags.map((flag) => `-D${flag}`);
}

async function inScratch<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), 'lease-model-'));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
