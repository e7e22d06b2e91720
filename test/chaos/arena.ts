// Where the storm takes place: a table kept in a file, the fault proxy before it, the witness, and
// ten contenders. Every process that is started here is ended here.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  createLeaseTable,
  type DynamoDBServer,
  rawItem,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import { startFaultProxy, type FaultProxy } from '../support/fault-proxy.ts';
import { startWitness, type Witness } from '../support/witness.ts';
import type { Freeze } from './judge.ts';
import type { ContenderSettings, Manner, Told } from './messages.ts';

const CONTENDER = fileURLToPath(new URL('contender.ts', import.meta.url));
/** T is 3 s: clocks within a second of each other are proved, one that is off by 30 s is not. */
export const TIMING = {
  leaseDurationSeconds: 6,
  renewDeadlineSeconds: 3,
  retryPeriodSeconds: 0.5,
  requestTimeoutSeconds: 1,
};

export interface ArenaOptions {
  readonly contenders: number;
  /** Of all of them. Default: half of them careful, half of them stubborn. */
  readonly manner?: Manner | undefined;
}

export class Arena implements AsyncDisposable {
  readonly witness: Witness;
  readonly proxy: FaultProxy;
  readonly told: Told[] = [];
  readonly freezes: Freeze[] = [];
  /** The last words of contenders that ended when nobody had told them to. */
  readonly crashes: string[] = [];
  readonly #folder: { readonly path: string } & AsyncDisposable;
  readonly #options: ArenaOptions;
  readonly #members = new Map<string, Member>();
  #server: DynamoDBServer;
  #tables: { readonly tableName: string; readonly ledgerName: string } | undefined;
  #born = 0;

  static async open(options: ArenaOptions): Promise<Arena> {
    const folder = await mkdtempDisposable(join(tmpdir(), 'lambda-lease-chaos-'));
    const server = await startDynamoDB({ file: join(folder.path, 'tables.db') });
    const proxy = await startFaultProxy(server.endpoint);
    const arena = new Arena(options, folder, server, proxy, await startWitness());
    arena.#tables = {
      tableName: await createLeaseTable(server.endpoint),
      ledgerName: await createLeaseTable(server.endpoint),
    };
    for (let slot = 0; slot < options.contenders; slot++) arena.#start(slot);
    return arena;
  }

  private constructor(
    options: ArenaOptions,
    folder: { readonly path: string } & AsyncDisposable,
    server: DynamoDBServer,
    proxy: FaultProxy,
    witness: Witness,
  ) {
    this.#options = options;
    this.#folder = folder;
    this.#server = server;
    this.proxy = proxy;
    this.witness = witness;
  }

  /** Who is neither frozen nor dead. */
  get awake(): string[] {
    return [...this.#members].flatMap(([id, { frozen }]) => (frozen ? [] : [id]));
  }

  /** Who is at work now, by the witness's word. */
  get leader(): string | undefined {
    return this.witness.inside('prize').find((id) => this.#members.get(id)?.frozen === false);
  }

  /** What the ledger itself says. */
  async ledger(): Promise<{ readonly writes: number; readonly lastToken: number }> {
    const client = testClient(this.#server.endpoint);
    const item = await rawItem(client, this.#tables!.ledgerName, 'ledger');
    client.destroy();
    const number = (name: string) => Number((item?.[name] as { N?: string } | undefined)?.N ?? 0);
    return { writes: number('writes'), lastToken: number('lastToken') };
  }

  /** Another takes its place, under a name of its own. */
  async kill(id: string): Promise<void> {
    const member = this.#members.get(id);
    if (member === undefined) return;
    this.#members.delete(id);
    const exited = once(member.process, 'exit');
    member.process.kill('SIGKILL');
    await exited;
    this.witness.left(id);
    this.#start(member.slot);
  }

  async freeze(id: string, forMs: number): Promise<void> {
    const member = this.#members.get(id);
    if (member === undefined || member.frozen) return;
    member.frozen = true;
    member.process.kill('SIGSTOP');
    const freeze: Freeze = { id, fromMs: performance.timeOrigin + performance.now() };
    this.freezes.push(freeze);
    await sleep(forMs);
    freeze.toMs = performance.timeOrigin + performance.now();
    member.process.kill('SIGCONT');
    member.frozen = false;
  }

  stepClock(id: string, stepMs: number): void {
    const member = this.#members.get(id);
    if (member?.frozen === false) member.process.stdin.write(`${JSON.stringify({ stepMs })}\n`);
  }

  /** The server is killed, and started again on the same file. */
  async restartServer(): Promise<void> {
    await this.#server.stop();
    this.#server = await startDynamoDB({ file: join(this.#folder.path, 'tables.db') });
    this.proxy.retarget(this.#server.endpoint);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const members = [...this.#members.values()];
    this.#members.clear();
    await Promise.all(members.map((member) => end(member)));
    await this.proxy.stop();
    await this.witness.stop();
    await this.#server.stop();
    await this.#folder[Symbol.asyncDispose]();
  }

  #start(slot: number): void {
    const id = `c${++this.#born}`;
    const settings: ContenderSettings = {
      id,
      endpoint: this.proxy.endpoint,
      ...this.#tables!,
      witnessPort: this.witness.port,
      timing: TIMING,
      // Most are nearly right, two differ by over a second, and one is plainly wrong.
      offsetMs: [0, 700, -700, 30_000][slot] ?? 0,
      manner: this.#options.manner ?? (slot % 2 === 0 ? 'stubborn' : 'careful'),
    };
    const child = spawn(process.execPath, [CONTENDER, JSON.stringify(settings)]);
    child.stdin.on('error', () => undefined);
    let words = '';
    child.stderr.on('data', (chunk: Buffer) => (words += chunk.toString()));
    createInterface(child.stdout).on('line', (line) => this.told.push(JSON.parse(line) as Told));
    child.on('exit', (code) => {
      if (this.#members.get(id)?.process !== child) return;
      this.#members.delete(id);
      this.crashes.push(`${id} ended with ${code}: ${words.slice(-500)}`);
    });
    this.#members.set(id, { process: child, slot, frozen: false });
  }
}

interface Member {
  readonly process: ChildProcessWithoutNullStreams;
  readonly slot: number;
  frozen: boolean;
}

/** Politely first. */
async function end({ process: child }: Member): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGCONT');
  child.stdin.end();
  const patience = new AbortController();
  const late = sleep(10_000, undefined, { signal: patience.signal }).then(
    () => child.kill('SIGKILL'),
    () => undefined,
  );
  await exited;
  patience.abort();
  await late;
}
