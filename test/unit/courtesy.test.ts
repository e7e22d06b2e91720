// Who lets whom go first, and for how long: by tokens and times alone.

import { describe, expect, test } from 'vitest';
import { Courtesy, type Place } from '../../src/courtesy.ts';

const PERIOD_MS = 100;
const LEASE = 'default/prize';

/** After `waitedMs`, in which the tokens from `seenToken` on were those of others. */
function placeAfter(fencingToken: number, seenToken: number | undefined, waitedMs: number) {
  const courtesy = new Courtesy();
  courtesy.acquired(LEASE, fencingToken, seenToken, waitedMs);
  courtesy.left(LEASE, 10_000);
  return courtesy.place(LEASE, 10_000, PERIOD_MS);
}

const waited = (): Place => placeAfter(30, 20, 1_100)!;

describe('who never waited', () => {
  function rounds(times: number, courtesy = new Courtesy()): number[] {
    const stoodBack: number[] = [];
    for (let round = 1; round <= times; round++) {
      if (courtesy.place(LEASE, round, PERIOD_MS) !== undefined) stoodBack.push(round);
      courtesy.acquired(LEASE, round, undefined, 0);
      courtesy.left(LEASE, round);
    }
    return stoodBack;
  }

  test('stands back now and then, and less often each time that it is in vain', () => {
    expect(rounds(40)).toEqual([5, 14, 31]);
  });

  test('owes a pause and nothing else', () => {
    const courtesy = new Courtesy();
    rounds(4, courtesy);
    expect(courtesy.place(LEASE, 4, PERIOD_MS)?.alone).toBe(true);
    expect(courtesy.place('default/other', 4, PERIOD_MS)).toBeUndefined();
    expect(courtesy.place(LEASE, 4 + PERIOD_MS + 1, PERIOD_MS)).toBeUndefined();
  });
});

describe('who waited', () => {
  test('lets nearly as many go first', () => {
    const place = waited();
    expect(place.alone).toBe(false);
    expect([31, 36, 38].map((token) => place.ahead(token) > 0)).toEqual([true, true, true]);
    expect(place.isNext(38)).toBe(false);
    expect(place.isNext(39)).toBe(true);
  });

  test('does not look for half of the time that they will take', () => {
    const place = waited();
    // 10 others in 1,100 ms.
    expect(place.patienceMs(30, 10_000, PERIOD_MS)).toBeCloseTo((8.5 * 100) / 2);
    // Slower this time: five in 1,000 ms.
    expect(place.patienceMs(35, 11_000, PERIOD_MS)).toBeCloseTo((3.5 * 200) / 2);
    expect(place.patienceMs(39, 11_000, PERIOD_MS)).toBe(PERIOD_MS / 2);
  });

  test('looks all the same where the queue has gone home', () => {
    const place = waited();
    expect(place.patienceMs(31, 1_000_000, PERIOD_MS)).toBe(8 * PERIOD_MS);
  });

  test('owes no more than a pause where all take their time', () => {
    expect(placeAfter(30, 20, 11 * 4 * PERIOD_MS)?.alone).toBe(false);
    expect(placeAfter(30, 20, 11 * 4 * PERIOD_MS + 1)?.alone).toBe(true);
  });

  test('writes without a look only so often: standing by is cheap', () => {
    const place = waited();
    for (let write = 0; write < 4; write++) {
      expect(place.isNext(40)).toBe(true);
      place.refused();
    }
    expect(place.isNext(40)).toBe(false);
    expect(place.patienceMs(40, 11_000, PERIOD_MS)).toBe(PERIOD_MS);
  });

  test('has its place while it holds the lease as little as when it was away for long', () => {
    const courtesy = new Courtesy();
    courtesy.acquired(LEASE, 30, 20, 1_100);
    expect(courtesy.place(LEASE, 10_000, PERIOD_MS)).toBeUndefined();
    courtesy.left(LEASE, 10_000);
    expect(courtesy.place(LEASE, 10_700, PERIOD_MS)).toBeDefined();
    expect(courtesy.place(LEASE, 10_900, PERIOD_MS)).toBeUndefined();
  });
});

test('a process with many leases forgets the oldest', () => {
  const courtesy = new Courtesy();
  for (let lease = 0; lease < 150; lease++) {
    courtesy.acquired(`default/${lease}`, 30, 20, 1_100);
    courtesy.left(`default/${lease}`, 10_000);
  }
  expect(courtesy.place('default/0', 10_000, PERIOD_MS)).toBeUndefined();
  expect(courtesy.place('default/149', 10_000, PERIOD_MS)).toBeDefined();
});
