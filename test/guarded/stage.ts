// What a guarded transaction needs: leases on virtual time over a table in memory, and commands.

import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import { TransactWriteCommand } from '@aws-sdk/lib-dynamodb';
import { acquireLease } from '../../src/acquire-lease.ts';
import { isLeaseError, type LeaseErrorCode } from '../../src/errors.ts';
import type { Lease } from '../../src/lease-handle.ts';
import type { Item } from '../../src/lease.ts';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import { scheduledSingleton } from '../../src/scheduled-singleton.ts';
import { Stage } from '../handler/stage.ts';

export const LEASE = 'default/job';

export class GuardedStage extends Stage {
  /** 15 / 10 / 2 s, as an elector's. */
  acquire(): Promise<Lease> {
    return acquireLease({ ...this.options, name: 'job' });
  }

  /** Runs `work` as a scheduled job, for the tick at `tickMs`. */
  run<T>(
    work: (lease: ScheduledLease) => Promise<T>,
    tickMs = this.nowMs,
    options: { readonly leaseDurationSeconds?: number } = {},
  ) {
    const handler = scheduledSingleton(
      {
        ...this.options,
        ...options,
        name: 'job',
        tick: (event: { readonly at: number }) => event.at,
      },
      (_event: { readonly at: number }, { lease }) => work(lease),
    );
    return handler({ at: tickMs }, this.context());
  }

  /** The item as the table has it. */
  get item(): Item {
    return this.table.peek(LEASE) ?? {};
  }

  /** Another takes the lease over, as after an expiry. */
  takenOver(by = 'other', token = 8): void {
    this.mark('job', {
      holderIdentity: { S: by },
      leaseTransitions: { N: String(token) },
      version: { N: String(Number(this.version) + 1) },
    });
  }

  get version(): string {
    const { version } = this.item;
    return version !== undefined && 'N' in version ? version.N : '0';
  }

  /** What a transaction with `completeTick` does to the record when it commits. */
  completeTick(tickMs = this.nowMs): void {
    const version = { N: String(Number(this.version) + 1) };
    this.mark('job', { lastTick: { N: String(tickMs) }, version });
  }
}

const OWN = { TableName: 'ledger', UpdateExpression: 'ADD n :one' };

/** Adds 1 to an item of the work's own. */
export function adding(id = 'a'): TransactWriteItemsCommand {
  const Update = {
    ...OWN,
    Key: { id: { S: id } },
    ExpressionAttributeValues: { ':one': { N: '1' } },
  };
  return new TransactWriteItemsCommand({ TransactItems: [{ Update }] });
}

/** The same for the document client. */
export function addingNatively(id = 'a'): TransactWriteCommand {
  const Update = { ...OWN, Key: { id }, ExpressionAttributeValues: { ':one': 1 } };
  return new TransactWriteCommand({ TransactItems: [{ Update }] });
}

/** `done`, or the code of the LeaseError, or the name of another error. */
export async function outcome(
  promise: Promise<unknown>,
): Promise<'done' | LeaseErrorCode | (string & {})> {
  try {
    await promise;
    return 'done';
  } catch (error) {
    return isLeaseError(error) ? error.code : (error as Error).name;
  }
}
