// What a month costs, from measured requests: a job each minute, an elector without and with
// standbys, and heartbeats; at each library's own default times.
//
// Electors run with all times divided by five, and are counted for some of their renewals.

import { setTimeout as sleep } from 'node:timers/promises';
import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, type Driver, type Timing } from './crew.ts';
import { goal, type Measured, type Row } from './figures.ts';
import type { Counts } from '../support/fault-proxy.ts';

const MONTH_S = 30 * 86_400;
/** List prices, us-east-1, on demand, per unit. */
const WRITE_PRICE = 0.625e-6;
const READ_PRICE = 0.125e-6;
const FASTER = 5;

/** As documented: ours 15 and 2 s; the README's 10 and 3 s; its defaults 20 and 5 s. */
const DEFAULTS = {
  ours: { leaseMs: 15_000, renewMs: 2_000, pollMs: 2_000 },
  'lock-client': { leaseMs: 10_000, renewMs: 3_000, pollMs: 3_000 },
  deliveryhero: { leaseMs: 20_000, renewMs: 5_000, pollMs: 5_000 },
} as const satisfies Partial<Record<Name, Timing>>;

type Priced = keyof typeof DEFAULTS;

/** Our heartbeats are renewed every 10 s. The peers know only a lock that is held. */
const HEARTBEATS = 1_000;
const HEARTBEAT_EVERY_S = 10;

export interface Bill {
  readonly name: Priced;
  readonly what: string;
  readonly reads: number;
  readonly writes: number;
  readonly dollars: number;
}

export async function monthlyCost(seconds: number): Promise<Measured> {
  await using crew = await Crew.open();
  const bills: Bill[] = [];
  for (const name of Object.keys(DEFAULTS) as Priced[]) {
    const job = await jobUnits(crew, name);
    bills.push(bill(name, 'a job each minute', job, MONTH_S / 60));
    const alone = await electorUnits(crew, name, 0, seconds);
    const perMonth = MONTH_S / (seconds * FASTER);
    bills.push(bill(name, 'an elector alone', alone, perMonth));
    for (const standbys of [1, 5]) {
      const units = await electorUnits(crew, name, standbys, seconds);
      bills.push(bill(name, `an elector with ${standbys} standing by`, units, perMonth));
    }
    const alike = await electorUnits(crew, name, 5, seconds, DEFAULTS.ours);
    bills.push(bill(name, 'that at 15/2 s for all', alike, perMonth));
    const every = name === 'ours' ? HEARTBEAT_EVERY_S : DEFAULTS[name].renewMs / 1_000;
    const beats = { readUnits: 0, writeUnits: 1 };
    bills.push(bill(name, '1,000 heartbeats', beats, (HEARTBEATS * MONTH_S) / every));
  }
  return shown(bills);
}

type Units = Pick<Counts, 'readUnits' | 'writeUnits'>;

function bill(name: Priced, what: string, units: Units, times: number): Bill {
  const [reads, writes] = [units.readUnits * times, units.writeUnits * times];
  return { name, what, reads, writes, dollars: reads * READ_PRICE + writes * WRITE_PRICE };
}

async function jobUnits(crew: Crew, name: Priced): Promise<Units> {
  const driver = await crew.driver(name, DEFAULTS[name]);
  const key = `${name}/job`;
  await driver.order({ do: 'cycle', key });
  crew.proxy.reset();
  await driver.order({ do: 'cycle', key });
  const { readUnits, writeUnits } = crew.proxy.counts();
  await crew.dismiss(driver);
  return { readUnits, writeUnits };
}

async function electorUnits(
  crew: Crew,
  name: Priced,
  standbys: number,
  seconds: number,
  times: Timing = DEFAULTS[name],
): Promise<Units> {
  const { leaseMs, renewMs, pollMs } = times;
  const timing = {
    leaseMs: leaseMs / FASTER,
    renewMs: renewMs / FASTER,
    pollMs: pollMs / FASTER,
  };
  const key = `${name}/elector/${standbys}/${leaseMs}-${renewMs}/${Math.random()}`;
  const drivers: Driver[] = [];
  for (let each = 0; each <= standbys; each++) {
    const driver = await crew.driver(name, timing);
    drivers.push(driver);
    const acquired = driver.order({ do: 'acquire', key });
    if (each === 0) await acquired;
  }
  await sleep(timing.leaseMs);
  crew.proxy.reset();
  await sleep(1_000 * seconds);
  const { readUnits, writeUnits } = crew.proxy.counts();
  const { held } = await drivers[0]!.order({ do: 'believes', key });
  await crew.dismiss(...drivers);
  // On a machine too busy for it a holder loses its lease, and costs less than it would.
  if (held === true) return { readUnits, writeUnits };
  return electorUnits(crew, name, standbys, seconds, times);
}

function shown(bills: readonly Bill[]): Measured {
  const whats = [...new Set(bills.map(({ what }) => what))];
  const of = (name: Priced, what: string) =>
    bills.find((each) => each.name === name && each.what === what)!;
  const show = (value: number) => Math.round(value).toLocaleString('en');
  const rows = whats.flatMap((what) =>
    (Object.keys(DEFAULTS) as Priced[]).map((name): Row => {
      const { reads, writes, dollars } = of(name, what);
      return {
        what,
        '': CONTESTANTS[name],
        'read units a month': show(reads),
        'write units a month': show(writes),
        'a month': `$${dollars.toFixed(3)}`,
        'ours to it': `${(of('ours', what).dollars / dollars).toFixed(2)}x`,
      };
    }),
  );
  const job = of('ours', 'a job each minute');
  return {
    title: 'A month',
    how:
      'Units measured, at the times that each library has or names by default (ours 15/2 s, ' +
      'dynamodb-lock-client 10/3 s, @deliveryhero 20/5 s); list prices of us-east-1, on demand: ' +
      '$0.625 per million write units, $0.125 per million read units. A month has 30 days. ' +
      'Electors were counted five times as fast. A peer that renews less often is cheaper to ' +
      'hold, and slower to be replaced.',
    rows,
    chart: {
      file: 'monthly-cost.svg',
      title: 'Dollars a month for requests, at default times',
      unit: '$',
      groups: whats
        // In another order of magnitude.
        .filter((what) => !what.includes('heartbeats'))
        .map((what) => ({
          label: what,
          bars: (Object.keys(DEFAULTS) as Priced[]).map((name) => {
            const { dollars } = of(name, what);
            const shown = `$${dollars.toFixed(3)}`;
            return { label: CONTESTANTS[name], value: dollars, shown, own: name === 'ours' };
          }),
        })),
    },
    goals: [
      goal(
        'a job each minute: cheaper than every peer',
        `$${job.dollars.toFixed(3)}`,
        bills.every(
          ({ name, what, dollars }) =>
            what !== job.what || name === 'ours' || job.dollars < dollars,
        ),
      ),
    ],
  };
}
