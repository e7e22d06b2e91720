// When the silence of many is taken for a fault of ours, and what it costs to find out.

import { describe, expect, test } from 'vitest';
import { isSurelyNormal, zoneMode } from '../../src/zones.ts';
import { Process, Table } from './pass-stage.ts';

describe('a zone', () => {
  test.each([
    [0, 0, 'Normal'],
    [2, 2, 'Normal'],
    [3, 3, 'Full'],
    [3, 2, 'Partial'],
    [3, 1, 'Normal'],
    [20, 10, 'Normal'],
    [20, 11, 'Partial'],
    [20, 20, 'Full'],
  ] as const)('of %i heartbeats, %i of them silent, is %s', (heartbeats, silent, mode) => {
    expect(zoneMode(heartbeats, silent)).toBe(mode);
  });

  test('that is surely normal stays so, however many more are counted', () => {
    for (let silent = 1; silent < 20; silent++) {
      for (let heartbeats = 1; heartbeats < 60; heartbeats++) {
        if (!isSurelyNormal(heartbeats, silent)) continue;
        for (let more = heartbeats; more < 80; more++) {
          expect(zoneMode(more, silent)).toBe('Normal');
        }
      }
    }
  });
});

test('a few silent ones in a large fleet cost no second look at the whole table', async () => {
  const table = new Table();
  const labels = { zone: 'a' };
  for (let worker = 0; worker < 4; worker++) {
    table.hold(`silent-${worker}`, { kind: 'heartbeat', durationS: 40, labels });
  }
  for (let worker = 0; worker < 300; worker++) {
    table.hold(`well-${worker}`, { kind: 'heartbeat', durationS: 3_600, labels });
  }
  const process = new Process(table);
  // The first pass of all sees for the first time; the next ones flag what is silent.
  for (let pass = 0; pass < 20; pass++) {
    await process.whole();
    await table.clock.advance(10_000);
  }
  process.calls.length = 0;
  const report = await process.whole();
  expect(report).toMatchObject({ notReady: 4, zones: { a: 'Normal' } });
  const scans = process.calls.filter(({ what }) => what === 'scan').length;
  // Three records a page: about a hundred pages to find the silent, and a handful to know the rest.
  expect(scans).toBeGreaterThan(100);
  expect(scans).toBeLessThan(120);
});
