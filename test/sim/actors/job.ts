// The environments of a scheduled job: they run its ticks as they are delivered, are frozen in
// between, killed when they outlast their time, and fail.

import { TransactWriteItemsCommand, type TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { isLeaseError } from '../../../src/errors.ts';
import { sendGuarded } from '../../../src/guarded.ts';
import { isSkipped } from '../../../src/refusal.ts';
import { scheduledSingleton } from '../../../src/scheduled-singleton.ts';
import type { ScheduledLease } from '../../../src/scheduled-job.ts';
import { sleep } from '../../../src/clock.ts';
import type { Deliveries } from '../deliveries.ts';
import { shortName } from '../history.ts';
import type { Main, Process, Stage } from '../host.ts';
import { toleranceOf, type JobPlan } from '../plan.ts';
import { Transactions } from '../transactions.ts';
import { WorkFailed } from './work.ts';

interface Invocation {
  readonly tickMs: number;
  readonly forMs: number;
}
interface Context {
  readonly lease?: ScheduledLease;
  getRemainingTimeInMillis(): number;
}

export function jobMain(plan: JobPlan, deliveries: Deliveries): Main {
  return async (process, stage) => {
    const { dice, machine, client, logger, stopping } = process;
    const { time } = stage.network;
    const { timing, trustClocks } = plan;
    const leaseMs = timing.leaseDurationSeconds * 1_000;
    const toleranceMs = toleranceOf(timing) * 1_000;
    const freezes = dice.chance(0.6);
    const handler = scheduledSingleton<Invocation, number, Context>(
      {
        name: plan.leaseName,
        store: client,
        clock: machine,
        random: dice,
        logger,
        trustClocks,
        ...(plan.renewed ? timing : { toleranceSeconds: toleranceMs / 1_000 }),
        whenHeld: dice.pick(['throw', 'skip', 'wait'] as const),
        tick: ({ tickMs }) => tickMs,
        periodSeconds: plan.periodMs / 1_000,
        catchUp: plan.catchUp,
        // At most two durations, so that none is left when the calm is over.
        ...(plan.backoff && trustClocks
          ? { failureBackoffSeconds: leaseMs / 4_000, maxFailureBackoffSeconds: leaseMs / 500 }
          : {}),
        ...(dice.chance(0.15) ? { maxHoldSeconds: leaseMs / 4_000 } : {}),
      },
      async ({ forMs }, { lease }) => {
        stage.watch.begin({
          lease,
          machine,
          toleranceMs,
          elector: false,
          drainMs: Infinity,
          lossDrainMs: toleranceMs,
        });
        const tell = tellerOf(lease, process, stage);
        tell('began');
        try {
          await run(lease, forMs, plan, process, stage, tell);
        } catch (error) {
          tell('threw');
          throw error;
        }
        tell('returned');
        return lease.tick.time.getTime();
      },
    );
    while (!stopping.aborted) {
      const timeoutMs = leaseMs * dice.pick([0.3, 0.5, 1, 1.5]);
      const pauseMs = stage.calm ? 500 : dice.mostlyLittle(2 * leaseMs);
      const delivery = deliveries.take(time.nowMs, time.nowMs + timeoutMs + pauseMs);
      if (delivery === undefined) {
        const inMs = Math.min(leaseMs, deliveries.nextMs - time.nowMs);
        await sleep(machine, Math.max(1, inMs), stopping);
        continue;
      }
      const endsAtMs = time.nowMs + timeoutMs;
      const killed = time.at(endsAtMs, process.die);
      const lasting = stage.calm ? 0.2 : dice.pick([0.05, 0.3, 0.6, 0.85, 1.2]);
      const event = { tickMs: delivery.tickMs, forMs: lasting * timeoutMs };
      try {
        const getRemainingTimeInMillis = () => endsAtMs - time.nowMs;
        const result = await handler(event, { getRemainingTimeInMillis });
        // What was skipped for another reason, or left for want of time, comes again.
        const done = isSkipped(result)
          ? result.reason.endsWith('tick done')
          : result === delivery.tickMs;
        if (done) {
          deliveries.answered(delivery);
        }
      } catch (error) {
        if (!isLeaseError(error) && !(error instanceof WorkFailed)) throw error;
      }
      killed.cancel();
      if (freezes && !stage.calm && dice.chance(0.5)) {
        machine.freeze(pauseMs + 1, dice.pick(['both clocks', 'the wall clock']));
      }
      await sleep(machine, 1, stopping);
    }
  };
}

type Tell = (what: 'began' | 'returned' | 'threw' | 'told that it is done') => void;

function tellerOf(lease: ScheduledLease, { machine }: Process, stage: Stage): Tell {
  return (what) =>
    stage.record({
      kind: 'run',
      atMs: stage.network.time.nowMs,
      by: machine.name,
      lease: `${lease.namespace}/${lease.name}`,
      holder: shortName(lease.holderIdentity),
      tick: lease.tick.time.getTime(),
      what,
    });
}

async function run(
  lease: ScheduledLease,
  forMs: number,
  plan: JobPlan,
  process: Process,
  stage: Stage,
  tell: Tell,
): Promise<void> {
  const { dice, machine, client } = process;
  const { resource, calm } = stage;
  await machine.wait(forMs / 2);
  if (!calm && dice.chance(0.15)) throw new WorkFailed('The run failed before its effect.');
  // As work that looks up now and then; others are deaf.
  if (dice.chance(0.5)) lease.signal.throwIfAborted();
  if (plan.guarded) {
    const effect = { Put: { TableName: 'effects', Item: { id: { S: 'effect' } } } };
    const command = () => new TransactWriteItemsCommand({ TransactItems: [effect] });
    const tick = lease.tick.time.getTime();
    const dynamodb = new Transactions(client, () => resource.completed(lease, tick));
    if (!calm && dice.chance(0.3)) await sendUnasked(dynamodb, lease, [effect], dice.uuid());
    else await sendGuarded(dynamodb, command(), lease, { completeTick: true });
    tell('told that it is done');
    if (!calm && dice.chance(0.1)) {
      // Again, by mistake: the tick is done, and says so.
      await sendGuarded(dynamodb, command(), lease, { completeTick: true }).catch(
        (error: unknown) => {
          if (!isLeaseError(error)) throw error;
        },
      );
    }
  } else {
    resource.write(client, lease);
  }
  await machine.wait(forMs / 2);
  if (!calm && dice.chance(0.1)) throw new WorkFailed('The run failed after its effect.');
}

/** By the user's own client, which asks nobody whether the lease is held: only the table does. */
async function sendUnasked(
  dynamodb: Transactions,
  lease: ScheduledLease,
  effects: readonly TransactWriteItem[],
  ClientRequestToken: string,
): Promise<void> {
  const TransactItems = [...effects, { ...lease.completeTick({ marshalled: true }) }];
  const command = new TransactWriteItemsCommand({ TransactItems, ClientRequestToken });
  await dynamodb.send(command as never).catch((error: unknown) => {
    throw new WorkFailed('The transaction of the run failed.', { cause: error });
  });
}
