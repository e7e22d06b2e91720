// Found beside: what a wrong clock took from a live holder is vacated by the undo, so that a third
// may start while the first believes. Left to expire, it would be nobody's until it is safe.

import { expect, it } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { acquireLease } from '../../src/index.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { ScriptedStore } from '../support/scripted-store.ts';
import { Machine } from '../election/machine.ts';
import { silent } from '../election/harness.ts';

it.each(['set while a first attempt is under way', 'first answers carry no Date'])(
  'does not vacate a live lease that a wrong clock took: %s',
  async (how) => {
    const world = new FakeClock();
    const memory = new MemoryStore();
    const machine = () => {
      const clock = new Machine(world);
      const store = new ScriptedStore({ clock, network: world, memory });
      return { clock, store, options: { name: 'job', store, clock, logger: silent } };
    };
    const [a, b, c] = [machine(), machine(), machine()];
    const first = acquireLease(a.options);
    await world.advance(1);
    const leaseA = await first;
    if (how.startsWith('set')) {
      const warm = acquireLease(b.options).catch(() => undefined);
      await world.advance(1);
      await warm;
      b.store.plan('acquire', { lose: 'request', hang: true });
      const second = acquireLease(b.options).catch(() => undefined);
      await world.advance(1_000);
      b.clock.stepWall(3_600_000);
      await world.advance(2_500);
      await second;
    } else {
      b.clock.stepWall(3_600_000);
      // A gateway on the way answers 502 for a while, without a Date.
      const gateway = { fail: 'store-unavailable', date: 'none' } as const;
      b.store.plan('any', gateway, gateway, gateway);
      for (let i = 0; i < 2; i++) {
        const second = acquireLease(b.options).catch(() => undefined);
        await world.advance(500);
        await second;
      }
    }
    const third = acquireLease(c.options).catch(() => undefined);
    await world.advance(1);
    const leaseC = await third;
    const both = [leaseA.isHeld(), leaseC?.isHeld() ?? false];
    void leaseA.release();
    void leaseC?.release();
    await world.advance(20_000);
    expect(both).not.toEqual([true, true]);
  },
);
