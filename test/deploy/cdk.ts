// The CDK's own command line, run as a user runs it, but against an emulator.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { forgetGroup, watchGroup } from '../support/lambda-runtime/reaper.ts';
import { ACCOUNT, type Emulator, REGION } from './emulator.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const cli = join(root, 'node_modules/aws-cdk/bin/cdk');
const app = 'node test/deploy/app.ts';

export type Context = Readonly<Record<string, string>>;
type Outputs = Readonly<Record<string, string>>;

export class CommandLine implements AsyncDisposable {
  /** The folder of what was synthesised: the template, and all assets since the first. */
  readonly assembly: string;

  readonly #emulator: Emulator;
  readonly #outputs: string;
  readonly #running = new Set<ChildProcess>();

  /** `folder` takes what it writes. */
  constructor(emulator: Emulator, folder: string) {
    this.#emulator = emulator;
    this.assembly = join(folder, 'cdk.out');
    this.#outputs = join(folder, 'outputs.json');
  }

  /** Bundles the functions, and makes templates and assets. The others take it from there. */
  async synthesise(context: Context): Promise<void> {
    const settings = Object.entries(context).map(([name, value]) => `--context=${name}=${value}`);
    await this.#run(['synth', '--quiet', '--app', app, '--output', this.assembly, ...settings]);
  }

  /** Makes the account ready for deployments. */
  async bootstrap(): Promise<void> {
    await this.#run(['bootstrap', '--app', this.assembly, `aws://${ACCOUNT}/${REGION}`]);
  }

  /** Resolves to the stack's outputs, by their names. */
  async deploy(stack: string): Promise<Outputs> {
    await this.#run([
      ...['deploy', stack, '--app', this.assembly, '--outputs-file', this.#outputs],
      // Only in this way does the emulator update a stack: it has change sets for new ones alone.
      ...['--method', 'direct', '--require-approval', 'never'],
    ]);
    const written = JSON.parse(await readFile(this.#outputs, 'utf8')) as Record<string, Outputs>;
    return written[stack] ?? {};
  }

  /** Ends a command that still runs, with all that it has started. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#running) {
      const exited = once(child, 'exit');
      process.kill(-child.pid!, 'SIGKILL');
      await exited;
    }
  }

  /** Rejects with all that was printed when the command fails. */
  async #run(args: readonly string[]): Promise<void> {
    const child = spawn(process.execPath, [cli, ...args, '--no-notices'], {
      cwd: root,
      env: { ...this.#emulator.environment, CI: 'true' },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const { pid } = child;
    if (pid === undefined) throw new Error(`${cli} could not be started.`);
    watchGroup(pid);
    this.#running.add(child);
    child.once('exit', () => {
      this.#running.delete(child);
      forgetGroup(pid);
    });
    const [out, err, [code]] = await Promise.all([
      text(child.stdout),
      text(child.stderr),
      once(child, 'exit') as Promise<[number | null]>,
    ]);
    if (code !== 0) {
      throw new Error(`cdk ${args.join(' ')} ended with ${code ?? 'a signal'}:\n${out}\n${err}`);
    }
  }
}
