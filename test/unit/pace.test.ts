// How one that stands by goes about it, by what it has seen.

import { describe, expect, test } from 'vitest';
import { Pace } from '../../src/pace.ts';

const LEASE = 'default/job';
const seeing = (...tokens: readonly number[]) => {
  const pace = new Pace(2_000);
  for (const leaseTransitions of tokens) pace.saw({ lease: LEASE, leaseTransitions });
  return pace;
};

describe('one that stands by', () => {
  test.each([
    { tokens: [], writes: false, why: 'nothing was seen' },
    { tokens: [7], writes: false, why: 'one look tells of no change' },
    { tokens: [7, 7, 7], writes: false, why: 'one holder keeps it' },
    { tokens: [7, 8], writes: false, why: 'one hand-over is no crowd' },
    { tokens: [7, 9], writes: false, why: 'nor is a look that missed a tenure' },
    { tokens: [7, 8, 9], writes: true, why: 'other hands at every look' },
    { tokens: [7, 8, 9, 12], writes: true, why: 'and so on' },
    { tokens: [7, 8, 9, 9], writes: false, why: 'somebody keeps it now' },
    { tokens: [7, 8, 8, 9], writes: false, why: 'tenures outlast the pauses' },
    { tokens: [7, 8, 3], writes: false, why: 'a record that was put back starts anew' },
  ])('after $tokens writes next: $writes, for $why', ({ tokens, writes }) => {
    expect(seeing(...tokens).writes).toBe(writes);
  });

  test('does not take another slot for other hands', () => {
    const pace = new Pace(2_000);
    for (const [lease, leaseTransitions] of [
      ['default/job/0', 5],
      ['default/job/1', 6],
      ['default/job/0', 7],
    ] as const) {
      pace.saw({ lease, leaseTransitions });
    }
    expect(pace.writes).toBe(false);
  });

  test('pauses twice as long for each strained try, up to eight periods, and back as it eases', () => {
    const pace = new Pace(2_000);
    const after = (strained: boolean) => {
      pace.tried(strained);
      return pace.periodMs;
    };
    expect([true, true, true, true].map(after)).toEqual([4_000, 8_000, 16_000, 16_000]);
    expect([false, true, false, false, false, false].map(after)).toEqual([
      8_000, 16_000, 8_000, 4_000, 2_000, 2_000,
    ]);
  });

  test('spares a strained store its writes', () => {
    const pace = seeing(7, 8, 9);
    pace.tried(true);
    expect(pace.writes).toBe(false);
    pace.tried(false);
    expect(pace.writes).toBe(true);
  });
});
