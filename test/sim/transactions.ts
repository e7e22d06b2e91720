// The user's own client of DynamoDB, for transactions under a lease: each carries one effect, and
// commits it with the lease's own operation or not at all. Fails as the SDK does.

import type { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { isLeaseError } from '../../src/errors.ts';
import { asText, type Item } from '../../src/lease.ts';
import type { TransactionClient } from '../../src/guarded.ts';
import type { WriteAnswer } from '../../src/store.ts';
import type { Client } from './client.ts';
import { writeOf, type Operation } from './expressions.ts';

type Handler = (args: object) => Promise<{ output: object; response: object }>;

export class Transactions implements TransactionClient {
  readonly #client: Client;
  readonly #onApplied: () => void;

  /** `onApplied`: called at the moment at which the effect is there. */
  constructor(client: Client, onApplied: () => void) {
    this.#client = client;
    this.#onApplied = onApplied;
  }

  send(command: never, { abortSignal }: { abortSignal?: AbortSignal } = {}): Promise<unknown> {
    const { input, middlewareStack } = command as TransactWriteItemsCommand;
    const last = input.TransactItems?.at(-1);
    const operation = (last?.Update ?? last?.ConditionCheck) as unknown as Operation;
    const signal = abortSignal ?? new AbortController().signal;
    const sent: Handler = async () => {
      const answer = await this.#client
        .transact({
          lease: asText(operation.Key['lease']) ?? '',
          write: writeOf(operation),
          request: input.ClientRequestToken ?? '',
          call: { signal, attempt: () => () => undefined },
          onApplied: this.#onApplied,
        })
        .catch((error: unknown) => {
          throw asSdkError(error);
        });
      if (answer === 'conflict') throw cancelled({ Code: 'TransactionConflict' });
      if (answer.kind === 'refused') throw refused(answer);
      return { output: {}, response: { statusCode: 200 } };
    };
    const handler = middlewareStack.resolve(sent as never, {}) as Handler;
    return handler({ input, request: {} }).then(({ output }) => output);
  }
}

function refused({ item }: Extract<WriteAnswer, { kind: 'refused' }>): Error {
  return cancelled({
    Code: 'ConditionalCheckFailed',
    ...(item === undefined ? {} : { Item: item }),
  });
}

function cancelled(reason: { readonly Code: string; readonly Item?: Item }): Error {
  const CancellationReasons = [{ Code: 'None' }, reason];
  return named('TransactionCanceledException', 'It was cancelled.', { CancellationReasons });
}

function asSdkError(error: unknown): Error {
  if (isLeaseError(error, 'access-denied')) return named('AccessDeniedException', error.message);
  if (isLeaseError(error, 'request-refused')) return named('ValidationException', error.message);
  return named('TimeoutError', error instanceof Error ? error.message : String(error));
}

function named(name: string, message: string, more: object = {}): Error {
  return Object.assign(new Error(message), { name }, more);
}
