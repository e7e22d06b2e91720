// A real terminal for tests: tmux draws it, and tells what is on the screen.

import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** What is missing is said aloud, and is an error in CI: a skipped test must not look passed. */
export function isInstalled(program: string): boolean {
  const found = spawnSync('sh', ['-c', `command -v ${program}`]).status === 0;
  if (found) return true;
  const missing = `${program} is not installed: apt-get install ${program}`;
  if (process.env['CI'] === 'true') throw new Error(missing);
  console.warn(`\n!!! SKIPPED: ${missing}\n`);
  return false;
}

export class Terminal implements AsyncDisposable {
  readonly #socket = `lambda-lease-${randomUUID()}`;

  /** Runs `program` in a terminal of that size, with no variables but these. */
  static async open(
    program: readonly string[],
    variables: Readonly<Record<string, string>>,
    { columns, rows }: { readonly columns: number; readonly rows: number },
  ) {
    const terminal = new Terminal();
    const { PATH = '' } = process.env;
    const all: Record<string, string> = { PATH, LANG: 'C.UTF-8', PS1: '$ ', ...variables };
    const settings = Object.entries(all).map(([name, value]) => `${name}=${value}`);
    await terminal.tmux(
      ...['-u', '-f', '/dev/null', 'new-session', '-d', '-x', `${columns}`, '-y', `${rows}`],
      ...['env', '-i', 'TERM=screen-256color', ...settings, ...program],
    );
    return terminal;
  }

  async tmux(...args: string[]): Promise<string> {
    return (await run('tmux', ['-L', this.#socket, ...args])).stdout;
  }

  async type(line: string): Promise<void> {
    await this.write(line);
    await this.press('Enter');
  }

  async write(text: string): Promise<void> {
    await this.tmux('send-keys', '-l', text);
  }

  async press(key: string): Promise<void> {
    await this.tmux('send-keys', key);
  }

  /** The screen; with escapes, as it is coloured. */
  async screen(...options: string[]): Promise<string[]> {
    const text = await this.tmux('capture-pane', '-p', ...options);
    return text.trimEnd().split('\n');
  }

  /** What is typed shows too: a pattern must match what is printed only. */
  async shows(pattern: RegExp): Promise<string[]> {
    for (let attempt = 0; attempt < 400; attempt++) {
      const screen = await this.screen();
      if (pattern.test(screen.join('\n'))) return screen;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`The screen never showed ${pattern}:\n${(await this.screen()).join('\n')}`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.tmux('kill-server').catch(() => undefined);
  }
}
