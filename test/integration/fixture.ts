// A table, a proxy of one's own in front of it, and contenders for its leases, on real clocks.

import { setTimeout as sleep } from 'node:timers/promises';
import { DeleteItemCommand, type DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { AcquireAnswer } from '../../src/answers.ts';
import { type Clock, systemClock } from '../../src/clock.ts';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import { readEnvironment } from '../../src/environment.ts';
import { asNumber, type Item, readLease } from '../../src/lease.ts';
import { Lock } from '../../src/lock.ts';
import type { AttributeName } from '../../src/schema.ts';
import { makeWorld, type World } from '../../src/setup.ts';
import type { Tenure, TermsAt } from '../../src/tenure.ts';
import {
  createLeaseTable,
  type DynamoDBServer,
  type Engine,
  putRawItem,
  rawItem,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import {
  type FaultHandle,
  type FaultProxy,
  type RequestBody,
  startFaultProxy,
  type When,
} from '../support/fault-proxy.ts';

export interface Table extends AsyncDisposable {
  readonly engine: DynamoDBServer['engine'];
  readonly endpoint: string;
  readonly tableName: string;
  /** Straight to the server, past every proxy. */
  readonly direct: DynamoDBClient;
}

export async function openTable(engine: Engine): Promise<Table> {
  const server = await startDynamoDB({ engine });
  const direct = testClient(server.endpoint);
  return {
    engine: server.engine,
    endpoint: server.endpoint,
    tableName: await createLeaseTable(server.endpoint),
    direct,
    [Symbol.asyncDispose]: async () => {
      direct.destroy();
      await server.stop();
    },
  };
}

let names = 0;

/** One lease behind one proxy: faults of one test cannot meet the requests of another. */
export class Site implements AsyncDisposable {
  readonly table: Table;
  readonly proxy: FaultProxy;
  readonly namespace: string;
  readonly name: string;
  readonly lease: string;

  static async open(
    table: Table,
    namespace = 'integration',
    name = String(++names),
  ): Promise<Site> {
    return new Site(table, await startFaultProxy(table.endpoint), namespace, name);
  }

  private constructor(table: Table, proxy: FaultProxy, namespace: string, name: string) {
    this.table = table;
    this.proxy = proxy;
    this.namespace = namespace;
    this.name = name;
    this.lease = `${namespace}/${name}`;
  }

  /** For a client whose settings are ours. */
  get clientConfig() {
    return {
      endpoint: this.proxy.endpoint,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    };
  }

  contender(name: string, options: ContenderOptions = {}): Contender {
    return new Contender(this, name, options);
  }

  /** The record as it is stored. */
  async record(): Promise<Item | undefined> {
    const { direct, tableName } = this.table;
    return (await rawItem(direct, tableName, this.lease)) as Item | undefined;
  }

  async number(name: AttributeName): Promise<number | undefined> {
    return asNumber((await this.record())?.[name]);
  }

  /** Holds matching writes up on their way to the store, or back, until released. */
  hold(kind: WriteKind, when: When = 'before', times = 1): FaultHandle {
    return this.proxy.inject({ fault: { kind: 'hold', when }, match: isWrite(kind), times });
  }

  /** What the record says of who holds the lease, and how often that has changed hands. */
  async holder(): Promise<readonly [holder: string | undefined, token: number]> {
    const { holderIdentity, leaseTransitions } = readLease(this.lease, (await this.record()) ?? {});
    return [holderIdentity, leaseTransitions];
  }

  /** Whether a request has met a fault, or a connection that carries nothing. */
  get struck(): boolean {
    return this.proxy.requests.some(({ faults, forwarded }) => faults.length > 0 || !forwarded);
  }

  /** Lets time pass for the record: by its times it has just expired. */
  async expire(): Promise<void> {
    await this.put({ ...(await this.record()), expireTime: { N: String(Date.now() - 1) } });
  }

  /** Resolves when the store has judged every request that arrived at the proxy. */
  async settled(): Promise<void> {
    while (!this.proxy.requests.every(({ capacity }) => capacity > 0)) await sleep(5);
  }

  /** Resolves when the record has this version. */
  async reaches(version: number): Promise<void> {
    while ((await this.number('version')) !== version) await sleep(5);
  }

  async put(attributes: Item): Promise<void> {
    const { direct, tableName } = this.table;
    await putRawItem(direct, tableName, { ...(attributes as object), lease: { S: this.lease } });
  }

  /** Vacates the lease as the lifecycle monitor does. */
  async evict(): Promise<void> {
    const { version } = readLease(this.lease, (await this.record()) ?? {});
    const kept = Object.entries({ ...(await this.record()), version: { N: String(version! + 1) } });
    const gone = ['holderIdentity', 'expireTime'];
    await this.put(Object.fromEntries(kept.filter(([name]) => !gone.includes(name))));
  }

  async delete(): Promise<void> {
    const { direct, tableName } = this.table;
    const Key = { lease: { S: this.lease } };
    await direct.send(new DeleteItemCommand({ TableName: tableName, Key }));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.proxy.stop();
  }
}

export interface ContenderOptions {
  /** Ours with its time-outs, or a user's with none. */
  readonly client?: Client;
  readonly tableName?: string;
  readonly leaseDurationMs?: number;
  readonly renewDeadlineMs?: number;
  readonly requestTimeoutMs?: number;
  readonly trustClocks?: boolean;
  readonly termsAt?: TermsAt;
  readonly clock?: Clock;
}

export type Client = 'default client' | 'stock client';

export class Contender {
  readonly lock: Lock;
  readonly world: World;
  readonly termsAt: TermsAt;
  #identities = 0;

  constructor(site: Site, name: string, options: ContenderOptions) {
    const { leaseDurationMs = 30_000, renewDeadlineMs = 20_000 } = options;
    const { tableName = site.table.tableName, client = 'default client' } = options;
    const store = new DynamoDBStore(
      client === 'default client'
        ? { tableName, clientConfig: site.clientConfig }
        : { tableName, client: testClient(site.proxy.endpoint) },
    );
    const logger = { debug: ignore, info: ignore, warn: ignore, error: ignore };
    const { clock = systemClock } = options;
    this.world = makeWorld({ store, logger, clock }, readEnvironment());
    this.termsAt = options.termsAt ?? (() => ({ leaseDurationMs, renewDeadlineMs }));
    this.lock = new Lock(
      {
        lease: site.lease,
        kind: 'leader',
        trustClocks: options.trustClocks ?? true,
        toleranceMs: leaseDurationMs - renewDeadlineMs,
        requestTimeoutMs: options.requestTimeoutMs ?? 3_000,
        leaseDurationMs,
        newIdentity: () => `${name}/${++this.#identities}`,
        annotations: {},
        labels: {},
      },
      this.world,
    );
  }

  tryAcquire(): Promise<AcquireAnswer> {
    return this.lock.tryAcquire(this.termsAt);
  }

  /** Takes the lease, which must be free, in one call. */
  async acquire(): Promise<Tenure> {
    return acquiredBy(await this.tryAcquire());
  }

  renew(tenure: Tenure) {
    return this.lock.renew(tenure, this.termsAt);
  }

  release(tenure: Tenure, withinMs = 10_000) {
    return this.lock.release(tenure, 'completed', withinMs);
  }
}

/** Repeats what was not answered: a busy machine may be slower than a lock is patient. */
export async function answered<T extends { readonly kind: string }>(
  operation: () => Promise<T>,
): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    const answer = await operation();
    if (attempt === 10 || !['unknown', 'failed'].includes(answer.kind)) return answer;
  }
}

export function acquiredBy(answer: AcquireAnswer): Tenure {
  if (answer.kind === 'acquired') return answer.tenure;
  throw new Error(`The lease was not acquired but ${answer.kind}`, {
    cause: answer.kind === 'failed' ? answer.error : answer,
  });
}

function ignore(): void {
  // Tests look at answers, not at logs.
}

export type WriteKind = 'acquire' | 'renew' | 'release';

/** Which write of a leader's lease a request is. */
export function isWrite(kind: WriteKind) {
  return (body: RequestBody): boolean => {
    const names = Object.values(body.ExpressionAttributeNames ?? {});
    if (body.UpdateExpression === undefined) return false;
    if (names.includes('acquireTime')) return kind === 'acquire';
    return kind === (names.includes('renewTime') ? 'renew' : 'release');
  };
}

/** Mulberry32: the same numbers for the same seed. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
