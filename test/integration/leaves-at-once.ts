// A program that takes a lease, works until its first renewal is under way, and lets the lease go.
// Nothing in it ends the process.

import { setTimeout as sleep } from 'node:timers/promises';
import { acquireLease } from '../../src/index.ts';

const [, , tableName = '', name = ''] = process.argv;
{
  await using lease = await acquireLease({ tableName, name, retryPeriodSeconds: 0.3 });
  await sleep(450);
  process.stdout.write(`held ${lease.isHeld()}\n`);
}
process.stdout.write('released\n');
