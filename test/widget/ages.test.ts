// kubectl's way to say how long ago, at both sides of each of its thresholds.

import { describe, expect, test } from 'vitest';
import { humanDuration } from '../../src/ages.ts';

const S = 1_000;
const M = 60 * S;
const H = 60 * M;
const D = 24 * H;
const Y = 365 * D;

describe('an age', () => {
  test.each([
    [-Infinity, '<invalid>'],
    [NaN, '<invalid>'],
    [-2 * S, '<invalid>'],
    [-2 * S + 1, '0s'],
    [-1, '0s'],
    [0, '0s'],
    [S - 1, '0s'],
    [S, '1s'],
    [2 * M - 1, '119s'],
    [2 * M, '2m'],
    [2 * M + 5 * S, '2m5s'],
    [10 * M - S, '9m59s'],
    [10 * M, '10m'],
    [10 * M + 59 * S, '10m'],
    [3 * H - 1, '179m'],
    [3 * H, '3h'],
    [3 * H + 20 * M, '3h20m'],
    [8 * H - M, '7h59m'],
    [8 * H, '8h'],
    [2 * D - 1, '47h'],
    [2 * D, '2d'],
    [3 * D + 4 * H, '3d4h'],
    [8 * D - H, '7d23h'],
    [8 * D, '8d'],
    [2 * Y - 1, '729d'],
    [2 * Y, '2y'],
    [2 * Y + D, '2y1d'],
    [8 * Y - D, '7y364d'],
    [8 * Y + 200 * D, '8y'],
  ])('of %d ms is %s', (ms, said) => {
    expect(humanDuration(ms)).toBe(said);
  });
});
