// The command line in a real terminal: tmux draws it, and tells what is on the screen.

import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { widthOf } from '../../src/cli-text.ts';
import { BIN, held, Stage, vacant } from './stage.ts';

vi.setConfig({ testTimeout: 90_000 });

const run = promisify(execFile);
const hasTmux = spawnSync('tmux', ['-V']).status === 0;
if (!hasTmux) {
  const missing = 'tmux is not installed: the command line is not tried in a terminal.';
  if (process.env['CI'] === 'true') throw new Error(missing);
  console.warn(`\n!!! ${missing}\n`);
}

class Terminal implements AsyncDisposable {
  readonly #socket = `lambda-lease-${randomUUID()}`;

  static async open(stage: Stage, columns: number, rows: number) {
    const terminal = new Terminal();
    const { PATH = '' } = process.env;
    const all: Record<string, string> = { ...stage.variables, PATH, LANG: 'C.UTF-8', PS1: '$ ' };
    const settings = Object.entries(all).map(([name, value]) => `${name}=${value}`);
    await terminal.tmux(
      ...['-u', '-f', '/dev/null', 'new-session', '-d', '-x', `${columns}`, '-y', `${rows}`],
      ...['env', '-i', 'TERM=screen-256color', ...settings, 'bash', '--noprofile', '--norc'],
    );
    await terminal.type(`lambda-lease() { "${process.execPath}" "${BIN}" "$@"; }; clear`);
    return terminal;
  }

  async tmux(...args: string[]): Promise<string> {
    return (await run('tmux', ['-L', this.#socket, ...args])).stdout;
  }

  async type(line: string): Promise<void> {
    await this.tmux('send-keys', '-l', line);
    await this.tmux('send-keys', 'Enter');
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

describe.skipIf(!hasTmux)('in a terminal', () => {
  let stage: Stage;

  beforeAll(async () => {
    stage = await Stage.open();
    await stage.put(
      'default/report',
      held('report:7/2026/01/01/[7]0123456789abcdef/uuid-uuid-uuid'),
    );
    await stage.put('default/夜間バッチ', held('wörker', -30_000));
    await stage.put('default/idle', vacant());
  });

  afterAll(async () => {
    await stage[Symbol.asyncDispose]();
  });

  test('a table is coloured, and every lease has one line, wide or narrow', async () => {
    for (const columns of [160, 64]) {
      await using terminal = await Terminal.open(stage, columns, 20);
      await terminal.type('lambda-lease get; echo done: $?');
      const screen = await terminal.shows(/^done: 0$/m);
      const names = screen.slice(screen.findIndex((line) => line.startsWith('NAME')));
      expect(names.map((line) => line.split(/ /)[0])).toEqual([
        'NAME',
        'idle',
        'report',
        '夜間バッチ',
        'done:',
        '$',
      ]);
      expect(names[2]?.includes('…')).toBe(columns === 64);
      for (const line of names) expect(widthOf(line)).toBeLessThanOrEqual(columns);
      const coloured = (await terminal.screen('-e')).join('\n');
      expect(coloured).toContain('\u001b[32mReady');
      expect(coloured).toContain('\u001b[33mExpired');
    }
  });

  test('NO_COLOR, a pipe and a dumb terminal have no colours', async () => {
    await using terminal = await Terminal.open(stage, 120, 30);
    for (const command of [
      'NO_COLOR=1 lambda-lease get',
      'lambda-lease get | cat',
      'TERM=dumb lambda-lease get',
    ]) {
      await terminal.type(`clear; ${command}; echo done: $?`);
      await terminal.shows(/^done: 0$/m);
      const screen = (await terminal.screen('-e')).join('\n');
      expect(screen).toContain('Ready');
      // eslint-disable-next-line no-control-regex
      expect(screen).not.toMatch(/\u001b\[3\d/);
    }
    await terminal.type('clear; lambda-lease get | head -n 1; echo done: ${PIPESTATUS[*]}');
    const screen = await terminal.shows(/^done: 0 0$/m);
    expect(screen.filter((line) => /EPIPE|Error/.test(line))).toEqual([]);
  });

  test('get -w adds a line for what changes, until Ctrl-C', async () => {
    await stage.put('watched/a', vacant(1));
    await using terminal = await Terminal.open(stage, 100, 20);
    await terminal.type('lambda-lease get -w -n watched; echo done: $?');
    await terminal.shows(/^a +<none> +Vacant/m);
    await stage.put('watched/a', held('bob', 60_000, 2));
    const screen = await terminal.shows(/^a +bob +Ready/m);
    // Under the titles that are there already.
    const [titles, , row] = screen.slice(screen.findIndex((line) => line.startsWith('NAME')));
    expect(row?.indexOf('Ready')).toBe(titles?.indexOf('STATUS'));
    await terminal.press('C-c');
    await terminal.shows(/done: 130$/m);
  });

  test('top keeps a screen of its own up to date, at every size, and gives it back', async () => {
    await stage.put('live/a', vacant(1));
    await using terminal = await Terminal.open(stage, 100, 20);
    await terminal.type('echo before');
    await terminal.type('lambda-lease top -n live; echo done: $?');
    const first = await terminal.shows(/^1 leases: 1 Vacant$/m);
    expect(first.join('\n')).not.toContain('before');
    await stage.put('live/a', held('somebody', 60_000, 2));
    await terminal.shows(/^1 leases: 1 Ready$/m);
    await terminal.tmux('resize-window', '-x', '40', '-y', '8');
    const narrow = await terminal.shows(/^NAME +HOLDER.*…$/m);
    expect(narrow.length).toBeLessThanOrEqual(8);
    for (const line of narrow) expect(widthOf(line)).toBeLessThanOrEqual(40);
    await terminal.press('q');
    const after = await terminal.shows(/^done: 0$/m);
    expect(after.join('\n')).not.toContain('1 leases');
    // The keys are the shell's again.
    await terminal.type('echo $((6*7))');
    await terminal.shows(/^42$/m);
  });

  test('release asks, and takes only yes for an answer', async () => {
    await stage.put('default/asked', held('somebody'));
    await using terminal = await Terminal.open(stage, 120, 30);
    await terminal.type('lambda-lease release asked; echo done: $?');
    await terminal.shows(/release default\/asked\? \[y\/N\]/);
    await terminal.type('');
    await terminal.shows(/^done: 1$/m);
    expect(await stage.record('default/asked')).toHaveProperty('holderIdentity');
    await terminal.type('clear; lambda-lease release asked; echo done: $?');
    await terminal.shows(/release default\/asked\? \[y\/N\]/);
    await terminal.type('y');
    await terminal.shows(/^done: 0$/m);
    expect(await stage.record('default/asked')).not.toHaveProperty('holderIdentity');
  });

  test('Ctrl-C reaches the command that runs under a lease, and ends both', async () => {
    await using terminal = await Terminal.open(stage, 100, 20);
    const script = `trap "echo got INT; exit 4" INT; echo up; while :; do sleep 0.1; done`;
    await terminal.type(`lambda-lease run interrupted -- sh -c '${script}'; echo done: $?`);
    await terminal.shows(/^up$/m);
    await terminal.press('C-c');
    const screen = await terminal.shows(/^done: 4$/m);
    expect(screen.join('\n').match(/^.*got INT$/gm)).toHaveLength(1);
    expect(await stage.record('default/interrupted')).not.toHaveProperty('holderIdentity');
  });
});
