// Sends a transaction of the work's own so that it commits if and only if the tenure still holds
// its lease at that moment. No clock is involved: this is the one guard that covers work which
// sleeps through the end of its lease.
//
// Three ways to fail are told apart: the lease is lost, a condition of the caller's own failed, and
// nobody can tell (L7).

import { bounded } from './bounded.ts';
import { sleep } from './clock.ts';
import { describeError, isLeaseError, LeaseError, type LeaseErrorCode } from './errors.ts';
import { COMPLETIONS, guardOf, PRETENDED_HOLDER } from './lease-handle.ts';
import type { Guard, Lease } from './lease-handle.ts';
import { readLease, type Item, type LeaseRecord } from './lease.ts';
import { checkFlag, checkMethods, checkNames, invalid, show } from './options.ts';
import { jittered } from './random.ts';
import { KEY_ATTRIBUTE } from './schema.ts';
import { copyOf, readCommand } from './user-commands.ts';
import type { ItemFormat, NativeUpdateItem, UpdateItem } from './transaction-items.ts';

/** A TransactWriteCommand or a TransactWriteItemsCommand. */
export interface TransactionCommand {
  readonly input: {
    readonly TransactItems?: readonly object[] | undefined;
    readonly ClientRequestToken?: string | undefined;
  };
}

/** A DynamoDBDocumentClient or a DynamoDBClient, as the command needs it. */
export interface TransactionClient {
  send(command: never, options?: { abortSignal?: AbortSignal }): Promise<unknown>;
}

/** Options of `sendGuarded`. */
export interface GuardedOptions {
  /**
   * Completes the tick of a scheduled run as well: the effect and the completion commit together,
   * or neither. Once in a run. Default false.
   */
  readonly completeTick?: boolean;
}

/** A lease of a scheduled run can complete its tick. */
interface Completing extends Lease {
  completeTick(format?: ItemFormat): UpdateItem | NativeUpdateItem;
  readonly [COMPLETIONS]: { readonly count: number };
}

interface HttpAnswer {
  readonly response?: { readonly statusCode?: number };
}
type Passing = (args: object) => Promise<HttpAnswer>;

interface Sendable extends TransactionCommand {
  readonly middlewareStack: {
    add(
      middleware: (next: Passing) => Passing,
      options: {
        readonly step: string;
        readonly priority: string;
        readonly name: string;
        readonly override: boolean;
      },
    ): void;
  };
}

/** DynamoDB's own bound for one transaction. */
const MOST_ITEMS = 100;
const ATTEMPTS = 8;
const ATTEMPT_MS = 5_000;
const PAUSE_MS = 50;

/**
 * Sends `command` with the lease's check added to its `TransactItems` (one of the 100 that DynamoDB
 * allows), and answers what the client does. Conflicts and throttling are tried again while the
 * lease is held, under one ClientRequestToken, so that nothing is applied twice.
 *
 * @throws LeaseError
 * `lease-lost`: nothing was written; this tenure is over, and its signal has aborted.
 * `tick-done` (with `completeTick`): nothing was written; the tick was completed before.
 * `condition-failed`: nothing was written; `cause` is the SDK's error with its CancellationReasons.
 * `store-unavailable`: nobody can tell whether it was written; or it was not, for it met others, or
 * throttling, at each attempt. The message says which.
 * `request-refused`, `access-denied`, `table-not-found`: nothing was written.
 * `invalid-configuration`: nothing was sent.
 *
 * What cannot be sent at all (a value that the client does not know, no credentials) is thrown as
 * it is.
 */
export async function sendGuarded(
  client: TransactionClient,
  command: TransactionCommand,
  lease: Lease,
  options: GuardedOptions = {},
): Promise<unknown> {
  checkMethods('client', client, ['send']);
  checkNames('sendGuarded', options, ['completeTick']);
  checkFlag('completeTick', options.completeTick);
  const guard = guardOf(lease);
  if (guard === undefined) {
    if ((lease as Lease | undefined)?.holderIdentity !== PRETENDED_HOLDER) {
      throw invalid('lease is not one of this library, or a copy of one: pass it as it was given.');
    }
    return client.send(command as never);
  }
  const transaction = new Transaction(client, command, lease, guard, options.completeTick === true);
  const failure = await guard.inTurn(() => transaction.run());
  // Outside of the turn: it may ask the store.
  if (failure !== undefined) await transaction.explain(failure);
  return transaction.output;
}

/** The check failed, on this record where the server showed it. */
interface CheckFailed {
  readonly record: LeaseRecord | undefined;
  readonly cause: Error;
}

type Verdict =
  | { readonly kind: 'check failed'; readonly item: unknown }
  /** Nothing was written, nor will it be next time. */
  | { readonly kind: 'failed'; readonly code: LeaseErrorCode }
  /** Nothing was written; it may work next time. */
  | { readonly kind: 'again' }
  | { readonly kind: 'cannot tell' };

class Transaction {
  output: unknown = {};
  readonly #client: TransactionClient;
  readonly #command: TransactionCommand;
  readonly #lease: Lease;
  readonly #guard: Guard;
  readonly #completes: boolean;
  /** The caller's, and the lease's own last. */
  readonly #items: readonly object[];
  readonly #token: string;
  /** Why an attempt may have been applied, or may still be: whatever comes later is no proof. */
  #unresolved: unknown;

  constructor(
    client: TransactionClient,
    command: TransactionCommand,
    lease: Lease,
    guard: Guard,
    completes: boolean,
  ) {
    this.#client = client;
    this.#command = command;
    this.#lease = lease;
    this.#guard = guard;
    this.#completes = completes;
    const { marshalled } = readCommand(command);
    const items = itemsOf(command, guard);
    this.#token = command.input.ClientRequestToken ?? guard.random.uuid();
    if (completes && !('completeTick' in lease)) {
      throw invalid('completeTick is true; it needs the lease of a scheduled run.');
    }
    const check = completes
      ? (lease as Completing).completeTick({ marshalled })
      : lease.conditionCheck({ marshalled } as { marshalled: true });
    this.#items = [...items, check];
  }

  /** Rejects with what is sure to be no matter of the lease. */
  async run(): Promise<CheckFailed | undefined> {
    const { clock, random } = this.#guard;
    for (let attempt = 1; ; attempt++) {
      if (!this.#lease.isHeld()) this.#tooLate();
      const built = this.#build();
      try {
        this.output = await bounded(clock, ATTEMPT_MS, this.#what, (abortSignal) =>
          this.#client.send(built.command as never, { abortSignal }),
        );
        if (this.#completes) this.#guard.versionRaised();
        return undefined;
      } catch (error) {
        const cause = causeOf(error);
        const verdict = judge(cause);
        this.#unresolved ??= built.unanswered();
        switch (verdict.kind) {
          case 'check failed':
            return { record: this.#recordOf(verdict.item), cause };
          case 'failed':
            if (this.#unresolved !== undefined) throw this.#cannotTell(cause);
            throw new LeaseError(verdict.code, failedMessage(this.#what, verdict.code, cause), {
              cause,
            });
          case 'cannot tell':
            // A value that cannot be sent is no matter of the store, nor of trying again.
            if (!built.wasSent() && this.#unresolved === undefined && cause.name !== 'LeaseError') {
              throw cause;
            }
            this.#unresolved = cause;
            break;
          case 'again':
        }
        if (attempt === ATTEMPTS) throw this.#cannotTell(cause);
      }
      await sleep(clock, jittered(random, PAUSE_MS * 2 ** (attempt - 1)));
    }
  }

  /** Returns when it was this very transaction, answered before, that made the check fail. */
  async explain({ record, cause }: CheckFailed): Promise<void> {
    const over = await this.#guard.refused(record);
    if (over !== undefined) {
      if (this.#unresolved !== undefined) throw this.#cannotTell(cause);
      throw over;
    }
    // Ours as before, so it was the tick, which only this tenure can have completed.
    if (this.#unresolved !== undefined) {
      if (this.#completes && (this.#lease as Completing)[COMPLETIONS].count === 1) return;
      throw this.#cannotTell(cause);
    }
    throw new LeaseError('tick-done', `${this.#what}: its tick has been completed already.`, {
      cause,
      ...(record === undefined ? {} : { record }),
    });
  }

  /** Anew for each attempt: a command may be changed by being sent. */
  #build() {
    const command: Sendable = copyOf(this.#command as Sendable, {
      ...this.#command.input,
      TransactItems: this.#items,
      ClientRequestToken: this.#token,
    });
    let sent = false;
    let unanswered: unknown;
    command.middlewareStack.add(
      // The SDK repeats by itself, and tells of its last attempt only.
      (next) => async (args) => {
        sent = true;
        try {
          const answer = await next(args);
          const { statusCode = 0 } = answer.response ?? {};
          if (statusCode >= 500) unanswered = new Error(`HTTP status ${statusCode}`);
          return answer;
        } catch (error) {
          unanswered = error;
          throw error;
        }
      },
      { step: 'deserialize', priority: 'low', name: 'lambdaLeaseWasSent', override: true },
    );
    return { command, wasSent: () => sent, unanswered: () => unanswered };
  }

  get #what(): string {
    return `A transaction under lease "${this.#guard.lease}"`;
  }

  #tooLate(): void {
    if (this.#unresolved !== undefined) throw this.#cannotTell(this.#unresolved);
    this.#lease.signal.throwIfAborted();
  }

  #cannotTell(cause: unknown): LeaseError {
    const told = describeError(cause);
    return new LeaseError(
      'store-unavailable',
      this.#unresolved === undefined
        ? `${this.#what} was not written: it met others, or throttling, each time (${told}).`
        : `${this.#what}: nobody can tell whether it was written (${told}).`,
      { cause },
    );
  }

  #recordOf(item: unknown): LeaseRecord | undefined {
    // As the SDK gives it, also from the document client: typed. Anything else is not shown.
    const { [KEY_ATTRIBUTE]: key } = (item ?? {}) as Item;
    if (typeof key !== 'object' || !('S' in key)) return undefined;
    return readLease(this.#guard.lease, item as Item);
  }
}

function itemsOf({ input }: TransactionCommand, { lease, tableName }: Guard): readonly object[] {
  const { TransactItems: items } = input;
  if (!Array.isArray(items)) {
    throw invalid(
      `The command's TransactItems are ${show(items)}; sendGuarded takes a TransactWriteCommand ` +
        'or a TransactWriteItemsCommand.',
    );
  }
  if (items.length >= MOST_ITEMS) {
    throw invalid(
      `The transaction has ${items.length} items; with the lease's own it must have at most ` +
        `${MOST_ITEMS}.`,
    );
  }
  for (const [index, item] of (items as readonly unknown[]).entries()) {
    if (typeof item !== 'object' || item === null) {
      throw invalid(`TransactItems[${index}] is ${show(item)}; it must be an object.`);
    }
    if (!Object.values(item).some((operation) => touches(operation, lease, tableName))) continue;
    throw invalid(
      `The transaction touches the record of lease "${lease}" itself; sendGuarded adds its ` +
        'check, and DynamoDB takes one operation on an item only. Leave it out.',
    );
  }
  return items as object[];
}

function touches(operation: unknown, lease: string, tableName: string): boolean {
  const { TableName, Key, Item } = (operation ?? {}) as Readonly<Record<string, unknown>>;
  const { [KEY_ATTRIBUTE]: key } = (Key ?? Item ?? {}) as Readonly<Record<string, unknown>>;
  // Native, or typed.
  const text: unknown = typeof key === 'object' && key !== null ? Reflect.get(key, 'S') : key;
  return TableName === tableName && text === lease;
}

function causeOf(error: unknown): Error {
  const cause = isLeaseError(error) && error.cause !== undefined ? error.cause : error;
  return cause instanceof Error ? cause : new Error(String(cause));
}

interface Reason {
  readonly Code?: string;
  readonly Item?: unknown;
}

const PASSING = ['None', 'TransactionConflict', 'ThrottlingError', 'ProvisionedThroughputExceeded'];
const NOT_WRITTEN = [
  'ThrottlingException',
  'ProvisionedThroughputExceededException',
  'RequestLimitExceeded',
  'TransactionConflictException',
];
const REFUSALS: Readonly<Record<string, LeaseErrorCode>> = {
  ValidationException: 'request-refused',
  IdempotentParameterMismatchException: 'request-refused',
  UnsupportedOperationException: 'request-refused',
  // Of a stand-in for DynamoDB.
  UnknownOperationException: 'request-refused',
  ResourceNotFoundException: 'table-not-found',
  AccessDeniedException: 'access-denied',
};

function judge(error: Error): Verdict {
  const refusal = REFUSALS[error.name];
  if (refusal !== undefined) return { kind: 'failed', code: refusal };
  if (NOT_WRITTEN.includes(error.name)) return { kind: 'again' };
  if (error.name !== 'TransactionCanceledException') return { kind: 'cannot tell' };
  const reasons = (error as { CancellationReasons?: readonly Reason[] }).CancellationReasons ?? [];
  const failed = ({ Code }: Reason) => Code === 'ConditionalCheckFailed';
  // The lease's own item is the last.
  const check = reasons.at(-1);
  if (check !== undefined && failed(check)) return { kind: 'check failed', item: check.Item };
  if (reasons.some(failed)) return { kind: 'failed', code: 'condition-failed' };
  const passing = reasons.every(({ Code = 'None' }) => PASSING.includes(Code));
  return passing && reasons.length > 0
    ? { kind: 'again' }
    : { kind: 'failed', code: 'request-refused' };
}

const WHAT_TO_DO: Readonly<Partial<Record<LeaseErrorCode, string>>> = {
  'request-refused':
    ' A global table of strong consistency across Regions has no transactions, nor has dynalite: ' +
    'use fenced() there.',
  'access-denied':
    " Besides what the caller's own items need, allow dynamodb:ConditionCheckItem, and for " +
    "completeTick dynamodb:UpdateItem, on the lease's table.",
};

function failedMessage(what: string, code: LeaseErrorCode, error: Error): string {
  const told = describeError(error);
  return code === 'condition-failed'
    ? `${what}: a condition of its own failed (${told}).`
    : `${what} was refused (${told}).${WHAT_TO_DO[code] ?? ''}`;
}
