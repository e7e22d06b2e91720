// A seeded explorer: workers that live, die, return and release, with clocks of every kind; monitors
// that overlap, disagree about the time, are killed, frozen and cut off; events that are refused,
// operators who delete. Nobody who renews is evicted, whoever is dead is, and every event arrives.

import { describe, expect, test } from 'vitest';
import { sleep, type Clock } from '../../src/clock.ts';
import type { Item } from '../../src/lease.ts';
import { readLease } from '../../src/lease.ts';
import { readVerdict } from '../../src/stored-verdict.ts';
import { heldSince, vacated, type HolderOptions } from '../monitor/one-lease.ts';
import { OWN_LEASE, Process, Table } from '../monitor/pass-stage.ts';

const RUNS = Number(process.env['RUNS'] ?? 12);
const SEED = Number(process.env['SEED'] ?? 1);
const GRACE_S = 20;
const TOLERATION_S = 90;
const DISTURBED_S = 900;
const QUIET_S = 900;

function chance(seed: number): () => number {
  let state = Math.imul(seed, 0x9e3779b1) >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Life = 'lives' | 'dies' | 'comes and goes' | 'is deleted';

class Witnessed extends Table {
  /** By true time: when a holder last wrote to it. */
  readonly writtenS = new Map<string, number>();

  override watch(lease: string, before: Item | undefined, after: Item | undefined): void {
    super.watch(lease, before, after);
    if (lease === OWN_LEASE) return;
    if (before === undefined && after !== undefined) this.wrongs.push(`${lease} was put back`);
    const old = readLease(lease, before ?? {});
    const now = readLease(lease, after ?? {});
    const status = readVerdict(now)?.status;
    if (after !== undefined && now.leaseTransitions < old.leaseTransitions) {
      this.wrongs.push(`${lease} lost its token`);
    }
    const untouched = old.version === now.version && old.holderIdentity === now.holderIdentity;
    const evicts = status === 'Evicted' && readVerdict(old)?.status !== 'Evicted';
    if (after !== undefined && !untouched && !evicts) {
      this.wrongs.push(`${lease} was changed without an eviction`);
    }
    if (!evicts) return;
    const silentS = this.nowS - (this.writtenS.get(lease) ?? 0);
    const durationS = (old.leaseDurationMs ?? 60_000) / 1_000;
    // Two monitors' clocks differ by less than two seconds.
    if (silentS < Math.max(TOLERATION_S, durationS) - 2) {
      this.wrongs.push(`${lease} was evicted after ${silentS} s of silence`);
    }
  }
}

class Worker {
  readonly name: string;
  readonly life: Life;
  readonly options: HolderOptions;
  readonly everyS: number;
  readonly #table: Witnessed;
  readonly #next: () => number;
  #alive = true;
  #token = 1;
  #version = 1_000;
  #dueS: number;

  constructor(table: Witnessed, n: number, next: () => number) {
    const pick = <T>(...choices: readonly T[]) => choices[Math.floor(next() * choices.length)]!;
    this.#table = table;
    this.#next = next;
    this.life = pick<Life>('lives', 'lives', 'dies', 'comes and goes', 'is deleted');
    this.name = `${n}-${this.life.replaceAll(' ', '-')}`;
    const durationS = pick(6, 15, 40, 120);
    this.everyS = durationS * pick(0.25, 0.3);
    this.options = {
      kind: pick('leader', 'heartbeat', 'identity'),
      durationS,
      trustsClocks: next() < 0.8,
      clockS: pick(0, 0, 0, -1.5, 1.5, -600, 600, -100_000),
      labels: pick<Record<string, string>>({}, { zone: 'a' }, { zone: 'b' }),
    };
    this.#dueS = table.nowS + next() * this.everyS;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** Once a second. */
  act(disturbed: boolean): void {
    const table = this.#table;
    const chanceOf = (rate: number) => disturbed && this.#next() < rate;
    if (this.life !== 'lives' && this.#alive && chanceOf(0.005)) this.#end();
    if (this.life === 'comes and goes' && !this.#alive && chanceOf(0.008)) {
      this.#alive = true;
      this.#token += 1;
      this.#dueS = table.nowS;
    }
    if (!this.#alive || table.nowS < this.#dueS) return;
    this.#dueS = table.nowS + this.everyS;
    this.#version += 1;
    const by = `host/${this.name}/${this.#token}`;
    const stamps = { ...this.options, by, token: this.#token, version: this.#version };
    const lease = table.put(this.name, heldSince(table.nowS, stamps));
    table.writtenS.set(lease, table.nowS);
  }

  #end(): void {
    const lease = `default/${this.name}`;
    const item = this.#table.memory.peek(lease);
    this.#alive = false;
    if (this.life === 'is deleted') this.#table.memory.poke(lease, undefined);
    else if (item !== undefined && this.#next() < 0.3) {
      this.#version += 1;
      this.#table.put(this.name, vacated(item));
      this.#table.writtenS.set(lease, this.#table.nowS);
    }
  }
}

/** A machine whose wall clock is a little off. */
function skewed(clock: Clock, byMs: number): Clock {
  return {
    read: () => {
      const { wallMs, monotonicMs } = clock.read();
      return { wallMs: wallMs + byMs, monotonicMs };
    },
    setTimer: (delayMs, run) => clock.setTimer(delayMs, run),
  };
}

async function explore(seed: number): Promise<{ table: Witnessed; workers: Worker[] }> {
  const next = chance(seed);
  const table = new Witnessed();
  const workers = Array.from({ length: 8 }, (_, n) => new Worker(table, n, next));
  const newMonitor = (disturbed: boolean) => {
    const process = new Process(table, {
      clock: skewed(table.clock, disturbed ? (next() - 0.5) * 1_600 : 0),
      graceSeconds: GRACE_S,
      tolerationSeconds: TOLERATION_S,
    });
    if (!disturbed) return { process, busy: false, untilS: Infinity };
    const faulty = next() < 0.5;
    process.accepts = () => !faulty || next() < 0.6;
    process.before = async ({ what }) => {
      const late = what === 'write' ? 0.3 : 0.03;
      if (faulty && next() < late) await sleep(table.clock, next() * 20_000);
    };
    const kill = { effect: Math.floor(next() * 12), fault: 'killed after' as const };
    const faults = ['killed before', 'killed after', 'fails before', 'fails after'] as const;
    if (faulty) process.fault = { ...kill, fault: faults[Math.floor(next() * 4)]! };
    return { process, busy: false, untilS: table.nowS + 20 + next() * 100 };
  };
  let monitors = [newMonitor(false)];
  for (let second = 0; second < DISTURBED_S + QUIET_S; second++) {
    const disturbed = second < DISTURBED_S;
    table.out = disturbed && (table.out ? next() < 0.9 : next() < 0.002);
    for (const worker of workers) worker.act(disturbed);
    if (!disturbed && second === DISTURBED_S) monitors = [newMonitor(false)];
    monitors = monitors.filter(({ process, untilS }) => !process.dead && untilS > table.nowS);
    while (monitors.length < (disturbed ? 2 : 1)) monitors.push(newMonitor(disturbed));
    for (const monitor of monitors) {
      if (monitor.busy || (second + monitors.indexOf(monitor) * 3) % 7 !== 0) continue;
      monitor.busy = true;
      void monitor.process.monitor.pass().then(() => (monitor.busy = false));
    }
    await table.clock.advance(1_000);
  }
  return { table, workers };
}

describe(`of monitors and workers (SEED=${SEED}, RUNS=${RUNS})`, () => {
  test.each(Array.from({ length: RUNS }, (_, run) => SEED + run))(
    'run %i: nobody who renews is evicted, and whoever is dead is',
    async (seed) => {
      const { table, workers } = await explore(seed);
      // By clocks that differ a newer verdict may seem older.
      const wrongs = table.wrongs.filter((wrong) => !wrong.includes('older verdict'));
      expect(wrongs).toEqual([]);
      expect(table.unpublished()).toEqual([]);
      expect(new Set(table.recorded).size).toBe(table.recorded.length);
      const events = table.published.map(
        ({ detailType, detail }) => `${detail.data.name}: ${detailType}`,
      );
      for (const { name, life, alive, options } of workers) {
        const { vacant, raw } = table.record(name);
        const exists = Object.keys(raw).length > 0;
        const gone = !exists || (vacant && table.status(name) !== 'NotReady');
        const expected = alive ? ['Ready', undefined] : ['Evicted'];
        const described = `${name} ${JSON.stringify(options)} is ${table.status(name) ?? 'unseen'}`;
        expect(gone || expected.includes(table.status(name)), described).toBe(true);
        if (life !== 'lives') continue;
        expect(events).not.toContain(`${name}: Lease Evicted`);
        if (Math.abs(options.clockS ?? 0) < 2) {
          expect(events).not.toContain(`${name}: Lease Not Ready`);
        }
      }
    },
    60_000,
  );
});
