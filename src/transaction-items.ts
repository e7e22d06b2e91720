// Parts of a user's own DynamoDB transaction that concern a lease: as the document client wants
// them, with native values, or as the plain client does, with typed ones.

import type { Condition } from './condition.ts';
import { conditionExpression, writeExpressions } from './expressions.ts';
import type { Value } from './lease.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import type { Write } from './writes.ts';

export interface ItemFormat {
  /** True for TransactWriteItemsCommand. Default false, for TransactWriteCommand. */
  readonly marshalled?: boolean;
}

/** Everything that a lease writes into a transaction is a text or a number. */
type Native = string | number;
type Typed = { S: string } | { N: string };

interface Part<V> {
  TableName: string;
  Key: Record<string, V>;
  ConditionExpression: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues: Record<string, V>;
  ReturnValuesOnConditionCheckFailure: 'ALL_OLD';
}

export interface ConditionCheckItem {
  ConditionCheck: Part<Typed>;
}
export interface NativeConditionCheckItem {
  ConditionCheck: Part<Native>;
}
export interface UpdateItem {
  Update: Part<Typed> & { UpdateExpression: string };
}
export interface NativeUpdateItem {
  Update: Part<Native> & { UpdateExpression: string };
}

/** Which record. */
export interface Target {
  readonly tableName: string;
  /** `namespace/name`. */
  readonly lease: string;
}

export function conditionCheckItem(
  target: Target,
  condition: Condition,
  format?: ItemFormat,
): ConditionCheckItem | NativeConditionCheckItem {
  const { text, ...placeholders } = conditionExpression(condition);
  const check = partOf(target, { ConditionExpression: text, ...placeholders }, format);
  return { ConditionCheck: check } as ConditionCheckItem | NativeConditionCheckItem;
}

export function updateItem(
  target: Target,
  write: Write,
  format?: ItemFormat,
): UpdateItem | NativeUpdateItem {
  const { UpdateExpression, ...rest } = writeExpressions(write);
  const update = { ...partOf(target, rest, format), UpdateExpression };
  return { Update: update } as UpdateItem | NativeUpdateItem;
}

interface Expressions {
  readonly ConditionExpression: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: Record<string, Value>;
}

function partOf(
  { tableName, lease }: Target,
  { ConditionExpression, ExpressionAttributeNames = {}, ...expressions }: Expressions,
  { marshalled = false }: ItemFormat = {},
): Part<Value | Native> {
  const values = Object.entries(expressions.ExpressionAttributeValues ?? {});
  const as = (value: Value) => (marshalled ? value : native(value));
  return {
    TableName: tableName,
    Key: { [KEY_ATTRIBUTE]: as({ S: lease }) },
    ConditionExpression,
    ExpressionAttributeNames,
    ExpressionAttributeValues: Object.fromEntries(values.map(([name, v]) => [name, as(v)])),
    ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
  };
}

function native(value: Value): Native {
  if ('S' in value) return value.S;
  if ('N' in value) return Number(value.N);
  throw new TypeError(`No lease writes ${JSON.stringify(value)} into a transaction.`);
}
