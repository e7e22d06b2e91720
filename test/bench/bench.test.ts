// The benchmark still runs, and counts what it counted: requests and units, not times. Peers take
// part where they are installed, which `npm run bench` sees to.

import { describe, expect, test } from 'vitest';
import { svgOf } from './chart.ts';
import { spread } from './figures.ts';
import { contest } from './contention.ts';
import { lostAnswers } from './lost-answers.ts';
import { refused } from './refused.ts';
import { releaseRace } from './release-race.ts';
import { npmPeersInstalled } from './peers.ts';
import { uncontended } from './uncontended.ts';

const OWN = ['ours', 'floor'] as const;
/** Requests, read and write units of one cycle. */
const CYCLES = {
  ours: [2, 0, 2],
  floor: [2, 0, 2],
  'lock-client': [3, 1, 2],
  'lock-client-closed': [2, 0, 2],
  deliveryhero: [3, 1, 2],
  powertools: [2, 0, 2],
} as const;

function contestantsHere(): readonly (keyof typeof CYCLES)[] {
  if (npmPeersInstalled()) return Object.keys(CYCLES) as (keyof typeof CYCLES)[];
  const message = 'The peers are not installed. Run: npm ci --prefix test/bench/peers';
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`\n!!! Without peers: ${message}\n`);
  return OWN;
}

// Some twenty processes start, on a machine that may be busy.
describe('counts of the benchmark', { timeout: 90_000 }, () => {
  test('a cycle is two writes, as the bare SDK needs; some peers read first', async () => {
    const names = contestantsHere();
    const { rows } = await uncontended(3, names);
    expect(rows.map((row) => [row['requests'], row['read units'], row['write units']])).toEqual(
      names.map((name) => CYCLES[name]),
    );
  });

  test.concurrent('a refusal is one write, and tells of the holder', async () => {
    const { rows } = await refused(2, OWN);
    const counts = { requests: 1, 'read units': 0, 'write units': 1 };
    const tells = 'holder, token, expiry';
    expect(rows).toMatchObject([
      { ...counts, tells },
      { ...counts, tells },
    ]);
  });

  test('ten contenders never overlap, and read at half the price', async () => {
    const found = await contest('ours', 3, 0);
    expect(found.overlaps).toBe(0);
    expect(found.perSecond).toBeGreaterThan(0);
    expect(found.reads).toBeGreaterThan(0);
    expect(found.readUnits).toBeLessThanOrEqual(found.reads / 2);
  });

  test.concurrent('no release is lost to a renewal', async () => {
    const { rows } = await releaseRace(10, 0, ['ours']);
    expect(rows).toMatchObject([{ releases: 10, lost: 0 }]);
  });

  test.concurrent('own writes whose answers were lost are recognised', async () => {
    const { rows } = await lostAnswers(1, ['ours']);
    expect(rows.map(({ lost, recognised }) => [lost, recognised])).toEqual([
      ['answer to acquire', '1 of 1'],
      ['answer to renew', '1 of 1'],
      ['answer to release', '1 of 1'],
    ]);
  });
});

describe('figures', () => {
  test('are of the values, not between them', () => {
    const values = Array.from({ length: 100 }, (_, index) => 100 - index);
    expect(spread(values)).toEqual({ min: 1, median: 50, p99: 99, max: 100 });
    expect(spread([7])).toEqual({ min: 7, median: 7, p99: 7, max: 7 });
  });

  test('are drawn to scale, and names are no markup', () => {
    const bar = { label: '<a>', shown: '', own: true };
    const svg = svgOf({
      file: '',
      title: 'of "two" & more',
      unit: '',
      groups: [{ label: '', bars: [2, 1].map((value) => ({ ...bar, value })) }],
    });
    const widths = [...svg.matchAll(/<rect[^>]* width="([\d.]+)"/g)].map(([, width]) =>
      Number(width),
    );
    expect(widths[0]).toBe(2 * widths[1]!);
    expect(svg).toContain('&lt;a>');
    expect(svg).toContain('aria-label="of &quot;two&quot; &amp; more"');
  });
});
