// The stores that are held to the contracts.

import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import {
  availableEngines,
  createLeaseTable,
  type Engine,
  putRawItem,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import type { MakeStore, StoreUnderTest } from './store-under-test.ts';

export const stores: readonly (readonly [string, MakeStore])[] = [
  ['MemoryStore', memory],
  ...availableEngines().map(
    (engine) => [`DynamoDBStore on ${engine}`, () => dynamodb(engine)] as const,
  ),
];

async function memory(): Promise<StoreUnderTest> {
  const store = new MemoryStore({ serverTimeMs: () => Date.now(), pageSize: 100 });
  return {
    store,
    showsRefusedItem: true,
    comparesLists: true,
    keepsItsPlace: true,
    put: async (lease, attributes) => store.poke(lease, { ...attributes, lease: { S: lease } }),
    [Symbol.asyncDispose]: async () => undefined,
  };
}

async function dynamodb(engine: Engine): Promise<StoreUnderTest> {
  const server = await startDynamoDB({ engine });
  const tableName = await createLeaseTable(server.endpoint);
  const client = testClient(server.endpoint);
  return {
    store: new DynamoDBStore({ tableName, client }),
    showsRefusedItem: engine !== 'dynalite',
    comparesLists: engine !== 'dynalite',
    keepsItsPlace: engine !== 'dynoxide',
    put: (lease, attributes) =>
      putRawItem(client, tableName, { ...(attributes as object), lease: { S: lease } }),
    [Symbol.asyncDispose]: async () => {
      client.destroy();
      await server.stop();
    },
  };
}
