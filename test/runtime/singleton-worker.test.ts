// The example worker as it is deployed: what it needs, what it prints, what it returns. How it
// stands crashes and freezes is shown by the demo, and tested with it.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLeaseTable, rawItem, startDynamoDB, testClient } from '../support/dynamodb.ts';
import { bundleHandler, LambdaEnvironment } from '../support/lambda-runtime/index.ts';

const cleanUp = new AsyncDisposableStack();
let taskRoot: string;
let settings: Readonly<Record<string, string>>;

beforeAll(async () => {
  const { endpoint } = cleanUp.use(await startDynamoDB());
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'singleton-worker-')));
  const source = fileURLToPath(new URL('../../functions/singleton-worker.ts', import.meta.url));
  taskRoot = await bundleHandler(source, folder.path);
  settings = {
    AWS_ENDPOINT_URL_DYNAMODB: endpoint,
    LEASE_TABLE_NAME: await createLeaseTable(endpoint),
    LEASE_NAME: 'nightly-report',
  };
});
afterAll(() => cleanUp.disposeAsync());

function start(env: Readonly<Record<string, string>>): Promise<LambdaEnvironment> {
  return LambdaEnvironment.start({ taskRoot, functionName: 'worker', env });
}

describe('the singleton worker', () => {
  test('tells each step with its token and holder, and then the result', async () => {
    await using environment = await start(settings);
    expect(await environment.invoke({ steps: 2, stepMs: 1 })).toMatchObject({
      kind: 'returned',
      response: { steps: 2, completed: true, fencingToken: 1 },
    });
    const told = environment.output.map(({ text }) => JSON.parse(jsonIn(text)) as object);
    const always = { fencingToken: 1, holderIdentity: expect.stringMatching(/^worker:/) as string };
    expect(told).toEqual([
      { do: 'begin', ...always },
      { do: 'step', step: 1, ...always },
      { do: 'step', step: 2, ...always },
      { do: 'end', ...always },
    ]);
  });

  test('takes the size of its work from the environment where the event tells none', async () => {
    await using environment = await start({ ...settings, WORK_STEPS: '3', WORK_STEP_MS: '1' });
    const invocation = await environment.invoke({ 'detail-type': 'Scheduled Event' });
    expect(invocation).toMatchObject({ response: { steps: 3, completed: true } });
  });

  test('does not work in a second environment at the same time', async () => {
    await using a = await start(settings);
    await using b = await start(settings);
    const working = a.invoke({ steps: 10, stepMs: 100 });
    await a.printed('"step":1,');
    expect(await b.invoke({})).toMatchObject({ response: { skipped: true, reason: 'held' } });
    expect(await working).toMatchObject({ response: { completed: true } });
    expect(b.output).toEqual([]);
  });

  test('works once for each tick, and records when the next is overdue', async () => {
    await using environment = await start({ ...settings, LEASE_PERIOD_SECONDS: '60' });
    const tickMs = Math.floor(Date.now() / 1_000) * 1_000;
    const scheduledTime = new Date(tickMs).toISOString();
    const event = { steps: 1, stepMs: 1, scheduledTime };
    expect(await environment.invoke(event)).toMatchObject({ response: { completed: true } });
    expect(await environment.invoke(event)).toMatchObject({ response: { skipped: true } });
    const client = testClient(settings['AWS_ENDPOINT_URL_DYNAMODB']!);
    const table = settings['LEASE_TABLE_NAME']!;
    const item = await rawItem(client, table, 'default/nightly-report');
    client.destroy();
    expect(item?.['dueTime']).toEqual({ N: String(tickMs + 120_000) });
  });

  test('fails, and gives the lease back, when the other system does', async () => {
    // Nobody listens on the port of the discard service.
    await using environment = await start({ ...settings, WORK_URL: 'http://127.0.0.1:9/' });
    expect(await environment.invoke({})).toMatchObject({ kind: 'failed' });
    await using next = await start(settings);
    expect(await next.invoke({ steps: 1, stepMs: 1 })).toMatchObject({
      response: { completed: true },
    });
  });

  test.each([
    ['LEASE_NAME', 'LEASE_NAME is not set'],
    ['LEASE_DURATION_SECONDS', 'leaseDurationSeconds is NaN'],
    ['LEASE_PERIOD_SECONDS', 'periodSeconds is NaN'],
  ])('does not start with a wrong %s', async (name, message) => {
    const wrong = { ...settings, [name]: name === 'LEASE_NAME' ? '' : 'soon' };
    await expect(start(wrong)).rejects.toThrow(message);
  });

  test('names the variable that is missing when it has no table', async () => {
    await using environment = await start({ ...settings, LEASE_TABLE_NAME: '' });
    expect(await environment.invoke({})).toMatchObject({
      kind: 'failed',
      error: { errorMessage: expect.stringContaining('LEASE_TABLE_NAME') as string },
    });
  });
});

/** The real runtime writes time, request id and level before what was logged. */
function jsonIn(text: string): string {
  return text.slice(text.indexOf('{'));
}
