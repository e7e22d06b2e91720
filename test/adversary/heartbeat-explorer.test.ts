// A seeded explorer: incarnations of one worker, each on a machine with a clock of its own, that
// start, stop, speak and freeze while the table loses their answers, delays their writes and is
// out of reach; operators who delete and evict. Two never share a heartbeat, every call comes to
// its end, and in the end one beats.

import { describe, expect, test } from 'vitest';
import { sleep } from '../../src/clock.ts';
import { isLeaseError } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { Heartbeat } from '../../src/heartbeat.ts';
import { readLease, type Item } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { SeededRandom, silent } from '../election/harness.ts';
import { Machine } from '../election/machine.ts';
import { LEASE, SECOND } from '../heartbeat/stage.ts';
import { ScriptedStore, type Fault } from '../support/scripted-store.ts';

const RUNS = Number(process.env['RUNS'] ?? 40);
const SEED = Number(process.env['SEED'] ?? 1);
const DISTURBED_S = 400;
/** The longest call under way, freeze, lease and back-off one after the other. */
const QUIET_S = 300;

class World {
  readonly clock = new FakeClock();
  readonly memory = new MemoryStore({ serverTimeMs: () => this.clock.read().wallMs });
  readonly random: SeededRandom;
  readonly wrongs: string[] = [];
  readonly incarnations: Incarnation[] = [];
  readonly underWay = new Set<string>();
  /** Operators delete and evict, and newcomers replace: then two may believe for a while. */
  readonly rough: boolean;
  disturbed = true;
  out = false;
  #promises = 0;

  constructor(seed: number) {
    this.random = new SeededRandom(Math.imul(seed, 0x9e3779b1));
    this.rough = this.chance(0.5);
  }

  chance(rate: number): boolean {
    return this.random.fraction() < rate;
  }

  get record() {
    return readLease(LEASE, this.memory.peek(LEASE) ?? {});
  }

  /** It has to settle, and only with errors that are documented. */
  expectEnd(what: string, promise: Promise<unknown>, ...codes: readonly string[]): void {
    const name = `${what} ${this.#promises++}`;
    this.underWay.add(name);
    const over = () => this.underWay.delete(name);
    promise.then(over, (error: unknown) => {
      over();
      if (!isLeaseError(error) || !codes.includes(error.code)) {
        this.wrongs.push(`${name}: ${String(error)}`);
      }
    });
  }

  check(): void {
    const published = this.incarnations.filter(({ heartbeat, machine }) => {
      return !machine.frozen && heartbeat.isPublished();
    });
    const names = published.map(({ heartbeat }) => heartbeat.holderIdentity);
    if (!this.rough && published.length > 1) this.wrongs.push(`both ${names.join(' and ')}`);
    if (new Set(names).size < names.length) this.wrongs.push(`two are ${names.join()}`);
  }

  operate(): void {
    const item = this.memory.peek(LEASE);
    if (!this.rough || item === undefined) return;
    const drawn = this.random.fraction();
    if (drawn < 0.004) this.memory.poke(LEASE, undefined);
    else if (drawn < 0.008) {
      const version = { N: String((this.record.version ?? 0) + 1) };
      const rest = Object.entries(item).filter(
        ([name]) => !['holderIdentity', 'expireTime'].includes(name),
      );
      this.memory.poke(LEASE, { ...(Object.fromEntries(rest) as Item), version });
    }
  }
}

class Incarnation {
  readonly machine: Machine;
  readonly heartbeat: Heartbeat;
  readonly store: ScriptedStore;
  readonly #world: World;

  constructor(world: World, id: string) {
    this.#world = world;
    this.machine = new Machine(world.clock, (world.random.fraction() - 0.5) * 1_600);
    const { machine: clock } = this;
    this.store = new ScriptedStore({
      clock,
      network: world.clock,
      memory: world.memory,
      script: () => this.#fault(),
    });
    this.heartbeat = new Heartbeat({
      name: 'worker',
      clock,
      store: this.store,
      logger: silent,
      random: new SeededRandom(1, id),
      replace: world.rough && world.chance(0.4),
    });
  }

  act(): void {
    const { heartbeat, machine } = this;
    const world = this.#world;
    if (machine.frozen) return;
    const { state } = heartbeat.health();
    if (['stopped', 'replaced'].includes(state) && world.chance(0.05)) {
      this.start();
      if (world.chance(0.2)) this.stop();
    } else if (world.chance(0.008)) this.stop();
    else if (world.chance(0.03)) this.speak();
    else if (world.chance(0.006)) {
      machine.freeze(world.random.fraction() * 90_000, { monotonicRuns: world.chance(0.5) });
    }
  }

  start(): void {
    const codes = ['lease-held', 'lease-stopped', 'invalid-configuration'];
    this.#world.expectEnd('start', this.heartbeat.start(), ...codes);
  }

  stop(): void {
    this.#world.expectEnd('stop', this.heartbeat.stop());
    if (this.#world.chance(0.3)) this.speak();
  }

  speak(): void {
    const ready = this.#world.chance(0.5);
    this.#world.expectEnd('setReady', this.heartbeat.setReady(ready, ready ? '' : 'why not'));
  }

  #fault(): Fault {
    const world = this.#world;
    const ms = (most: number) => world.random.fraction() * most;
    if (!world.disturbed) return { requestMs: ms(20), answerMs: ms(20) };
    if (world.out) return world.chance(0.5) ? { fail: 'store-unavailable' } : { hang: true };
    const late = world.chance(0.15) ? ms(30_000) : ms(50);
    const fault = { requestMs: late, answerMs: world.chance(0.1) ? ms(6_000) : ms(50) };
    if (world.chance(0.08)) return { ...fault, lose: 'answer' };
    if (world.chance(0.05)) return { ...fault, lose: 'request', hang: true };
    if (world.chance(0.05)) return { ...fault, hang: true, ignoreSignal: true };
    return world.chance(0.1) ? { ...fault, hideItem: true } : fault;
  }
}

async function explore(seed: number): Promise<World> {
  const world = new World(seed);
  for (const id of ['a', 'b', 'c']) world.incarnations.push(new Incarnation(world, id));
  for (let second = 0; second < DISTURBED_S; second++) {
    world.out = world.out ? world.chance(0.95) : world.chance(0.005);
    world.operate();
    for (const incarnation of world.incarnations) incarnation.act();
    for (let part = 0; part < 4; part++) {
      await world.clock.advance(SECOND / 4);
      world.check();
    }
  }
  world.disturbed = false;
  await sleepOn(world, QUIET_S);
  return world;
}

async function sleepOn(world: World, seconds: number): Promise<void> {
  const over = sleep(world.clock, seconds * SECOND);
  for (let second = 0; second <= seconds; second++) {
    await world.clock.advance(SECOND);
    world.check();
  }
  await over;
}

describe(`of incarnations of one worker (SEED=${SEED}, RUNS=${RUNS})`, () => {
  test.each(Array.from({ length: RUNS }, (_, run) => SEED + run))(
    'run %i: two never share a heartbeat, and every call comes to its end',
    async (seed) => {
      const world = await explore(seed);
      expect(world.wrongs).toEqual([]);
      expect([...world.underWay].filter((name) => !name.startsWith('start'))).toEqual([]);

      // Whoever is started now, with nobody else about, beats; whoever stops leaves nothing.
      const [first, ...others] = world.incarnations;
      for (const other of others) other.stop();
      await sleepOn(world, 30);
      if (['stopped', 'replaced'].includes(first!.heartbeat.health().state)) first!.start();
      await sleepOn(world, 60);
      const { holderIdentity, ...health } = first!.heartbeat.health();
      expect(health).toMatchObject({ state: 'beating', problems: [] });
      expect(world.record.holderIdentity).toBe(holderIdentity);
      first!.stop();
      await sleepOn(world, 30);
      expect(world.memory.peek(LEASE)).toBeUndefined();
      expect([...world.underWay]).toEqual([]);
      expect(world.clock.timers).toBe(0);
      expect(world.wrongs).toEqual([]);
    },
    60_000,
  );
});
