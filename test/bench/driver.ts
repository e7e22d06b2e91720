// One contestant in a process of its own, which does as it is told and times it.
//
// Orders and answers are lines of JSON on standard input and output: `{"id":1,"do":"acquire",…}`,
// `{"id":1,"ok":{…}}` or `{"id":1,"error":"…"}`. Orders may overlap.

import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Contestant, type Held, isHeld, type Name, type Settings } from './contestant.ts';
import { open } from './contestants/open.ts';
import { connectWitness } from '../support/witness.ts';

export interface Order {
  readonly do: keyof typeof orders;
  readonly key: string;
  /** Of `contend`: until when, by wall clock; and how long a section is. */
  readonly untilMs?: number;
  readonly sectionMs?: number;
  readonly witnessPort?: number;
  /** Of `raceReleases`. */
  readonly times?: number;
  readonly direct?: string;
}

export interface Answer {
  readonly ms?: number;
  readonly got?: boolean;
  readonly token?: number | undefined;
  readonly holder?: string | undefined;
  readonly until?: number | undefined;
  /** When, by wall clock, to a fraction of a millisecond. */
  readonly at?: number;
  readonly held?: boolean;
  readonly steps?: readonly number[];
  readonly acquireMs?: readonly number[];
  readonly releaseMs?: number;
  readonly lost?: number;
  readonly failures?: number;
}

const [name = 'ours', id = '', told = '{}'] = process.argv.slice(2);
const settings = JSON.parse(told) as Settings;
const contestant = await open(name as Name, settings);
const holding = new Map<string, Held>();
const stepsOf = new Map<string, number[]>();
const now = (): number => performance.timeOrigin + performance.now();

const orders = {
  /** One whole cycle, without contention. */
  async cycle({ key }: Order): Promise<Answer> {
    const from = performance.now();
    const held = await contestant.tryAcquire(key);
    const ms = performance.now() - from;
    if (!isHeld(held)) throw new Error(`${key} was not free`);
    const releasing = performance.now();
    await held.release();
    return { ms, releaseMs: performance.now() - releasing, token: held.token };
  },
  async tryAcquire({ key }: Order): Promise<Answer> {
    const from = performance.now();
    const answer = await contestant.tryAcquire(key);
    const ms = performance.now() - from;
    if (!isHeld(answer)) return { ms, got: false, ...answer };
    holding.set(key, answer);
    return { ms, got: true, token: answer.token, at: now() };
  },
  async acquire({ key }: Order): Promise<Answer> {
    const from = performance.now();
    const held = await persist(contestant, key);
    holding.set(key, held);
    return { ms: performance.now() - from, got: true, token: held.token, at: now() };
  },
  async release({ key }: Order): Promise<Answer> {
    const from = performance.now();
    await holding.get(key)?.release();
    holding.delete(key);
    return { ms: performance.now() - from, at: now() };
  },
  async believes({ key }: Order): Promise<Answer> {
    return { held: holding.get(key)?.isHeld() ?? false };
  },
  /** Does work under a lease, a step every 20 ms, for as long as the library says it is held. */
  async work({ key }: Order): Promise<Answer> {
    const steps: number[] = [];
    stepsOf.set(key, steps);
    const held = holding.get(key);
    void (async () => {
      while (held?.isHeld() === true && steps.length < 5_000) {
        steps.push(now());
        await sleep(20);
      }
    })();
    return {};
  },
  async steps({ key }: Order): Promise<Answer> {
    return { steps: stepsOf.get(key) ?? [] };
  },
  async contend({ key, untilMs = 0, sectionMs = 0, witnessPort = 0 }: Order): Promise<Answer> {
    using witness = await connectWitness(witnessPort);
    const acquireMs: number[] = [];
    let failures = 0;
    let entries = 0;
    while (Date.now() < untilMs) {
      const from = performance.now();
      const held = await contestant.acquire(key);
      if (held === undefined) {
        failures += 1;
        continue;
      }
      acquireMs.push(performance.now() - from);
      entries += 1;
      // Where there is no token, one that the witness has no quarrel with.
      const token = held.token > 0 ? held.token : entries;
      await witness.enter(key, id, token);
      await sleep(sectionMs);
      await witness.exit(key, id, token);
      await held.release();
    }
    return { acquireMs, failures };
  },
  /** Releases at random moments of short renewals; another then finds the lease free, or not. */
  async raceReleases({ key, times = 1, direct = '' }: Order): Promise<Answer> {
    const rival = await open(name as Name, { ...settings, endpoint: direct });
    let lost = 0;
    const trial = async (lease: string): Promise<void> => {
      const held = await persist(contestant, lease);
      await sleep(40 + 60 * Math.random());
      await held.release();
      const from = performance.now();
      const after = await rival.tryAcquire(lease);
      // A library that tries once may take a whole lease for that.
      const free = isHeld(after) && performance.now() - from < settings.leaseMs / 2;
      if (!free) lost += 1;
      if (isHeld(after)) await after.release();
    };
    const keys = Array.from({ length: times }, (_, index) => `${key}/${index}`);
    await Promise.all(
      Array.from({ length: 5 }, async () => {
        for (let next = keys.pop(); next !== undefined; next = keys.pop()) await trial(next);
      }),
    );
    return { lost };
  },
};

async function persist(by: Contestant, key: string): Promise<Held> {
  for (;;) {
    const held = await by.acquire(key);
    if (held !== undefined) return held;
  }
}

createInterface(process.stdin)
  .on('line', (line) => {
    const { id: number, ...order } = JSON.parse(line) as Order & { id: number };
    orders[order.do](order).then(
      (ok) => say({ id: number, ok }),
      (error: unknown) =>
        say({ id: number, error: error instanceof Error ? error.stack : String(error) }),
    );
  })
  // However the benchmark ends, its drivers do too.
  .on('close', () => process.exit());
say({ id: 0, ok: {} });

function say(answer: object): void {
  process.stdout.write(`${JSON.stringify(answer)}\n`);
}
