// What a fence does on a server, for every command of both clients.

import { DynamoDBDocumentClient, PutCommand, UpdateCommand } from '@aws-sdk/lib-dynamodb';
import { PutItemCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fenced } from '../../src/fence.ts';
import { openTable, type Table } from '../integration/fixture.ts';
import { availableEngines, putRawItem } from '../support/dynamodb.ts';
import { CLIENTS, KINDS, marshall, stored, type Kind, type Plain, type Writer } from './clients.ts';

const REFUSED = /^(?:ConditionalCheckFailed|TransactionCanceled)Exception$/;
/** As the user may happen to call things: the names of the fence's own placeholders, swapped. */
const CLASHING = {
  ConditionExpression: '#fence = :fence OR #fence2 = :fence2',
  ExpressionAttributeNames: { '#fence': 'state', '#fence2': 'fallback' },
  ExpressionAttributeValues: { ':fence': 'open', ':fence2': 'yes' },
};

describe.each(availableEngines())('on %s', (engine) => {
  let table: Table;
  let items = 0;
  beforeAll(async () => {
    table = await openTable(engine);
  });
  afterAll(() => table[Symbol.asyncDispose]());

  /** A new item with these attributes; without any, just a key that nothing has yet. */
  const newItem = async (attributes?: Plain): Promise<string> => {
    const lease = String(++items);
    if (attributes !== undefined) {
      await putRawItem(table.direct, table.tableName, marshall({ lease, n: 1, ...attributes }));
    }
    return lease;
  };
  const itemOf = (lease: string) => stored(table.direct, table.tableName, lease);

  describe.each(CLIENTS)('through %s', (_, makeWriter) => {
    let writer: Writer;
    beforeAll(() => {
      writer = makeWriter(table.direct, table.tableName);
    });

    /** What the item is once the write of this kind has been accepted. */
    const written = (kind: Kind, lease: string, before: Plain, token: number) =>
      ({
        Put: { lease, n: 2, fencingToken: token },
        Update: { lease, ...before, n: 2, fencingToken: token },
        Delete: undefined,
      })[kind];

    // Dynalite knows no transactions.
    const ways = engine === 'dynalite' ? (['write'] as const) : (['write', 'transact'] as const);
    describe.each(ways.flatMap((way) => KINDS.map((kind) => [way, kind] as const)))(
      'to %s a %s',
      (way, kind) => {
        test('with an older token is refused, and leaves the item as it was', async () => {
          const lease = await newItem({ fencingToken: 10 });
          for (const token of [1, 9]) {
            await expect(writer[way](kind, lease, {}, { token })).rejects.toMatchObject({
              name: expect.stringMatching(REFUSED) as unknown,
            });
          }
          expect(await itemOf(lease)).toEqual({ lease, n: 1, fencingToken: 10 });
        });

        test.each([10, 11, 100])(
          'with the same token or a newer one (%i) succeeds',
          async (token) => {
            const lease = await newItem({ fencingToken: 10 });
            await writer[way](kind, lease, {}, { token });
            expect(await itemOf(lease)).toEqual(written(kind, lease, {}, token));
          },
        );

        test('without a token in the item succeeds', async () => {
          const lease = await newItem({});
          await writer[way](kind, lease, {}, { token: 10 });
          expect(await itemOf(lease)).toEqual(written(kind, lease, {}, 10));
        });

        test('without an item succeeds', async () => {
          const lease = await newItem();
          await writer[way](kind, lease, {}, { token: 10 });
          expect((await itemOf(lease))?.['fencingToken']).toBe(kind === 'Delete' ? undefined : 10);
        });

        test.each([
          ['neither holds', { state: 'shut', fallback: 'no' }, 9, false],
          ['only the token is fresh', { state: 'shut', fallback: 'no' }, 10, false],
          ['only the first part of the condition holds', { state: 'open' }, 9, false],
          ['only the last part of the condition holds', { fallback: 'yes' }, 9, false],
          ['the first part holds, and the token is fresh', { state: 'open' }, 10, true],
          ['the last part holds, and the token is fresh', { fallback: 'yes' }, 10, true],
        ])('under a condition with OR, when %s', async (_, attributes, token, succeeds) => {
          const before: Plain = { fencingToken: 10, ...attributes };
          const lease = await newItem(before);
          const write = writer[way](kind, lease, CLASHING, { token });
          if (succeeds) await write;
          else await expect(write).rejects.toThrow();
          expect(await itemOf(lease)).toEqual(
            succeeds ? written(kind, lease, before, token) : { lease, n: 1, ...before },
          );
        });
      },
    );

    test.each(KINDS)('a %s returns the old attributes when asked to', async (kind) => {
      const lease = await newItem({ fencingToken: 10 });
      const own = { ReturnValues: 'ALL_OLD' } as const;
      expect(await writer.write(kind, lease, own, { token: 11 })).toEqual({
        lease,
        n: 1,
        fencingToken: 10,
      });
    });

    test.each([
      [4, 7, false],
      [5, 6, false],
      [5, 7, true],
    ])('a write with fences of two leases, %i and %i, needs both', async (a, b, succeeds) => {
      for (const kind of KINDS) {
        const lease = await newItem({ tokenOfA: 5, tokenOfB: 7 });
        const fences = [
          { token: a, attribute: 'tokenOfA' },
          { token: b, attribute: 'tokenOfB' },
        ];
        const write = writer.write(kind, lease, {}, ...fences);
        if (succeeds) await write;
        else await expect(write).rejects.toThrow();
        const unharmed = { lease, n: 1, tokenOfA: 5, tokenOfB: 7 };
        const after = kind === 'Delete' ? undefined : { ...unharmed, n: 2 };
        expect(await itemOf(lease)).toEqual(succeeds ? after : unharmed);
      }
    });

    test('a tombstone stops an earlier holder, where a fenced Delete does not', async () => {
      const [buried, deleted] = [await newItem({ fencingToken: 5 }), await newItem({})];
      await writer.bury(buried, {}, { token: 6 });
      await writer.write('Delete', deleted, {}, { token: 6 });
      const grave = { lease: buried, n: 1, fencingToken: 6, deleted: true };
      expect(await itemOf(buried)).toEqual(grave);
      await expect(writer.write('Put', buried, {}, { token: 5 })).rejects.toThrow();
      expect(await itemOf(buried)).toEqual(grave);
      await writer.write('Put', deleted, {}, { token: 5 });
      expect(await itemOf(deleted)).toMatchObject({ n: 2 });
      await writer.write('Put', buried, {}, { token: 7 });
      expect(await itemOf(buried)).toEqual({ lease: buried, n: 2, fencingToken: 7 });
    });

    test('a tombstone keeps to the fence, and to the condition of the Delete', async () => {
      const lease = await newItem({ fencingToken: 5, state: 'shut' });
      await expect(writer.bury(lease, {}, { token: 4 })).rejects.toThrow();
      await expect(writer.bury(lease, CLASHING, { token: 6 })).rejects.toThrow();
      expect(await itemOf(lease)).toEqual({ lease, n: 1, fencingToken: 5, state: 'shut' });
      const open = await newItem({ fencingToken: 5, state: 'open' });
      await writer.bury(open, CLASHING, { token: 6 });
      expect(await itemOf(open)).toMatchObject({ fencingToken: 6, deleted: true });
    });

    test('a tombstone of what does not exist stands where an item could be created', async () => {
      const lease = await newItem();
      await writer.bury(lease, {}, { token: 6 });
      expect(await itemOf(lease)).toEqual({ lease, fencingToken: 6, deleted: true });
    });
  });

  describe('a command that has been sent can be fenced, and keeps its middleware:', () => {
    // The document client passes a command's middleware on twice: it must replace itself.
    const options = { step: 'build', name: 'counting', override: true } as const;
    let calls: number;
    beforeEach(() => {
      calls = 0;
    });

    test('a PutItemCommand', async () => {
      const lease = await newItem();
      const { direct, tableName: TableName } = table;
      const command = new PutItemCommand({ TableName, Item: marshall({ lease }) });
      command.middlewareStack.add((next) => (args) => ((calls += 1), next(args)), options);
      await direct.send(command);
      await direct.send(fenced(command, { fencingToken: 3 }));
      expect(calls).toBe(2);
      expect(await itemOf(lease)).toEqual({ lease, fencingToken: 3 });
    });

    test('a PutCommand', async () => {
      const lease = await newItem();
      const client = DynamoDBDocumentClient.from(table.direct);
      const command = new PutCommand({ TableName: table.tableName, Item: { lease } });
      command.middlewareStack.add((next) => (args) => ((calls += 1), next(args)), options);
      await client.send(command);
      await client.send(fenced(command, { fencingToken: 3 }));
      expect(calls).toBe(2);
      expect(await itemOf(lease)).toEqual({ lease, fencingToken: 3 });
    });
  });

  test.each([
    'SET',
    'SET n = :n,',
    'REMOVE n,',
    'SET n = :n SET m = :n',
    'REMOVE n REMOVE m',
    'ADD n',
    'n = :n',
    'SET n :n',
    'SET n = :n, n = :n',
  ])('the fence does not make %j a valid update', async (UpdateExpression) => {
    const lease = await newItem({});
    const command = new UpdateCommand({
      TableName: table.tableName,
      Key: { lease },
      UpdateExpression,
      ...(UpdateExpression.includes(':n') ? { ExpressionAttributeValues: { ':n': 1 } } : {}),
    });
    const client = DynamoDBDocumentClient.from(table.direct);
    const error = { name: 'ValidationException' };
    await expect(client.send(command)).rejects.toMatchObject(error);
    await expect(client.send(fenced(command, { fencingToken: 3 }))).rejects.toMatchObject(error);
    expect(await itemOf(lease)).toEqual({ lease, n: 1 });
  });
});
