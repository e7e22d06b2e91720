// The witness process, as the demo sees it: what it hears, as it hears it.

import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { Report, Verdict } from './sections.ts';

const program = fileURLToPath(new URL('./witness-process.ts', import.meta.url));

/** A report, and how many overlaps the witness has seen by then. */
export type Heard = Report & { readonly overlaps: number };

export class Witness implements AsyncDisposable {
  /** Where workers report to. */
  readonly url: string;
  readonly heard: Heard[] = [];
  readonly #child: ChildProcessByStdio<Writable, Readable, null>;
  readonly #waiting = new Set<() => void>();

  static async start(onReport: (report: Heard) => void): Promise<Witness> {
    const child = spawn(process.execPath, [program], { stdio: ['pipe', 'pipe', 'inherit'] });
    const lines = createInterface(child.stdout);
    const [first] = (await Promise.race([
      once(lines, 'line'),
      once(child, 'exit').then(() => Promise.reject(new Error('The witness did not start.'))),
    ])) as [string];
    const witness = new Witness(child, (JSON.parse(first) as { url: string }).url);
    lines.on('line', (line) => {
      const report = JSON.parse(line) as Heard;
      witness.heard.push(report);
      onReport(report);
      for (const look of witness.#waiting) look();
    });
    return witness;
  }

  private constructor(child: ChildProcessByStdio<Writable, Readable, null>, url: string) {
    this.#child = child;
    this.url = url;
  }

  /** The first report that is `wanted`, past or to come. Rejects when the signal aborts. */
  async until(wanted: (report: Report) => boolean, signal: AbortSignal): Promise<Report> {
    signal.throwIfAborted();
    return new Promise((resolve, reject) => {
      const over = () => {
        signal.removeEventListener('abort', giveUp);
        this.#waiting.delete(look);
      };
      const giveUp = () => {
        over();
        reject(signal.reason as Error);
      };
      const look = () => {
        const report = this.heard.find(wanted);
        if (report === undefined) return;
        over();
        resolve(report);
      };
      signal.addEventListener('abort', giveUp);
      this.#waiting.add(look);
      look();
    });
  }

  /** What the process itself has recorded. */
  async verdict(): Promise<Verdict> {
    const response = await fetch(this.url);
    return (await response.json()) as Verdict;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.stdin.end();
    await exited;
  }
}
