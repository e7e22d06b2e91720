// Taking a lease that is free, and giving it back: requests, units and time, beside the bare
// UpdateItem and every peer.
//
// All take turns, cycle by cycle: what else the machine does meets all of them alike.

import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, type Timing } from './crew.ts';
import { contestants } from './peers.ts';
import { goal, type Measured, ms, ratio, spread } from './figures.ts';

const TIMING: Timing = { leaseMs: 10_000, renewMs: 3_000, pollMs: 50 };
const WARM_UP = 20;

export async function uncontended(
  cycles: number,
  names: readonly Name[] = contestants(),
): Promise<Measured> {
  await using crew = await Crew.open();
  const crews = await Promise.all(names.map((name) => crew.driver(name, TIMING)));
  const measured = new Map(names.map((name) => [name, emptyOf(name)]));
  for (let cycle = -WARM_UP; cycle < cycles; cycle++) {
    for (const driver of crews) {
      // The others had their turn between: nobody's connection is fresher than another's.
      const record = measured.get(driver.name)!;
      crew.proxy.reset();
      const key = driver.name === 'powertools' ? `${driver.id}/${cycle}` : driver.id;
      const { ms: acquireMs = NaN, releaseMs = NaN } = await driver.order({ do: 'cycle', key });
      if (cycle < 0) continue;
      const { requests, readUnits, writeUnits } = crew.proxy.counts();
      record.acquireMs.push(acquireMs);
      record.releaseMs.push(releaseMs);
      record.requests += requests / cycles;
      record.readUnits += readUnits / cycles;
      record.writeUnits += writeUnits / cycles;
    }
  }
  const all = [...measured.values()];
  const floor = spread(measured.get('floor')!.acquireMs);
  const own = measured.get('ours')!;
  const took = spread(own.acquireMs);
  return {
    title: 'Taking a free lease, and giving it back',
    how:
      `${cycles} cycles each, taking turns. The floor is one conditional UpdateItem of the bare ` +
      'SDK v3, and one more to give back.',
    rows: all.map((record) => {
      const acquire = spread(record.acquireMs);
      const release = spread(record.releaseMs);
      return {
        '': CONTESTANTS[record.name],
        requests: round(record.requests),
        'read units': round(record.readUnits),
        'write units': round(record.writeUnits),
        'acquire, ms: min': ms(acquire.min),
        median: ms(acquire.median),
        p99: ms(acquire.p99),
        'median to floor': ratio(acquire.median, floor.median),
        'ours to it': ratio(took.median, acquire.median),
        'release, ms: median': ms(release.median),
      };
    }),
    goals: [
      goal('2 requests', own.requests, round(own.requests) === 2),
      goal('0 read units', own.readUnits, own.readUnits === 0),
      goal('2 write units', own.writeUnits, round(own.writeUnits) === 2),
      goal(
        'acquire, median: at most 1.1 times the floor',
        took.median / floor.median,
        took.median <= 1.1 * floor.median,
      ),
      goal(
        'acquire, p99: at most 1.1 times the floor',
        took.p99 / floor.p99,
        took.p99 <= 1.1 * floor.p99,
      ),
    ],
  };
}

function emptyOf(name: Name) {
  return {
    name,
    acquireMs: [] as number[],
    releaseMs: [] as number[],
    requests: 0,
    readUnits: 0,
    writeUnits: 0,
  };
}

function round(value: number): number {
  return Number(value.toFixed(2));
}
