// What fenced() and tombstone() refuse, and how they say so.

import {
  BatchWriteItemCommand,
  DeleteItemCommand,
  ExecuteStatementCommand,
  GetItemCommand,
  PutItemCommand,
  QueryCommand,
  TransactGetItemsCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import {
  BatchWriteCommand,
  DeleteCommand,
  GetCommand,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { describe, expect, test } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import {
  fenced,
  tombstone,
  type FencedOptions,
  type FencingLease,
  type TombstoneOptions,
} from '../../src/fence.ts';
import type { UserCommand } from '../../src/user-commands.ts';

const lease = { fencingToken: 5 };
const TableName = 't';
const Key = { id: '1' };
const update = (input: object) => new UpdateCommand({ TableName, Key, ...input });

function refusal(act: () => unknown): string {
  try {
    act();
  } catch (error) {
    if (isLeaseError(error, 'invalid-configuration')) return error.message;
    throw error;
  }
  throw new Error('It was accepted.');
}

describe('fenced() refuses', () => {
  test.each<[string, UserCommand, string]>([
    ['a Get', new GetItemCommand({ TableName, Key: {} }), 'command is GetItemCommand: a read'],
    ['a document Get', new GetCommand({ TableName, Key }), 'command is GetItemCommand: a read'],
    ['a Query', new QueryCommand({ TableName }), 'command is QueryCommand: a read changes nothing'],
    [
      'reads',
      new TransactGetItemsCommand({ TransactItems: [] }),
      'TransactGetItemsCommand: a read',
    ],
    ['a batch', new BatchWriteItemCommand({ RequestItems: {} }), 'no condition in a batch'],
    ['a document batch', new BatchWriteCommand({ RequestItems: {} }), 'no condition in a batch'],
    ['PartiQL', new ExecuteStatementCommand({ Statement: 's' }), 'has no ConditionExpression'],
    ['an input', { input: {} }, 'command is an object; it must be a PutItemCommand'],
    ['a string', 'put' as unknown as UserCommand, 'command is "put"; it must be a PutItemCommand'],
    ['nothing', undefined as unknown as UserCommand, 'command is undefined; it must be a Put'],
  ])('another kind of command: %s', (_, command, expected) => {
    expect(refusal(() => fenced(command, lease))).toContain(expected);
  });

  test.each([
    ['Expected', {}],
    ['AttributeUpdates', {}],
    ['ConditionalOperator', 'AND'],
  ])('the legacy parameter %s', (name, value) => {
    const message = refusal(() => fenced(update({ [name]: value }), lease));
    expect(message).toMatch(new RegExp(`^${name} is (?:an object|"AND"); it must not be given`));
  });

  const names = { '#t': 'fencingToken' };
  test.each<[string, UserCommand, string]>([
    [
      'an Item',
      new PutCommand({ TableName, Item: { ...Key, fencingToken: 3 } }),
      'Item has fencingToken = 3; it must not write "fencingToken", the attribute of the token',
    ],
    ['SET', update({ UpdateExpression: 'SET fencingToken = :x' }), 'UpdateExpression is "SET f'],
    ['set', update({ UpdateExpression: 'set a=:a,fencingToken=:x' }), 'UpdateExpression is "set'],
    ['REMOVE', update({ UpdateExpression: 'REMOVE a, fencingToken' }), 'must not write'],
    ['ADD', update({ UpdateExpression: 'ADD fencingToken :x' }), 'must not write'],
    ['DELETE', update({ UpdateExpression: 'DELETE fencingToken :x' }), 'must not write'],
    ['a part', update({ UpdateExpression: 'SET fencingToken.a = :x' }), 'must not write'],
    ['an element', update({ UpdateExpression: 'REMOVE fencingToken[0]' }), 'must not write'],
    [
      'a placeholder',
      update({ UpdateExpression: 'SET a = :a REMOVE #t', ExpressionAttributeNames: names }),
      'must not write',
    ],
    [
      'a write of a transaction',
      new TransactWriteCommand({
        TransactItems: [
          { Delete: { TableName, Key } },
          { Put: { TableName, Item: { ...Key, fencingToken: 3 } } },
        ],
      }),
      'TransactItems[1].Put.Item has fencingToken = 3',
    ],
    ['an earlier fence', fenced(update({}), lease), 'must not write'],
  ])('what writes the token itself: %s', (_, command, expected) => {
    expect(refusal(() => fenced(command, lease))).toContain(expected);
  });

  test.each([
    'SET a = fencingToken',
    'SET a = if_not_exists(b, fencingToken)',
    'SET a = list_append(fencingToken, fencingToken)',
    'SET fencingTokens = :a',
    'SET a.fencingToken = :a REMOVE b.fencingToken',
    'ADD a :fencingToken',
    'REMOVE #fencingToken',
  ])('not what only mentions it: %s', (UpdateExpression) => {
    const ExpressionAttributeNames = { '#fencingToken': 'x' };
    const command = update({ UpdateExpression, ExpressionAttributeNames });
    expect(fenced(command, lease).input.UpdateExpression).toContain('#fence = :fence');
  });

  test.each([undefined, 0, -1, 1.5, NaN, Infinity, 2 ** 53, '5'])(
    'a lease without a token: %s',
    (fencingToken) => {
      const message = refusal(() => fenced(update({}), { fencingToken } as FencingLease));
      expect(message).toMatch(
        /^lease\.fencingToken is .+; it must be a whole number greater than 0/,
      );
    },
  );

  test.each([undefined, null, 5])('no lease: %s', (none) => {
    const message = refusal(() => fenced(update({}), none as unknown as FencingLease));
    expect(message).toBe(`lease is ${String(none)}; it must be a lease that is held.`);
  });

  test('a disabled lease of no command all the same', () => {
    const pretended = { fencingToken: 0, holderIdentity: 'LEASE_DISABLED' };
    const command = new GetCommand({ TableName, Key });
    expect(refusal(() => fenced(command, pretended))).toContain('command is GetItemCommand');
  });

  test('token 0 of another holder', () => {
    const message = refusal(() => fenced(update({}), { fencingToken: 0, holderIdentity: 'a' }));
    expect(message).toContain('lease.fencingToken is 0');
  });

  test.each([0, 3])('a slot (%i) whose attribute is not given', (slot) => {
    expect(refusal(() => fenced(update({}), { ...lease, slot }))).toBe(
      `attribute is undefined; for a lease with a slot (${slot}) it must be given: tokens of ` +
        `different slots do not compare. Give an attribute per slot, e.g. fencingToken${slot}.`,
    );
  });

  test.each<[UserCommand, string]>([
    [update({}), 'attribute is "id"; it must not be an attribute of Key.'],
    [new DeleteItemCommand({ TableName, Key: { id: { S: '1' } } }), 'an attribute of Key.'],
    [
      new TransactWriteItemsCommand({
        TransactItems: [{ Delete: { TableName, Key: { id: { S: '1' } } } }],
      }),
      'an attribute of TransactItems[0].Delete.Key.',
    ],
    [new PutItemCommand({ TableName, Item: { id: { S: '1' } } }), 'must not write "id"'],
  ])('an attribute of the key', (command, expected) => {
    expect(refusal(() => fenced(command, lease, { attribute: 'id' }))).toContain(expected);
  });

  test.each<[unknown, string]>([
    [{ attribute: '' }, 'attribute is ""; it must be a text'],
    [{ attribute: 7 }, 'attribute is 7; it must be a text'],
    [{ atribute: 'a' }, 'fenced has no option "atribute". It has: attribute.'],
    ['token', 'fenced needs an object of options, not "token".'],
  ])('wrong options: %j', (options, expected) => {
    expect(refusal(() => fenced(update({}), lease, options as FencedOptions))).toContain(expected);
  });

  test.each(['ConditionExpression', 'UpdateExpression'])('an empty %s', (name) => {
    expect(refusal(() => fenced(update({ [name]: ' ' }), lease))).toBe(
      `${name} is " "; leave it out where there is none.`,
    );
  });

  test('a transaction without operations', () => {
    const command = new TransactWriteItemsCommand({ TransactItems: undefined });
    expect(refusal(() => fenced(command, lease))).toContain('TransactItems is undefined');
  });

  test('a class of the user whose constructor takes something else', () => {
    class SaveOrder extends PutCommand {
      constructor(id: string) {
        super({ TableName, Item: { id } });
      }
    }
    expect(refusal(() => fenced(new SaveOrder('1'), lease))).toContain(
      'command is SaveOrder, whose constructor does not take an input',
    );
  });
});

describe('tombstone() refuses', () => {
  const command = new DeleteCommand({ TableName, Key });

  test.each<[TombstoneOptions, string]>([
    [{ mark: 'fencingToken' }, 'mark is "fencingToken"; it must not be the attribute of the token'],
    [{ mark: 'id' }, 'mark is "id"; it must not be an attribute of Key.'],
    [{ attribute: 'id' }, 'attribute is "id"; it must not be an attribute of Key.'],
    [{ mark: '' }, 'mark is ""; it must be a text'],
    [
      { marks: 'a' } as TombstoneOptions,
      'tombstone has no option "marks". It has: attribute, mark.',
    ],
  ])('%j', (options, expected) => {
    expect(refusal(() => tombstone(command, lease, options))).toContain(expected);
  });

  test('a command that deletes nothing', () => {
    expect(refusal(() => tombstone(new UpdateCommand({ TableName, Key }), lease))).toBe(
      'command is UpdateItemCommand; tombstone takes a DeleteItemCommand or a DeleteCommand.',
    );
  });

  test('a slot whose attribute is not given', () => {
    expect(refusal(() => tombstone(command, { ...lease, slot: 1 }))).toContain('fencingToken1');
  });

  test('the legacy parameter Expected', () => {
    const legacy = new DeleteCommand({ TableName, Key, Expected: {} });
    expect(refusal(() => tombstone(legacy, lease))).toContain('Expected is an object');
  });

  test('an UpdateItemCommand of the low-level client', () => {
    const other = new UpdateItemCommand({ TableName, Key: {} });
    expect(refusal(() => tombstone(other, lease))).toContain('command is UpdateItemCommand');
  });
});
