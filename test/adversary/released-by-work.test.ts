// "One tenure at a time, and none while the work of the last one still runs" (elector.ts, README).

import { expect, it } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { LeaderElector } from '../../src/index.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { silent } from '../election/harness.ts';

it('starts no second work while the first, which has released its lease, still runs', async () => {
  const clock = new FakeClock();
  const store = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
  const stop = new AbortController();
  let running = 0;
  let most = 0;
  const elector = new LeaderElector({
    name: 'job',
    store,
    clock,
    logger: silent,
    onStartedLeading: async (lease) => {
      most = Math.max(most, (running += 1));
      await lease.release();
      await new Promise<void>((done) => clock.setTimer(60_000, done)); // cleaning up
      running -= 1;
    },
  });
  const run = elector.run({ signal: stop.signal });
  await clock.advance(100_000);
  stop.abort();
  await clock.advance(100_000);
  await run;
  expect(most).toBe(1);
});
