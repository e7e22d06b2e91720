// From the release of one to the acquisition of another that stands by.

import { setTimeout as sleep } from 'node:timers/promises';
import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, type Timing } from './crew.ts';
import { contestants } from './peers.ts';
import { goal, type Measured, ms, spread } from './figures.ts';

const TIMING: Timing = { leaseMs: 2_000, renewMs: 500, pollMs: 50 };
const AT_ONCE = 4;

export async function handOver(own: number, others: number): Promise<Measured> {
  await using crew = await Crew.open();
  const names = contestants().filter((name) => name !== 'powertools');
  const found: { name: Name; tookMs: number[] }[] = [];
  for (const name of names) {
    const times = name === 'ours' || name === 'floor' ? own : others;
    found.push({ name, tookMs: await handOvers(crew, name, times) });
  }
  const [mine] = found.filter(({ name }) => name === 'ours');
  const took = spread(mine!.tookMs);
  const late = mine!.tookMs.filter((each) => each >= TIMING.leaseMs / 2).length;
  return {
    title: 'Hand-over after a clean release',
    how:
      `One holds and renews, one stands by, looking every ${TIMING.pollMs} ms where that can be set; ` +
      `leases of ${TIMING.leaseMs} ms. From the release's answer to the other's acquisition.`,
    rows: found.map(({ name, tookMs }) => {
      const each = spread(tookMs);
      return {
        '': CONTESTANTS[name],
        'hand-overs': tookMs.length,
        'ms: min': ms(each.min),
        median: ms(each.median),
        p99: ms(each.p99),
        max: ms(each.max),
        'ours to it': (took.median / each.median).toFixed(2) + 'x',
      };
    }),
    goals: [
      goal('median at most 60 ms', took.median, took.median <= 60),
      goal(`none of a lease's length in ${mine!.tookMs.length}`, late, late === 0),
    ],
  };
}

async function handOvers(crew: Crew, name: Name, times: number): Promise<number[]> {
  // Looks and renewals have settings of their own, where one option does not set both.
  const timing = TIMING;
  const [a, b] = [await crew.driver(name, timing), await crew.driver(name, timing)];
  const tookMs: number[] = [];
  async function lane(key: string, rounds: number): Promise<void> {
    let [holder, other] = [a, b];
    await holder.order({ do: 'acquire', key });
    for (let round = 0; round < rounds; round++) {
      const acquiring = other.order({ do: 'acquire', key });
      await sleep(100 + 200 * Math.random());
      const { at: releasedAt = NaN } = await holder.order({ do: 'release', key });
      const { at = NaN } = await acquiring;
      tookMs.push(at - releasedAt);
      [holder, other] = [other, holder];
    }
    await holder.order({ do: 'release', key });
  }
  const lanes = Array.from({ length: AT_ONCE }, (_, index) =>
    lane(`${name}/hand-over/${index}`, Math.ceil(times / AT_ONCE)),
  );
  await Promise.all(lanes);
  await crew.dismiss(a, b);
  return tookMs;
}
