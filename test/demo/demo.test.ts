// The demo as a newcomer runs it, and what it says of workers that break its promises.

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, test } from 'vitest';

const LIMIT_MS = 60_000;

describe.concurrent('the demo', () => {
  test(
    'keeps every promise through a crash, a release, a freeze and a time-out',
    { timeout: LIMIT_MS },
    async ({ expect }) => {
      const { status, lines } = await run('--json');
      expect(summaryOf(lines)).toEqual({
        tenures: 6,
        overlaps: 0,
        tokensIncreasing: true,
        stepsAfterThaw: 0,
        takeoverMs: {
          crash: [expect.any(Number)],
          freeze: [expect.any(Number)],
          timeOut: [expect.any(Number)],
          release: [expect.any(Number), expect.any(Number)],
        },
        broken: [],
        ok: true,
      });
      expect(status).toBe(0);
      expect(lines).toContain('All promises were kept.');
      expect(lines.filter((line) => line.includes('\u001b'))).toEqual([]);
    },
  );

  test('tells of a worker that asks for no lease', { timeout: LIMIT_MS }, async ({ expect }) => {
    const { status, lines } = await run('--json', 'without-lease');
    const summary = summaryOf(lines);
    expect(summary).toMatchObject({ tokensIncreasing: false, ok: false });
    expect(summary['overlaps']).toBeGreaterThan(0);
    expect(status).toBe(1);
  });

  test('tells of a worker that goes on after a thaw', { timeout: LIMIT_MS }, async ({ expect }) => {
    const { status, lines } = await run('--json', 'deaf');
    const summary = summaryOf(lines);
    expect(summary).toMatchObject({ tokensIncreasing: true, ok: false });
    expect(summary['overlaps']).toBeGreaterThan(0);
    expect(summary['stepsAfterThaw']).toBeGreaterThan(0);
    expect(status).toBe(1);
  });

  test(
    'ends all that it started when it is interrupted',
    { timeout: LIMIT_MS },
    async ({ expect }) => {
      const child = start();
      for await (const line of createInterface(child.stdout)) {
        if (line.includes('gets the lease')) break;
      }
      child.stdout.resume();
      // The engine and the witness and four environments, at least.
      const started = descendants(child.pid);
      expect(started.length).toBeGreaterThanOrEqual(6);
      child.kill('SIGINT');
      expect(await once(child, 'exit')).toEqual([130, null]);
      await expect.poll(() => started.filter(isRunning), { timeout: 5_000 }).toEqual([]);
    },
  );
});

interface Ended {
  readonly status: number | null;
  readonly lines: readonly string[];
}

async function run(argument: string, worker?: string): Promise<Ended> {
  const child = start([argument], worker);
  let printed = '';
  child.stdout.on('data', (chunk: Buffer) => (printed += chunk.toString()));
  const [status] = (await once(child, 'close')) as [number | null];
  return { status, lines: printed.trimEnd().split('\n') };
}

function start(
  args: readonly string[] = [],
  worker?: string,
): ChildProcess & { stdout: NonNullable<ChildProcess['stdout']> } {
  return spawn(process.execPath, [path('main.ts'), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      ...process.env,
      ...(worker === undefined ? {} : { DEMO_WORKER: path(`broken-workers/${worker}.ts`) }),
    },
  });
}

function summaryOf(lines: readonly string[]): Record<string, unknown> {
  return JSON.parse(lines.at(-1) ?? '') as Record<string, unknown>;
}

/** All processes that `pid` has started, and those that they have. */
function descendants(pid: number | undefined): number[] {
  const children = readdirSync('/proc')
    .filter((entry) => /^\d+$/.test(entry) && statOf(entry)?.parent === pid)
    .map(Number);
  return [...children, ...children.flatMap(descendants)];
}

function isRunning(pid: number): boolean {
  const state = statOf(String(pid))?.state;
  return state !== undefined && state !== 'Z';
}

function statOf(pid: string): { state: string; parent: number } | undefined {
  try {
    const [, state, parent] = /\) (\w) (\d+)/.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return state === undefined ? undefined : { state, parent: Number(parent) };
  } catch {
    return undefined;
  }
}

function path(file: string): string {
  return fileURLToPath(new URL(file, import.meta.url));
}
