// The floor: one conditional UpdateItem to take a lease, one to give it back, by the SDK alone.
// No renewal, no check of any clock; a refusal shows the item.

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { ConditionalCheckFailedException, UpdateItemCommand } from '@aws-sdk/client-dynamodb';
import { type Contestant, type Held, isHeld, type Refused, type Settings } from '../contestant.ts';
import { testClient } from '../../support/dynamodb.ts';

export function floor(settings: Settings): Contestant {
  const client = testClient(settings.endpoint);

  async function tryAcquire(lease: string): Promise<Held | Refused> {
    const me = randomUUID();
    const now = Date.now();
    try {
      const { Attributes } = await client.send(
        new UpdateItemCommand({
          TableName: settings.tableName,
          Key: { lease: { S: lease } },
          UpdateExpression: 'SET holder = :me, expires = :until ADD transitions :one',
          ConditionExpression: 'attribute_not_exists(holder) OR expires < :now',
          ExpressionAttributeValues: {
            ':me': { S: me },
            ':until': { N: String(now + settings.leaseMs) },
            ':now': { N: String(now) },
            ':one': { N: '1' },
          },
          ReturnValues: 'ALL_NEW',
          ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
        }),
      );
      return {
        token: Number(Attributes?.['transitions']?.N),
        isHeld: () => true,
        release: () => release(lease, me),
      };
    } catch (error) {
      if (!(error instanceof ConditionalCheckFailedException)) throw error;
      const { holder, transitions, expires } = error.Item ?? {};
      return { holder: holder?.S, token: Number(transitions?.N), until: Number(expires?.N) };
    }
  }

  async function release(lease: string, me: string): Promise<void> {
    await client.send(
      new UpdateItemCommand({
        TableName: settings.tableName,
        Key: { lease: { S: lease } },
        UpdateExpression: 'REMOVE holder, expires',
        ConditionExpression: 'holder = :me',
        ExpressionAttributeValues: { ':me': { S: me } },
      }),
    );
  }

  return {
    tryAcquire,
    async acquire(lease) {
      for (;;) {
        const answer = await tryAcquire(lease);
        if (isHeld(answer)) return answer;
        await sleep(settings.pollMs * (0.8 + 0.4 * Math.random()));
      }
    },
  };
}
