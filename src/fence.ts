// The fence: a condition and a token in the user's own writes, so that no item takes a write of a
// holder that is over, whatever it still believes.
//
// Pure: nothing is sent, and no command is changed.

import { PRETENDED_HOLDER } from './lease-handle.ts';
import { checkFilled, checkNames, invalid, show } from './options.ts';
import { copyOf, readCommand, type UserCommand, type WriteKind } from './user-commands.ts';
import {
  inParentheses,
  outlineUpdate,
  UserPlaceholders,
  withAssignment,
  type Expressions,
} from './user-expressions.ts';

/** What a fence needs of a lease. */
export interface FencingLease {
  /** Its token: a whole number above 0. */
  readonly fencingToken: number;
  /** Which of several equal leases it is; absent when there is just one. */
  readonly slot?: number | undefined;
  /** Who holds it; tells a lease that is only pretended (LEASE_DISABLED). */
  readonly holderIdentity?: string | undefined;
}

/** Options of `fenced`. */
export interface FencedOptions {
  /**
   * The attribute of the item that holds the token, at the top level. Default `fencingToken`. An
   * item that is guarded by two leases needs one for each; so does each slot of a lease. A Put
   * replaces the whole item: to keep both tokens it needs both fences.
   */
  readonly attribute?: string | undefined;
}

/** Options of `tombstone`. */
export interface TombstoneOptions extends FencedOptions {
  /** The attribute that is set to true instead of deleting the item. Default `deleted`. */
  readonly mark?: string | undefined;
}

export interface UserDeleteCommand {
  readonly input: {
    readonly TableName: string | undefined;
    readonly Key: object | undefined;
    readonly ExpressionAttributeValues?: object | undefined;
  };
}

/** The input of an update, with values of the same kind as those of the delete it replaces. */
export type TombstoneInput<Input extends UserDeleteCommand['input']> = Pick<
  Input,
  keyof Input & (typeof SHARED_PARAMETERS)[number]
> & {
  UpdateExpression: string;
  ConditionExpression?: string;
  ExpressionAttributeNames: Record<string, string>;
  ExpressionAttributeValues: NonNullable<Input['ExpressionAttributeValues']>;
};

const LEGACY_PARAMETERS = ['Expected', 'AttributeUpdates', 'ConditionalOperator'] as const;
/** What a delete and an update both take, with the same meaning. */
const SHARED_PARAMETERS = [
  'TableName',
  'Key',
  'ReturnValues',
  'ReturnConsumedCapacity',
  'ReturnItemCollectionMetrics',
  'ReturnValuesOnConditionCheckFailure',
] as const;
const WRITES = ['Put', 'Update', 'Delete'] as const satisfies readonly WriteKind[];

type Values = Readonly<Record<string, unknown>>;

/** The parameters of one write, in a command of its own or within a transaction. */
interface Operation extends Values, Expressions {
  readonly Key?: Values;
  readonly Item?: Values;
}

interface Fence {
  readonly attribute: string;
  /** The token as the client takes a number; undefined when leases are disabled. */
  readonly token: unknown;
}

/**
 * The same command with a fence: it succeeds only when the item has no token yet, or none that is
 * higher than this lease's, and leaves this lease's token in the item. A write of an earlier
 * tenure, however late it arrives, then fails with a ConditionalCheckFailedException; in a
 * transaction, with a TransactionCanceledException.
 *
 * Returns a new command of the same class. Condition, update expression, placeholders and
 * middleware of the given one are kept. In a transaction every Put, Update and Delete gets the
 * fence; a ConditionCheck is left alone. Fence every write of an item, or none: one without a fence
 * is not stopped, and a Put without one removes the token.
 *
 * A fenced Delete takes the token with it: after it an earlier holder can create the item again.
 * Where that matters use `tombstone`, which keeps both.
 *
 * With leases disabled (LEASE_DISABLED) there is no token: the copy has no fence.
 *
 * @throws LeaseError `invalid-configuration`: another kind of command, legacy parameters, a lease
 * without a token, or a command that already writes the attribute.
 */
export function fenced<Command extends UserCommand>(
  command: Command,
  lease: FencingLease,
  options: FencedOptions = {},
): Command {
  checkNames('fenced', options, ['attribute']);
  const { kind, marshalled } = readCommand(command);
  const fence = readFence(lease, options, marshalled);
  const input = command.input as Operation;
  if (kind !== 'TransactWrite') return copyOf(command, fencedOperation(kind, input, fence, ''));
  const { TransactItems: items } = input as { TransactItems?: unknown };
  if (!Array.isArray(items)) {
    throw invalid(`TransactItems is ${show(items)}; it must be an array of operations.`);
  }
  const TransactItems = (items as Readonly<Record<string, Operation | undefined>>[]).map(
    (item, index) => {
      const fencedItem = { ...item };
      for (const write of WRITES) {
        const operation = item[write];
        if (operation === undefined) continue;
        const where = `TransactItems[${index}].${write}.`;
        fencedItem[write] = fencedOperation(write, operation, fence, where);
      }
      return fencedItem;
    },
  );
  return copyOf(command, { ...input, TransactItems });
}

/**
 * Instead of a Delete: the input of an update that keeps the item with the token and marks it as
 * deleted, so that no earlier holder can create it again. Pass it to `new UpdateItemCommand(…)`, or
 * to `new UpdateCommand(…)` for a DeleteCommand; or as the Update of a transaction.
 *
 * It has the condition of the Delete and the fence. What it does not remove are the other
 * attributes; and an item that does not exist is created, with key, token and mark. Readers have to
 * look for the mark; a fenced Put removes it again. The item may be removed for good once no
 * earlier holder can be running any more.
 *
 * @throws LeaseError `invalid-configuration`, as `fenced`.
 */
export function tombstone<Command extends UserDeleteCommand>(
  command: Command,
  lease: FencingLease,
  options: TombstoneOptions = {},
): TombstoneInput<Command['input']> {
  checkNames('tombstone', options, ['attribute', 'mark']);
  const { kind, name: commandName, marshalled } = readCommand(command);
  if (kind !== 'Delete') {
    throw invalid(
      `command is ${commandName}; tombstone takes a DeleteItemCommand or a DeleteCommand.`,
    );
  }
  const fence = readFence(lease, options, marshalled);
  const { mark = 'deleted' } = options;
  checkFilled('mark', mark);
  if (mark === fence.attribute) {
    throw invalid(`mark is ${show(mark)}; it must not be the attribute of the token.`);
  }
  const input = command.input as Operation;
  checkWrite(input, '');
  checkNotKey('mark', mark, input, '');
  const update: Record<string, unknown> = {};
  for (const name of SHARED_PARAMETERS) {
    if (input[name] !== undefined) update[name] = input[name];
  }
  if (input.ConditionExpression !== undefined) {
    update['ConditionExpression'] = input.ConditionExpression;
  }
  const placeholders = new UserPlaceholders(input);
  const name = placeholders.name('#mark', mark);
  const value = placeholders.value(':mark', marshalled ? { BOOL: true } : true);
  const marked = {
    ...update,
    UpdateExpression: withAssignment(undefined, `${name} = ${value}`),
    ...placeholders.merged(),
  };
  return fencedOperation('Update', marked, fence, '') as TombstoneInput<Command['input']>;
}

function fencedOperation(write: WriteKind, operation: Operation, fence: Fence, where: string) {
  const { attribute, token } = fence;
  checkWrite(operation, where);
  checkNotKey('attribute', attribute, operation, where);
  checkNotWritten(operation, attribute, where);
  if (token === undefined) return { ...operation };
  const placeholders = new UserPlaceholders(operation);
  const name = placeholders.name('#fence', attribute);
  const value = placeholders.value(':fence', token);
  const condition = `attribute_not_exists(${name}) OR ${name} <= ${value}`;
  const own = operation.ConditionExpression;
  return {
    ...operation,
    ...(write === 'Put' ? { Item: { ...operation.Item, [attribute]: token } } : {}),
    ...(write === 'Update'
      ? { UpdateExpression: withAssignment(operation.UpdateExpression, `${name} = ${value}`) }
      : {}),
    ConditionExpression:
      own === undefined ? condition : `${parenthesised(own, where)} AND (${condition})`,
    ...placeholders.merged(),
  };
}

function readFence(lease: FencingLease, options: FencedOptions, marshalled: boolean): Fence {
  const { attribute = 'fencingToken' } = options;
  checkFilled('attribute', attribute);
  // Plain JavaScript may pass anything.
  const given = lease as unknown;
  if (typeof given !== 'object' || given === null) {
    throw invalid(`lease is ${show(given)}; it must be a lease that is held.`);
  }
  const { fencingToken, slot, holderIdentity } = lease;
  if (typeof slot === 'number' && options.attribute === undefined) {
    throw invalid(
      `attribute is undefined; for a lease with a slot (${slot}) it must be given: tokens of ` +
        `different slots do not compare. Give an attribute per slot, e.g. fencingToken${slot}.`,
    );
  }
  if (holderIdentity === PRETENDED_HOLDER && fencingToken === 0) {
    return { attribute, token: undefined };
  }
  if (!Number.isSafeInteger(fencingToken) || fencingToken <= 0) {
    throw invalid(
      `lease.fencingToken is ${show(fencingToken)}; it must be a whole number greater than 0.`,
    );
  }
  return { attribute, token: marshalled ? { N: String(fencingToken) } : fencingToken };
}

function checkWrite(operation: Operation, where: string): void {
  for (const name of LEGACY_PARAMETERS) {
    if (operation[name] !== undefined) {
      throw invalid(
        `${where}${name} is ${show(operation[name])}; it must not be given: DynamoDB takes no ` +
          'expression beside it. Use ConditionExpression and UpdateExpression.',
      );
    }
  }
  for (const name of ['ConditionExpression', 'UpdateExpression'] as const) {
    const expression: unknown = operation[name];
    if (expression === undefined) continue;
    if (typeof expression !== 'string' || expression.trim() === '') {
      throw invalid(`${where}${name} is ${show(expression)}; leave it out where there is none.`);
    }
  }
}

function checkNotKey(option: string, name: string, { Key }: Operation, where: string): void {
  if (Key === undefined || !Object.hasOwn(Key, name)) return;
  throw invalid(`${option} is ${show(name)}; it must not be an attribute of ${where}Key.`);
}

function checkNotWritten(operation: Operation, attribute: string, where: string): void {
  const { Item = {}, UpdateExpression, ExpressionAttributeNames: names = {} } = operation;
  const rule = `it must not write ${show(attribute)}, the attribute of the token, itself.`;
  if (Object.hasOwn(Item, attribute)) {
    throw invalid(`${where}Item has ${attribute} = ${show(Item[attribute])}; ${rule}`);
  }
  if (UpdateExpression === undefined) return;
  const { targets } = outlineUpdate(UpdateExpression);
  if (targets.some((target) => (names[target] ?? target) === attribute)) {
    throw invalid(`${where}UpdateExpression is ${show(UpdateExpression)}; ${rule}`);
  }
}

function parenthesised(condition: string, where: string): string {
  const text = inParentheses(condition);
  if (text !== undefined) return text;
  throw invalid(
    `${where}ConditionExpression is ${show(condition)}; its parentheses must match: a fence ` +
      'beside it could have no effect.',
  );
}
