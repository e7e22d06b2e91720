// Two to ten electors and three slots, with chance against them: delays, losses, crashes, freezes,
// clocks that are off. What must hold, holds for every seed; a failure names its seed.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { readLease } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { Candidate, SECOND, SeededRandom, untilTold } from '../election/harness.ts';
import { Machine } from '../election/machine.ts';
import type { Call, Fault } from '../support/scripted-store.ts';

const SLOTS = 3;
const FAULTY_MS = 200 * SECOND;
const CALM_MS = 100 * SECOND;
/** Duration, retry period with its jitter, and some rounds of a calm network. */
const RECOVERY_MS = 15 * SECOND + 2 * 2.4 * SECOND + 10 * 100;

interface Member {
  readonly machine: Machine;
  readonly candidate: Candidate;
  alive: boolean;
}

/** `late`: whether requests may also arrive long after their sender gave up. */
class Simulation {
  readonly world = new FakeClock();
  readonly memory = new MemoryStore();
  readonly members: Member[] = [];
  readonly violations: string[] = [];
  /** By slot, in the order in which they were written. */
  readonly tokens: number[][] = Array.from({ length: SLOTS }, () => []);
  most = 0;
  readonly #counted = new WeakSet<Call>();
  readonly #chance: SeededRandom;
  readonly #late: boolean;
  #calm = false;

  constructor(seed: number, late: boolean) {
    this.#chance = new SeededRandom(seed);
    this.#late = late;
  }

  #between(from: number, to: number): number {
    return from + (to - from) * this.#chance.fraction();
  }

  #happens(probability: number): boolean {
    return this.#chance.fraction() < probability;
  }

  /** Who believes, and where. */
  get believers(): (readonly [Candidate, number])[] {
    return this.members
      .filter(({ machine, alive, candidate }) => alive && !machine.frozen && candidate.isLeader)
      .map(({ candidate }) => [candidate, candidate.lease.slot!] as const);
  }

  join(): void {
    const name = `e${this.members.length}`;
    const machine = new Machine(this.world, Math.round(this.#between(-600, 600)));
    const candidate = new Candidate({
      clock: machine,
      network: this.world,
      memory: this.memory,
      name,
      slots: SLOTS,
      seed: this.#chance.fraction() * 2 ** 32,
      script: () => this.#fault(),
      work: (lease) => {
        this.check(`${name} starts in slot ${lease.slot}`);
        // Within any bound: a lease under which work goes on is left to expire.
        return untilTold(this.world, this.#between(0, 2_000))(lease);
      },
      ...(this.#happens(0.3) ? { maxHoldSeconds: this.#between(5, 60) } : {}),
    });
    candidate.store.onEvent = (call) => {
      if (call.kind === 'acquire' && call.outcome === 'applied' && !this.#counted.has(call)) {
        this.#counted.add(call);
        const slot = Number(call.lease.split('/')[2]);
        this.tokens[slot]!.push(this.record(slot).leaseTransitions);
        this.#checkOthers(name, slot);
      }
      this.check(`${name}: ${call.kind} ${call.outcome}`);
    };
    this.members.push({ machine, candidate, alive: true });
    candidate.run();
  }

  record(slot: number) {
    const key = `default/job/${slot}`;
    return readLease(key, this.memory.peek(key) ?? {});
  }

  /** L4 for each slot, and so never more of them than slots. */
  check(when: string): void {
    const { believers } = this;
    this.most = Math.max(this.most, believers.length);
    const slots = new Set(believers.map(([, slot]) => slot));
    if (slots.size < believers.length) {
      const who = believers.map(([{ name }, slot]) => `${name} in ${slot}`).join(', ');
      this.violations.push(`${this.world.read().monotonicMs} ms, ${when}: ${who}`);
    }
  }

  /** Nobody takes a slot while the record of another one names him, unless by a late write. */
  #checkOthers(name: string, taken: number): void {
    if (this.#late) return;
    for (let slot = 0; slot < SLOTS; slot++) {
      const { holderIdentity = '', expireTimeMs = 0 } = this.record(slot);
      const own = new RegExp(`/${name}-\\d+$`).test(holderIdentity);
      if (slot !== taken && own && expireTimeMs > this.world.read().wallMs) {
        this.violations.push(`${name} takes ${taken}, but ${slot} names ${holderIdentity}`);
      }
    }
  }

  #fault(): Fault {
    const usual = { requestMs: this.#between(1, 50), answerMs: this.#between(1, 50) };
    if (this.#calm) return usual;
    const hidden = this.#happens(0.2) ? ({ hideItem: true } as const) : {};
    const chances: readonly (readonly [number, () => Fault])[] = [
      [0.06, () => ({ lose: 'request' })],
      [0.06, () => ({ lose: 'answer' })],
      [0.03, () => ({ hang: true })],
      [0.02, () => ({ hang: true, lose: 'request', ignoreSignal: true })],
      [0.04, () => ({ answerMs: this.#between(100, 5_000) })],
      [0.02, () => ({ fail: 'store-unavailable' })],
      [this.#late ? 0.04 : 0, () => ({ requestMs: this.#between(100, 60_000) })],
    ];
    for (const [probability, fault] of chances) {
      if (this.#happens(probability)) return { ...usual, ...hidden, ...fault() };
    }
    return { ...usual, ...hidden };
  }

  /** What befalls machines: about one thing in 10 s. */
  #mishap(): void {
    const alive = this.members.filter((member) => member.alive && !member.machine.frozen);
    const member = alive[Math.floor(this.#between(0, alive.length))];
    if (member === undefined) return;
    const { machine, candidate } = member;
    switch (Math.floor(this.#between(0, this.#late ? 5 : 3))) {
      case 0:
        member.alive = false;
        machine.crash();
        this.join();
        break;
      case 1:
        candidate.stop();
        member.alive = false;
        this.join();
        break;
      case 2:
        void candidate.elector.stepDown();
        break;
      case 3:
        machine.freeze(this.#between(1_000, 40_000));
        break;
      default:
        machine.freeze(this.#between(1_000, 40_000), { monotonicRuns: false });
    }
  }

  async run(size: number): Promise<void> {
    for (let count = 0; count < size; count++) this.join();
    for (let ms = 0; ms < FAULTY_MS; ms += 250) {
      await this.world.advance(250);
      this.check('in passing');
      if (this.#happens(250 / (10 * SECOND))) this.#mishap();
    }
    this.#calm = true;
  }
}

describe.each([
  ['requests that arrive late or not at all', true],
  ['answers that are lost, and nobody is named by two slots', false],
])('electors of three slots, with %s', (_, late) => {
  test.each(Array.from({ length: 12 }, (_, index) => index + 1))(
    'seed %i: one in each slot at most, rising tokens, and all slots in use again',
    async (seed) => {
      const size = 2 + ((seed * 7) % 9);
      const simulation = new Simulation(seed, late);
      await simulation.run(size);
      const { world } = simulation;

      // Requests of the faulty time arrive for another minute; then faults are over.
      await world.advance(60 * SECOND);
      const wanted = Math.min(SLOTS, size);
      let fewMs = 0;
      for (let ms = 0; ms < CALM_MS; ms += 250) {
        await world.advance(250);
        simulation.check('in the calm');
        // Those that are bounded leave again and again, and come back.
        const bounded = size <= SLOTS;
        fewMs = simulation.believers.length < wanted && !bounded ? fewMs + 250 : 0;
        expect(fewMs, `seed ${seed}: a slot stays free`).toBeLessThan(RECOVERY_MS);
      }
      expect(simulation.violations, `seed ${seed}`).toEqual([]);
      expect(simulation.most, `seed ${seed}`).toBe(wanted);
      for (const tokens of simulation.tokens) {
        expect(tokens, `seed ${seed}`).toEqual(tokens.map((_, index) => index + 1));
      }
      for (const { candidate } of simulation.members) {
        const starts = candidate.told('started').length;
        const stops = candidate.told('stopped').length;
        expect([starts, starts - 1], `seed ${seed}: ${candidate.name}`).toContain(stops);
      }
    },
  );
});
