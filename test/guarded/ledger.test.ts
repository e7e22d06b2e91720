// Exactly once: a job that is delivered two or three times for each tick, killed, frozen, retried
// and left without answers has each tick's effect in the table once. The same without the guard has
// some twice: so the faults are such that it matters.

import { beforeAll, describe, expect, test } from 'vitest';
import { openTable, Site, type Table } from '../integration/fixture.ts';
import { type Ledger, readLedger, sumOf, type Way } from './ledger-job.ts';
import { type Ending, LedgerWorld, type Plan } from './ledger-world.ts';

const seed = Number(process.env['SEED'] ?? 1);
const PERIOD_MS = 60_000;

interface Told {
  readonly tickMs: number;
  readonly ending: Ending;
}

/** Runs the job for so many ticks, with all that may happen to it. */
async function runTicks(ticks: number, way: Way): Promise<{ ledger: Ledger; told: Told[] }> {
  await using table: Table = await openTable('dynoxide');
  await using site = await Site.open(table);
  const world = new LedgerWorld(site, way, seed);
  const told: Told[] = [];
  const running: Promise<unknown>[] = [];
  const between = (low: number, high: number) => low + world.random() * (high - low);

  const plan = (): Plan | undefined =>
    world.random() < 0.4
      ? undefined
      : {
          doom: world.random() < 0.5 ? 'dies' : 'freezes',
          request: 1 + Math.floor(world.random() * 4),
          when: world.random() < 0.5 ? 'before' : 'after',
          forMs: between(1_000, 40_000),
        };
  const deliver = async (tickMs: number): Promise<void> => {
    // Lambda repeats an asynchronous event that failed twice, later.
    for (let attempt = 0; attempt < 3; attempt++) {
      const ending = await world.deliver(tickMs, plan());
      told.push({ tickMs, ending });
      if (!ending.startsWith('failed') && ending !== 'died') return;
      await new Promise<void>((resolve) => world.clock.setTimer(between(1_000, 20_000), resolve));
    }
  };
  for (let tick = 0; tick < ticks; tick++) {
    const tickMs = Math.floor(world.nowMs);
    const deliveries = 2 + Math.floor(world.random() * 2);
    for (let n = 0; n < deliveries; n++) {
      world.clock.setTimer(n === 0 ? 0 : between(0, 45_000), () => running.push(deliver(tickMs)));
    }
    for (let n = 0; n < 2; n++) {
      world.clock.setTimer(between(0, 45_000), () => world.disturbNetwork());
    }
    await world.pass(PERIOD_MS);
  }
  // All that freezes has thawed by then.
  await world.pass(10 * PERIOD_MS);
  site.proxy.clearFaults();
  world.hideServerTime();
  await Promise.all(running);
  // The last one at last, undisturbed.
  const lastMs = Math.floor(world.nowMs);
  const settled = world.deliver(lastMs).then((ending) => told.push({ tickMs: lastMs, ending }));
  await world.pass(PERIOD_MS);
  await settled;
  return { ledger: await readLedger(table.direct, table.tableName), told };
}

const count = (told: readonly Told[], wanted: (told: Told) => boolean) =>
  told.filter(wanted).length;

describe(`a ledger of 300 ticks (seed ${seed})`, () => {
  let ledger: Ledger;
  let told: Told[];
  beforeAll(async () => ({ ledger, told } = await runTicks(300, 'guarded')), 300_000);

  test('has met deaths, failures, duplicates and overlaps', () => {
    const of = (ending: string) => count(told, (each) => each.ending.startsWith(ending));
    expect(of('ran')).toBeGreaterThan(200);
    expect(of('tick done')).toBeGreaterThan(100);
    expect(of('died')).toBeGreaterThan(50);
    expect(of('held')).toBeGreaterThan(20);
    expect(of('failed: lease-lost') + of('failed: store-unavailable')).toBeGreaterThan(10);
  });

  test('has no tick twice', () => {
    expect([...ledger.times].filter(([, times]) => times !== 1)).toEqual([]);
  });

  test('has every tick of which a run or a skip has said that it is done', () => {
    const done = told.filter(({ ending }) => ending === 'ran' || ending === 'tick done');
    expect(done.filter(({ tickMs }) => !ledger.times.has(tickMs))).toEqual([]);
  });

  test('lacks only ticks that a newer one superseded, and few', () => {
    const all = [...new Set(told.map(({ tickMs }) => tickMs))];
    expect(all).toHaveLength(301);
    const lacking = all.filter((tickMs) => !ledger.times.has(tickMs));
    const last = Math.max(...ledger.times.keys());
    expect(lacking.filter((tickMs) => tickMs > last)).toEqual([]);
    expect(lacking.length).toBeLessThan(60);
  });

  test('has the balance that is the sum of its entries', () => {
    expect(ledger.balance).toBe(sumOf(ledger));
    expect(ledger.balance).toBeGreaterThan(0);
  });
});

describe('the same without the guard', () => {
  let ledger: Ledger;
  beforeAll(async () => ({ ledger } = await runTicks(60, 'unguarded')), 100_000);

  test('has some ticks twice', () => {
    expect([...ledger.times].filter(([, times]) => times > 1).length).toBeGreaterThan(3);
  });
});
