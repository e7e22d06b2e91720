// A table for the command line, and the command line itself as a process of its own.

import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Item } from '../../src/lease.ts';
import { without } from '../contract/writes.rows.ts';
import {
  availableEngines,
  createLeaseTable,
  type DynamoDBServer,
  putRawItem,
  rawItem,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';

const NODE_COMPILE_CACHE = join(tmpdir(), 'lambda-lease-compile-cache');

export const BIN = fileURLToPath(new URL('../../src/bin.ts', import.meta.url));

export interface Ran {
  readonly code: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly pid: number;
  readonly ended: Promise<Ran>;
  /** Resolves to the match when its output so far matches. */
  says(pattern: RegExp): Promise<RegExpExecArray>;
  kill(signal: NodeJS.Signals): void;
}

export class Stage implements AsyncDisposable {
  readonly server: DynamoDBServer;
  readonly client: DynamoDBClient;
  readonly tableName: string;

  private constructor(server: DynamoDBServer, tableName: string) {
    this.server = server;
    this.tableName = tableName;
    this.client = testClient(server.endpoint);
  }

  static async open(): Promise<Stage> {
    const server = await startDynamoDB({ engine: availableEngines()[0]! });
    return new Stage(server, await createLeaseTable(server.endpoint));
  }

  get variables(): Record<string, string> {
    return {
      AWS_ENDPOINT_URL_DYNAMODB: this.server.endpoint,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'test',
      AWS_SECRET_ACCESS_KEY: 'test',
      LEASE_TABLE_NAME: this.tableName,
    };
  }

  start(args: readonly string[], variables: Record<string, string> = {}): Running {
    return startProcess(args, { ...this.variables, ...variables });
  }

  run(args: readonly string[], variables: Record<string, string> = {}): Promise<Ran> {
    return this.start(args, variables).ended;
  }

  put(lease: string, item: Item): Promise<void> {
    return putRawItem(this.client, this.tableName, { ...(item as object), lease: { S: lease } });
  }

  async record(lease: string): Promise<Item | undefined> {
    return (await rawItem(this.client, this.tableName, lease)) as Item | undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.client.destroy();
    await this.server.stop();
  }
}

export function startProcess(args: readonly string[], variables: Record<string, string>): Running {
  const { PATH = '', HOME = '' } = process.env;
  const child = spawn(process.execPath, [BIN, ...args], {
    // What one run has compiled the next need not.
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [out, err] = ['', ''];
  const waiting = new Set<() => void>();
  const heard = () => {
    for (const look of waiting) look();
  };
  child.stdout.on('data', (data: Buffer) => {
    out += data.toString();
    heard();
  });
  child.stderr.on('data', (data: Buffer) => {
    err += data.toString();
    heard();
  });
  const ended = new Promise<Ran>((resolve) => {
    child.on('close', (code) => {
      resolve({ code, out, err });
      heard();
    });
  });
  return {
    pid: child.pid!,
    ended,
    says: (pattern) =>
      new Promise((resolve, reject) => {
        const look = () => {
          const match = pattern.exec(out + err);
          if (match !== null) resolve(match);
          else if (child.exitCode !== null) reject(new Error(`It ended: ${out}${err}`));
          else return;
          waiting.delete(look);
        };
        waiting.add(look);
        look();
      }),
    kill: (signal) => void child.kill(signal),
  };
}

/** A lease that somebody holds, with times around now. */
export function held(holder = 'api:7/stream/uuid', leftMs = 60_000, token = 5): Item {
  const nowMs = Date.now();
  return {
    kind: { S: 'leader' },
    holderIdentity: { S: holder },
    leaseDurationSeconds: { N: '90.5' },
    acquireTime: { S: new Date(nowMs - 300_000).toISOString() },
    renewTime: { S: new Date(nowMs - 1_000).toISOString() },
    expireTime: { N: String(nowMs + leftMs) },
    leaseTransitions: { N: String(token) },
    version: { N: '1767000000042' },
    annotations: {
      M: {
        function: { S: 'api' },
        region: { S: 'eu-north-1' },
        logStream: { S: '2026/01/01/[7]abc' },
      },
    },
    labels: { M: { tier: { S: 'gold' } } },
  };
}

export function vacant(token = 5): Item {
  return without(held('x', 0, token), 'holderIdentity', 'expireTime');
}
