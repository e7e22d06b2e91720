// A short storm, `npm run chaos` for longer ones: real processes, killed, frozen, with wrong clocks,
// behind a network that loses, delays and cuts, on a server that is killed and started again.

import { describe, expect, test } from 'vitest';
import { judge, type History } from './judge.ts';
import { runStorm } from './run.ts';

describe('real processes under fire', () => {
  test('never two at work, no token back, no write lost, nothing past the guard', async () => {
    const { report } = await runStorm({ seed: 20_261_129, seconds: 30, contenders: 6 });
    expect(report.broken).toEqual([]);
    expect(report.tenures).toBeGreaterThan(2);
  }, 150_000);

  test('the storm sees it when a worker is deaf to its signal and writes unguarded', async () => {
    const { report } = await runStorm({
      seed: 3,
      seconds: 25,
      contenders: 3,
      manner: 'deaf',
      only: ['leader frozen'],
    });
    expect(report.stepsAfterThaw).toBeGreaterThan(0);
    expect(report.broken).not.toEqual([]);
  }, 150_000);
});

describe('the judge', () => {
  const section = { key: 'prize', id: 'a', token: 1, enteredAt: 0, steps: [], endedAt: 5 };
  const fine: History = {
    sections: [
      { ...section, ended: 'exit' },
      { ...section, id: 'b', token: 2, enteredAt: 105, endedAt: 200, ended: 'reported' },
      { ...section, id: 'c', token: 3, enteredAt: 5_200, endedAt: undefined, ended: undefined },
    ],
    overlaps: [],
    strays: [],
    freezes: [{ id: 'b', fromMs: 210, toMs: 300 }],
    regressions: [],
    told: [{ did: 'written' }, { did: 'written' }, { did: 'refused' }, { did: 'unknown', why: '' }],
    crashes: [],
    ledger: { writes: 3, lastToken: 3 },
    recoveredMs: 1_000,
  };

  test('finds nothing wrong where nothing is, and measures', () => {
    expect(judge(fine)).toMatchObject({
      broken: [],
      tenures: 3,
      takeovers: { count: 1, medianSeconds: 5 },
      handOvers: { count: 1, medianSeconds: 0.1 },
      refusedGuardedWrites: 1,
    });
  });

  test('who is frozen overlaps nobody, but is held to what it does when it wakes up', () => {
    const [a, b, c] = fine.sections;
    const overlaps = [{ inside: b!, entered: c! }];
    expect(judge({ ...fine, overlaps }).broken).toEqual(['1 two at work at once']);
    const freezes = [{ id: 'b', fromMs: 150, toMs: 6_000 }];
    expect(judge({ ...fine, overlaps, freezes })).toMatchObject({
      broken: [],
      takeovers: { count: 1, medianSeconds: 5.05 },
    });
    const late = { ...b!, steps: [120, 6_100] };
    expect(judge({ ...fine, sections: [a!, late, c!], freezes }).broken).toEqual([
      '1 steps of a holder that was over',
    ]);
  });

  const [first] = fine.sections;
  test.each<[string, Partial<History>]>([
    ['two at work', { overlaps: [{ inside: first!, entered: first! }] }],
    ['over', { strays: [{ do: 'step', key: 'prize', id: 'a', token: 1 }] }],
    ['tokens', { regressions: [first!] }],
    ['guard', { told: [{ did: 'written' }, { did: 'violated', why: '' }] }],
    ['not in the ledger', { ledger: { writes: 1, lastToken: 3 } }],
    ['nobody led', { recoveredMs: undefined }],
    ['no guarded write', { told: [] }],
    ['c7 ended', { crashes: ['c7 ended with 1'] }],
  ])('says so: %s', (words, change) => {
    expect(judge({ ...fine, ...change }).broken.join()).toContain(words);
  });
});
