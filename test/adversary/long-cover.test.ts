// A lease that is longer than 366 days reads as one of unknown duration: free after a minute.

import { expect, it } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { acquireLease, withLease } from '../../src/index.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { silent } from '../election/harness.ts';

it.each([
  ['a context that tells an endless remaining time', {}, Number.MAX_SAFE_INTEGER],
  ['the longest tolerance', { toleranceSeconds: 183 * 86_400 }, 183 * 86_400_000 + 1],
])('is not taken from a live holder: %s', async (_, options, remainingMs) => {
  const clock = new FakeClock();
  const store = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
  const common = { name: 'job', store, clock, logger: silent };
  let held = () => false;
  let finish: () => void = () => undefined;
  const handler = withLease({ ...common, ...options }, async (_event: unknown, { lease }) => {
    held = () => lease.isHeld();
    await new Promise<void>((resolve) => (finish = resolve));
  });
  const run = handler({}, { getRemainingTimeInMillis: () => remainingMs }).catch((e: unknown) => e);
  await clock.advance(1_000);
  const other = acquireLease({ ...common, maxWaitSeconds: 120 }).catch(() => undefined);
  await clock.advance(125_000);
  const second = await other;
  const both = [held(), second?.isHeld() ?? false];
  finish();
  await second?.release();
  await clock.advance(1_000);
  await run;
  expect(both).not.toEqual([true, true]);
});
