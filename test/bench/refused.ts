// Asking for a lease that another holds: how long until "no", what that costs, what it tells.

import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, type Timing } from './crew.ts';
import { contestants } from './peers.ts';
import { goal, type Measured, ms, ratio, spread } from './figures.ts';

const TIMING: Timing = { leaseMs: 1_500, renewMs: 400, pollMs: 50 };
/** A peer that waits a lease for its answer is not asked as often. */
const SLOW_MS = 200;
const TIMES_OF_SLOW = 5;

export async function refused(
  times: number,
  names: readonly Name[] = contestants(),
): Promise<Measured> {
  await using crew = await Crew.open();
  const pairs = await Promise.all(
    names.map(async (name) => {
      // Of the holder nothing is counted. One that is not renewed lasts.
      const lasting = name === 'floor' || name === 'powertools';
      // Ours has one period for looks and renewals.
      const renewing = { ...TIMING, pollMs: TIMING.renewMs };
      const timing = lasting ? { ...TIMING, leaseMs: 3_600_000 } : renewing;
      const holder = await crew.driver(name, timing, true);
      const asker = await crew.driver(name, TIMING);
      await holder.order({ do: 'acquire', key: name });
      await asker.order({ do: 'cycle', key: `${name}/warm` });
      return { name, asker, tookMs: [] as number[], requests: 0, units: [0, 0], told: '' };
    }),
  );
  for (let round = 0; round < times; round++) {
    for (const pair of pairs) {
      const slow = pair.name !== 'ours' && Math.min(...pair.tookMs) > SLOW_MS;
      if (slow && pair.tookMs.length >= TIMES_OF_SLOW) continue;
      crew.proxy.reset();
      const answer = await pair.asker.order({ do: 'tryAcquire', key: pair.name });
      if (answer.got === true) throw new Error(`${pair.name} took what another holds`);
      const { requests, readUnits, writeUnits } = crew.proxy.counts();
      pair.tookMs.push(answer.ms ?? NaN);
      pair.requests += requests;
      pair.units = [pair.units[0]! + readUnits, pair.units[1]! + writeUnits];
      const { holder, token, until } = answer;
      pair.told = [holder && 'holder', token && 'token', until && 'expiry'].filter(Boolean).join();
    }
  }
  const of = (name: string) => pairs.find((pair) => pair.name === name)!;
  const floor = spread(of('floor').tookMs);
  const own = spread(of('ours').tookMs);
  return {
    title: 'A refused attempt',
    how:
      `A live holder in another process; ${times} attempts each, taking turns (${TIMES_OF_SLOW} of ` +
      `those that take a lease for one; leases of ${TIMING.leaseMs} ms). Per attempt.`,
    rows: pairs.map((pair) => {
      const took = spread(pair.tookMs);
      const per = (sum: number) => Number((sum / pair.tookMs.length).toFixed(2));
      return {
        '': CONTESTANTS[pair.name],
        requests: per(pair.requests),
        'read units': per(pair.units[0]!),
        'write units': per(pair.units[1]!),
        'ms: min': ms(took.min),
        median: ms(took.median),
        p99: ms(took.p99),
        'median to floor': ratio(took.median, floor.median),
        'ours to it': ratio(own.median, took.median),
        tells: pair.told === '' ? 'no more' : pair.told.replaceAll(',', ', '),
      };
    }),
    goals: [
      goal('1 request', of('ours').requests / times, of('ours').requests === times),
      goal(
        'median at most 1.15 times the floor',
        own.median / floor.median,
        own.median <= 1.15 * floor.median,
      ),
      goal(
        'tells holder, token and expiry',
        of('ours').told,
        of('ours').told === 'holder,token,expiry',
      ),
    ],
  };
}
