// Holders that no clock may judge, and records without what a judgement needs: the monitor watches
// their version.

import { describe, expect, test } from 'vitest';
import type { Item } from '../../src/lease.ts';
import {
  at,
  GRACE_S,
  heldSince,
  type HolderOptions,
  OneLease,
  TOLERATION_S,
  without,
} from './one-lease.ts';

const DURATION_S = 15;

describe('a holder that renews every 10 s', () => {
  const clocks: [string, HolderOptions][] = [
    ['whose clock is right', {}],
    ['whose clock is an hour behind', { clockS: -3_600 }],
    ['whose clock is a day behind', { clockS: -86_400 }],
    ['whose clock is an hour ahead', { clockS: 3_600 }],
    ['that trusts no clocks', { trustsClocks: false }],
    ['that trusts no clocks and has a wrong one', { trustsClocks: false, clockS: -3_600 }],
    // Overdue by its stamps just before each renewal, and just not after it.
    ...[-40, -45, -48, -50, -52, -54, -55, -56, -60].map((clockS): [string, HolderOptions] => [
      `whose clock is ${-clockS} s behind`,
      { clockS },
    ]),
  ];

  describe.each(clocks)('%s', (_, options) => {
    test.each([10, 7, 3, 60])(
      'is never evicted, and does not flap, seen every %i s',
      async (every) => {
        const lease = new OneLease(heldSince(0, { ...options, token: 0 }));
        let version = 100;
        await lease.watch(1, 3_600, every, (second) => {
          const renewals = Math.floor(second / 10);
          if (renewals === version - 100) return;
          version = 100 + renewals;
          lease.renewed(heldSince(renewals * 10, { ...options, token: 0, version }));
        });
        expect(lease.status ?? 'Ready').toBe('Ready');
        const flaps = lease.events.filter((event) => event.startsWith('NotReady'));
        // A clock that is behind is found out once: by its stamps the lease is long expired.
        const behind = (options.clockS ?? 0) < 0 && options.trustsClocks !== false;
        expect(flaps.length).toBeLessThanOrEqual(behind ? 1 : 0);
        expect(lease.events.some((event) => event.startsWith('Evicted'))).toBe(false);
      },
    );

    test('is NotReady and Evicted when it dies', async () => {
      const lease = new OneLease(heldSince(0, { ...options, token: 0 }));
      for (let round = 0; round <= 60; round++) {
        lease.renewed(heldSince(round * 10, { ...options, token: 0, version: 100 + round }));
        await lease.look(at(round * 10 + 1));
      }
      // What was made of it is known now: it is silent from second 600 on.
      const fresh = DURATION_S + GRACE_S;
      await lease.watch(611, 600 + fresh + 30, 10);
      expect(lease.status).toBe('NotReady');
      await lease.watch(600 + fresh + 31, 600 + fresh + 31 + TOLERATION_S, 10);
      expect(lease.status).toBe('Evicted');
      expect(lease.record.vacant).toBe(true);
    });
  });
});

describe('a record that is judged by observation', () => {
  const dead: [string, Item][] = [
    ['without an expireTime', without(heldSince(0), 'expireTime')],
    ['with a text as its expireTime', { ...heldSince(0), expireTime: { S: 'soon' } }],
    ['with a list as its expireTime', { ...heldSince(0), expireTime: { L: [] } }],
    ['that never expires', { ...heldSince(0), expireTime: { N: '9e15' } }],
    ['without any time', without(heldSince(0), 'expireTime', 'renewTime', 'acquireTime')],
    ['with a renewTime in the future', heldSince(86_400)],
    ['with words as its renewTime', { ...heldSince(1e6), renewTime: { S: 'yesterday' } }],
    ['without a version', without(heldSince(0), 'version', 'expireTime')],
    [
      'whose holder has no name',
      { ...without(heldSince(0), 'expireTime'), holderIdentity: { N: '1' } },
    ],
  ];

  test.each(dead)(
    '%s: the first sight is no verdict, but the beginning of one',
    async (_, item) => {
      const lease = new OneLease({ ...item, leaseTransitions: { N: '0' } });
      expect(await lease.look(at(1_000))).toEqual(['flag Ready']);
      expect(lease.events).toEqual([]);
      await lease.look(at(1_000 + DURATION_S + GRACE_S));
      expect(lease.status).toBe('Ready');
      await lease.look(at(1_000 + DURATION_S + GRACE_S + 1));
      expect(lease.verdict).toMatchObject({ status: 'NotReady', reason: 'unchanged' });
      await lease.look(at(1_056 + TOLERATION_S));
      expect(lease.status).toBe('Evicted');
      expect(lease.record.vacant).toBe(true);
      expect(lease.events).toEqual(['NotReady 1056', 'Evicted 1356']);
      expect(await lease.look(at(10_000))).toEqual([]);
    },
  );

  test('with an unreadable duration is given a minute', async () => {
    const item = without({ ...heldSince(0), leaseDurationSeconds: { S: 'long' } }, 'expireTime');
    const lease = new OneLease(item);
    await lease.look(at(0));
    await lease.look(at(60 + GRACE_S));
    expect(lease.status).toBe('Ready');
    await lease.look(at(60 + GRACE_S + 1));
    expect(lease.status).toBe('NotReady');
  });

  test('costs nothing more while its version stands', async () => {
    const lease = new OneLease(heldSince(0, { trustsClocks: false, token: 0 }));
    await lease.look(at(1));
    await lease.look(at(11));
    expect(lease.writes).toBe(1);
  });
});

describe('a record without a version', () => {
  const item = without(heldSince(0), 'version');

  test('is flagged, evicted, and then has one', async () => {
    const lease = new OneLease(item);
    await lease.watch(60, 60 + TOLERATION_S, 10);
    expect(lease.record).toMatchObject({ vacant: true, corrupt: undefined });
    expect(lease.record.version).toBe(at(360).nowMs + 1);
    expect(await lease.look(at(10_000))).toEqual([]);
  });

  test('is Ready again when its renewTime moves on', async () => {
    const by = `function:1/2026/01/01/[1]${'0123456789abcdef'.repeat(2)}/4f9a-uuid`;
    const holder = (second: number) => without(heldSince(second, { by }), 'version');
    const lease = new OneLease(holder(0));
    await lease.look(at(60));
    expect(lease.status).toBe('NotReady');
    lease.renewed(holder(70));
    await lease.look(at(71));
    expect(lease.status).toBe('Ready');
  });
});
