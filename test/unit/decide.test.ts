// Who may act: every rule of decide(), as a table.

import { describe, expect, test } from 'vitest';
import type { ClockStatus } from '../../src/clock-check.ts';
import { decide, sight, type Judge } from '../../src/decide.ts';
import { readLease, vacantLease, type Item } from '../../src/lease.ts';

const NOW = Date.UTC(2026, 0, 1);
const MONOTONIC = 1_000_000;

const held: Item = {
  kind: { S: 'leader' },
  holderIdentity: { S: 'b' },
  leaseDurationSeconds: { N: '15' },
  renewTime: { S: new Date(NOW - 5_000).toISOString() },
  expireTime: { N: String(NOW + 10_000) },
  leaseTransitions: { N: '4' },
  version: { N: '7' },
};
const without = (...names: string[]): Item =>
  Object.fromEntries(Object.entries(held).filter(([name]) => !names.includes(name)));
const vacant = without('holderIdentity', 'expireTime');

/** Seen at this version for `watchedMs`, by a judge of this kind. */
function decision(
  item: Item,
  { watchedMs = 0, clock = 'checked', trustClocks = true, leaseDurationMs = 1_000 } = {},
) {
  const judge: Judge = {
    now: { wallMs: NOW, monotonicMs: MONOTONIC },
    clock: { kind: clock } as ClockStatus,
    trustClocks,
    leaseDurationMs,
  };
  const seen = { record: readLease('ns/x', item), sinceMonotonicMs: MONOTONIC - watchedMs };
  return decide(seen, judge);
}

const take = (how: 'vacant or expired' | 'asRead') => ({ kind: 'take', how });
const wait = (because: string, forMs: number) => ({ kind: 'wait', because, forMs });

describe('a vacant lease (L3)', () => {
  test.each([
    ['is taken', vacant, {}, take('vacant or expired')],
    ['is taken where there is no record', {}, {}, take('vacant or expired')],
    [
      'is taken as read by a clock that is not checked',
      vacant,
      { clock: 'unchecked' },
      take('asRead'),
    ],
    [
      'is taken as read by one that trusts no clocks',
      vacant,
      { trustClocks: false },
      take('asRead'),
    ],
    [
      'waits for notBefore',
      { ...vacant, notBefore: { N: String(NOW + 3_000) } },
      {},
      wait('not before', 3_001),
    ],
    [
      'waits at notBefore itself',
      { ...vacant, notBefore: { N: String(NOW) } },
      {},
      wait('not before', 1),
    ],
    [
      'is taken after notBefore',
      { ...vacant, notBefore: { N: String(NOW - 1) } },
      {},
      take('vacant or expired'),
    ],
    [
      'leaves notBefore to a clock that is checked',
      { ...vacant, notBefore: { N: String(NOW - 1) } },
      { clock: 'unchecked' },
      wait('clock unchecked', 0),
    ],
    [
      'ignores a notBefore that is no number',
      { ...vacant, notBefore: { S: '9999' } },
      {},
      take('vacant or expired'),
    ],
    [
      'waits while it is suspended',
      { ...vacant, suspended: { M: {} } },
      {},
      wait('suspended', Infinity),
    ],
    [
      'takes any mark for a suspension',
      { ...vacant, suspended: { BOOL: false } },
      {},
      wait('suspended', Infinity),
    ],
  ] as const)('%s', (_, item, judge, expected) => {
    expect(decision(item, judge)).toEqual(expected);
  });
});

describe('a held lease', () => {
  const expired = { ...held, expireTime: { N: String(NOW - 1) } };
  test.each([
    ['is left alone until it expires', held, {}, wait('held', 10_001)],
    [
      'is left alone at the very moment of its expiry',
      { ...held, expireTime: { N: String(NOW) } },
      {},
      wait('held', 1),
    ],
    ['is taken once it has expired by a checked clock', expired, {}, take('vacant or expired')],
    [
      'is taken by a clock that cannot be verified',
      expired,
      { clock: 'unverifiable' },
      take('vacant or expired'),
    ],
    [
      'is left to be asked again while the clock is unchecked',
      expired,
      { clock: 'unchecked' },
      wait('clock unchecked', 0),
    ],
    ['is not judged by a wrong clock', expired, { clock: 'wrong' }, wait('clock unchecked', 0)],
    [
      'is not judged by one that trusts no clocks',
      expired,
      { trustClocks: false },
      wait('held', 15_000),
    ],
    [
      'is taken once it was watched unchanged for its own duration',
      held,
      { watchedMs: 15_000 },
      take('asRead'),
    ],
    ['is left alone a moment before that', held, { watchedMs: 14_999 }, wait('held', 1)],
    [
      'waits its own duration, not the contender’s',
      held,
      { watchedMs: 14_000, leaseDurationMs: 100, trustClocks: false },
      wait('held', 1_000),
    ],
  ] as const)('%s', (_, item, judge, expected) => {
    expect(decision(item, judge)).toEqual(expected);
  });
});

describe('a record with garbage in it is judged by observation', () => {
  test.each([
    ['no expireTime', without('expireTime'), 15_000],
    ['an expireTime that is text', { ...held, expireTime: { S: '0' } }, 15_000],
    ['an expireTime a day ahead', { ...held, expireTime: { N: String(NOW + 86_400_000) } }, 15_000],
    ['an expireTime in the year 9999', { ...held, expireTime: { N: '253402300799999' } }, 15_000],
    [
      'an empty holderIdentity',
      { ...held, holderIdentity: { S: '' }, expireTime: { S: '' } },
      15_000,
    ],
    [
      'a holderIdentity that is a list',
      { ...held, holderIdentity: { L: [] }, expireTime: { NULL: true } },
      15_000,
    ],
    ['no duration', { ...without('leaseDurationSeconds'), expireTime: { S: '' } }, 60_000],
    [
      'a duration of 0',
      { ...held, leaseDurationSeconds: { N: '0' }, expireTime: { S: '' } },
      60_000,
    ],
    [
      'a negative duration',
      { ...held, leaseDurationSeconds: { N: '-1' }, expireTime: { S: '' } },
      60_000,
    ],
    [
      'a duration of 1e300',
      { ...held, leaseDurationSeconds: { N: '1e300' }, expireTime: { S: '' } },
      60_000,
    ],
    [
      'a duration that is text',
      { ...held, leaseDurationSeconds: { S: '15' }, expireTime: { S: '' } },
      60_000,
    ],
    ['no version', { ...without('version'), expireTime: { S: '' } }, 15_000],
  ] as const)('%s: neither free nor held for ever', (_, item, durationMs) => {
    expect(decision(item as Item, { watchedMs: durationMs - 1 })).toEqual(wait('held', 1));
    expect(decision(item as Item, { watchedMs: durationMs })).toEqual(take('asRead'));
  });

  test('an expireTime in 1970 has passed', () => {
    expect(decision({ ...held, expireTime: { N: '0' } })).toEqual(take('vacant or expired'));
  });

  test('the contender’s own duration counts where it is longer than a minute', () => {
    const item = { ...without('leaseDurationSeconds'), expireTime: { S: '' } } as Item;
    expect(decision(item, { leaseDurationMs: 90_000 })).toEqual(wait('held', 90_000));
  });
});

describe('a sighting', () => {
  const seen = sight(undefined, readLease('ns/x', held), 100);
  test('is as old as the answer that first showed the version', () => {
    expect(sight(seen, readLease('ns/x', { ...held }), 900).sinceMonotonicMs).toBe(100);
  });
  test('begins anew with every version', () => {
    const renewed = readLease('ns/x', { ...held, version: { N: '8' } });
    expect(sight(seen, renewed, 900).sinceMonotonicMs).toBe(900);
  });
  test('begins anew, without a version, when holder or renewTime change', () => {
    const none = without('version');
    const first = sight(undefined, readLease('ns/x', none), 100);
    expect(sight(first, readLease('ns/x', none), 900).sinceMonotonicMs).toBe(100);
    const other = { ...none, holderIdentity: { NULL: true } };
    expect(sight(first, readLease('ns/x', other), 900).sinceMonotonicMs).toBe(900);
    const later = { ...none, renewTime: { N: '1' } };
    expect(sight(first, readLease('ns/x', later), 900).sinceMonotonicMs).toBe(900);
  });
  test('begins anew when the record is gone', () => {
    expect(sight(seen, vacantLease('ns/x'), 900).sinceMonotonicMs).toBe(900);
  });
});

describe('a version or a token that is no count', () => {
  test.each([
    ['version', { S: '7' }],
    ['version', { N: '-1' }],
    ['version', { N: '1.5' }],
    ['leaseTransitions', { M: {} }],
    ['leaseTransitions', { N: '9007199254740993' }],
  ] as const)('%s %j makes the record unusable, and names it', (name, value) => {
    const { corrupt } = readLease('ns/x', { ...held, [name]: value });
    expect(corrupt).toContain('"ns/x"');
    expect(corrupt).toContain(name);
    expect(corrupt).toContain(JSON.stringify(value));
    // Nobody who does what it says gives a token or a version for the second time.
    const mended = { version: 'epoch in milliseconds', leaseTransitions: 'more than any token' };
    expect(corrupt).toContain(`Set it to `);
    expect(corrupt).toContain(mended[name]);
    expect(corrupt).not.toMatch(/\b0\b or more/);
  });
});
