// What a fence adds to a request, and that it adds nothing else.

import {
  DeleteItemCommand,
  PutItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
  type UpdateItemCommandInput,
} from '@aws-sdk/client-dynamodb';
import {
  DeleteCommand,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { describe, expect, test } from 'vitest';
import { fenced, tombstone } from '../../src/fence.ts';
import { pretendedLease } from '../../src/lease-handle.ts';
import { inParentheses, outlineUpdate } from '../../src/user-expressions.ts';

const lease = { fencingToken: 5 };
const FENCE = 'attribute_not_exists(#fence) OR #fence <= :fence';
const TableName = 't';

describe('a fence in a command of the low-level client', () => {
  const placeholders = {
    ExpressionAttributeNames: { '#fence': 'fencingToken' },
    ExpressionAttributeValues: { ':fence': { N: '5' } },
  };
  const Key = { id: { S: '1' } };

  test('is the condition of a Put, with the token in its item', () => {
    expect(fenced(new PutItemCommand({ TableName, Item: Key }), lease).input).toEqual({
      TableName,
      Item: { ...Key, fencingToken: { N: '5' } },
      ConditionExpression: FENCE,
      ...placeholders,
    });
  });

  test('is the condition of an Update, with the token in its SET clause', () => {
    expect(fenced(new UpdateItemCommand({ TableName, Key }), lease).input).toEqual({
      TableName,
      Key,
      UpdateExpression: 'SET #fence = :fence',
      ConditionExpression: FENCE,
      ...placeholders,
    });
  });

  test('is the condition of a Delete', () => {
    expect(fenced(new DeleteItemCommand({ TableName, Key }), lease).input).toEqual({
      TableName,
      Key,
      ConditionExpression: FENCE,
      ...placeholders,
    });
  });

  test('is in every write of a transaction, and in no ConditionCheck', () => {
    const check = { TableName, Key, ConditionExpression: 'attribute_exists(id)' };
    const input = {
      ClientRequestToken: 'once',
      TransactItems: [
        { Put: { TableName, Item: Key } },
        { ConditionCheck: check },
        { Update: { TableName, Key, UpdateExpression: 'REMOVE a' } },
        { Delete: { TableName, Key } },
      ],
    };
    const before = structuredClone(input);
    const command = new TransactWriteItemsCommand(input);
    expect(fenced(command, lease).input).toEqual({
      ClientRequestToken: 'once',
      TransactItems: [
        {
          Put: {
            TableName,
            Item: { ...Key, fencingToken: { N: '5' } },
            ConditionExpression: FENCE,
            ...placeholders,
          },
        },
        { ConditionCheck: check },
        {
          Update: {
            TableName,
            Key,
            UpdateExpression: 'REMOVE a SET #fence = :fence',
            ConditionExpression: FENCE,
            ...placeholders,
          },
        },
        { Delete: { TableName, Key, ConditionExpression: FENCE, ...placeholders } },
      ],
    });
    expect(command.input).toEqual(before);
  });
});

describe('a fence in a command of the document client', () => {
  const Key = { id: '1' };

  test.each([
    ['Put', fenced(new PutCommand({ TableName, Item: Key }), lease).input],
    ['Update', fenced(new UpdateCommand({ TableName, Key }), lease).input],
    ['Delete', fenced(new DeleteCommand({ TableName, Key }), lease).input],
    [
      'transaction',
      fenced(
        new TransactWriteCommand({ TransactItems: [{ Put: { TableName, Item: Key } }] }),
        lease,
      ).input.TransactItems![0]!.Put!,
    ],
  ])('has the token as a number in a %s', (_, input) => {
    expect(input.ExpressionAttributeValues).toEqual({ ':fence': 5 });
    if ('Item' in input) expect(input.Item).toEqual({ ...Key, fencingToken: 5 });
  });
});

describe('a fenced command', () => {
  test.each([
    new PutItemCommand({ TableName, Item: {} }),
    new UpdateItemCommand({ TableName, Key: {} }),
    new DeleteItemCommand({ TableName, Key: {} }),
    new TransactWriteItemsCommand({ TransactItems: [{ Put: { TableName, Item: {} } }] }),
    new PutCommand({ TableName, Item: {} }),
    new UpdateCommand({ TableName, Key: {} }),
    new DeleteCommand({ TableName, Key: {} }),
    new TransactWriteCommand({ TransactItems: [{ Put: { TableName, Item: {} } }] }),
  ])('is a new one of the same class, and leaves the old one as it was', (command) => {
    const before = structuredClone(command.input);
    const copy = fenced(command, lease);
    expect(copy).not.toBe(command);
    expect(copy.constructor).toBe(command.constructor);
    expect(command.input).toEqual(before);
    expect(copy.input).not.toEqual(before);
  });

  test('keeps every other parameter', () => {
    const own = {
      ReturnValues: 'ALL_OLD',
      ReturnConsumedCapacity: 'TOTAL',
      ReturnItemCollectionMetrics: 'SIZE',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    } as const;
    const command = new PutCommand({ TableName, Item: { id: '1' }, ...own });
    expect(fenced(command, lease).input).toMatchObject(own);
  });

  test('has its own middleware still', () => {
    const command = new PutCommand({ TableName, Item: { id: '1' } });
    command.middlewareStack.add((next) => next, { step: 'build', name: 'tracing' });
    expect(fenced(command, lease).middlewareStack.identify()).toEqual(
      command.middlewareStack.identify(),
    );
    expect(command.middlewareStack.identify()).toHaveLength(1);
  });

  test('can be fenced again, for another lease', () => {
    const once = fenced(new UpdateCommand({ TableName, Key: { id: '1' } }), lease);
    const twice = fenced(once, { fencingToken: 70 }, { attribute: 'tokenOfB' });
    expect(twice.input).toEqual({
      TableName,
      Key: { id: '1' },
      UpdateExpression: 'SET #fence2 = :fence2, #fence = :fence',
      ConditionExpression: `(${FENCE}) AND (attribute_not_exists(#fence2) OR #fence2 <= :fence2)`,
      ExpressionAttributeNames: { '#fence': 'fencingToken', '#fence2': 'tokenOfB' },
      ExpressionAttributeValues: { ':fence': 5, ':fence2': 70 },
    });
  });

  test('has no fence when leases are disabled', () => {
    const command = new UpdateCommand({
      TableName,
      Key: { id: '1' },
      UpdateExpression: 'REMOVE a',
    });
    const copy = fenced(command, pretendedLease('default/job'));
    expect(copy).not.toBe(command);
    expect(copy.input).toEqual(command.input);
  });

  test('may name the attribute of a slot', () => {
    const command = new PutCommand({ TableName, Item: { id: '1' } });
    const copy = fenced(command, { fencingToken: 5, slot: 3 }, { attribute: 'fencingToken3' });
    expect(copy.input.Item).toEqual({ id: '1', fencingToken3: 5 });
    expect(copy.input.ExpressionAttributeNames).toEqual({ '#fence': 'fencingToken3' });
  });
});

describe('the fence and a condition of the user', () => {
  const merged = (ConditionExpression: string) =>
    fenced(new PutCommand({ TableName, Item: {}, ConditionExpression }), lease).input
      .ConditionExpression;

  test.each([
    ['one that is simple', 'a = :b', `(a = :b) AND (${FENCE})`],
    ['one with OR', 'a = :b OR c = :d', `(a = :b OR c = :d) AND (${FENCE})`],
    ['one in parentheses', '(a = :b OR c = :d)', `(a = :b OR c = :d) AND (${FENCE})`],
    ['one in parentheses and blanks', ' ( a = :b )\n', `( a = :b ) AND (${FENCE})`],
    ['two in parentheses', '(a = :b) OR (c = :d)', `((a = :b) OR (c = :d)) AND (${FENCE})`],
    ['a function', 'size(a) > :b', `(size(a) > :b) AND (${FENCE})`],
    ['a negation', 'NOT (a = :b)', `(NOT (a = :b)) AND (${FENCE})`],
  ])('hold both: %s', (_, own, expected) => {
    expect(merged(own)).toBe(expected);
  });

  test.each(['a = :b) OR (c = :d', '(a = :b', 'a = :b)', ')(', '(a = :b))'])(
    'are not joined when the parentheses of %j do not match',
    (own) => {
      expect(inParentheses(own)).toBeUndefined();
      expect(() => merged(own)).toThrow('its parentheses must match');
    },
  );
});

describe('the fence and an UpdateExpression', () => {
  test.each([
    ['SET a = :b', 'SET #fence = :fence, a = :b'],
    ['set a = :b', 'set #fence = :fence, a = :b'],
    ['SET#a=:b', 'SET #fence = :fence,#a=:b'],
    ['SET\n\t#a = :b', 'SET #fence = :fence,\n\t#a = :b'],
    ['  Set a=:b', '  Set #fence = :fence, a=:b'],
    ['REMOVE a', 'REMOVE a SET #fence = :fence'],
    ['remove a\nSeT b=:b', 'remove a\nSeT #fence = :fence, b=:b'],
    ['ADD a :b', 'ADD a :b SET #fence = :fence'],
    ['ADD#a:b', 'ADD#a:b SET #fence = :fence'],
    ['DELETE a :b SET c = :d REMOVE e', 'DELETE a :b SET #fence = :fence, c = :d REMOVE e'],
    // Placeholders and attributes that are called like a clause.
    ['REMOVE #set', 'REMOVE #set SET #fence = :fence'],
    ['ADD #a :set', 'ADD #a :set SET #fence = :fence'],
    ['ADD #set :set', 'ADD #set :set SET #fence = :fence'],
    ['REMOVE offset, setting', 'REMOVE offset, setting SET #fence = :fence'],
    ['REMOVE a.set', 'REMOVE a.set SET #fence = :fence'],
    ['REMOVE set', 'REMOVE set SET #fence = :fence'],
    ['REMOVE a, set', 'REMOVE a, set SET #fence = :fence'],
    ['SET #set = #set + :set', 'SET #fence = :fence, #set = #set + :set'],
    ['REMOVE a[0]SET b = :b', 'REMOVE a[0]SET #fence = :fence, b = :b'],
    ['SET a=if_not_exists(b,:c)REMOVE d', 'SET #fence = :fence, a=if_not_exists(b,:c)REMOVE d'],
  ])('%j become %j', (UpdateExpression, expected) => {
    const command = new UpdateCommand({ TableName, Key: {}, UpdateExpression });
    expect(fenced(command, lease).input.UpdateExpression).toBe(expected);
  });

  test.each([
    ['SET a = :b, c.d = e, #f[0] = if_not_exists(g, :h)', ['a', 'c', '#f']],
    ['SET a = list_append(b, c), d = e - f', ['a', 'd']],
    ['remove a, b.c[1].d DELETE e :f, #g :h', ['a', 'b', 'e', '#g']],
    ['ADD#a:b,c:d SET#e=f+:g', ['#a', 'c', '#e']],
    ['SET set = :a, remove = :b REMOVE add', ['set', 'remove', 'add']],
    ['SET a = set REMOVE b', ['a', 'b']],
    ['', []],
  ])('%j writes to %j', (expression, targets) => {
    expect(outlineUpdate(expression).targets).toEqual(targets);
  });
});

describe("the fence's placeholders", () => {
  const placeholdersWith = (input: Partial<UpdateItemCommandInput>) => {
    const { ExpressionAttributeNames, ExpressionAttributeValues } = fenced(
      new UpdateItemCommand({ TableName, Key: {}, ...input }),
      lease,
    ).input;
    return [ExpressionAttributeNames, ExpressionAttributeValues];
  };

  test.each([
    [
      'are not those of the user',
      { ExpressionAttributeNames: { '#fence': 'x' } },
      '#fence2',
      ':fence',
    ],
    [
      "are none of the user's, however many",
      {
        ExpressionAttributeNames: { '#fence': 'x', '#fence2': 'y', '#fence4': 'z' },
        ExpressionAttributeValues: { ':fence': { S: 'x' } },
      },
      '#fence3',
      ':fence2',
    ],
    ['are none of a condition', { ConditionExpression: '#fence = :fence' }, '#fence2', ':fence2'],
    ['are none of an update', { UpdateExpression: 'SET #fence = :fence' }, '#fence2', ':fence2'],
    ['stand beside none', { ExpressionAttributeNames: {} }, '#fence', ':fence'],
  ] as const)('%s', (_, input: Partial<UpdateItemCommandInput>, name, value) => {
    expect(placeholdersWith(input)).toEqual([
      { ...input.ExpressionAttributeNames, [name]: 'fencingToken' },
      { ...input.ExpressionAttributeValues, [value]: { N: '5' } },
    ]);
  });
});

describe('a tombstone', () => {
  test('is an update with the fence, the condition and the mark', () => {
    const command = new DeleteItemCommand({
      TableName,
      Key: { id: { S: '1' } },
      ConditionExpression: '#mark = :mark OR a = :b',
      ExpressionAttributeNames: { '#mark': 'state' },
      ExpressionAttributeValues: { ':mark': { S: 'done' }, ':b': { N: '1' } },
      ReturnValues: 'ALL_OLD',
      ReturnConsumedCapacity: 'TOTAL',
    });
    expect(tombstone(command, lease)).toEqual({
      TableName,
      Key: { id: { S: '1' } },
      UpdateExpression: 'SET #fence = :fence, #mark2 = :mark2',
      ConditionExpression: `(#mark = :mark OR a = :b) AND (${FENCE})`,
      ExpressionAttributeNames: {
        '#mark': 'state',
        '#mark2': 'deleted',
        '#fence': 'fencingToken',
      },
      ExpressionAttributeValues: {
        ':mark': { S: 'done' },
        ':b': { N: '1' },
        ':mark2': { BOOL: true },
        ':fence': { N: '5' },
      },
      ReturnValues: 'ALL_OLD',
      ReturnConsumedCapacity: 'TOTAL',
    });
  });

  test('has plain values for the document client, and names of its own', () => {
    const command = new DeleteCommand({ TableName, Key: { id: '1' } });
    expect(tombstone(command, lease, { attribute: 'token', mark: 'gone' })).toEqual({
      TableName,
      Key: { id: '1' },
      UpdateExpression: 'SET #fence = :fence, #mark = :mark',
      ConditionExpression: FENCE,
      ExpressionAttributeNames: { '#mark': 'gone', '#fence': 'token' },
      ExpressionAttributeValues: { ':mark': true, ':fence': 5 },
    });
  });

  test('of a fenced Delete has both fences', () => {
    const command = fenced(new DeleteCommand({ TableName, Key: { id: '1' } }), lease);
    const { ConditionExpression, ExpressionAttributeValues } = tombstone(
      command,
      { fencingToken: 7 },
      { attribute: 'other' },
    );
    expect(ConditionExpression).toBe(
      `(${FENCE}) AND (attribute_not_exists(#fence2) OR #fence2 <= :fence2)`,
    );
    expect(ExpressionAttributeValues).toEqual({ ':fence': 5, ':fence2': 7, ':mark': true });
  });

  test('only marks when leases are disabled', () => {
    const command = new DeleteCommand({ TableName, Key: { id: '1' } });
    expect(tombstone(command, pretendedLease('default/job'))).toEqual({
      TableName,
      Key: { id: '1' },
      UpdateExpression: 'SET #mark = :mark',
      ExpressionAttributeNames: { '#mark': 'deleted' },
      ExpressionAttributeValues: { ':mark': true },
    });
  });
});
