// The processes that a measurement orders about, and where they are set up: one table, the counting
// proxy before it, and the witness. Whatever is started here is ended here.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CreateTableCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Name, Settings } from './contestant.ts';
import type { Answer, Order } from './driver.ts';
import { javaCommand } from './peers.ts';
import {
  createLeaseTable,
  type DynamoDBServer,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import { type FaultProxy, startFaultProxy } from '../support/fault-proxy.ts';
import { startWitness, type Witness } from '../support/witness.ts';

const DRIVER = fileURLToPath(new URL('driver.ts', import.meta.url));
/** Added to each request on its way there, and back. */
export const LATENCY_MS = 5;

export type Timing = Pick<Settings, 'leaseMs' | 'renewMs' | 'pollMs'>;

export class Crew implements AsyncDisposable {
  readonly server: DynamoDBServer;
  readonly proxy: FaultProxy;
  readonly witness: Witness;
  readonly client: DynamoDBClient;
  readonly tableName: string;
  readonly sortedTableName: string;
  readonly #drivers = new Set<Driver>();

  static async open(): Promise<Crew> {
    const server = await startDynamoDB();
    const proxy = await startFaultProxy(server.endpoint);
    proxy.latencyMs = LATENCY_MS;
    const tableName = await createLeaseTable(server.endpoint);
    const client = testClient(server.endpoint);
    const sortedTableName = `${tableName}-sorted`;
    await client.send(
      new CreateTableCommand({
        TableName: sortedTableName,
        AttributeDefinitions: [
          { AttributeName: 'lease', AttributeType: 'S' },
          { AttributeName: 'part', AttributeType: 'S' },
        ],
        KeySchema: [
          { AttributeName: 'lease', KeyType: 'HASH' },
          { AttributeName: 'part', KeyType: 'RANGE' },
        ],
        BillingMode: 'PAY_PER_REQUEST',
      }),
    );
    const names = { tableName, sortedTableName };
    return new Crew(server, proxy, await startWitness(), client, names);
  }

  private constructor(
    server: DynamoDBServer,
    proxy: FaultProxy,
    witness: Witness,
    client: DynamoDBClient,
    names: Pick<Crew, 'tableName' | 'sortedTableName'>,
  ) {
    this.server = server;
    this.proxy = proxy;
    this.witness = witness;
    this.client = client;
    this.tableName = names.tableName;
    this.sortedTableName = names.sortedTableName;
  }

  /** `direct`: past the proxy, so that it is not counted. */
  async driver(name: Name, timing: Timing, direct = false): Promise<Driver> {
    const { tableName, sortedTableName } = this;
    const { endpoint } = direct ? this.server : this.proxy;
    const settings: Settings = { endpoint, tableName, sortedTableName, ...timing };
    const driver = await Driver.start(name, settings);
    this.#drivers.add(driver);
    return driver;
  }

  async dismiss(...drivers: readonly Driver[]): Promise<void> {
    for (const driver of drivers) this.#drivers.delete(driver);
    await Promise.all(drivers.map((driver) => driver.end()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.dismiss(...this.#drivers);
    this.client.destroy();
    await this.proxy.stop();
    await this.witness.stop();
    await this.server.stop();
  }
}

interface Waiting {
  readonly resolve: (answer: Answer) => void;
  readonly reject: (error: Error) => void;
}

let born = 0;

export class Driver {
  readonly name: Name;
  readonly id: string;
  readonly #process: ChildProcessWithoutNullStreams;
  readonly #waiting = new Map<number, Waiting>();
  #orders = 0;
  #words = '';

  static async start(name: Name, settings: Settings): Promise<Driver> {
    const driver = new Driver(name, settings);
    await driver.#answer(0);
    return driver;
  }

  private constructor(name: Name, settings: Settings) {
    this.name = name;
    this.id = `${name}-${++born}`;
    const [program, ...args] =
      name === 'awslabs'
        ? javaCommand()
        : ([process.execPath, '--no-warnings', DRIVER, name] as const);
    this.#process = spawn(program, [...args, this.id, JSON.stringify(settings)]);
    this.#process.stdin.on('error', () => undefined);
    this.#process.stderr.on('data', (chunk: Buffer) => (this.#words += chunk.toString()));
    createInterface(this.#process.stdout).on('line', (line) => this.#hear(line));
    this.#process.on('exit', () => {
      for (const { reject } of this.#waiting.values()) {
        reject(new Error(`${this.id} is gone: ${this.#words.slice(-1_000)}`));
      }
    });
  }

  async order(order: Order): Promise<Answer> {
    this.#orders += 1;
    const answer = this.#answer(this.#orders);
    this.#process.stdin.write(`${JSON.stringify({ id: this.#orders, ...order })}\n`);
    return answer;
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process.kill(signal);
  }

  /** Without a word, as a crash does. */
  async end(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    // Whoever still waits for an answer is not to hear of it as an error.
    this.#waiting.clear();
    this.#process.kill('SIGKILL');
    await exited;
  }

  #answer(id: number): Promise<Answer> {
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #hear(line: string): void {
    if (!line.startsWith('{"id":')) return;
    const { id, ok, error } = JSON.parse(line) as { id: number; ok?: Answer; error?: string };
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (ok === undefined) waiting?.reject(new Error(`${this.id}: ${error}`));
    else waiting?.resolve(ok);
  }
}
