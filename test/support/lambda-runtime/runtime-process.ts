// One runtime process with everything it starts: a process group of its own, what it
// prints, and how it ended.
//
// It knows signals and pipes. It never knows what an invocation is.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { forgetGroup, watchGroup } from './reaper.ts';

export interface OutputLine {
  /** When it was read here, by `Date.now()`. */
  readonly atMs: number;
  readonly stream: 'stdout' | 'stderr';
  readonly text: string;
}

/** How a process ended: exactly one of the two is not null. */
export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ProcessOptions {
  readonly entry: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly onLine: (line: OutputLine) => void;
}

export class RuntimeProcess {
  readonly pid: number;
  readonly output: OutputLine[] = [];
  /** Settles once the process is gone and all it printed has been read. */
  readonly exited: Promise<Exit>;

  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #onLine: (line: OutputLine) => void;
  #stopped = false;
  #gone = false;
  #ended = false;

  constructor(options: ProcessOptions) {
    this.#onLine = options.onLine;
    this.#child = spawn(process.execPath, [options.entry], {
      cwd: options.cwd,
      env: { ...options.env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    // A failed start shows here at once, for lack of a pid; the event would come later.
    this.#child.on('error', () => undefined);
    if (this.#child.pid === undefined) {
      throw new Error(`Could not start ${process.execPath} in ${options.cwd}`);
    }
    this.pid = this.#child.pid;
    watchGroup(this.pid);
    this.#read('stdout');
    this.#read('stderr');

    this.#child.once('exit', () => {
      // What the runtime started may outlive it, and would keep its pipes open.
      this.#signalGroup('SIGKILL');
      this.#gone = true;
      forgetGroup(this.pid);
    });
    this.exited = new Promise((resolve) => {
      this.#child.once('close', (code, signal) => {
        this.#ended = true;
        resolve({ code, signal });
      });
    });
  }

  /** True from the moment in which `exited` settles. */
  get ended(): boolean {
    return this.#ended;
  }

  get stopped(): boolean {
    return this.#stopped;
  }

  /** Stops the whole group. No clock and no timer outside it stops. */
  stop(): void {
    this.#signalGroup('SIGSTOP');
    this.#stopped = true;
  }

  continue(): void {
    this.#signalGroup('SIGCONT');
    this.#stopped = false;
  }

  kill(): void {
    this.#signalGroup('SIGKILL');
  }

  /** Asks the runtime process alone, as Lambda does. */
  terminate(): void {
    this.#child.kill('SIGTERM');
  }

  #signalGroup(signal: NodeJS.Signals): void {
    if (this.#gone) return;
    try {
      process.kill(-this.pid, signal);
    } catch (error) {
      // The group ended by itself, and its exit has not been reported yet.
      if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
    }
  }

  #read(stream: 'stdout' | 'stderr'): void {
    let rest = '';
    const readable = this.#child[stream].setEncoding('utf8');
    readable.on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      for (const text of lines) this.#line(stream, text);
    });
    readable.on('end', () => {
      if (rest !== '') this.#line(stream, rest);
    });
  }

  #line(stream: 'stdout' | 'stderr', text: string): void {
    const line: OutputLine = { atMs: Date.now(), stream, text };
    this.output.push(line);
    this.#onLine(line);
  }
}
