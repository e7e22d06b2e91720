// The records in DynamoDB, and the door to the AWS SDK. Translates each write into one UpdateItem
// and each way of failing into what the protocol needs to know: refused, nobody can tell, or
// somebody has to change something first.

import {
  DeleteItemCommand,
  DynamoDBClient,
  GetItemCommand,
  ScanCommand,
  UpdateItemCommand,
  type DynamoDBClientConfig,
} from '@aws-sdk/client-dynamodb';
import { LeaseError } from './errors.ts';
import type { Condition } from './condition.ts';
import { conditionExpression, writeExpressions } from './expressions.ts';
import { asText, type Item } from './lease.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import type {
  ReadCall,
  RemoveAnswer,
  ScanAnswer,
  ScanCall,
  StoreCall,
  WatchableStore,
  WriteAnswer,
} from './store.ts';
import type { Write } from './writes.ts';

/** Which table, and by which client. */
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

/** The records in a DynamoDB table: the store that is used unless another one is given. */
export class DynamoDBStore implements WatchableStore {
  readonly tableName: string;
  readonly #client: DynamoDBClient;

  /** Sends nothing yet. */
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
      ...writeExpressions(write),
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

  async remove(lease: string, condition: Condition, call: StoreCall): Promise<RemoveAnswer> {
    const { text, ...placeholders } = conditionExpression(condition);
    const command = new DeleteItemCommand({
      TableName: this.tableName,
      Key: { [KEY_ATTRIBUTE]: { S: lease } },
      ConditionExpression: text,
      ...placeholders,
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    timeAttempts(command, call);
    try {
      await this.#client.send(command, { abortSignal: call.signal });
      return { kind: 'applied' };
    } catch (error) {
      if (nameOf(error) === 'ConditionalCheckFailedException') {
        return { kind: 'refused', item: (error as { Item?: Item }).Item };
      }
      throw await this.#explain(error, 'dynamodb:DeleteItem');
    }
  }

  async scan(call: ScanCall): Promise<ScanAnswer> {
    const { text, ...placeholders } = conditionExpression(call.filter);
    const command = new ScanCommand({
      TableName: this.tableName,
      Segment: call.segment,
      TotalSegments: call.segments,
      FilterExpression: text,
      ...placeholders,
      ...(call.after === undefined
        ? {}
        : { ExclusiveStartKey: { [KEY_ATTRIBUTE]: { S: call.after } } }),
    });
    timeAttempts(command, call);
    try {
      const answer = await this.#client.send(command, { abortSignal: call.signal });
      return {
        items: (answer.Items ?? []) as Item[],
        after: asText(answer.LastEvaluatedKey?.[KEY_ATTRIBUTE] as Item[string] | undefined),
        scanned: answer.ScannedCount ?? 0,
      };
    } catch (error) {
      throw await this.#explain(error, 'dynamodb:Scan');
    }
  }

  /** The Region of the client; undefined when it has none. */
  async region(): Promise<string | undefined> {
    try {
      // Some ways to have none are an empty text.
      return (await this.#client.config.region()) || undefined;
    } catch {
      return undefined;
    }
  }

  async #explain(error: unknown, action: string): Promise<LeaseError> {
    const region = await this.region();
    const place = region === undefined ? 'no Region' : `Region ${region}`;
    const where = `${this.description} in ${place}`;
    const said = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
    switch (nameOf(error)) {
      case 'AccessDeniedException':
        return new LeaseError(
          'access-denied',
          `${action} on ${where} is denied (${said}). Allow that action on the table to the ` +
            `role of this process; ${
              action === 'dynamodb:Scan'
                ? 'no condition on dynamodb:LeadingKeys allows it.'
                : "a condition on dynamodb:LeadingKeys must cover the lease's key."
            }`,
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
            `"${KEY_ATTRIBUTE}" of type String, and no sort key` +
            (/\bkeys?\b/i.test(said)
              ? '.'
              : '; version and leaseTransitions of a record must be numbers.'),
          { cause: error },
        );
      default:
        return new LeaseError(
          'store-unavailable',
          `${action} on ${where} ${failure(error, region)} (${said}).`,
          { cause: error },
        );
    }
  }
}

function nameOf(error: unknown): string {
  return error instanceof Error ? error.name : '';
}

/** What the SDK and the service call it. */
const CREDENTIALS =
  /^Credentials|^TokenProvider|^ExpiredTok|^Unrecognized|^InvalidClientT|^MissingAuth|Signature/;

/**
 * Credentials are no `access-denied`, which is for good: they are fetched and renewed anew, and no
 * elector shall end because that once took too long. Nor do they tell that nothing was written: an
 * attempt before the one that was refused may have had no answer (L7).
 */
function failure(error: unknown, region: string | undefined): string {
  if (region === undefined) return 'was not sent: set AWS_REGION, or the region of the client';
  return CREDENTIALS.test(nameOf(error))
    ? 'failed for want of valid credentials: check the role, keys or profile of this process'
    : 'gave no answer that tells what happened';
}

interface HttpAnswer {
  readonly headers?: Readonly<Record<string, string>>;
}

/** Looks at the clocks around each attempt, those that the SDK repeats by itself included. */
function timeAttempts(
  command: GetItemCommand | UpdateItemCommand | DeleteItemCommand | ScanCommand,
  call: StoreCall,
): void {
  // The commands' stacks differ in type only.
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
