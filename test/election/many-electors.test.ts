// Two to twenty electors and one table, with chance against them: delays, losses, crashes, freezes,
// clocks that are off. What must hold, holds for every seed; a failure names its seed.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type { Call, Fault } from '../support/scripted-store.ts';
import { Candidate, recordIn, SECOND, SeededRandom, untilTold } from './harness.ts';
import { Machine } from './machine.ts';

const FAULTY_MS = 400 * SECOND;
const CALM_MS = 100 * SECOND;
/** Duration, retry period with its jitter, and some round trips of a calm network. */
const RECOVERY_MS = 15 * SECOND + 2.4 * SECOND + 3 * 100;

interface Member {
  readonly machine: Machine;
  readonly candidate: Candidate;
  alive: boolean;
}

class Simulation {
  readonly world = new FakeClock();
  readonly memory = new MemoryStore();
  readonly members: Member[] = [];
  readonly violations: string[] = [];
  /** In the order in which they were written. */
  readonly tokens: number[] = [];
  readonly #counted = new WeakSet<Call>();
  readonly #chance: SeededRandom;
  #calm = false;

  constructor(seed: number) {
    this.#chance = new SeededRandom(seed);
  }

  #between(from: number, to: number): number {
    return from + (to - from) * this.#chance.fraction();
  }

  #happens(probability: number): boolean {
    return this.#chance.fraction() < probability;
  }

  get believers(): Candidate[] {
    return this.members
      .filter(({ machine, alive }) => alive && !machine.frozen)
      .map(({ candidate }) => candidate)
      .filter(({ isLeader }) => isLeader);
  }

  join(): void {
    const name = `e${this.members.length}`;
    // One in eight is off by more than any tolerance, and must not harm the others.
    const offBy = this.#happens(1 / 8) ? this.#between(-30_000, 30_000) : this.#between(-600, 600);
    const machine = new Machine(this.world, Math.round(offBy));
    const candidate = new Candidate({
      clock: machine,
      network: this.world,
      memory: this.memory,
      name,
      seed: this.#chance.fraction() * 2 ** 32,
      script: () => this.#fault(),
      work: (lease) => {
        this.check(`${name} starts with token ${lease.fencingToken}`);
        return untilTold(this.world, this.#between(0, 3_000))(lease);
      },
      ...(this.#happens(0.3) ? { maxHoldSeconds: this.#between(5, 60) } : {}),
    });
    candidate.store.onEvent = (call) => {
      if (call.kind === 'acquire' && call.outcome === 'applied' && !this.#counted.has(call)) {
        this.#counted.add(call);
        this.tokens.push(recordIn(this.memory).leaseTransitions);
      }
      this.check(`${name}: ${call.kind} ${call.outcome}`);
    };
    this.members.push({ machine, candidate, alive: true });
    candidate.run();
  }

  /** L4: at no moment does more than one believe. */
  check(when: string): void {
    const { believers } = this;
    if (believers.length > 1) {
      this.violations.push(
        `${this.world.read().monotonicMs} ms, ${when}: ` +
          `${believers.map(({ name }) => name).join(' and ')} believe`,
      );
    }
  }

  #fault(): Fault {
    const usual = { requestMs: this.#between(1, 50), answerMs: this.#between(1, 50) };
    if (this.#calm) return usual;
    const hidden = this.#happens(0.2) ? ({ hideItem: true } as const) : {};
    const chances: readonly (readonly [number, () => Fault])[] = [
      [0.04, () => ({ lose: 'request' })],
      [0.04, () => ({ lose: 'answer' })],
      [0.03, () => ({ hang: true })],
      [0.02, () => ({ hang: true, lose: 'request', ignoreSignal: true })],
      [0.04, () => ({ requestMs: this.#between(100, 60_000) })],
      [0.04, () => ({ answerMs: this.#between(100, 5_000) })],
      [0.02, () => ({ fail: 'store-unavailable' })],
    ];
    for (const [probability, fault] of chances) {
      if (this.#happens(probability)) return { ...usual, ...hidden, ...fault() };
    }
    return { ...usual, ...hidden };
  }

  /** What befalls machines: about one thing in 20 s. */
  #mishap(size: number): void {
    const { machine, candidate } = this.members[Math.floor(this.#between(0, size))]!;
    const kind = Math.floor(this.#between(0, 6));
    if (machine.frozen) return;
    const leader = this.members.find((member) => member.candidate === this.believers[0]);
    switch (kind) {
      case 0:
        this.#kill(leader ?? this.members[0]!);
        this.join();
        break;
      case 1:
        leader?.machine.freeze(this.#between(1_000, 40_000));
        break;
      case 2:
        machine.freeze(this.#between(1_000, 40_000), { monotonicRuns: false });
        break;
      case 3:
        machine.stepWall(Math.round(this.#between(-20_000, 20_000)));
        break;
      case 4:
        candidate.stop();
        this.join();
        break;
      default:
        void leader?.candidate.elector.stepDown();
    }
  }

  #kill(member: Member): void {
    member.alive = false;
    member.machine.crash();
  }

  async run(size: number): Promise<void> {
    for (let count = 0; count < size; count++) this.join();
    for (let ms = 0; ms < FAULTY_MS; ms += 250) {
      await this.world.advance(250);
      this.check('in passing');
      if (this.#happens(250 / (20 * SECOND))) this.#mishap(this.members.length);
    }
    this.#calm = true;
    // One machine at least is well, and stays so.
    this.join();
    const last = this.members.at(-1)!;
    last.machine.stepWall(this.world.read().wallMs - last.machine.read().wallMs);
  }
}

describe('electors with everything against them', () => {
  const seeds = Array.from({ length: 20 }, (_, index) => index + 1);

  test.each(seeds)(
    'seed %i: one leader at most, rising tokens, and one leader again',
    async (seed) => {
      const simulation = new Simulation(seed);
      await simulation.run(2 + ((seed * 7) % 19));
      const { world } = simulation;

      // Requests of the faulty time arrive for another minute; then faults are over.
      await world.advance(60 * SECOND);
      let vacantMs = 0;
      for (let ms = 0; ms < CALM_MS; ms += 250) {
        await world.advance(250);
        simulation.check('in the calm');
        vacantMs = simulation.believers.length === 0 ? vacantMs + 250 : 0;
        expect(vacantMs, `seed ${seed}: nobody leads`).toBeLessThan(RECOVERY_MS);
      }
      expect(simulation.violations, `seed ${seed}`).toEqual([]);
      const { tokens } = simulation;
      expect(tokens, `seed ${seed}`).toEqual(tokens.map((_, index) => index + 1));
      expect(tokens.length, `seed ${seed}`).toBeGreaterThan(0);
      for (const { candidate } of simulation.members) {
        const starts = candidate.told('started').length;
        const stops = candidate.told('stopped').length;
        expect([starts, starts - 1], `seed ${seed}: ${candidate.name}`).toContain(stops);
      }
    },
  );
});
