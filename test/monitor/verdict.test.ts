// The design's table of statuses, row by row: what the monitor makes of one lease, and when.

import { describe, expect, test } from 'vitest';
import type { Item } from '../../src/lease.ts';
import {
  at,
  GRACE_S,
  heldSince,
  type HolderOptions,
  OneLease,
  RETENTION_S,
  TOLERATION_S,
  vacated,
  without,
} from './one-lease.ts';

/** By stamps: a lease of 15 s that was renewed at second 0 is overdue from here on. */
const OVERDUE_S = 15 + GRACE_S + 1;

describe('a lease that was renewed at second 0, for 15 s', () => {
  test.each([
    ['is let be while it is held', 14, undefined],
    ['is let be when it has expired', 16, undefined],
    ['is let be at the very end of the grace', 15 + GRACE_S, undefined],
    ['is NotReady once the grace is over', OVERDUE_S, 'NotReady'],
  ])('%s', async (_, second, status) => {
    const lease = new OneLease(heldSince(0, { token: 0 }));
    await lease.look(at(second));
    expect(lease.status).toBe(status);
  });

  test.each([
    ['its toleration is not over', OVERDUE_S + TOLERATION_S - 1, 'NotReady'],
    ['the toleration has passed since the verdict', OVERDUE_S + TOLERATION_S, 'Evicted'],
  ])('when %s', async (_, second, status) => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(OVERDUE_S));
    await lease.look(at(second));
    expect(lease.status).toBe(status);
  });

  test('is tolerated from the verdict on, however late that came', async () => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(7_200));
    expect(lease.status).toBe('NotReady');
    await lease.look(at(7_200 + TOLERATION_S - 1));
    expect(lease.status).toBe('NotReady');
    await lease.look(at(7_200 + TOLERATION_S));
    expect(lease.status).toBe('Evicted');
  });
});

describe('the toleration', () => {
  test('is at least the duration of the record', async () => {
    const lease = new OneLease(heldSince(0, { durationS: 900 }));
    await lease.look(at(1_000));
    await lease.look(at(1_000 + 899));
    expect(lease.status).toBe('NotReady');
    await lease.look(at(1_000 + 900));
    expect(lease.status).toBe('Evicted');
  });

  test.each<[string, Partial<ReturnType<typeof at>>, number]>([
    ['is longer by what a silent zone is given', { extraTolerationMs: 300_000 }, 600],
    ['starts again after the monitor was blind', { tolerationsFromMs: at(200).nowMs }, 356 - 56],
  ])('%s', async (_, change, lastsS) => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(OVERDUE_S));
    const fromS = change.tolerationsFromMs === undefined ? OVERDUE_S : 200;
    await lease.look(at(fromS + lastsS - 1, change));
    expect(lease.status).toBe('NotReady');
    await lease.look(at(fromS + lastsS, change));
    expect(lease.status).toBe('Evicted');
  });

  test('is not shortened by a verdict from a clock that was ahead', async () => {
    const lease = new OneLease(heldSince(86_400));
    await lease.look(at(86_400 + OVERDUE_S));
    // The clock is right again, a day earlier: the verdict would stand for a day and more.
    await lease.look(at(100));
    await lease.look(at(100 + TOLERATION_S - 1));
    expect(lease.status).toBe('NotReady');
    await lease.look(at(100 + TOLERATION_S));
    expect(lease.status).toBe('Evicted');
  });
});

describe('an eviction', () => {
  async function evicted(options: HolderOptions = {}): Promise<OneLease> {
    const lease = new OneLease(heldSince(0, options));
    await lease.watch(OVERDUE_S, OVERDUE_S + TOLERATION_S);
    expect(lease.status).toBe('Evicted');
    return lease;
  }

  test("vacates a leader's lease, keeps its token and moves its version on (L2)", async () => {
    const lease = await evicted({ token: 7, version: 100 });
    expect(lease.record).toMatchObject({
      vacant: true,
      expireTimeMs: undefined,
      leaseTransitions: 7,
      version: 101,
      evicted: true,
    });
  });

  test.each(['heartbeat', 'identity'] as const)('leaves a %s its record', async (kind) => {
    const lease = await evicted({ kind });
    expect(lease.record).toMatchObject({ holderIdentity: 'host/1/a', version: 100 });
  });

  test('tells who was evicted', async () => {
    const lease = await evicted({ token: 0 });
    expect(lease.events).toEqual(['NotReady 56', 'Evicted 356']);
  });

  test('stands until somebody takes the lease', async () => {
    const lease = await evicted({ token: 1 });
    expect(await lease.look(at(100_000_000))).toEqual([]);
    lease.renewed(heldSince(100_000_000, { by: 'host/2/b', token: 2, version: 102 }));
    await lease.look(at(100_000_001));
    expect(lease.events.slice(-2)).toEqual(['Ready 100000001', 'LeaderChanged 100000001']);
    expect(await lease.look(at(100_000_002))).toEqual([]);
  });

  test.each(['heartbeat', 'identity'] as const)('of a %s is taken back by it', async (kind) => {
    const lease = await evicted({ kind });
    lease.renewed(heldSince(400, { kind, version: 101 }));
    await lease.look(at(401));
    expect(lease.status).toBe('Ready');
    expect(lease.events.at(-1)).toBe('Ready 401');
  });

  test.each<[HolderOptions['kind'] & string, boolean]>([
    ['heartbeat', true],
    ['identity', true],
    ['leader', false],
  ])('of a %s is collected long after: %s', async (kind, collected) => {
    const lease = await evicted({ kind });
    await lease.look(at(OVERDUE_S + TOLERATION_S + RETENTION_S));
    expect(lease.item).toBeDefined();
    await lease.look(at(OVERDUE_S + TOLERATION_S + RETENTION_S + 11));
    expect(lease.item === undefined).toBe(collected);
  });

  test('does not happen when the lease was renewed in between', async () => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(OVERDUE_S));
    lease.renewed(heldSince(OVERDUE_S + TOLERATION_S - 1, { version: 101 }));
    await lease.look(at(OVERDUE_S + TOLERATION_S));
    expect(lease.status).toBe('Ready');
  });

  test('does not happen when the lease was renewed in between and fell silent again', async () => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(OVERDUE_S));
    lease.renewed(heldSince(60, { version: 101 }));
    await lease.look(at(OVERDUE_S + TOLERATION_S));
    await lease.look(at(OVERDUE_S + TOLERATION_S + 1));
    expect(lease.status).not.toBe('Evicted');
  });
});

describe('a lease is Ready again', () => {
  const later = (version: number, options: HolderOptions = {}) =>
    heldSince(90, { ...options, version });

  test.each<[string, Item]>([
    ['when it is renewed', later(101)],
    ['when its holder releases it', vacated(heldSince(0))],
    ['when another takes it', later(101, { by: 'host/2/b', token: 2 })],
    ['when it is renewed with a renewTime before the last', later(101, { clockS: -3_600 })],
    ['when it is renewed with a renewTime in the future', later(101, { clockS: 3_600 })],
    ['when it is renewed with no times at all', without(later(101), 'renewTime', 'expireTime')],
    ['when it was deleted and made anew', later(1_700_000_000_000)],
  ])('%s', async (_, item) => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(OVERDUE_S));
    lease.renewed(item);
    await lease.look(at(91));
    expect(lease.status).toBe('Ready');
    expect(lease.events).toContain('Ready 91');
  });
});

describe('while verdicts are frozen', () => {
  const frozen = { frozenUntilMs: at(10_000).nowMs };

  test.each<[string, Item]>([
    ['an expired lease is let be', heldSince(0, { token: 0 })],
    ['a lease without times is let be', without(heldSince(0, { token: 0 }), 'expireTime')],
    ['an overdue job is let be', { ...vacated(heldSince(0)), dueTime: { N: '1' } }],
  ])('%s', async (_, item) => {
    const lease = new OneLease(item);
    await lease.watch(1_000, 9_999 - 11, 1_000);
    await lease.look(at(9_999, frozen));
    const fresh = new OneLease(item);
    await fresh.look(at(9_999, frozen));
    expect(fresh.status ?? 'Ready').toBe('Ready');
    expect(fresh.events).toEqual([]);
  });

  test('nobody is evicted', async () => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(OVERDUE_S));
    await lease.look(at(9_999, frozen));
    expect(lease.status).toBe('NotReady');
  });

  test('who returns is Ready at once', async () => {
    const lease = new OneLease(heldSince(0));
    await lease.look(at(OVERDUE_S));
    lease.renewed(heldSince(5_000, { version: 101 }));
    await lease.look(at(5_001, frozen));
    expect(lease.status).toBe('Ready');
  });
});
