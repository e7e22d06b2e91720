import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  availableEngines,
  createLeaseTable,
  type DynamoDBServer,
  putRawItem,
  rawItem,
  startDynamoDB,
  testClient,
} from './dynamodb.ts';

describe.each(availableEngines())('the engine %s', (engine) => {
  let server: DynamoDBServer;
  let client: DynamoDBClient;
  let table: string;

  beforeAll(async () => {
    server = await startDynamoDB({ engine });
    client = testClient(server.endpoint, { maxAttempts: 1 });
    table = await createLeaseTable(server.endpoint);
  });

  afterAll(async () => {
    client.destroy();
    await server.stop();
  });

  function create(lease: string): UpdateItemCommand {
    return new UpdateItemCommand({
      TableName: table,
      Key: { lease: { S: lease } },
      UpdateExpression: 'SET holder = :h',
      ConditionExpression: 'attribute_not_exists(lease)',
      ExpressionAttributeValues: { ':h': { S: 'a' } },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
  }

  test('applies a conditional update once, and refuses it then', async () => {
    await client.send(create('once'));
    const item = { lease: { S: 'once' }, holder: { S: 'a' } };
    expect(await rawItem(client, table, 'once')).toEqual(item);
    await expect(client.send(create('once'))).rejects.toMatchObject({
      name: 'ConditionalCheckFailedException',
      // The difference that makes both engines worth running.
      Item: engine === 'dynoxide' ? item : undefined,
    });
  });

  test('lets exactly one of many racing creates win', async () => {
    const creates = Array.from({ length: 10 }, () => client.send(create('race')));
    const outcomes = await Promise.allSettled(creates);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  });

  test('stores whatever a broken client writes, and refuses to count from a string', async () => {
    const broken = { lease: { S: 'broken' }, n: { S: 'seven' }, nested: { L: [{ NULL: true }] } };
    await putRawItem(client, table, broken);
    const count = new UpdateItemCommand({
      TableName: table,
      Key: { lease: { S: 'broken' } },
      UpdateExpression: 'SET #n = if_not_exists(#n, :zero) + :one',
      ExpressionAttributeNames: { '#n': 'n' },
      ExpressionAttributeValues: { ':zero': { N: '0' }, ':one': { N: '1' } },
    });
    await expect(client.send(count)).rejects.toMatchObject({ name: 'ValidationException' });
    expect(await rawItem(client, table, 'broken')).toEqual(broken);
  });

  test('makes tables of different names, or of the name it is given', async () => {
    expect(await createLeaseTable(server.endpoint)).not.toBe(table);
    expect(await createLeaseTable(server.endpoint, 'given')).toBe('given');
  });

  test('survives a client that hangs up in mid-request', async () => {
    const rude = spawn(process.execPath, [
      '-e',
      `const { port } = new URL(process.argv[1]);
       const socket = require('net').connect(port, '127.0.0.1');
       socket.write('POST / HTTP/1.1\\r\\nHost: x\\r\\nContent-Length: 9\\r\\n\\r\\n{', () => {
         setTimeout(() => socket.resetAndDestroy(), 20);
       });`,
      server.endpoint,
    ]);
    await once(rude, 'exit');
    expect(await rawItem(client, table, 'nothing')).toBeUndefined();
  });

  test('is gone when it is stopped, and may be stopped twice', async () => {
    const other = await startDynamoDB({ engine });
    await other.stop();
    await other.stop();
    await expect(fetch(other.endpoint)).rejects.toThrow();
  });
});

describe('startDynamoDB', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test("prefers the environment's endpoint, and that of the service", async () => {
    vi.stubEnv('AWS_ENDPOINT_URL', 'http://127.0.0.1:1');
    const general = await startDynamoDB();
    vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', 'http://127.0.0.1:2');
    const own = await startDynamoDB({ engine: 'auto' });
    expect([general, own]).toMatchObject([
      { engine: 'environment', endpoint: 'http://127.0.0.1:1' },
      { engine: 'environment', endpoint: 'http://127.0.0.1:2' },
    ]);
    await own.stop();
  });

  test('takes dynoxide where there is one, and dynalite elsewhere', async () => {
    vi.stubEnv('AWS_ENDPOINT_URL', '');
    vi.stubEnv('AWS_ENDPOINT_URL_DYNAMODB', '');
    await using server = await startDynamoDB();
    expect(server.engine).toBe(availableEngines()[0]);
  });
});

describe.runIf(availableEngines().includes('dynoxide'))('a dynoxide', () => {
  test('keeps its tables in a file when it is told one', async () => {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'dynoxide-'));
    const options = { engine: 'dynoxide', file: join(folder.path, 'tables.db') } as const;
    const first = await startDynamoDB(options);
    const table = await createLeaseTable(first.endpoint);
    const item = { lease: { S: 'kept' } };
    await putRawItem(testClient(first.endpoint), table, item);
    await first.stop();
    await using second = await startDynamoDB(options);
    expect(await rawItem(testClient(second.endpoint), table, 'kept')).toEqual(item);
  });

  const start = `
    import { startDynamoDB } from ${JSON.stringify(new URL('dynamodb.ts', import.meta.url).href)};
    const { endpoint } = await startDynamoDB({ engine: 'dynoxide' });
    console.log(endpoint);`;

  test.each([
    ['is killed', 'setInterval(() => {}, 1000)', 'SIGKILL'],
    ['is interrupted', 'setInterval(() => {}, 1000)', 'SIGINT'],
    ['is terminated', 'setInterval(() => {}, 1000)', 'SIGTERM'],
    ['throws', 'throw new Error("as intended")', undefined],
    ['ends and forgets to stop it', '', undefined],
  ] as const)('ends when its process %s (D1)', async (_, then, signal) => {
    const source = `${start}; ${then}`;
    const child = execFile(process.execPath, ['--input-type=module', '-e', source]);
    const exited = once(child, 'exit');
    const [endpoint] = (await once(child.stdout!, 'data')) as [string];
    if (signal !== undefined) child.kill(signal);
    await exited;
    while (await answers(endpoint.trim())) await sleep(10);
  });
});

async function answers(endpoint: string): Promise<boolean> {
  try {
    return (await fetch(endpoint)).ok;
  } catch {
    return false;
  }
}
