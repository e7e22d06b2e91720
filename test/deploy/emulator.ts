// The emulator of AWS that the test deploys to: MiniStack, one process on loopback with nothing
// that lasts.
//
//   M1. It listens on 127.0.0.1 alone, and keeps its files in one temporary folder.
//   M2. It does not outlive the process that started it, however that process ends.
//   M3. Whoever talks to it uses `environment`, which holds no real credentials and shuts every
//       way to a real account.

import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

export const ACCOUNT = '000000000000';
export const REGION = 'us-east-1';

const installer = 'test/deploy/install.sh';
const root = fileURLToPath(new URL('../..', import.meta.url));
const python = join(root, '.emulator/venv/bin/python');

export interface Emulator extends AsyncDisposable {
  readonly endpoint: string;
  /** A whole environment for a program that shall use it: nothing of our own is passed on. */
  readonly environment: Readonly<Record<string, string>>;
  /** What it has printed, for the case that a test fails. */
  readonly output: () => string;
}

/**
 * Whether the emulator is installed. A missing one is said aloud, and is an error in CI: a skipped
 * test must not look like a passed one.
 */
export function expectEmulator(): boolean {
  // The copy of the list comes last in an install: without it the install broke off.
  if (existsSync(python) && existsSync(join(root, '.emulator/installed-from'))) return true;
  const message = `The emulator of AWS is not installed. Run: ${installer}`;
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`\n!!! SKIPPED: ${message}\n`);
  return false;
}

// The shell's standard input is a pipe from us. The kernel closes it however we end, SIGKILL
// included, and then `read` returns and the emulator is killed (M2).
const script = `
  exec 3<&0
  "$0" -m ministack </dev/null 3<&- &
  exec >/dev/null 2>&1
  read -r _ <&3
  kill -9 $!
  wait`;

export async function startEmulator(): Promise<Emulator> {
  let output = '';
  for (let attempt = 0; attempt < 5; attempt++) {
    const folder = await mkdtemp(join(tmpdir(), 'emulator-'));
    // Below the range the kernel takes for outgoing connections. Asking it for a free port and
    // then releasing that one would invite another process to it.
    const port = randomInt(20_000, 32_768);
    const endpoint = `http://127.0.0.1:${port}`;
    const shell = spawn('/bin/sh', ['-c', script, python], {
      detached: true,
      env: { ...server(port), ...isolated(folder) },
    });
    const exited = once(shell, 'exit');
    output = '';
    for (const stream of [shell.stdout, shell.stderr]) {
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    }
    const stop = async (): Promise<void> => {
      shell.stdin.end();
      await exited;
      // Some of its threads may still have been writing.
      await rm(folder, { recursive: true, force: true, maxRetries: 3 });
    };
    // Its own word first: an answer alone could be another server's on this port.
    const running = () => output.includes(`Running on ${endpoint}`);
    if (await ready(endpoint, running, () => shell.stdout.readableEnded)) {
      return {
        endpoint,
        environment: { ...client(endpoint), ...isolated(folder) },
        output: () => output,
        [Symbol.asyncDispose]: stop,
      };
    }
    await stop();
  }
  throw new Error(`The emulator did not start. Its last words: ${output}`);
}

async function ready(
  endpoint: string,
  running: () => boolean,
  ended: () => boolean,
): Promise<boolean> {
  const deadline = performance.now() + 30_000;
  while (!ended() && performance.now() < deadline) {
    if (running() && (await healthy(endpoint))) return true;
    await sleep(50);
  }
  return false;
}

async function healthy(endpoint: string): Promise<boolean> {
  try {
    const response = await fetch(`${endpoint}/_ministack/health`);
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}

function server(port: number): Record<string, string> {
  return {
    BIND_HOST: '127.0.0.1',
    GATEWAY_PORT: String(port),
    MINISTACK_HOST: '127.0.0.1',
    IOT_MTLS_ENABLED: '0',
    PYTHONDONTWRITEBYTECODE: '1',
    // Lambda waits a minute before it repeats a failed asynchronous invocation.
    LAMBDA_ASYNC_RETRY_BASE_SECONDS: '1',
  };
}

function client(endpoint: string): Record<string, string> {
  return {
    AWS_ENDPOINT_URL: endpoint,
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_REGION: REGION,
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/dev/null',
    AWS_SHARED_CREDENTIALS_FILE: '/dev/null',
    CDK_DEFAULT_ACCOUNT: ACCOUNT,
    CDK_DEFAULT_REGION: REGION,
    CDK_DISABLE_CLI_TELEMETRY: 'true',
  };
}

function isolated(folder: string): Record<string, string> {
  const tools = [dirname(process.execPath), join(root, 'node_modules/.bin')];
  return {
    PATH: [...tools, process.env['PATH'] ?? '/usr/bin:/bin'].join(delimiter),
    HOME: folder,
    TMPDIR: folder,
    CDK_HOME: folder,
    LANG: 'C.UTF-8',
  };
}
