// On a clock with fractions of a millisecond, as performance.now() has, the end of belief may be
// 1e-11 ms away, which added to the time is nothing: FakeClock then never gets past that moment.

import { expect, it } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { acquireLease } from '../../src/index.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { silent } from '../election/harness.ts';

class CountingClock extends FakeClock {
  set = 0;
  override setTimer(delayMs: number, run: () => void) {
    this.set += 1;
    return this.set > 500 ? { cancel: () => undefined } : super.setTimer(delayMs, run);
  }
}

it('watches the end of belief with a few timers, whatever the fractions', async () => {
  let most = 0;
  for (let i = 1; i <= 60; i++) {
    const clock = new CountingClock();
    await clock.advance(i * 1234.5678901234 + Math.sqrt(i));
    let cut = false;
    const memory = new MemoryStore();
    const store = {
      description: 'a table',
      read: memory.read.bind(memory),
      write: (...call: Parameters<MemoryStore['write']>) =>
        cut ? Promise.reject(new Error('reset')) : memory.write(...call),
    };
    const acquired = acquireLease({
      name: 'job',
      store,
      clock,
      logger: silent,
    });
    await clock.advance(1 / 3);
    await acquired;
    cut = true;
    await clock.advance(Math.sqrt(i) * 100);
    await clock.advance(30_000);
    most = Math.max(most, clock.set);
  }
  expect(most).toBeLessThan(200);
});
