// Completion: what may stand at the cursor, and each shell that asks for it.

import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { BIN, held, Stage, vacant } from './stage.ts';
import { isInstalled, Terminal } from './terminal.ts';

vi.setConfig({ testTimeout: 90_000 });

let stage: Stage;
let folder: string;
let variables: Record<string, string>;

beforeAll(async () => {
  stage = await Stage.open();
  await stage.put('default/report', held());
  await stage.put('default/web:1', held());
  await stage.put('default/web:2', held());
  await stage.put('default/two words', held());
  await stage.put('default/夜間バッチ', vacant());
  await stage.put('default/bad\u001bname', held());
  await stage.put('ops/deploy', held());
  folder = mkdtempSync(join(tmpdir(), 'lambda-lease-completion-'));
  const program = join(folder, 'lambda-lease');
  writeFileSync(program, `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`);
  chmodSync(program, 0o755);
  const PATH = `${folder}:${process.env['PATH'] ?? ''}`;
  variables = { ...stage.variables, PATH, HOME: folder, LANG: 'C.UTF-8' };
});

afterAll(async () => {
  rmSync(folder, { recursive: true });
  await stage[Symbol.asyncDispose]();
});

describe('what may stand at the cursor', () => {
  test.each<[string[], string[]]>([
    [['des'], ['describe']],
    [['-n', 'ops', 'des'], ['describe']],
    [['nope', ''], []],
    [['table', ''], ['create']],
    [
      ['completion', ''],
      ['bash', 'zsh', 'fish'],
    ],
    [['completion', 'bash', ''], []],
    [
      ['get', '--s'],
      ['--selector', '--sort-by'],
    ],
    [
      ['get', '-o', ''],
      ['wide', 'json', 'yaml', 'name'],
    ],
    [['get', '--output=y'], ['--output=yaml']],
    [['top', '--kind', 'h'], ['heartbeat']],
    [['get', '--sort-by', 'ex'], ['expires']],
    [['get', '--selector', ''], []],
    [
      ['get', ''],
      ['report', 'two words', 'web:1', 'web:2', '夜間バッチ'],
    ],
    [['get', 'report', 're'], []],
    [['describe', 'report', '夜'], ['夜間バッチ']],
    [['-n', 'ops', 'release', ''], ['deploy']],
    [['release', '--namespace=ops', '--reason', 'x', ''], ['deploy']],
    [['release', 'report', ''], []],
    [
      ['get', '-n', ''],
      ['default', 'ops'],
    ],
    [['run', 'x', '--', ''], []],
    [['get', '-t', 'no-such-table', ''], []],
  ])('%j: %j', async (words, expected) => {
    const { out } = await stage.run(['__complete', '--', ...words]);
    const found = out.split('\n').flatMap((line) => (line === '' ? [] : line.replace(/\t.*/, '')));
    expect(found).toEqual(expected);
  });

  test('is told what it is, and help does not speak of it', async () => {
    const { out } = await stage.run(['__complete', '--', 'get', '夜']);
    expect(out).toBe('夜間バッチ\tVacant\n');
    expect((await stage.run(['--help'])).out).not.toContain('__complete');
  });

  test('is not waited for long where the table does not answer', async () => {
    const { createServer } = await import('node:net');
    const silent = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => silent.once('listening', resolve));
    const { port } = silent.address() as { port: number };
    const began = performance.now();
    const endpoint = `http://127.0.0.1:${port}`;
    const { out } = await stage.run(['__complete', '--', '--endpoint-url', endpoint, 'get', '']);
    expect(out).toBe('');
    // Two seconds; this machine may be busy.
    expect(performance.now() - began).toBeLessThan(9_000);
    silent.close();
  });
});

/** What a program prints, with the program `lambda-lease` in its path. */
function printed(program: string, ...args: string[]): string[] {
  const ran = spawnSync(program, args, { env: variables, stdio: ['ignore', 'pipe', 'pipe'] });
  expect(ran.stderr.toString()).toBe('');
  return ran.stdout
    .toString()
    .split('\n')
    .filter((line) => line !== '');
}

describe('bash', () => {
  const complete = (line: string) =>
    printed(
      'bash',
      ...['--noprofile', '--norc', '-c'],
      `source <(lambda-lease completion bash)
      COMP_LINE=$1 COMP_POINT=\${#1}
      _lambda_lease lambda-lease && printf '%s\\n' "\${COMPREPLY[@]}"`,
      ...['bash', line],
    );

  test.each<[string, string[]]>([
    ['lambda-lease des', ['describe']],
    ['lambda-lease get 夜', ['夜間バッチ']],
    ['lambda-lease -n ops release ', ['deploy']],
    ['lambda-lease get two', ['two\\ words']],
    ['lambda-lease get two\\ w', ['two\\ words']],
    // Bash keeps what stands before its own word breaks.
    ['lambda-lease get web:', ['1', '2']],
    ['lambda-lease get --output=n', ['name']],
    ['lambda-lease run x -- ', []],
  ])('%s: %j', (line, expected) => {
    expect(complete(line)).toEqual(expected);
  });
});

describe.skipIf(!isInstalled('fish'))('fish', () => {
  const complete = (line: string) =>
    printed(
      'fish',
      ...['--no-config', '-c', 'lambda-lease completion fish | source; complete -C $argv[1]'],
      line,
    );

  test.each<[string, string[]]>([
    ['lambda-lease des', ['describe\ttell all about a lease: holder, logs, schedule, condition']],
    ['lambda-lease get 夜', ['夜間バッチ\tVacant']],
    ['lambda-lease -n ops release ', ['deploy\tReady']],
    ["lambda-lease get 'two w", ['two words\tReady']],
    ['lambda-lease get web:', ['web:1\tReady', 'web:2\tReady']],
    ['lambda-lease get --output=n', ['--output=name']],
    ['lambda-lease run x -- /etc/host', ['/etc/host.conf', '/etc/hostname', '/etc/hosts']],
  ])('%s: %j', (line, expected) => {
    expect(complete(line)).toEqual(expected);
  });
});

describe.skipIf(!isInstalled('zsh') || !isInstalled('tmux'))('zsh', () => {
  test('completes what is typed, and lists what there is to choose from', async () => {
    const size = { columns: 100, rows: 30 };
    await using terminal = await Terminal.open(['zsh', '--no-rcs'], variables, size);
    await terminal.type('autoload -Uz compinit && compinit -u -D && PS1="%% "');
    await terminal.type('source <(lambda-lease completion zsh); clear; echo rea""dy');
    await terminal.shows(/^ready$/m);

    const completed = async (line: string, pattern: RegExp) => {
      await terminal.write(line);
      await terminal.press('Tab');
      await terminal.shows(pattern);
      await terminal.press('C-u');
    };
    await completed('lambda-lease des', /lambda-lease describe$/m);
    await completed('lambda-lease get rep', /lambda-lease get report$/m);
    await completed('lambda-lease get two', /lambda-lease get two\\ words$/m);
    await completed('lambda-lease get two\\ w', /lambda-lease get two\\ words$/m);
    await completed('lambda-lease -n ops release ', /lambda-lease -n ops release deploy$/m);
    await completed('lambda-lease get web:', /^web:[12] +web:[12] +-- Ready$/m);
    await completed('lambda-lease get --output=n', /lambda-lease get --output=name$/m);
    await completed('lambda-lease run x -- /etc/hostn', /run x -- \/etc\/hostname$/m);
  });
});
