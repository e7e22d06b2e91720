// A process that has let its lease go ends by itself: nothing of the lease keeps it.

import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { availableEngines, rawItem } from '../support/dynamodb.ts';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.ts';
import { openTable, type Table } from './fixture.ts';

const program = fileURLToPath(new URL('./leaves-at-once.ts', import.meta.url));
let table: Table;

beforeAll(async () => {
  table = await openTable(availableEngines()[0]!);
});
afterAll(async () => {
  await table[Symbol.asyncDispose]();
});

describe.concurrent('a process ends by itself once it has released', () => {
  test.each<[string, (proxy: FaultProxy) => void, expires?: true]>([
    ['while nothing was under way', () => undefined],
    [
      'while a renewal was under way that is never answered',
      (proxy) => void proxy.inject({ fault: { kind: 'black-hole', when: 'before' } }),
    ],
    [
      'while a renewal was under way that is applied, and never answered',
      (proxy) => void proxy.inject({ fault: { kind: 'black-hole', when: 'after' } }),
    ],
    [
      'and whose release got no answer: its lease expires (L6)',
      (proxy) => {
        const fault = { kind: 'error', error: 'InternalServerError' } as const;
        proxy.inject({ fault, times: Infinity });
      },
      true,
    ],
  ])('%s', async (what, disturb, expires) => {
    await using proxy = await startFaultProxy(table.endpoint);
    const name = what.replaceAll(/\W+/g, '-');
    const child = spawn(process.execPath, [program, table.tableName, name], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: {
        PATH: process.env['PATH'],
        AWS_REGION: 'us-east-1',
        AWS_ACCESS_KEY_ID: 'test',
        AWS_SECRET_ACCESS_KEY: 'test',
        AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
      },
    });
    const printed = text(child.stdout);
    const complained = text(child.stderr);
    let releasedAtMs = Infinity;
    child.stdout.on('data', (chunk: Buffer) => {
      if (String(chunk).includes('released')) releasedAtMs = performance.now();
    });
    const ended = new Promise<number | null>((resolve) => child.once('exit', resolve));
    try {
      while (proxy.requests.every(({ status }) => status === undefined)) {
        await new Promise((resolve) => setTimeout(resolve, 5));
      }
      disturb(proxy);
      expect(await ended, await complained).toBe(0);
      expect(performance.now() - releasedAtMs).toBeLessThan(2_000);
      expect(await printed).toBe('held true\nreleased\n');
      const item = await rawItem(table.direct, table.tableName, `default/${name}`);
      expect(item?.['holderIdentity'] !== undefined).toBe(expires === true);
    } finally {
      child.kill('SIGKILL');
    }
  });
});
