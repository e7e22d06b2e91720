import { setTimeout as sleep } from 'node:timers/promises';
import { type DynamoDBClient, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  availableEngines,
  createLeaseTable,
  type DynamoDBServer,
  rawItem,
  startDynamoDB,
  testClient,
} from './dynamodb.ts';
import { type FaultProxy, startFaultProxy, type When } from './fault-proxy.ts';

let server: DynamoDBServer;
let proxy: FaultProxy;
let table: string;
let direct: DynamoDBClient;
/** Clients of the proxy that make one attempt, and up to three. */
let once: DynamoDBClient;
let thrice: DynamoDBClient;
let key = 0;

beforeAll(async () => {
  server = await startDynamoDB({ engine: availableEngines()[0]! });
  table = await createLeaseTable(server.endpoint);
  direct = testClient(server.endpoint);
});

beforeEach(async () => {
  proxy = await startFaultProxy(server.endpoint);
  once = testClient(proxy.endpoint, { maxAttempts: 1 });
  thrice = testClient(proxy.endpoint, { maxAttempts: 3 });
  key += 1;
});

afterEach(async () => {
  once.destroy();
  thrice.destroy();
  await proxy.stop();
});

afterAll(async () => {
  direct.destroy();
  await server.stop();
});

/** Adds one to the item of this test. */
function add(condition?: string): UpdateItemCommand {
  return new UpdateItemCommand({
    TableName: table,
    Key: { lease: { S: String(key) } },
    UpdateExpression: 'ADD n :one',
    ExpressionAttributeValues: { ':one': { N: '1' } },
    ...(condition !== undefined && {
      ConditionExpression: condition,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    }),
  });
}

/** How often the store has applied `add()`. */
async function applied(): Promise<number> {
  return Number((await rawItem(direct, table, String(key)))?.['n']?.N ?? 0);
}

const beforeAndAfter = [
  ['before', 0],
  ['after', 1],
] as const satisfies [When, number][];

describe('an error', () => {
  test.each([
    ['InternalServerError', 500],
    ['ThrottlingException', 400],
    ['ProvisionedThroughputExceededException', 400],
    ['TransactionConflictException', 400],
    ['AccessDeniedException', 400],
    ['ResourceNotFoundException', 400],
  ] as const)('%s is one to the SDK, with status %i', async (error, httpStatusCode) => {
    proxy.inject({ fault: { kind: 'error', error } });
    await expect(once.send(add())).rejects.toMatchObject({
      name: error,
      message: expect.stringMatching(/\w/) as string,
      $metadata: { httpStatusCode },
    });
    expect(proxy.requests).toMatchObject([{ status: httpStatusCode, errorType: error }]);
    expect(await applied()).toBe(0);
    await once.send(add());
  });

  test.each(beforeAndAfter)('%s the store applied it leaves %i of it', async (when, times) => {
    proxy.inject({ fault: { kind: 'error', error: 'InternalServerError', when } });
    await expect(once.send(add())).rejects.toMatchObject({ name: 'InternalServerError' });
    expect(await applied()).toBe(times);
    expect(proxy.requests).toMatchObject([{ status: 500, capacity: times }]);
  });

  test('is retried by the SDK, which may apply a write twice', async () => {
    const error = 'InternalServerError';
    proxy.inject({ fault: { kind: 'error', error } });
    proxy.inject({ fault: { kind: 'error', error, when: 'after' } });
    expect((await thrice.send(add())).$metadata.attempts).toBe(3);
    expect(await applied()).toBe(2);
    expect(proxy.requests.map(({ status }) => status)).toEqual([500, 500, 200]);
  });
});

describe('a reset', () => {
  test.each(beforeAndAfter)('%s the store applied it leaves %i of it', async (when, times) => {
    proxy.inject({ fault: { kind: 'reset', when } });
    await expect(once.send(add())).rejects.toMatchObject({
      name: 'TimeoutError',
      code: 'ECONNRESET',
    });
    expect(await applied()).toBe(times);
    expect(proxy.requests).toMatchObject([{ status: undefined, forwarded: when === 'after' }]);
  });

  test('makes the retry of a conditional write fail against itself', async () => {
    proxy.inject({ fault: { kind: 'reset', when: 'after' } });
    await expect(thrice.send(add('attribute_not_exists(lease)'))).rejects.toMatchObject({
      name: 'ConditionalCheckFailedException',
      $metadata: { attempts: 2 },
    });
    expect(await applied()).toBe(1);
  });
});

describe('a black hole', () => {
  test.each(beforeAndAfter)('%s the store applied it leaves %i of it', async (when, times) => {
    const fault = proxy.inject({ fault: { kind: 'black-hole', when } });
    const giveUp = new AbortController();
    const failed = expect(once.send(add(), { abortSignal: giveUp.signal })).rejects.toMatchObject({
      name: 'AbortError',
    });
    await fault.reached();
    expect(await applied()).toBe(times);
    // Long enough for an answer to come, if there were to be one.
    await sleep(50);
    giveUp.abort();
    await failed;
  });

  test('ends the patience of a client that has any', async () => {
    const requestHandler = { requestTimeout: 250, throwOnRequestTimeout: true };
    const patient = testClient(proxy.endpoint, { maxAttempts: 2, requestHandler });
    proxy.inject({ fault: { kind: 'black-hole', when: 'before' }, times: Infinity });
    await expect(patient.send(add())).rejects.toMatchObject({ name: 'TimeoutError' });
    expect(proxy.counts()).toMatchObject({ requests: 2, forwarded: 0 });
    patient.destroy();
  });
});

describe('a truncated answer', () => {
  test('is an error of a write that was applied', async () => {
    proxy.inject({ fault: { kind: 'truncate' } });
    await expect(once.send(add())).rejects.toMatchObject({
      code: 'ECONNRESET',
      $metadata: { httpStatusCode: 200 },
    });
    expect(await applied()).toBe(1);
  });
});

describe('a delay', () => {
  test.each(['before', 'after'] as const)('%s holds an answer up for its time', async (when) => {
    proxy.inject({ fault: { kind: 'delay', when, ms: 60 } });
    const start = performance.now();
    await once.send(add());
    expect(performance.now() - start).toBeGreaterThan(50);
  });

  test('of every request is the latency, each way', async () => {
    proxy.latencyMs = 30;
    const start = performance.now();
    await once.send(add());
    expect(performance.now() - start).toBeGreaterThan(50);
  });
});

describe('a hold', () => {
  test.each(beforeAndAfter)('%s the store applied it, until released', async (when, times) => {
    const hold = proxy.inject({ fault: { kind: 'hold', when }, times: 2 });
    const writes = [once.send(add()), once.send(add())];
    await hold.reached(2);
    expect(await applied()).toBe(2 * times);
    hold.release();
    await Promise.all(writes);
    expect(await applied()).toBe(2);
  });

  test('does not stop a write that its client has given up (P3)', async () => {
    const hold = proxy.inject({ fault: { kind: 'hold', when: 'before' } });
    const giveUp = new AbortController();
    const failed = expect(once.send(add(), { abortSignal: giveUp.signal })).rejects.toThrow();
    await hold.reached();
    giveUp.abort();
    await failed;
    expect(await applied()).toBe(0);
    hold.release();
    await expect.poll(applied).toBe(1);
  });

  test('is let go with all other faults', async () => {
    const hold = proxy.inject({ fault: { kind: 'hold', when: 'before' } });
    const write = once.send(add());
    await hold.reached();
    proxy.inject({ fault: { kind: 'reset', when: 'before' } });
    proxy.clearFaults();
    await write;
    await once.send(add());
  });

  test('does not keep the proxy from stopping', async () => {
    const hold = proxy.inject({ fault: { kind: 'hold', when: 'before' } });
    const failed = expect(once.send(add())).rejects.toMatchObject({ code: 'ECONNRESET' });
    await hold.reached();
    await proxy.stop();
    await failed;
    expect(await applied()).toBe(0);
  });
});
