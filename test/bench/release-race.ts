// Releases while a renewal may be under way: how many leave the lease locked for a whole lease.

import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, type Timing } from './crew.ts';
import { goal, type Measured } from './figures.ts';

const TIMING: Timing = { leaseMs: 1_500, renewMs: 20, pollMs: 20 };
const RENEWING: readonly Name[] = ['ours', 'lock-client', 'deliveryhero'];

export async function releaseRace(
  own: number,
  others: number,
  names = RENEWING,
): Promise<Measured> {
  await using crew = await Crew.open();
  const { endpoint } = crew.server;
  const found: { name: Name; times: number; lost: number }[] = [];
  for (const name of names) {
    const times = name === 'ours' ? own : others;
    const driver = await crew.driver(name, TIMING);
    const key = `${name}/race`;
    const { lost = NaN } = await driver.order({
      do: 'raceReleases',
      key,
      times,
      direct: endpoint,
    });
    found.push({ name, times, lost });
    await crew.dismiss(driver);
  }
  const mine = found.find(({ name }) => name === 'ours')!;
  return {
    title: 'Releases lost to a running renewal',
    how:
      `Renewed every ${TIMING.renewMs} ms, released at a random moment; lost when another then ` +
      'finds the lease held.',
    rows: found.map(({ name, times, lost }) => ({
      '': CONTESTANTS[name],
      releases: times,
      lost,
      'in a hundred': ((100 * lost) / times).toFixed(1),
    })),
    goals: [goal(`0 of ${mine.times} lost`, mine.lost, mine.lost === 0)],
  };
}
