// A job whose effect can be counted: for each tick it enters an amount into a ledger and adds it to
// a balance. It has no memory of its own of what it has done: only its lease keeps it from posting
// a tick twice.

import {
  type DynamoDBClient,
  GetItemCommand,
  ScanCommand,
  TransactWriteItemsCommand,
} from '@aws-sdk/client-dynamodb';
import { sendGuarded } from '../../src/guarded.ts';
import type { ScheduledLease } from '../../src/scheduled-job.ts';

/** With the guard; or as one might write it without: the tick is completed when the run returns. */
export type Way = 'guarded' | 'unguarded';

const BALANCE = 'ledger balance';
const entryOf = (tickMs: number) => `ledger entry ${new Date(tickMs).toISOString()}`;

/** So that a sum tells which ticks are in it. */
export function amountOf(tickMs: number): number {
  return 1 + (Math.floor(tickMs / 60_000) % 1_009);
}

export async function post(
  client: DynamoDBClient,
  tableName: string,
  lease: ScheduledLease,
  way: Way,
): Promise<void> {
  const tickMs = lease.tick.time.getTime();
  const add = (key: string, amount: number) => ({
    Update: {
      TableName: tableName,
      Key: { lease: { S: key } },
      UpdateExpression: 'ADD amount :amount, times :one',
      ExpressionAttributeValues: { ':amount': { N: String(amount) }, ':one': { N: '1' } },
    },
  });
  const command = new TransactWriteItemsCommand({
    TransactItems: [add(entryOf(tickMs), amountOf(tickMs)), add(BALANCE, amountOf(tickMs))],
  });
  if (way === 'guarded') await sendGuarded(client, command, lease, { completeTick: true });
  else await client.send(command);
}

export interface Ledger {
  readonly balance: number;
  /** How often each tick has been posted. */
  readonly times: ReadonlyMap<number, number>;
}

export async function readLedger(client: DynamoDBClient, tableName: string): Promise<Ledger> {
  const key = { lease: { S: BALANCE } };
  const { Item } = await client.send(new GetItemCommand({ TableName: tableName, Key: key }));
  const { Items = [] } = await client.send(new ScanCommand({ TableName: tableName }));
  const times = new Map<number, number>();
  for (const item of Items) {
    const [, tick] = /^ledger entry (.*)$/.exec(item['lease']?.S ?? '') ?? [];
    if (tick !== undefined) times.set(Date.parse(tick), Number(item['times']?.N));
  }
  return { balance: Number(Item?.['amount']?.N ?? 0), times };
}

/** What the balance must be: each entry counted as often as it was posted. */
export function sumOf({ times }: Ledger): number {
  return [...times].reduce((sum, [tickMs, count]) => sum + count * amountOf(tickMs), 0);
}
