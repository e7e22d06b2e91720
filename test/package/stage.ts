// The package as its users get it: built, packed, installed by npm from the tarball, and put into
// projects of their kinds, each a folder of its own. Nothing here resolves to the sources.

import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

export const root = fileURLToPath(new URL('../..', import.meta.url));
const support = join(root, 'test/support/consumers');

/** Tools that only the tests of the package have; see their package.json. */
export const tools = {
  node22: join(support, 'node_modules/node22/bin/node'),
  node24: process.execPath,
  tsc5: join(support, 'node_modules/typescript5/bin/tsc'),
  tsc6: join(root, 'node_modules/typescript/bin/tsc'),
  tsc7: join(support, 'node_modules/typescript7/bin/tsc'),
  publint: join(support, 'node_modules/publint/src/cli.js'),
  attw: join(support, 'node_modules/@arethetypeswrong/cli/dist/index.js'),
} as const;

/** A missing tool is said aloud, and is an error in CI: a skipped test must not look passed. */
export function expectTools(): boolean {
  const missing = Object.values(tools).filter((path) => !existsSync(path));
  if (missing.length === 0) return true;
  const message = `Not installed: ${missing.join(', ')}. Run: npm ci --prefix test/support/consumers`;
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`\n!!! SKIPPED: ${message}\n`);
  return false;
}

export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
}

const start = promisify(execFile);

/** Two at a time, of programs that each take a whole core for seconds. */
const MOST_AT_ONCE = 2;
/** How long a test may take: the most of it may be waiting for its turn, on a machine that is busy. */
export const PATIENCE_MS = 300_000;
let running = 0;
const waiting: (() => void)[] = [];

async function turn(): Promise<void> {
  if (running < MOST_AT_ONCE) running += 1;
  else await new Promise<void>((resolve) => waiting.push(resolve));
}

function pass(): void {
  const next = waiting.shift();
  if (next === undefined) running -= 1;
  else next();
}

/** Runs a program to its end; rejects with all that it wrote when it fails. */
export async function run(
  file: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
): Promise<Ran> {
  // What the tests run under says nothing to those who run the package.
  const inherited = { ...process.env, NODE_OPTIONS: '' };
  await turn();
  try {
    return await start(file, args, { cwd, env: { ...inherited, ...env }, maxBuffer: 2 ** 26 });
  } catch (error) {
    const { stdout, stderr } = error as Ran;
    throw new Error(`${basename(file)} ${args.join(' ')} failed:\n${stdout}\n${stderr}`, {
      cause: error,
    });
  } finally {
    pass();
  }
}

export interface PackedFile {
  readonly path: string;
  readonly size: number;
  readonly mode: number;
}

export class Stage {
  readonly #folder: string;
  readonly #installed: string;
  readonly tarball: string;
  /** What the tarball holds. */
  readonly files: readonly PackedFile[];
  /** What npm installs for a user who has all peers already. */
  readonly installed: readonly string[];

  private constructor(
    folder: string,
    tarball: string,
    files: readonly PackedFile[],
    installed: readonly string[],
  ) {
    this.#folder = folder;
    this.#installed = join(folder, 'installed/node_modules');
    this.tarball = tarball;
    this.files = files;
    this.installed = installed;
  }

  /** Builds, packs and installs. */
  static async open(): Promise<Stage> {
    const folder = mkdtempSync(join(tmpdir(), 'lambda-lease-package-'));
    const packed = await run('npm', ['pack', '--json', '--pack-destination', folder], root);
    // What the build says comes first.
    const { stdout } = packed;
    const [report] = JSON.parse(stdout.slice(stdout.search(/^\[$/m))) as [
      { filename: string; files: PackedFile[] },
    ];
    const tarball = join(folder, report.filename);
    const user = join(folder, 'installed');
    mkdirSync(user);
    writeFileSync(join(user, 'package.json'), '{ "private": true }');
    const quick = ['--ignore-scripts', '--no-audit', '--no-fund', '--prefer-offline'];
    await run('npm', ['install', tarball, '--omit=peer', ...quick], user);
    const lock = readFileSync(join(user, 'node_modules/.package-lock.json'), 'utf8');
    const { packages } = JSON.parse(lock) as { packages: Record<string, object> };
    const installed = Object.keys(packages).map((path) => path.replace(/^node_modules\//, ''));
    return new Stage(folder, tarball, report.files, installed);
  }

  /**
   * A user's project of that name: the package, the project's own packages, which are those that
   * this project is developed with, and its files.
   */
  project(
    name: string,
    packages: readonly string[],
    files: Readonly<Record<string, string>>,
  ): string {
    const folder = join(this.#folder, name);
    const modules = join(folder, 'node_modules');
    cpSync(this.#installed, modules, { recursive: true, verbatimSymlinks: true });
    for (const each of packages) {
      mkdirSync(dirname(join(modules, each)), { recursive: true });
      symlinkSync(join(root, 'node_modules', each), join(modules, each));
    }
    for (const [path, text] of Object.entries(files)) writeFileSync(join(folder, path), text);
    return folder;
  }

  close(): void {
    rmSync(this.#folder, { recursive: true });
  }
}

export function manifest(kind: 'module' | 'commonjs'): string {
  return JSON.stringify({ name: 'consumer', version: '1.0.0', private: true, type: kind });
}
