// What each answer of the server means for a guarded transaction: tried again, refused, or nobody
// can tell. The clients are the SDK's own, the server is a script.

import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isLeaseError, type LeaseError } from '../../src/errors.ts';
import { sendGuarded, type TransactionCommand } from '../../src/guarded.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { rejection } from '../handler/stage.ts';
import { type Reply, ScriptedServer } from './scripted-client.ts';
import { adding, addingNatively, GuardedStage, outcome } from './stage.ts';

let stage: GuardedStage;
let lease: Lease;
beforeEach(async () => {
  stage = new GuardedStage();
  lease = await stage.acquire();
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await stage.until(lease.release());
  expect(stage.clock.timers).toBe(0);
});

/** Sends to a server that answers like that, and shows what came of it. */
async function send(replies: readonly Reply[], command: TransactionCommand = adding()) {
  const server = new ScriptedServer(replies);
  const sending = sendGuarded(server.client, command, lease);
  const kind = await stage.until(outcome(sending));
  const error = kind === 'done' ? undefined : ((await rejection(sending)) as LeaseError);
  return { server, kind, error, attempts: server.sent.length };
}

const OURS = 'ConditionalCheckFailed';
const server500: Reply = { status: 500, type: 'InternalServerError' };

describe('what may work next time', () => {
  test.each<[string, Reply]>([
    ['a conflict of its own item', ['TransactionConflict', 'None']],
    ['a conflict with a renewal', ['None', 'TransactionConflict']],
    ['two conflicts', ['TransactionConflict', 'TransactionConflict']],
    ['throttling of an item', ['ThrottlingError', 'None']],
    ['throughput of the lease', ['None', 'ProvisionedThroughputExceeded']],
    ['throttling', { type: 'ThrottlingException' }],
    ['throughput', { type: 'ProvisionedThroughputExceededException' }],
    ['a limit of requests', { type: 'RequestLimitExceeded' }],
    ['a server error', server500],
    ['unavailability', { status: 503, type: 'ServiceUnavailable' }],
    ['a reset', 'reset'],
    ['no answer', 'silence'],
    ['an attempt that is still at work', { type: 'TransactionInProgressException' }],
  ])('is sent again, under one token: %s', async (_what, reply) => {
    const { kind, attempts, server } = await send([reply, reply]);
    expect([kind, attempts]).toEqual(['done', 3]);
    expect(server.tokens).toHaveLength(1);
    expect(new Set(server.sent.map((sent) => JSON.stringify(sent))).size).toBe(1);
    expect(lease.isHeld()).toBe(true);
  });

  test("is sent under the caller's own token where there is one", async () => {
    const { TransactItems } = adding().input;
    const command = new TransactWriteItemsCommand({ TransactItems, ClientRequestToken: 'mine' });
    const { server } = await send(['reset'], command);
    expect(server.tokens).toEqual(['mine']);
  });

  test('is given up after eight attempts, and says that nothing was written', async () => {
    const { kind, error, attempts } = await send(
      Array.from({ length: 20 }, () => ['None', 'TransactionConflict']),
    );
    expect([kind, attempts]).toEqual(['store-unavailable', 8]);
    expect(error?.message).toContain('was not written');
    expect(lease.isHeld()).toBe(true);
  });

  test('that nobody can tell is said where one attempt may have been applied', async () => {
    const conflicts = Array.from({ length: 20 }, (): Reply => ['None', 'TransactionConflict']);
    const { kind, error } = await send([server500, ...conflicts]);
    expect(kind).toBe('store-unavailable');
    expect(error?.message).toContain('nobody can tell');
  });
});

describe('what is refused at once', () => {
  test.each<[string, string, Reply]>([
    ['the own condition', 'condition-failed', [OURS, 'None']],
    ['the own condition, beside a conflict', 'condition-failed', [OURS, 'TransactionConflict']],
    ['a validation', 'request-refused', { type: 'ValidationException' }],
    ['no transactions', 'request-refused', { type: 'UnknownOperationException' }],
    ['a validation of an item', 'request-refused', ['ValidationError', 'None']],
    [
      'too large an item collection',
      'request-refused',
      ['ItemCollectionSizeLimitExceeded', 'None'],
    ],
    ['reasons that are not told', 'request-refused', []],
    [
      'another transaction of that token',
      'request-refused',
      {
        type: 'IdempotentParameterMismatchException',
      },
    ],
    ['permissions', 'access-denied', { type: 'AccessDeniedException' }],
    ['the table', 'table-not-found', { type: 'ResourceNotFoundException' }],
  ])('%s: %s', async (_what, code, reply) => {
    const { kind, attempts, error } = await send([reply]);
    expect([kind, attempts]).toEqual([code, 1]);
    expect((error?.cause as Error).name).toMatch(/Exception$/);
    expect(lease.isHeld()).toBe(true);
    expect(lease.signal.aborted).toBe(false);
  });

  test('says what to use on a table that has no transactions', async () => {
    const message = 'Transactions are not supported on MRSC tables.';
    const { error } = await send([{ type: 'ValidationException', message }]);
    expect(error?.message).toContain(message);
    expect(error?.message).toContain('fenced()');
  });

  test('says which permission the check needs', async () => {
    const { error } = await send([{ type: 'AccessDeniedException' }]);
    expect(error?.message).toContain('dynamodb:ConditionCheckItem');
    expect(error?.message).not.toContain('fenced()');
  });

  test.each<[string, Reply]>([
    ['permissions', { type: 'AccessDeniedException' }],
    ['a validation', { type: 'ValidationException' }],
    ['another transaction of that token', { type: 'IdempotentParameterMismatchException' }],
    ['the own condition', [OURS, 'None']],
    ['reasons that are not told', []],
  ])('is no proof that an earlier attempt was not applied: %s', async (_what, reply) => {
    const { kind, error } = await send([server500, reply]);
    expect(kind).toBe('store-unavailable');
    expect(error?.message).toContain('nobody can tell');
  });

  test('is no proof either where the SDK itself has sent it again', async () => {
    const server = new ScriptedServer(['reset', [OURS, 'None']], 3);
    const sending = outcome(sendGuarded(server.client, adding(), lease));
    expect(await sending).toBe('store-unavailable');
    expect(server.sent).toHaveLength(2);
  });
});

describe('what cannot be sent', () => {
  class Own {
    readonly n = 1;
  }
  const unsendable = () =>
    new TransactWriteCommand({
      TransactItems: [{ Put: { TableName: 'ledger', Item: { id: 'a', own: new Own() } } }],
    });

  test("is the caller's own error, at once: a value that DynamoDB does not know", async () => {
    const server = new ScriptedServer();
    const error = await rejection(sendGuarded(server.documents, unsendable(), lease));
    expect(isLeaseError(error)).toBe(false);
    expect((error as Error).message).toContain('convertClassInstanceToMap');
    expect(server.sent).toEqual([]);
  });

  test('is the same: no credentials', async () => {
    const server = new ScriptedServer();
    server.client.config.credentials = () => Promise.reject(new Error('No credentials.'));
    const error = await rejection(sendGuarded(server.client, adding(), lease));
    expect(error).toMatchObject({ message: 'No credentials.' });
    expect(server.sent).toEqual([]);
  });

  test('tells nothing of an attempt before that was sent', async () => {
    const server = new ScriptedServer(['reset']);
    server.onArrival = () => {
      server.client.config.credentials = () => Promise.reject(new Error('No credentials.'));
    };
    const sending = outcome(sendGuarded(server.client, adding(), lease));
    expect(await stage.until(sending)).toBe('store-unavailable');
    expect(server.sent).toHaveLength(1);
  });

  test('is an error of the service, where a test of the caller makes it up', async () => {
    // As a mock of the client does: it takes the place of send(), so that no middleware runs.
    const { client } = new ScriptedServer([[OURS, 'None']]);
    const mock = { send: () => client.send(adding()) };
    expect(await outcome(sendGuarded(mock, adding(), lease))).toBe('condition-failed');
  });
});

describe('bad input', () => {
  const many = (n: number) => Array.from({ length: n }, () => adding().input.TransactItems![0]!);
  const check = (Key: object) => ({ ConditionCheck: { TableName: 'a watched table', Key } });
  const put = (Item: object) => ({ Put: { TableName: 'a watched table', Item } });
  const of = (items: readonly object[] | undefined) =>
    new TransactWriteItemsCommand({ TransactItems: items as never });

  test.each<[string, RegExp, () => TransactionCommand]>([
    ['100 items', /has 100 items.*at most 100/, () => of(many(100))],
    ['no items', /TransactItems are undefined/, () => of(undefined)],
    ['an item that is none', /TransactItems\[0\] is undefined/, () => of([undefined as never])],
    ['the record itself', /touches the record/, () => of([check({ lease: { S: 'default/job' } })])],
    ['the same, natively', /touches the record/, () => of([check({ lease: 'default/job' })])],
    ['a Put of it', /touches the record/, () => of([put({ lease: { S: 'default/job' } })])],
    ['no command', /command is .*must be/, () => ({ input: { TransactItems: [] } })],
  ])('is refused before anything is sent: %s', async (_what, rule, make) => {
    const server = new ScriptedServer();
    const error = await rejection(sendGuarded(server.client, make(), lease));
    expect(error).toMatchObject({ code: 'invalid-configuration' });
    expect((error as Error).message).toMatch(rule);
    expect(server.sent).toEqual([]);
  });

  test('99 items are taken, and another record of that table', async () => {
    const { kind } = await send([], of([...many(98), check({ lease: { S: 'default/job2' } })]));
    expect(kind).toBe('done');
  });

  test.each<[string, RegExp, unknown]>([
    ['a flag that is none', /completeTick is "yes"/, { completeTick: 'yes' }],
    ['an unknown option', /no option "completetick"/, { completetick: true }],
    ['an ordinary lease', /needs the lease of a scheduled run/, { completeTick: true }],
  ])('is refused among the options: %s', async (_what, rule, options) => {
    const server = new ScriptedServer();
    const sending = sendGuarded(server.client, adding(), lease, options as object);
    expect(((await rejection(sending)) as Error).message).toMatch(rule);
    expect(server.sent).toEqual([]);
  });

  test.each<[string, unknown]>([
    ['none', undefined],
    ['a text', 'job'],
    ['a look-alike', { holderIdentity: 'me', fencingToken: 7, isHeld: () => true }],
  ])('is refused as a lease: %s', async (_what, foreign) => {
    const server = new ScriptedServer();
    const sending = sendGuarded(server.client, adding(), foreign as Lease);
    expect(await rejection(sending)).toMatchObject({ code: 'invalid-configuration' });
    expect(server.sent).toEqual([]);
  });

  test('is refused as a lease: a copy, which has lost what keeps it', async () => {
    const server = new ScriptedServer();
    const error = await rejection(sendGuarded(server.client, adding(), { ...lease }));
    expect((error as Error).message).toContain('copy');
  });

  test('is refused as a client', async () => {
    const sending = sendGuarded({} as never, adding(), lease);
    expect(await rejection(sending)).toMatchObject({ code: 'invalid-configuration' });
  });
});

describe('what is sent', () => {
  test('is the command with the check as its last item, and no more', async () => {
    const command = adding();
    const { server } = await send([], command);
    const { TransactItems, ...rest } = server.sent[0]!;
    expect(TransactItems[0]).toEqual(command.input.TransactItems![0]);
    expect(TransactItems.slice(1)).toEqual([lease.conditionCheck({ marshalled: true })]);
    expect(Object.keys(rest)).toEqual(['ClientRequestToken']);
    expect(command.input.TransactItems).toHaveLength(1);
  });

  test('is the same from the document client', async () => {
    const low = await send([]);
    const server = new ScriptedServer();
    await sendGuarded(server.documents, addingNatively(), lease);
    expect(server.sent[0]!.TransactItems).toEqual(low.server.sent[0]!.TransactItems);
  });

  test('under LEASE_DISABLED is the command as it is', async () => {
    vi.stubEnv('LEASE_DISABLED', 'true');
    const server = new ScriptedServer();
    await sendGuarded(server.client, adding(), await stage.acquire());
    await stage.run((run) => sendGuarded(server.client, adding(), run, { completeTick: true }));
    expect(server.sent.map(({ TransactItems }) => TransactItems.length)).toEqual([1, 1]);
  });
});
