// The door of the command line to its process: arguments, terminal, signals, and the programs that
// it starts. Everything else of it works on this, and can be tested without a process.

import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, hostname, userInfo } from 'node:os';
import { createInterface } from 'node:readline/promises';
import type { ReadStream } from 'node:tty';

export const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;
export type Signal = (typeof SIGNALS)[number];

export interface Size {
  readonly columns: number;
  readonly rows: number;
}

export interface Started {
  /** Rejects where the program could not be started; the error's `code` says why. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null }>;
  /** To it and to all that it has started; false when there is nothing left of them. */
  kill(signal: NodeJS.Signals): boolean;
}

export interface StartOptions {
  readonly variables?: Readonly<Record<string, string>>;
  /** Without our terminal: for servers. */
  readonly quiet?: boolean;
  /** From SIGTERM to SIGKILL when this process has died. Default, and at most: 2 s. */
  readonly graceMs?: number;
}

export interface Host {
  readonly args: readonly string[];
  variable(name: string): string | undefined;
  /** `user@host`, as an operator is named in a record. */
  readonly whoami: string;
  out(text: string): void;
  err(text: string): void;
  /** Undefined when the output is no terminal. */
  size(): Size | undefined;
  readonly colour: boolean;
  /** Undefined when there is nobody to ask. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
  /** Calls for each key, until what it returns is called; nothing without a terminal. */
  onKey(listener: (key: string) => void): () => void;
  /** Signals no longer end this process, until the function that it returns is called. */
  onSignal(listener: (signal: Signal) => void): () => void;
  onResize(listener: () => void): () => void;
  /** Ctrl-Z: `stop` is called before this process is stopped, `go` when it goes on. */
  onStop(listeners: { readonly stop: () => void; readonly go: () => void }): () => void;
  /** In a process group of its own, which is killed when this process dies of SIGKILL. */
  start(command: string, args: readonly string[], how: StartOptions): Started;
  /** The path of a file of an installed package, as seen from the working directory. */
  resolve(specifier: string): string | undefined;
  load(specifier: string): unknown;
}

export function processHost(): Host {
  const { stdin, stdout, stderr } = process;
  // Whoever reads has read enough, as `head` has: there is nothing left to do, and nothing wrong.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : 1);
  });
  stderr.on('error', () => undefined);
  const variable = (name: string) => {
    const value = process.env[name]?.trim();
    return value === '' ? undefined : value;
  };
  return {
    args: process.argv.slice(2),
    variable,
    whoami: `${userName() ?? variable('USER') ?? 'somebody'}@${hostname()}`,
    out: (text) => void stdout.write(text),
    err: (text) => void stderr.write(text),
    size: () => (stdout.isTTY ? { columns: stdout.columns, rows: stdout.rows } : undefined),
    colour: stdout.isTTY && variable('NO_COLOR') === undefined && variable('TERM') !== 'dumb',
    ask: stdin.isTTY && stderr.isTTY ? ask : undefined,
    onKey: (listener) => listenToKeys(stdin, listener),
    onSignal: (listener) => {
      const listeners = SIGNALS.map((signal) => [signal, () => listener(signal)] as const);
      for (const [signal, each] of listeners) process.on(signal, each);
      return () => {
        for (const [signal, each] of listeners) process.off(signal, each);
      };
    },
    onResize: (listener) => {
      stdout.on('resize', listener);
      return () => void stdout.off('resize', listener);
    },
    onStop: ({ stop, go }) => {
      const onStop = () => {
        stop();
        process.kill(process.pid, 'SIGSTOP');
      };
      process.on('SIGTSTP', onStop);
      process.on('SIGCONT', go);
      return () => {
        process.off('SIGTSTP', onStop);
        process.off('SIGCONT', go);
      };
    },
    start,
    resolve: (specifier) => {
      for (const require of requires()) {
        try {
          const path = require.resolve(specifier);
          if (existsSync(path)) return path;
        } catch {
          // Perhaps from the other place.
        }
      }
      return undefined;
    },
    load: (specifier) => createRequire(import.meta.url)(specifier) as unknown,
  };
}

/** Runs `main` to its exit code. What is still being written is written before the process ends. */
export async function runProcess(main: (host: Host) => Promise<number>): Promise<void> {
  process.exitCode = await main(processHost());
}

/** 0 where there is no such signal. */
export function signalNumber(name: string): number {
  const numbers: Readonly<Record<string, number>> = constants.signals;
  return numbers[name] ?? 0;
}

function requires(): NodeJS.Require[] {
  return [createRequire(`${process.cwd()}/`), createRequire(import.meta.url)];
}

function userName(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    // A container may run as a number that has no name.
    return undefined;
  }
}

async function ask(question: string): Promise<string> {
  const asked = createInterface({ input: process.stdin, output: process.stderr });
  // Ctrl-C and the end of input are no answer.
  const closed = new Promise<string>((resolve) => asked.once('close', () => resolve('')));
  try {
    return await Promise.race([asked.question(question).catch(() => ''), closed]);
  } finally {
    asked.close();
  }
}

function listenToKeys(stdin: ReadStream, listener: (key: string) => void): () => void {
  if (!stdin.isTTY) return () => undefined;
  const onData = (data: Buffer) => listener(data.toString());
  stdin.setRawMode(true);
  stdin.on('data', onData);
  stdin.resume();
  return () => {
    stdin.off('data', onData);
    stdin.setRawMode(false);
    stdin.pause();
  };
}

// Its standard input is a pipe from us, which the kernel closes however we end. A word on it means
// that the command has ended; without one we were killed, and nobody renews the lease any more.
const WATCHDOG = `read -r word && exit
kill -TERM -"$0" && sleep "$1" && kill -KILL -"$0"`;
const LONGEST_GRACE_MS = 2_000;

function start(
  command: string,
  args: readonly string[],
  { variables = {}, quiet = false, graceMs = LONGEST_GRACE_MS }: StartOptions,
): Started {
  let child: ChildProcess;
  try {
    child = spawn(command, args, {
      stdio: quiet ? 'ignore' : 'inherit',
      env: { ...process.env, ...variables },
      detached: true,
    });
  } catch (error) {
    // Most reasons why it cannot be started come as an event; some are thrown.
    const reason = error as Error;
    return { ended: Promise.reject(reason), kill: () => false };
  }
  const { pid } = child;
  const graceSeconds = Math.min(graceMs, LONGEST_GRACE_MS) / 1_000;
  const watchdog =
    pid === undefined
      ? undefined
      : spawn('/bin/sh', ['-c', WATCHDOG, String(pid), String(graceSeconds)], {
          stdio: ['pipe', 'ignore', 'ignore'],
          detached: true,
        });
  watchdog?.on('error', () => undefined);
  watchdog?.stdin.on('error', () => undefined);
  const ended = new Promise<{ code: number | null; signal: string | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
  const kill = (signal: NodeJS.Signals) => {
    try {
      return pid !== undefined && process.kill(-pid, signal);
    } catch {
      return false;
    }
  };
  void ended.then(
    () => watchdog?.stdin.end('done\n'),
    () => undefined,
  );
  return { ended, kill };
}
