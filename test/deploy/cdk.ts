// The CDK's own command line, run as a user runs it, against an emulator only.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { ACCOUNT, type Emulator, REGION } from './emulator.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const app = 'node test/deploy/app.ts';

export interface Cdk {
  /** Makes the account ready for deployments. */
  bootstrap(): Promise<void>;
  /** Synthesises and deploys; resolves to the stack's outputs, by their names. */
  deploy(stack: string, context: Context): Promise<Readonly<Record<string, string>>>;
  /** The folder of the last synthesis: templates, and the assets that were deployed. */
  readonly assembly: string;
}

export type Context = Readonly<Record<string, string>>;

/** `folder` takes what it writes. */
export function commandLine(emulator: Emulator, folder: string): Cdk {
  const assembly = join(folder, 'cdk.out');
  const outputs = join(folder, 'outputs.json');

  return {
    assembly,
    bootstrap: async () => {
      await run(emulator, ['bootstrap', `aws://${ACCOUNT}/${REGION}`]);
    },
    deploy: async (stack, context) => {
      const settings = Object.entries(context).flatMap(([key, value]) => [
        '--context',
        `${key}=${value}`,
      ]);
      await run(emulator, [
        ...['deploy', stack, '--app', app, '--output', assembly, ...settings],
        // The emulator updates a stack only in this way: it knows no change sets for it.
        ...['--method', 'direct', '--require-approval', 'never', '--outputs-file', outputs],
      ]);
      const written = JSON.parse(await readFile(outputs, 'utf8')) as Record<string, Outputs>;
      return written[stack] ?? {};
    },
  };
}

type Outputs = Readonly<Record<string, string>>;

/** Rejects with all that was printed when the command fails. */
async function run(emulator: Emulator, args: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [join(root, 'node_modules/aws-cdk/bin/cdk'), ...args, '--no-notices'], {
    cwd: root,
    env: { ...emulator.environment, CI: 'true' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [out, err, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null]>,
  ]);
  if (code !== 0) throw new Error(`cdk ${args.join(' ')} ended with ${code}:\n${out}\n${err}`);
}
