// Fenced writes through either client of the SDK, told and answered in plain values.

import {
  DeleteItemCommand,
  type DynamoDBClient,
  PutItemCommand,
  TransactWriteItemsCommand,
  UpdateItemCommand,
} from '@aws-sdk/client-dynamodb';
import {
  DeleteCommand,
  DynamoDBDocumentClient,
  PutCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { fenced, tombstone } from '../../src/fence.ts';
import { rawItem } from '../support/dynamodb.ts';

export type Plain = Readonly<Record<string, string | number | boolean>>;
type Marshalled = Record<string, { S: string } | { N: string } | { BOOL: boolean }>;

export interface Own {
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Plain;
  readonly ReturnValues?: 'ALL_OLD';
}

export interface Fences {
  readonly token: number;
  readonly attribute?: string;
}

export const KINDS = ['Put', 'Update', 'Delete'] as const;
export type Kind = (typeof KINDS)[number];

/** Writes to one item: a Put sets `n` to 2, an Update adds 1 to it. Answers the old attributes. */
export interface Writer {
  write(kind: Kind, lease: string, own: Own, ...fences: Fences[]): Promise<unknown>;
  transact(kind: Kind, lease: string, own: Own, fence: Fences): Promise<unknown>;
  bury(lease: string, own: Own, fence: Fences): Promise<unknown>;
}

export const CLIENTS: readonly (readonly [
  name: string,
  (client: DynamoDBClient, TableName: string) => Writer,
])[] = [
  ['the low-level client', lowLevel],
  ['the document client', document],
];

function lowLevel(client: DynamoDBClient, TableName: string): Writer {
  const own = ({ ExpressionAttributeValues: values, ...rest }: Own) => ({
    TableName,
    ...rest,
    ...(values === undefined ? {} : { ExpressionAttributeValues: marshall(values) }),
  });
  const inputs = {
    Put: (lease: string, given: Own) => ({
      ...own(given),
      Item: marshall({ lease, n: 2 }),
    }),
    Update: (lease: string, given: Own) => ({
      ...own(adding(given)),
      Key: marshall({ lease }),
      UpdateExpression: 'ADD n :one',
    }),
    Delete: (lease: string, given: Own) => ({ ...own(given), Key: marshall({ lease }) }),
  };
  return {
    write: async (kind, lease, given, ...fences) => {
      const answer =
        kind === 'Put'
          ? client.send(all(new PutItemCommand(inputs.Put(lease, given)), fences))
          : kind === 'Update'
            ? client.send(all(new UpdateItemCommand(inputs.Update(lease, given)), fences))
            : client.send(all(new DeleteItemCommand(inputs.Delete(lease, given)), fences));
      const { Attributes } = await answer;
      return Attributes && unmarshall(Attributes);
    },
    transact: (kind, lease, given, fence) => {
      const command = new TransactWriteItemsCommand({
        TransactItems: [{ [kind]: inputs[kind](lease, given) }],
      });
      return client.send(all(command, [fence]));
    },
    bury: (lease, given, { token, ...options }) => {
      const command = new DeleteItemCommand(inputs.Delete(lease, given));
      return client.send(new UpdateItemCommand(tombstone(command, leaseOf(token), options)));
    },
  };
}

function document(client: DynamoDBClient, TableName: string): Writer {
  const sender = DynamoDBDocumentClient.from(client);
  const inputs = {
    Put: (lease: string, given: Own) => ({ TableName, ...given, Item: { lease, n: 2 } }),
    Update: (lease: string, given: Own) => ({
      TableName,
      ...adding(given),
      Key: { lease },
      UpdateExpression: 'ADD n :one',
    }),
    Delete: (lease: string, given: Own) => ({ TableName, ...given, Key: { lease } }),
  };
  return {
    write: async (kind, lease, given, ...fences) => {
      const answer =
        kind === 'Put'
          ? sender.send(all(new PutCommand(inputs.Put(lease, given)), fences))
          : kind === 'Update'
            ? sender.send(all(new UpdateCommand(inputs.Update(lease, given)), fences))
            : sender.send(all(new DeleteCommand(inputs.Delete(lease, given)), fences));
      return (await answer).Attributes;
    },
    transact: (kind, lease, given, fence) => {
      const command = new TransactWriteCommand({
        TransactItems: [{ [kind]: inputs[kind](lease, given) }],
      });
      return sender.send(all(command, [fence]));
    },
    bury: (lease, given, { token, ...options }) => {
      const command = new DeleteCommand(inputs.Delete(lease, given));
      return sender.send(new UpdateCommand(tombstone(command, leaseOf(token), options)));
    },
  };
}

function all<C extends { input: object }>(command: C, fences: readonly Fences[]): C {
  return fences.reduce(
    (done, { token, ...options }) => fenced(done, leaseOf(token), options),
    command,
  );
}

function leaseOf(fencingToken: number) {
  return { fencingToken, holderIdentity: 'a' };
}

function adding(own: Own): Own {
  return { ...own, ExpressionAttributeValues: { ...own.ExpressionAttributeValues, ':one': 1 } };
}

export function marshall(plain: Plain): Marshalled {
  return Object.fromEntries(
    Object.entries(plain).map(([name, value]) => [
      name,
      typeof value === 'string'
        ? { S: value }
        : typeof value === 'number'
          ? { N: String(value) }
          : { BOOL: value },
    ]),
  );
}

export function unmarshall(item: object): Plain {
  return Object.fromEntries(
    Object.entries(item as Marshalled).map(([name, value]) => [
      name,
      'S' in value ? value.S : 'N' in value ? Number(value.N) : value.BOOL,
    ]),
  );
}

/** The item as it is stored; undefined when there is none. */
export async function stored(
  client: DynamoDBClient,
  table: string,
  lease: string,
): Promise<Plain | undefined> {
  const item = await rawItem(client, table, lease);
  return item && unmarshall(item);
}
