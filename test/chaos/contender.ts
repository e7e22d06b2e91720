// One contender of the storm, a process of its own: leads under a LeaderElector whenever it can,
// tells the witness of each step, and writes into a ledger under the lease's guard.
//
// A stubborn one goes on writing when its signal has aborted, as work that ignores its signal does:
// it is the guard's business to refuse that. Its steps before the witness stop all the same, for
// the witness judges the signal, and the ledger the guard.

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBDocumentClient, TransactWriteCommand } from '@aws-sdk/lib-dynamodb';
import { systemClock, type Clock } from '../../src/clock.ts';
import { isLeaseError, LeaderElector, sendGuarded, type Lease } from '../../src/index.ts';
import { testClient } from '../support/dynamodb.ts';
import { connectWitness, type WitnessClient } from '../support/witness.ts';
import type { ContenderSettings, Told } from './messages.ts';

const settings = JSON.parse(process.argv[2] ?? '') as ContenderSettings;
const { id, endpoint, tableName, ledgerName, witnessPort, timing } = settings;
let offsetMs = settings.offsetMs;

/** The system's clock, as wrong as the storm wants it. */
const clock: Clock = {
  read: () => {
    const { wallMs, monotonicMs } = systemClock.read();
    return { wallMs: wallMs + offsetMs, monotonicMs };
  },
  setTimer: (delayMs, run) => systemClock.setTimer(delayMs, run),
};

const client = testClient(endpoint, {
  maxAttempts: 2,
  requestHandler: { connectionTimeout: 500, requestTimeout: 1_000, throwOnRequestTimeout: true },
});
const documents = DynamoDBDocumentClient.from(client);
const witness = await connectWitness(witnessPort);
const over = new AbortController();

const elector = new LeaderElector({
  name: 'prize',
  ...timing,
  tableName,
  client,
  clock,
  drainSeconds: 2,
  logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
  onStartedLeading: (lease) => work(lease, witness),
});

createInterface(process.stdin)
  .on('line', (line) => {
    const { stepMs } = JSON.parse(line) as { stepMs: number };
    offsetMs += stepMs;
  })
  // However the storm ends, its contenders do too.
  .on('close', () => over.abort());

await elector.run({ signal: over.signal });
witness.close();
client.destroy();

async function work(lease: Lease, seer: WitnessClient): Promise<void> {
  const { fencingToken, signal } = lease;
  // Counted, not timed: who was frozen has as much left to do as before.
  const steps = 5 + Math.random() * 50;
  await seer.enter('prize', id, fencingToken);
  const deaf = settings.manner === 'deaf';
  for (let step = 0; (deaf || !signal.aborted) && step < steps; step++) {
    await seer.step('prize', id, fencingToken);
    await (deaf ? writeUnguarded(lease) : write(lease));
    await sleep(20 + Math.random() * 100, undefined, deaf ? {} : { signal }).catch(() => undefined);
  }
  await seer.exit('prize', id, fencingToken);
  if (signal.aborted && settings.manner === 'stubborn') await persist(lease);
}

function entry(lease: Lease): object {
  return {
    Update: {
      TableName: ledgerName,
      Key: { lease: 'ledger' },
      UpdateExpression: 'SET lastToken = :token ADD writes :one',
      // Not the guard, but its judge: where the guard lets an older token through, this tells.
      ConditionExpression: 'attribute_not_exists(lastToken) OR lastToken <= :token',
      ExpressionAttributeValues: { ':token': lease.fencingToken, ':one': 1 },
    },
  };
}

async function write(lease: Lease): Promise<void> {
  const command = new TransactWriteCommand({ TransactItems: [entry(lease)] as never });
  try {
    await sendGuarded(documents, command, lease);
    tell({ did: 'written' });
  } catch (error) {
    if (isLeaseError(error, 'condition-failed')) tell({ did: 'violated', why: error.message });
    else if (isLeaseError(error, 'lease-lost')) tell({ did: 'refused' });
    else tell({ did: 'unknown', why: String(error) });
  }
}

async function writeUnguarded(lease: Lease): Promise<void> {
  try {
    await documents.send(new TransactWriteCommand({ TransactItems: [entry(lease)] as never }));
    tell({ did: 'written' });
  } catch (error) {
    const refused = error instanceof Error && error.name === 'TransactionCanceledException';
    tell({ did: refused ? 'violated' : 'unknown', why: String(error) });
  }
}

/** Three writes more, straight to the table, under the exact check only. */
async function persist(lease: Lease): Promise<void> {
  for (let round = 0; round < 3; round++) {
    const TransactItems = [entry(lease), lease.conditionCheck()] as never;
    try {
      await documents.send(new TransactWriteCommand({ TransactItems }));
      tell({ did: 'written' });
    } catch (error) {
      const { CancellationReasons = [] } = error as {
        CancellationReasons?: { Code?: string }[];
      };
      const [own, check] = CancellationReasons.map(({ Code }) => Code);
      if (check === 'ConditionalCheckFailed') tell({ did: 'refused' });
      else if (own === 'ConditionalCheckFailed') tell({ did: 'violated', why: String(error) });
      else tell({ did: 'unknown', why: String(error) });
    }
    await sleep(200);
  }
}

function tell(told: Told): void {
  process.stdout.write(`${JSON.stringify(told)}\n`);
}

function quiet(): void {
  // What matters is told to the witness and the storm.
}
