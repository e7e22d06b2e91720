// dynamodb-lock-client from npm, on the AWS SDK v2 that it needs.

import type { Contestant, Held, Settings } from '../contestant.ts';
import { requirePeer } from './open.ts';

interface PeerLock {
  readonly fencingToken?: number;
  on(event: 'error', listener: () => void): void;
  release(callback: (error?: Error) => void): void;
}

interface PeerClient {
  acquireLock(id: string, callback: (error: Error | undefined, lock?: PeerLock) => void): void;
}

type ClientClass = new (config: object) => PeerClient;

export function lockClient(
  settings: Settings,
  name: 'lock-client' | 'lock-client-trust' | 'lock-client-closed',
): Contestant {
  // Its warning of its own end is not for each of our processes to print.
  process.env['AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE'] = '1';
  const { FailOpen, FailClosed } = requirePeer('dynamodb-lock-client') as Record<
    'FailOpen' | 'FailClosed',
    ClientClass
  >;
  const { DocumentClient } = requirePeer('aws-sdk/clients/dynamodb') as {
    DocumentClient: new (config: object) => unknown;
  };
  const { Agent } = requirePeer('node:http') as { Agent: new (options: object) => unknown };
  const dynamodb = new DocumentClient({
    endpoint: settings.endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    httpOptions: { agent: new Agent({ keepAlive: true }) },
  });
  const common = { dynamodb, lockTable: settings.tableName, partitionKey: 'lease' };
  const client = (retryCount: number): PeerClient =>
    name === 'lock-client-closed'
      ? new FailClosed({ ...common, acquirePeriodMs: settings.pollMs, retryCount })
      : new FailOpen({
          ...common,
          leaseDurationMs: settings.leaseMs,
          heartbeatPeriodMs: settings.renewMs,
          trustLocalTime: name === 'lock-client-trust',
          retryCount,
        });
  const once = client(0);
  const patient = client(1_000);

  function acquire(from: PeerClient, key: string): Promise<Held | undefined> {
    return new Promise((resolve, reject) => {
      from.acquireLock(key, (error, lock) => {
        if (lock !== undefined) resolve(held(lock));
        else if ((error as { code?: string } | undefined)?.code === 'FailedToAcquireLock') {
          resolve(undefined);
        } else reject(error ?? new Error('neither a lock nor an error'));
      });
    });
  }
  return {
    tryAcquire: async (key) => (await acquire(once, key)) ?? {},
    acquire: (key) => acquire(patient, key),
  };
}

function held(lock: PeerLock): Held {
  let lost = false;
  // The README's example: without a listener a failed heartbeat would end the process.
  lock.on('error', () => (lost = true));
  return {
    token: lock.fencingToken ?? 0,
    isHeld: () => !lost,
    release: () =>
      new Promise((resolve, reject) => {
        lock.release((error) => (error ? reject(error) : resolve()));
      }),
  };
}
