// Every store, held to the contract; and what only one of them has.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import { isPermanent, type LeaseError } from '../../src/errors.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type { Write } from '../../src/writes.ts';
import {
  availableEngines,
  createLeaseTable,
  type DynamoDBServer,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { conditionsContract } from './conditions.contract.ts';
import { call } from './store-under-test.ts';
import { storeContract } from './store.contract.ts';
import { stores } from './stores.ts';

for (const [name, makeStore] of stores) {
  conditionsContract(name, makeStore);
  storeContract(name, makeStore);
}

const WRITE: Write = { condition: { absent: 'kind' }, set: { kind: { S: 'x' } }, remove: [] };

describe('a MemoryStore', () => {
  test('sends no Date unless it is given a clock', async () => {
    const dates: unknown[] = [];
    const attempt = () => (date: string | undefined) => dates.push(date);
    await new MemoryStore().write('k', WRITE, { ...call(), attempt });
    expect(dates).toEqual([undefined]);
  });

  test('tells the time of the clock that it was given', async () => {
    const dates: unknown[] = [];
    const attempt = () => (date: string | undefined) => dates.push(date);
    const store = new MemoryStore({ serverTimeMs: () => Date.UTC(2026, 0, 2, 3, 4, 5, 678) });
    await store.write('k', WRITE, { ...call(), attempt });
    expect(dates).toEqual(['Fri, 02 Jan 2026 03:04:05 GMT']);
  });
});

describe('what a DynamoDBStore says of a failure', () => {
  const told = async (send: Error, region = () => Promise.resolve('eu-north-1')) => {
    const client = { send: () => Promise.reject(send), config: { region } };
    const store = new DynamoDBStore({
      tableName: 't',
      client: client as unknown as DynamoDBClient,
    });
    return store.write('k', WRITE, call()).then(
      () => undefined,
      (error: unknown) => error as LeaseError,
    );
  };
  const named = (name: string, message = 'so') => Object.assign(new Error(message), { name });

  test.each([
    'CredentialsProviderError',
    'TokenProviderError',
    'ExpiredTokenException',
    'UnrecognizedClientException',
    'InvalidSignatureException',
    'IncompleteSignatureException',
    'MissingAuthenticationTokenException',
    'InvalidClientTokenId',
  ])('%s: credentials are named, and no elector ends of it', async (name) => {
    const error = await told(named(name));
    expect(error?.message).toMatch(/for want of valid credentials: check the role, keys or/);
    expect(error?.message).toContain(`${name}: so`);
    expect([error?.code, isPermanent(error)]).toEqual(['store-unavailable', false]);
  });

  test('a missing Region is named', async () => {
    const none = new Error('Region is missing');
    const error = await told(none, () => Promise.reject(none));
    expect(error?.message).toMatch(/in no Region was not sent: set AWS_REGION, or the region of/);
    expect(error?.code).toBe('store-unavailable');
  });

  test('another failure tells nothing', async () => {
    const error = await told(named('TimeoutError'));
    expect(error?.message).toMatch(/in Region eu-north-1 gave no answer that tells/);
  });

  test.each([
    ['The provided key element does not match the schema', /and no sort key\.$/],
    ['An operand in the update expression has an incorrect data type', /leaseTransitions of a/],
  ])('%s', async (message, expected) => {
    const error = await told(named('ValidationException', message));
    expect(error?.message).toMatch(/The table needs the partition key "lease" of type String/);
    expect(error?.message).toMatch(expected);
    expect(error?.code).toBe('request-refused');
  });
});

describe('a DynamoDBStore', () => {
  let server: DynamoDBServer;
  let proxy: FaultProxy;
  let tableName: string;

  beforeAll(async () => {
    server = await startDynamoDB({ engine: availableEngines()[0]! });
    proxy = await startFaultProxy(server.endpoint);
    tableName = await createLeaseTable(server.endpoint);
  });

  afterAll(async () => {
    await proxy.stop();
    await server.stop();
  });

  test('tells of each attempt that the SDK repeats, and of the Date of errors too', async () => {
    const client = testClient(proxy.endpoint, { maxAttempts: 3 });
    const store = new DynamoDBStore({ tableName, client });
    proxy.inject({ fault: { kind: 'error', error: 'InternalServerError' } });
    proxy.inject({ fault: { kind: 'date-shift', ms: -86_400_000 } });
    proxy.inject({ fault: { kind: 'reset', when: 'before' } });
    const events: string[] = [];
    const attempt = () => {
      const number = events.filter((event) => event.startsWith('sent')).length + 1;
      events.push(`sent ${number}`);
      return (date: string | undefined) => {
        const age = Date.now() - Date.parse(date!);
        events.push(`answered ${number}${age > 80_000_000 ? ', a day ago' : ''}`);
      };
    };
    await store.write('retried', WRITE, { ...call(), attempt });
    // The second attempt was reset: it has no answer to tell of.
    expect(events).toEqual(['sent 1', 'answered 1, a day ago', 'sent 2', 'sent 3', 'answered 3']);
    client.destroy();
  });

  test('asks for what a loser wants to know, and for nothing that costs', async () => {
    const client = testClient(proxy.endpoint);
    proxy.reset();
    await new DynamoDBStore({ tableName, client }).write('asked', WRITE, call());
    expect(proxy.requests).toMatchObject([
      {
        operation: 'UpdateItem',
        body: { ReturnValues: 'ALL_NEW', ReturnValuesOnConditionCheckFailure: 'ALL_OLD' },
      },
    ]);
    client.destroy();
  });

  test.each([true, false])('reads consistently where that is asked: %s', async (consistent) => {
    const client = testClient(proxy.endpoint);
    proxy.reset();
    await new DynamoDBStore({ tableName, client }).read('k', { ...call(), consistent });
    expect(proxy.requests).toMatchObject([
      { operation: 'GetItem', consistentRead: consistent, capacity: consistent ? 1 : 0.5 },
    ]);
    client.destroy();
  });
});
