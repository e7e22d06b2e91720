// The command line in a real terminal.

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { widthOf } from '../../src/cli-text.ts';
import { BIN, held, Stage, vacant } from './stage.ts';
import { isInstalled, Terminal } from './terminal.ts';

vi.setConfig({ testTimeout: 90_000 });

async function openShell(stage: Stage, columns: number, rows: number) {
  const shell = ['bash', '--noprofile', '--norc'];
  const terminal = await Terminal.open(shell, stage.variables, { columns, rows });
  await terminal.type(`lambda-lease() { "${process.execPath}" "${BIN}" "$@"; }; clear`);
  return terminal;
}

describe.skipIf(!isInstalled('tmux'))('in a terminal', () => {
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
      await using terminal = await openShell(stage, columns, 20);
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
    await using terminal = await openShell(stage, 120, 30);
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
    await using terminal = await openShell(stage, 100, 20);
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
    await using terminal = await openShell(stage, 100, 20);
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
    await using terminal = await openShell(stage, 120, 30);
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
    await using terminal = await openShell(stage, 100, 20);
    const script = `trap "echo got INT; exit 4" INT; echo up; while :; do sleep 0.1; done`;
    await terminal.type(`lambda-lease run interrupted -- sh -c '${script}'; echo done: $?`);
    await terminal.shows(/^up$/m);
    await terminal.press('C-c');
    const screen = await terminal.shows(/^done: 4$/m);
    expect(screen.join('\n').match(/^.*got INT$/gm)).toHaveLength(1);
    expect(await stage.record('default/interrupted')).not.toHaveProperty('holderIdentity');
  });

  test('the command that runs under a lease has the terminal, and hears of its size', async () => {
    await using terminal = await openShell(stage, 100, 20);
    const script = `trap "echo resized" WINCH; test -t 0 && read -r line; echo "got $line"; read -r x`;
    await terminal.type(`lambda-lease run typed -- bash -c '${script}'; echo done: $?`);
    await terminal.type('hello');
    await terminal.shows(/^got hello$/m);
    await terminal.tmux('resize-window', '-x', '90', '-y', '15');
    await terminal.type('');
    await terminal.shows(/^resized$/m);
    await terminal.shows(/^done: 0$/m);
  });

  test('Ctrl-Z stops the command too, which goes on while the lease is held, and only then', async () => {
    const ticking = `sh -c 'trap "" TERM; while :; do echo tick; sleep 0.1; done'`;
    const ticks = (screen: readonly string[]) => screen.filter((line) => line === 'tick').length;
    const standsStill = async (terminal: Terminal) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      const before = ticks(await terminal.screen());
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      expect(ticks(await terminal.screen())).toBe(before);
    };
    await using held = await openShell(stage, 60, 200);
    await held.type(`"${process.execPath}" "${BIN}" run paused --duration 60s -- ${ticking}`);
    await held.shows(/^tick$/m);
    await held.press('C-z');
    await held.shows(/Stopped/);
    await standsStill(held);
    await held.type('clear; fg');
    await held.shows(/^tick\ntick\ntick$/m);
    await held.press('C-c');

    await using lost = await openShell(stage, 60, 200);
    await lost.type(`"${process.execPath}" "${BIN}" run overslept --duration 6s -- ${ticking}`);
    await lost.shows(/^tick$/m);
    await lost.press('C-z');
    await lost.shows(/Stopped/);
    await new Promise((resolve) => setTimeout(resolve, 7_000));
    await lost.type('clear; fg; echo done: $?');
    const screen = await lost.shows(/^done: 76$/m);
    expect(ticks(screen)).toBe(0);
    expect(screen.join('')).toContain('Stopping the command.');
  });
});
