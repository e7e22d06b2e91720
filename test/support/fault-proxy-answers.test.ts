import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { type DynamoDBClient, GetItemCommand, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  availableEngines,
  createLeaseTable,
  type DynamoDBServer,
  startDynamoDB,
  testClient,
} from './dynamodb.ts';
import { type FaultProxy, startFaultProxy } from './fault-proxy.ts';

describe.each(availableEngines())('a proxy to %s', (engine) => {
  let server: DynamoDBServer;
  let proxy: FaultProxy;
  let client: DynamoDBClient;
  let table: string;

  beforeEach(async () => {
    server = await startDynamoDB({ engine });
    table = await createLeaseTable(server.endpoint);
    proxy = await startFaultProxy(server.endpoint);
    client = testClient(proxy.endpoint, { maxAttempts: 1 });
  });

  afterEach(async () => {
    client.destroy();
    await proxy.stop();
    await server.stop();
  });

  function write(value = 'v'): UpdateItemCommand {
    return new UpdateItemCommand({
      TableName: table,
      Key: { lease: { S: 'k' } },
      UpdateExpression: 'SET #v = :v',
      ConditionExpression: 'attribute_not_exists(lease)',
      ExpressionAttributeNames: { '#v': 'v' },
      ExpressionAttributeValues: { ':v': { S: value } },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
  }

  function read(ConsistentRead: boolean): GetItemCommand {
    return new GetItemCommand({ TableName: table, Key: { lease: { S: 'k' } }, ConsistentRead });
  }

  /** Sends a command, and tells the status and Date of each attempt's answer. */
  async function answersTo(command: UpdateItemCommand, by = client): Promise<unknown[]> {
    const answers: unknown[] = [];
    command.middlewareStack.add(
      (next) => async (args) => {
        const result = await next(args);
        const response = result.response as { statusCode: number; headers: { date?: string } };
        answers.push([response.statusCode, response.headers.date]);
        return result;
      },
      { step: 'deserialize', priority: 'low' },
    );
    await by.send(command);
    return answers;
  }

  test('counts what an item costs: reads by consistency, a failed condition as a write', async () => {
    await client.send(write());
    await expect(client.send(write())).rejects.toThrow();
    await client.send(read(false));
    await client.send(read(true));
    expect(proxy.counts()).toEqual({
      requests: 4,
      operations: { UpdateItem: 2, GetItem: 2 },
      forwarded: 4,
      failedConditions: 1,
      consistentReads: 1,
      readUnits: 1.5,
      writeUnits: 2,
      errors: { ConditionalCheckFailedException: 1 },
    });
    expect(proxy.counts('GetItem')).toMatchObject({ requests: 2, readUnits: 1.5, writeUnits: 0 });
    expect(proxy.requests).toMatchObject([
      { operation: 'UpdateItem', body: { TableName: table }, capacity: 1, conditionFailed: false },
      { operation: 'UpdateItem', capacity: 1, conditionFailed: true, status: 400 },
      { operation: 'GetItem', capacity: 0.5, consistentRead: false },
      { operation: 'GetItem', capacity: 1, consistentRead: true, errorType: undefined },
    ]);
    proxy.reset();
    expect(proxy.counts()).toMatchObject({ requests: 0, operations: {}, writeUnits: 0 });
  });

  test('passes text on whole, whatever its length in bytes', async () => {
    const value = `ü€😀${'x'.repeat(2_500)}`;
    await client.send(write(value));
    expect((await client.send(read(true))).Item).toEqual({ lease: { S: 'k' }, v: { S: value } });
    // Writes are charged for each kilobyte begun, reads for each four.
    expect(proxy.counts()).toMatchObject({ writeUnits: 3, readUnits: 1 });
  });

  test('strips the old item from a failed condition', async () => {
    await client.send(write());
    proxy.inject({ fault: { kind: 'strip-item' } });
    const failed = { name: 'ConditionalCheckFailedException' };
    await expect(client.send(write())).rejects.toMatchObject({ ...failed, Item: undefined });
    const item = engine === 'dynoxide' ? { lease: { S: 'k' }, v: { S: 'v' } } : undefined;
    await expect(client.send(write())).rejects.toMatchObject({ ...failed, Item: item });
  });

  test('lets an answer tell another time, or none, and errors as well', async () => {
    const day = 86_400_000;
    proxy.inject({ fault: { kind: 'date-shift', ms: -day } });
    proxy.inject({ fault: { kind: 'error', error: 'InternalServerError' } });
    proxy.inject({ fault: { kind: 'date-removed' } });
    const retrying = testClient(proxy.endpoint, { maxAttempts: 2 });
    const answers = await answersTo(write(), retrying);
    retrying.destroy();
    expect(answers).toEqual([
      [500, expect.any(String)],
      [200, undefined],
    ]);
    const [[, shifted]] = answers as [[number, string]];
    expect(Date.now() - Date.parse(shifted)).toBeGreaterThan(day - 1_000);
  });

  test('serves another process', async () => {
    const script = `fetch(process.argv[1]).then((answer) => console.log(answer.status))`;
    const { stdout } = await promisify(execFile)(process.execPath, ['-e', script, proxy.endpoint]);
    expect(stdout).toMatch(/^\d{3}\n$/);
    expect(proxy.counts().operations).toEqual({ 'GET /': 1 });
  });

  test('refuses connections while the store is down, and takes them again', async () => {
    await client.send(read(true));
    await proxy.refuseConnections();
    // A client that has not yet seen its connections die first sees a reset.
    await expect
      .poll(() => client.send(read(true)).catch((error: unknown) => error))
      .toMatchObject({ code: 'ECONNREFUSED' });
    await proxy.acceptConnections();
    await client.send(read(true));
  });

  test('mutes the connections there are, and serves new ones', async () => {
    await client.send(write());
    proxy.muteSockets();
    const giveUp = new AbortController();
    const lost = expect(
      client.send(read(true), { abortSignal: giveUp.signal }),
    ).rejects.toMatchObject({ name: 'AbortError' });
    await expect.poll(() => proxy.requests.length).toBe(2);
    giveUp.abort();
    await lost;
    expect(proxy.requests.at(-1)).toMatchObject({ forwarded: false, status: undefined });
    await client.send(read(true));
  });

  test('loses the answer to a request that was under way when its connection went mute', async () => {
    const hold = proxy.inject({ fault: { kind: 'hold', when: 'before' } });
    const giveUp = new AbortController();
    const lost = expect(client.send(write(), { abortSignal: giveUp.signal })).rejects.toMatchObject(
      { name: 'AbortError' },
    );
    await hold.reached();
    proxy.muteSockets();
    hold.release();
    await expect.poll(async () => (await client.send(read(true))).Item).toBeDefined();
    giveUp.abort();
    await lost;
  });

  test('is a reset connection to its client when there is no store behind it', async () => {
    await server.stop();
    await expect(client.send(read(true))).rejects.toMatchObject({ code: 'ECONNRESET' });
  });
});
