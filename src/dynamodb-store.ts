// The records in DynamoDB, and the door to the AWS SDK. Translates each write into one UpdateItem
// and each way of failing into what the protocol needs to know: refused, nobody can tell, or
// somebody has to change something first.

import {
  DynamoDBClient,
  GetItemCommand,
  UpdateItemCommand,
  type DynamoDBClientConfig,
} from '@aws-sdk/client-dynamodb';
import { LeaseError } from './errors.ts';
import type { Item, Value } from './lease.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import type { LeaseStore, ReadCall, StoreCall, WriteAnswer } from './store.ts';
import type { Condition, Increment, Write } from './writes.ts';

export interface DynamoDBStoreOptions {
  /** Default, where a lease is asked for: `LEASE_TABLE_NAME`. */
  readonly tableName: string;
  /**
   * A client of your own. It keeps its settings; each call is bounded all the same. Default: a
   * client with short time-outs. Not with `clientConfig`.
   */
  readonly client?: DynamoDBClient;
  /** Settings for the default client: Region, endpoint, credentials. */
  readonly clientConfig?: DynamoDBClientConfig;
}

/**
 * By default the SDK has no time-out at all, and `requestTimeout` alone only logs. A lease cannot
 * wait for an answer that never comes.
 */
const CLIENT_DEFAULTS: DynamoDBClientConfig = {
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 500, requestTimeout: 1_000, throwOnRequestTimeout: true },
};

export class DynamoDBStore implements LeaseStore {
  readonly tableName: string;
  readonly #client: DynamoDBClient;

  constructor(options: DynamoDBStoreOptions) {
    this.tableName = options.tableName;
    this.#client =
      options.client ?? new DynamoDBClient({ ...CLIENT_DEFAULTS, ...options.clientConfig });
  }

  get description(): string {
    return `table "${this.tableName}"`;
  }

  async read(lease: string, call: ReadCall): Promise<Item | undefined> {
    const command = new GetItemCommand({
      TableName: this.tableName,
      Key: { [KEY_ATTRIBUTE]: { S: lease } },
      ConsistentRead: call.consistent,
    });
    timeAttempts(command, call);
    try {
      const answer = await this.#client.send(command, { abortSignal: call.signal });
      return answer.Item as Item | undefined;
    } catch (error) {
      throw await this.#explain(error, 'dynamodb:GetItem');
    }
  }

  async write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer> {
    const command = new UpdateItemCommand({
      TableName: this.tableName,
      Key: { [KEY_ATTRIBUTE]: { S: lease } },
      ...expressions(write),
      ReturnValues: 'ALL_NEW',
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    timeAttempts(command, call);
    try {
      const answer = await this.#client.send(command, { abortSignal: call.signal });
      return { kind: 'applied', item: (answer.Attributes ?? {}) as Item };
    } catch (error) {
      if (nameOf(error) === 'ConditionalCheckFailedException') {
        return { kind: 'refused', item: (error as { Item?: Item }).Item };
      }
      throw await this.#explain(error, 'dynamodb:UpdateItem');
    }
  }

  async #explain(error: unknown, action: string): Promise<LeaseError> {
    const where = `${this.description} in ${await this.#region()}`;
    const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    switch (nameOf(error)) {
      case 'AccessDeniedException':
        return new LeaseError(
          'access-denied',
          `${action} on ${where} is denied (${said}). Allow that action on the table to the ` +
            "role of this process; a condition on dynamodb:LeadingKeys must cover the lease's key.",
          { cause: error },
        );
      case 'ResourceNotFoundException':
        return new LeaseError(
          'table-not-found',
          `${action} failed: there is no ${where} (${said}). Create it with the partition key ` +
            `"${KEY_ATTRIBUTE}" of type String, or correct tableName, LEASE_TABLE_NAME or the ` +
            'Region.',
          { cause: error },
        );
      case 'ValidationException':
        return new LeaseError(
          'request-refused',
          `${action} was refused by ${where} (${said}). The table needs the partition key ` +
            `"${KEY_ATTRIBUTE}" of type String and no sort key; version and leaseTransitions of ` +
            'a record must be numbers.',
          { cause: error },
        );
      default:
        return new LeaseError(
          'store-unavailable',
          `${action} on ${where} gave no answer that tells what happened (${said}).`,
          { cause: error },
        );
    }
  }

  async #region(): Promise<string> {
    try {
      return `Region ${await this.#client.config.region()}`;
    } catch {
      return 'no Region (set AWS_REGION or the region of the client)';
    }
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

interface HttpAnswer {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Looks at the clocks around each attempt, those that the SDK repeats by itself included. */
function timeAttempts(command: GetItemCommand | UpdateItemCommand, call: StoreCall): void {
  // Of the two commands' stacks, which differ in type only.
  const stack = command.middlewareStack as GetItemCommand['middlewareStack'];
  stack.add(
    (next) => async (args) => {
      const answered = call.attempt();
      const result = await next(args);
      answered((result.response as HttpAnswer | undefined)?.headers?.['date']);
      return result;
    },
    // Innermost, so that it sees the raw answer before an error is made of it.
    { step: 'deserialize', priority: 'low', name: 'lambdaLeaseTimeAttempts' },
  );
}

/** Placeholders everywhere: `condition` and others are reserved words. */
function expressions(write: Write) {
  const names = new Map<string, string>();
  const values: Record<string, Value> = {};
  const name = (attribute: string) => {
    const placeholder = names.get(attribute) ?? `#n${names.size}`;
    names.set(attribute, placeholder);
    return placeholder;
  };
  const value = (literal: Value) => {
    const placeholder = `:v${Object.keys(values).length}`;
    values[placeholder] = literal;
    return placeholder;
  };
  const number = (literal: number) => value({ N: String(literal) });

  // Parentheses only where they change something: some servers take long over nested ones.
  const condition = (part: Condition, within?: 'all' | 'any' | 'not'): string => {
    if ('absent' in part) return `attribute_not_exists(${name(part.absent)})`;
    if ('equals' in part) return `${name(part.equals[0])} = ${value(part.equals[1])}`;
    if ('below' in part) return `${name(part.below[0])} < ${number(part.below[1])}`;
    if ('isNumber' in part) {
      return `attribute_type(${name(part.isNumber)}, ${value({ S: 'N' })})`;
    }
    if ('not' in part) return `(NOT ${condition(part.not, 'not')})`;
    const [kind, parts, operator] =
      'all' in part ? (['all', part.all, ' AND '] as const) : (['any', part.any, ' OR '] as const);
    const joined = parts.map((each) => condition(each, kind)).join(operator);
    return within === undefined || within === kind ? joined : `(${joined})`;
  };
  const effect = ([attribute, set]: [string, Value | Increment]) => {
    const target = name(attribute);
    if (!('incrementFrom' in set)) return `${target} = ${value(set)}`;
    return `${target} = if_not_exists(${target}, ${number(set.incrementFrom)}) + ${number(1)}`;
  };

  const update = [
    `SET ${Object.entries(write.set).map(effect).join(', ')}`,
    ...(write.remove.length > 0 ? [`REMOVE ${write.remove.map(name).join(', ')}`] : []),
  ].join(' ');
  return {
    ConditionExpression: condition(write.condition),
    UpdateExpression: update,
    ExpressionAttributeNames: Object.fromEntries(
      [...names].map(([key, placeholder]) => [placeholder, key]),
    ),
    ExpressionAttributeValues: values as Record<string, never>,
  };
}
