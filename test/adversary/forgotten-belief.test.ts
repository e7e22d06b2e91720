// A holder that is cut off must stop believing at its renew deadline, however often it has asked.

import { expect, it } from 'vitest';
import { LeaderElector } from '../../src/index.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { ScriptedStore } from '../support/scripted-store.ts';
import { silent } from '../election/harness.ts';

// Allowed: 6 min lease, 5 min renew deadline, and a contender that looks each second.
const TIMING = { leaseDurationSeconds: 360, renewDeadlineSeconds: 300, retryPeriodSeconds: 1 };

it('stops believing at its renew deadline after any number of unanswered renewals', async () => {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const elector = (cutOff: () => boolean) =>
    new LeaderElector({
      name: 'job',
      ...TIMING,
      clock,
      logger: silent,
      store: new ScriptedStore({
        clock,
        memory,
        script: () => (cutOff() ? { fail: 'store-unavailable', date: 'none' } : undefined),
      }),
      onStartedLeading: (lease) =>
        new Promise<void>((resolve) => lease.signal.addEventListener('abort', () => resolve())),
    });
  let cut = false;
  const [a, b] = [elector(() => cut), elector(() => false)];
  const stop = new AbortController();
  const runs = [a.run({ signal: stop.signal })];
  await clock.advance(1_000);
  expect(a.isLeader()).toBe(true);
  runs.push(b.run({ signal: stop.signal }));
  await clock.advance(1_000);

  cut = true;
  await clock.advance(305_000);
  const atDeadline = a.isLeader();
  await clock.advance(60_000);
  const both = [a.isLeader(), b.isLeader()];
  stop.abort();
  await clock.advance(60_000);
  await Promise.all(runs);
  expect(both).toEqual([false, true]);
  expect(atDeadline).toBe(false);
});
