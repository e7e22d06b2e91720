// The DynamoDB that tests and the demo run against, and the table in it.
//
// Two embedded engines, which differ where real servers differ too: dynoxide (a
// native binary, Linux x64 only) returns the old item when a condition fails;
// dynalite (JavaScript, in our own process) never does. A suite that must hold
// either way runs over `availableEngines()`. An endpoint in the environment wins
// over both, so the same tests can be pointed at another server.
//
//   D1. No engine outlives the process that started it, however that process ends.
//   D2. Nothing listens on, or connects to, anything but loopback, unless the
//       environment names an endpoint.

import { spawn } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type AttributeValue,
  CreateTableCommand,
  DescribeTableCommand,
  DynamoDBClient,
  type DynamoDBClientConfig,
  GetItemCommand,
  PutItemCommand,
} from '@aws-sdk/client-dynamodb';

const require = createRequire(import.meta.url);

export type Engine = 'dynoxide' | 'dynalite';

export interface DynamoDBServer extends AsyncDisposable {
  readonly engine: Engine | 'environment';
  readonly endpoint: string;
  /** Ends the server and loses its tables. A server of the environment is left alone. */
  stop(): Promise<void>;
}

export interface DynamoDBOptions {
  /** 'auto', the default: the environment's endpoint, else dynoxide, else dynalite. */
  readonly engine?: Engine | 'auto';
  /** Where dynoxide keeps its tables, an SQLite file. Default: in memory, as the others do. */
  readonly file?: string;
}

export type Item = Record<string, AttributeValue>;

export async function startDynamoDB({
  engine = 'auto',
  file,
}: DynamoDBOptions = {}): Promise<DynamoDBServer> {
  if (engine === 'auto') {
    const endpoint = environmentEndpoint();
    if (endpoint !== undefined) return server('environment', endpoint, () => Promise.resolve());
    return dynoxideBinary() === undefined ? startDynalite() : startDynoxide(file);
  }
  return engine === 'dynoxide' ? startDynoxide(file) : startDynalite();
}

/**
 * The embedded engines this machine has. A missing dynoxide halves what a suite
 * proves: it is said aloud, and in CI it is an error.
 */
export function availableEngines(): readonly Engine[] {
  if (dynoxideBinary() !== undefined) return ['dynoxide', 'dynalite'];
  if (process.env['CI'] === 'true') throw new Error(dynoxideMissing);
  console.warn(`\n!!! ${dynoxideMissing}\n!!! Running on dynalite alone.\n`);
  return ['dynalite'];
}

/** An SDK client with credentials that mean nothing. `overrides` may change anything. */
export function testClient(endpoint: string, overrides: DynamoDBClientConfig = {}): DynamoDBClient {
  return new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    ...overrides,
  });
}

/** Creates a table keyed by `lease`, waits until it can be used, and returns its name. */
export async function createLeaseTable(
  endpoint: string,
  tableName = `leases-${randomUUID()}`,
): Promise<string> {
  const client = testClient(endpoint);
  try {
    await client.send(
      new CreateTableCommand({
        TableName: tableName,
        AttributeDefinitions: [{ AttributeName: 'lease', AttributeType: 'S' }],
        KeySchema: [{ AttributeName: 'lease', KeyType: 'HASH' }],
        BillingMode: 'PAY_PER_REQUEST',
      }),
    );
    const deadline = performance.now() + 30_000;
    for (;;) {
      const { Table } = await client.send(new DescribeTableCommand({ TableName: tableName }));
      if (Table?.TableStatus === 'ACTIVE') return tableName;
      if (performance.now() > deadline) throw new Error(`Table ${tableName} never became ACTIVE`);
      await sleep(50);
    }
  } finally {
    client.destroy();
  }
}

/** The item as it is stored, whatever wrote it. */
export async function rawItem(
  client: DynamoDBClient,
  table: string,
  lease: string,
): Promise<Item | undefined> {
  const { Item } = await client.send(
    new GetItemCommand({ TableName: table, Key: { lease: { S: lease } }, ConsistentRead: true }),
  );
  return Item;
}

/** Writes what it is given, unconditionally: another client of the table, or a broken one. */
export async function putRawItem(client: DynamoDBClient, table: string, item: Item): Promise<void> {
  await client.send(new PutItemCommand({ TableName: table, Item: item }));
}

function server(
  engine: DynamoDBServer['engine'],
  endpoint: string,
  stop: () => Promise<void>,
): DynamoDBServer {
  return { engine, endpoint, stop, [Symbol.asyncDispose]: stop };
}

function environmentEndpoint(): string | undefined {
  const { AWS_ENDPOINT_URL_DYNAMODB: own, AWS_ENDPOINT_URL: general } = process.env;
  // An empty variable is how a shell unsets one for a single command.
  return [own, general].find((url) => url !== undefined && url !== '');
}

const dynoxideMissing =
  'The DynamoDB engine dynoxide is missing: npm package @dynoxide/linux-x64 is not installed ' +
  '(an optional dependency of test/support/dynoxide; it exists for Linux x64 only).';

function dynoxideBinary(): string | undefined {
  try {
    return join(dirname(require.resolve('@dynoxide/linux-x64/package.json')), 'dynoxide');
  } catch {
    return undefined;
  }
}

// The shell's standard input is a pipe from us. The kernel closes it however we
// end, SIGKILL included, and then `read` returns and the engine is killed (D1).
// After `exec` only the engine holds the shell's output, so that its end tells of
// the engine's own end.
const dynoxideScript = `
  exec 3<&0
  "$0" --host 127.0.0.1 "$@" </dev/null 3<&- &
  exec >/dev/null 2>&1
  read -r _ <&3
  kill -9 $!
  wait`;

async function startDynoxide(file?: string): Promise<DynamoDBServer> {
  const binary = dynoxideBinary();
  if (binary === undefined) throw new Error(dynoxideMissing);
  let output = '';
  for (let attempt = 0; attempt < 20; attempt++) {
    // Below the range the kernel takes for outgoing connections. Asking it for a
    // free port and then releasing that one would invite another process to it.
    const port = randomInt(20_000, 32_768);
    const endpoint = `http://127.0.0.1:${port}`;
    // Detached: a Ctrl-C in the terminal is for us, not for the shell.
    const where = ['--port', String(port), ...(file === undefined ? [] : ['--db-path', file])];
    const shell = spawn('/bin/sh', ['-c', dynoxideScript, binary, ...where], { detached: true });
    const exited = once(shell, 'exit');
    const stop = async (): Promise<void> => {
      shell.ref();
      shell.stdin.end();
      await exited;
    };
    output = '';
    for (const stream of [shell.stdout, shell.stderr]) {
      stream.on('data', (chunk: Buffer) => (output += chunk.toString()));
    }
    const deadline = performance.now() + 10_000;
    while (!shell.stdout.readableEnded && performance.now() < deadline) {
      // Its own word first: an answer alone could be another server's on this port.
      if (output.includes('listening on') && (await answers(endpoint))) {
        // A server that somebody forgot to stop must not keep the process alive.
        for (const handle of [shell, shell.stdin, shell.stdout, shell.stderr]) unref(handle);
        return server('dynoxide', endpoint, stop);
      }
      await sleep(5);
    }
    await stop();
  }
  throw new Error(`dynoxide did not start. Its last words: ${output}`);
}

async function answers(endpoint: string): Promise<boolean> {
  try {
    const response = await fetch(endpoint);
    await response.text();
    return response.ok;
  } catch {
    return false;
  }
}

/** A child's pipes are sockets, which their declared type does not say. */
function unref(handle: object): void {
  (handle as { unref?: () => void }).unref?.();
}

/** What we use of dynalite, which ships no types. */
type Dynalite = (options: { createTableMs: number; deleteTableMs: number }) => Server;

async function startDynalite(): Promise<DynamoDBServer> {
  const dynalite = require('dynalite') as Dynalite;
  const http = dynalite({ createTableMs: 0, deleteTableMs: 0 });
  // Closing idle connections would now and then meet a request on its way.
  http.keepAliveTimeout = 0;
  // Dynalite throws from this event, into our process, when a client hangs up in
  // the middle of a request.
  http.on('request', (request) => {
    request.removeAllListeners('error');
    request.on('error', () => undefined);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  http.unref();
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> =>
    (stopping ??= new Promise((resolve, reject) => {
      http.close((error) => (error ? reject(error) : resolve()));
      http.closeAllConnections();
    }));
  return server('dynalite', `http://127.0.0.1:${(http.address() as AddressInfo).port}`, stop);
}
