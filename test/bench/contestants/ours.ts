// lambda-lease, as a block of code would use it: acquireLease().

import type { Contestant, Held, Settings } from '../contestant.ts';
import { DynamoDBStore } from '../../../src/dynamodb-store.ts';
import { acquireLease, isLeaseError, type Lease } from '../../../src/index.ts';
import { testClient } from '../../support/dynamodb.ts';

export function ours(settings: Settings): Contestant {
  const store = new DynamoDBStore({
    tableName: settings.tableName,
    client: testClient(settings.endpoint),
  });
  const options = {
    store,
    leaseDurationSeconds: settings.leaseMs / 1_000,
    retryPeriodSeconds: Math.min(settings.renewMs, settings.pollMs) / 1_000,
    logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  };
  return {
    async tryAcquire(name) {
      try {
        return held(await acquireLease({ ...options, name }));
      } catch (error) {
        if (!isLeaseError(error, 'lease-held')) throw error;
        const { holderIdentity, leaseTransitions, expireTimeMs } = error.record ?? {};
        return { holder: holderIdentity, token: leaseTransitions, until: expireTimeMs };
      }
    },
    async acquire(name) {
      return held(await acquireLease({ ...options, name, maxWaitSeconds: 600 }));
    },
  };
}

function held(lease: Lease): Held {
  return {
    token: lease.fencingToken,
    isHeld: () => lease.isHeld(),
    release: () => lease.release(),
  };
}

function quiet(): void {
  // Warnings of a small tolerance are known here.
}
