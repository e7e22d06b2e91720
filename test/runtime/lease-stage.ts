// A stage for leases on the Lambda runtime: a table, the bundled handlers of a fixture,
// environments that run them, and a fault proxy before the table that sees every request.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { type Item, type LeaseRecord, readLease } from '../../src/lease.ts';
import type { Skipped } from '../../src/refusal.ts';
import { createLeaseTable, rawItem, startDynamoDB, testClient } from '../support/dynamodb.ts';
import { type Exchange, type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import {
  bundleHandler,
  type EnvironmentOptions,
  type Invocation,
  type InvokeOptions,
  LambdaEnvironment,
} from '../support/lambda-runtime/index.ts';
import type { Done, Line, Task } from './fixtures/leased.ts';
import type { TickTask } from './fixtures/ticking.ts';

export interface StartOptions extends Partial<EnvironmentOptions> {
  /** The lease's options. */
  readonly lease?: object;
  /** Default: straight to the table. */
  readonly through?: FaultProxy;
}

export interface LeaseStage extends AsyncDisposable {
  /** Straight to the table. */
  readonly client: DynamoDBClient;
  readonly tableName: string;
  /** `handler` is an export of the stage's fixture. */
  start(handler: string, options?: StartOptions): Promise<LambdaEnvironment>;
  proxy(): Promise<FaultProxy>;
  /** The record of a lease in the default namespace. */
  record(name: string): Promise<LeaseRecord>;
}

/** `fixture`: which file of fixtures/ has the handlers. */
export async function openStage(fixture = 'leased.ts'): Promise<LeaseStage> {
  const cleanUp = new AsyncDisposableStack();
  const { endpoint } = cleanUp.use(await startDynamoDB());
  const folder = cleanUp.use(await mkdtempDisposable(join(tmpdir(), 'leased-')));
  const client = cleanUp.adopt(testClient(endpoint), (each) => each.destroy());
  const tableName = await createLeaseTable(endpoint);
  const source = fileURLToPath(new URL(`./fixtures/${fixture}`, import.meta.url));
  const taskRoot = await bundleHandler(source, folder.path);

  return {
    client,
    tableName,
    start: (handler, { lease = {}, through, env = {}, ...options } = {}) =>
      LambdaEnvironment.start({
        taskRoot,
        handler: `index.${handler}`,
        ...options,
        env: {
          AWS_ENDPOINT_URL_DYNAMODB: through?.endpoint ?? endpoint,
          LEASE_TABLE_NAME: tableName,
          LEASE_OPTIONS: JSON.stringify(lease),
          ...env,
        },
      }),
    proxy: () => startFaultProxy(endpoint),
    record: async (name) => {
      const key = `default/${name}`;
      return readLease(key, ((await rawItem(client, tableName, key)) ?? {}) as Item);
    },
    [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
  };
}

export function invoke(
  environment: LambdaEnvironment,
  task: Task | TickTask,
  options: InvokeOptions = {},
): Promise<Done | Skipped> {
  const result = environment.invoke(task, options).then(returned<Done | Skipped>);
  // A test that fails before it has awaited this fails for its own reason.
  result.catch(() => undefined);
  return result;
}

/** Invokes again and again until the handler runs, as a schedule would. */
export async function invokeUntilItRuns(environment: LambdaEnvironment, task: Task): Promise<Done> {
  for (;;) {
    const result = await invoke(environment, task);
    if (result.skipped === undefined) return result;
    await sleep(100);
  }
}

/** The response as the handler under test is known to give it. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
export function returned<T>(invocation: Invocation): T {
  if (invocation.kind !== 'returned') throw new Error(JSON.stringify(invocation));
  return invocation.response as T;
}

/** A result of an invocation that did run. */
export function ran(result: Done | Skipped): Done {
  if (result.skipped === true) throw new Error(result.message);
  return result;
}

/** What the handlers of an environment have told so far. */
export function lines(environment: LambdaEnvironment): (Line & { readonly readAtMs: number })[] {
  return environment.output
    .filter(({ text }) => text.startsWith('{"do":'))
    .map(({ text, atMs }) => ({ ...(JSON.parse(text) as Line), readAtMs: atMs }));
}

/** Resolves in the pause after that step. */
export async function atStep(environment: LambdaEnvironment, step: number): Promise<Line> {
  const line = await environment.printed(`{"do":"step","step":${step},`);
  await sleep(100);
  return JSON.parse(line.text) as Line;
}

/**
 * Resolves when a renewal has just been answered: the next one is long to come. What is under way
 * when a process is frozen may be sent when it is thawed, before anything can be checked.
 */
export async function afterARenewal(proxy: FaultProxy): Promise<void> {
  const answered = () => proxy.requests.filter(({ status }) => status !== undefined).length;
  const before = answered();
  while (answered() <= before) await sleep(10);
  await sleep(50);
}

export type WriteKind = 'acquisition' | 'renewal' | 'release';

export interface SeenWrite {
  readonly kind: WriteKind;
  readonly at: number;
  readonly exchange: Exchange;
}

/** The writes that came by, in order; those of one identity, if one is given. */
export function writesAt(proxy: FaultProxy, holderIdentity = ''): SeenWrite[] {
  return proxy.requests
    .filter(({ operation }) => operation === 'UpdateItem')
    .filter(({ body }) => JSON.stringify(body).includes(holderIdentity))
    .map((exchange) => ({ kind: kindOf(exchange), at: exchange.at, exchange }));
}

export function kindsAt(proxy: FaultProxy, holderIdentity?: string): WriteKind[] {
  return writesAt(proxy, holderIdentity).map(({ kind }) => kind);
}

function kindOf({ body }: Exchange): WriteKind {
  const names = Object.values(body.ExpressionAttributeNames ?? {});
  if (names.includes('acquireTime')) return 'acquisition';
  return names.includes('renewTime') ? 'renewal' : 'release';
}
