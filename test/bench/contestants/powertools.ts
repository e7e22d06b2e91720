// @aws-lambda-powertools/idempotency from npm. It is no lock: a key that was once completed is
// answered from its record for ever after. Taken with a new key each time, it costs what one would.

import type { Contestant, Held, Refused, Settings } from '../contestant.ts';
import { testClient } from '../../support/dynamodb.ts';
import { requirePeer } from './open.ts';

interface Peer {
  readonly makeIdempotent: (
    run: (payload: object) => Promise<string>,
    options: object,
  ) => (payload: object) => Promise<string>;
  readonly IdempotencyConfig: new (config: object) => {
    registerLambdaContext(context: object): void;
  };
}

export function powertools(settings: Settings): Contestant {
  process.env['AWS_LAMBDA_FUNCTION_NAME'] ??= 'benchmark';
  const { makeIdempotent, IdempotencyConfig } = requirePeer(
    '@aws-lambda-powertools/idempotency',
  ) as Peer;
  const { DynamoDBPersistenceLayer } = requirePeer(
    '@aws-lambda-powertools/idempotency/dynamodb',
  ) as { DynamoDBPersistenceLayer: new (options: object) => object };
  const persistenceStore = new DynamoDBPersistenceLayer({
    tableName: settings.tableName,
    keyAttr: 'lease',
    awsSdkV3Client: testClient(settings.endpoint),
  });
  const config = new IdempotencyConfig({});
  config.registerLambdaContext({ getRemainingTimeInMillis: () => settings.leaseMs });

  function tryAcquire(key: string): Promise<Held | Refused> {
    return new Promise((resolve, reject) => {
      const run = makeIdempotent(
        () =>
          new Promise<string>((finish) => {
            resolve({
              token: 0,
              isHeld: () => true,
              release: async () => {
                finish('done');
                await over;
              },
            });
          }),
        { persistenceStore, config },
      );
      const over: Promise<unknown> = run({ key }).catch((error: unknown) => {
        if (error instanceof Error && error.name === 'IdempotencyAlreadyInProgressError')
          resolve({});
        else reject(error instanceof Error ? error : new Error(String(error)));
      });
    });
  }
  return {
    tryAcquire,
    acquire: async (key) => {
      const answer = await tryAcquire(key);
      return 'release' in answer ? answer : undefined;
    },
  };
}
