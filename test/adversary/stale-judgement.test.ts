// A wall clock that is set forward while an attempt is under way judges nothing (section 4): the
// next attempt of the same acquisition must not take a live lease by it.

import { expect, it } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { LeaderElector, acquireLease } from '../../src/index.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { ScriptedStore, type Fault } from '../support/scripted-store.ts';
import { Machine } from '../election/machine.ts';
import { silent } from '../election/harness.ts';

it.each<[string, Fault]>([
  ['that nobody answered', { lose: 'request', hang: true }],
  ['that was refused, by an answer that tells nothing about the clock', { answerMs: 1_500 }],
])('asks the clock again before it repeats an attempt %s', async (_, fault) => {
  const world = new FakeClock();
  const memory = new MemoryStore();
  const at = (machine: Machine) => new ScriptedStore({ clock: machine, network: world, memory });
  const [a, b] = [new Machine(world), new Machine(world)];
  const [storeA, storeB] = [at(a), at(b)];
  const stop = new AbortController();
  const elector = new LeaderElector({
    name: 'job',
    store: storeA,
    clock: a,
    logger: silent,
    onStartedLeading: (lease) =>
      new Promise<void>((done) => lease.signal.addEventListener('abort', () => done())),
  });
  const run = elector.run({ signal: stop.signal });
  await world.advance(1_000);
  expect(elector.isLeader()).toBe(true);

  // B's clock has been checked; while its next request is under way its clock is set wrong.
  const options = { name: 'job', store: storeB, clock: b, logger: silent };
  const first = acquireLease(options).catch((error: unknown) => error);
  await world.advance(1);
  expect(await first).toMatchObject({ code: 'lease-held' });
  storeB.plan('acquire', fault);
  const second = acquireLease(options).catch((error: unknown) => error);
  await world.advance(1_000);
  b.stepWall(3_600_000);
  await world.advance(2_500);
  await second;
  const takes = storeB.of('acquire').map(({ outcome }) => outcome);
  stop.abort();
  await world.advance(60_000);
  await run;
  expect(takes.length).toBeGreaterThan(2);
  expect(takes).not.toContain('applied');
});
