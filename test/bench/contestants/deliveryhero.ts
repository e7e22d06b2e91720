// @deliveryhero/dynamodb-lock from npm.

import { DynamoDBDocument } from '@aws-sdk/lib-dynamodb';
import type { Contestant, Held, Settings } from '../contestant.ts';
import { testClient } from '../../support/dynamodb.ts';
import { requirePeer } from './open.ts';

interface PeerLock {
  readonly isAcquired: boolean;
}

interface PeerClient {
  lock(group: string, id: string, options: object): Promise<PeerLock>;
  releaseLock(lock: PeerLock): Promise<void>;
}

interface Peer {
  readonly dynamoDBLockClientFactory: (
    documents: DynamoDBDocument,
    table: object,
    log: () => void,
  ) => PeerClient;
  readonly LockNotGrantedError: new () => Error;
}

const GROUP = 'benchmark';

export function deliveryHero(settings: Settings, trustLocalTime: boolean): Contestant {
  const peer = requirePeer('@deliveryhero/dynamodb-lock') as Peer;
  const client = peer.dynamoDBLockClientFactory(
    DynamoDBDocument.from(testClient(settings.endpoint)),
    { tableName: settings.sortedTableName, partitionKey: 'lease', sortKey: 'part' },
    () => undefined,
  );
  // A prolonging that fails is an unhandled rejection, which would end the process.
  process.on('unhandledRejection', () => undefined);
  const options = {
    leaseDurationInMs: settings.leaseMs,
    prolongEveryMs: settings.renewMs,
    trustLocalTime,
    ...(trustLocalTime ? { waitDurationInMs: settings.pollMs } : {}),
  };

  async function acquire(key: string, more: object): Promise<Held | undefined> {
    try {
      const lock = await client.lock(GROUP, key, { ...options, ...more });
      return {
        token: 0,
        isHeld: () => lock.isAcquired,
        release: () => client.releaseLock(lock),
      };
    } catch (error) {
      if (error instanceof peer.LockNotGrantedError) return undefined;
      throw error;
    }
  }
  return {
    tryAcquire: async (key) => (await acquire(key, { maxRetryCount: 0 })) ?? {},
    acquire: (key) => acquire(key, {}),
  };
}
