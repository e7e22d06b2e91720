// Long runs on virtual time: clocks that differ by more and more, machines that keep stopping for a
// moment, leaders that keep stepping down.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { Candidate, recordIn, SECOND, SeededRandom, untilTold } from './harness.ts';
import { Machine } from './machine.ts';

const MINUTE = 60 * SECOND;
const NETWORK = { requestMs: 20, answerMs: 20 };

describe('two machines whose clocks differ', () => {
  /** In parts of the tolerance, which is 5 s; which of the two can be proven right. */
  test.each([
    [0, 'both'],
    [0.3, 'both'],
    [0.5, 'a'],
    [1, 'a'],
    [1.5, 'a'],
    [10, 'a'],
  ] as const)('by %d times the tolerance, either way, never lead both', async (times, right) => {
    for (const sign of [1, -1]) {
      const world = new FakeClock();
      const memory = new MemoryStore({ serverTimeMs: () => world.read().wallMs });
      const join = (name: string, offsetMs: number) => {
        const clock = new Machine(world, offsetMs);
        const candidate = new Candidate({ clock, network: world, memory, name });
        candidate.store.script = () => NETWORK;
        return { clock, candidate: candidate.run() };
      };
      const off = join('off', sign * times * 5 * SECOND);
      await world.advance(SECOND);
      const a = join('a', 0);
      const led = { a: 0, off: 0 };
      // Whoever leads keeps being cut off, and comes back.
      for (let ms = 0; ms < 4 * MINUTE; ms += 50) {
        await world.advance(50);
        const [one, other] = [a.candidate.isLeader, off.candidate.isLeader];
        expect(one && other, `at ${ms} ms, ${sign}`).toBe(false);
        led.a += Number(one);
        led.off += Number(other);
        const cutOff =
          ms % MINUTE === 30 * SECOND ? [a, off].find((each) => isUp(each)) : undefined;
        if (cutOff !== undefined) {
          cutOff.candidate.store.script = () => ({ lose: 'request', hang: true });
        } else if (ms % MINUTE === 0) {
          for (const { candidate } of [a, off]) candidate.store.script = () => NETWORK;
        }
      }
      expect(led.a).toBeGreaterThan(0);
      if (right === 'both') expect(led.off).toBeGreaterThan(0);
      else if (times >= 0.5) expect(led.off).toBe(0);
    }
  });

  function isUp({ candidate }: { readonly candidate: Candidate }): boolean {
    return candidate.isLeader;
  }
});

test.each([1, 2, 3])(
  'a quick heartbeat on a machine that keeps stopping leads for ten minutes on end (seed %i)',
  async (seed) => {
    const world = new FakeClock();
    const memory = new MemoryStore({ serverTimeMs: () => world.read().wallMs });
    const chance = new SeededRandom(seed, 'pauses');
    const clock = new Machine(world);
    const leader = new Candidate({
      clock,
      network: world,
      memory,
      leaseDurationSeconds: 1,
      renewDeadlineSeconds: 0.7,
      retryPeriodSeconds: 0.1,
      requestTimeoutSeconds: 0.2,
    }).run();
    leader.store.script = () => ({ requestMs: 5, answerMs: 5 });
    await world.advance(SECOND);
    let pauses = 0;
    for (let ms = 0; ms < 10 * MINUTE; pauses += 1) {
      // With the period before it, less than the renew deadline.
      const pauseMs = Math.floor(400 * chance.fraction());
      const runMs = 150 + Math.floor(500 * chance.fraction());
      clock.freeze(pauseMs);
      await world.advance(pauseMs + runMs);
      ms += pauseMs + runMs;
      expect(leader.isLeader, `seed ${seed}, after ${ms} ms`).toBe(true);
    }
    expect(pauses).toBeGreaterThan(900);
    expect(leader.told('started')).toHaveLength(1);
    expect(recordIn(memory)).toMatchObject({ leaseTransitions: 1, vacant: false });
  },
);

test.each([1, 2, 3])(
  'leaders that step down at any moment always have a successor in time (seed %i)',
  async (seed) => {
    const clock = new FakeClock();
    const memory = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
    const chance = new SeededRandom(seed, 'moments');
    const candidates = ['a', 'b', 'c'].map((name, index) => {
      const work = untilTold(clock, 500);
      const candidate = new Candidate({ clock, memory, name, work, seed: seed * 10 + index });
      candidate.store.script = () => NETWORK;
      return candidate.run();
    });
    const leaders = () => candidates.filter(({ isLeader }) => isLeader);
    let steppedDown = 0;
    let vacantMs = 0;
    let leftMs = 0;
    for (let ms = 0; ms < 10 * MINUTE; ms += 20) {
      await clock.advance(20);
      expect(leaders().length).toBeLessThanOrEqual(1);
      vacantMs = leaders().length === 0 ? vacantMs + 20 : 0;
      // Each leaves a lease duration to the others; when all have done so, the first is next.
      expect(vacantMs, `seed ${seed}, at ${ms} ms`).toBeLessThan(15 * SECOND + 2 * 2.4 * SECOND);
      const [leader] = leaders();
      leftMs -= 20;
      if (leader === undefined || leftMs > 0) continue;
      leftMs = 30 * SECOND * chance.fraction();
      steppedDown += 1;
      void leader.elector.stepDown();
    }
    expect(steppedDown).toBeGreaterThan(20);
    const tokens = candidates.flatMap(({ leases }) => leases.map((each) => each.fencingToken));
    expect(tokens.sort((x, y) => x - y)).toEqual(tokens.map((_, index) => index + 1));
    expect(new Set(candidates.map(({ leases }) => leases.length > 3))).toEqual(new Set([true]));
  },
);
