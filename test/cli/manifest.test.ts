import { describe, expect, test } from 'vitest';
import { changesOf } from '../../src/cli-changes.ts';
import { LEASE_COLUMNS, listed } from '../../src/cli-columns.ts';
import { describeLease } from '../../src/cli-describe.ts';
import { leaseListManifest, leaseManifest } from '../../src/cli-manifest.ts';
import { parseSeconds } from '../../src/cli-run.ts';
import { plain, renderTable } from '../../src/cli-text.ts';
import { isoTime, readLease, type Item } from '../../src/lease.ts';
import { without } from '../contract/writes.rows.ts';
import { expectLeaseList } from './kubernetes.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const HELD: Item = {
  kind: { S: 'leader' },
  holderIdentity: { S: 'a' },
  leaseDurationSeconds: { N: '15.25' },
  acquireTime: { S: isoTime(NOW_MS - 60_000) },
  renewTime: { S: isoTime(NOW_MS - 1_000) },
  expireTime: { N: String(NOW_MS + 14_000) },
  leaseTransitions: { N: '3' },
  version: { N: '1767000000042' },
};
const BEATING: Item = { ...HELD, kind: { S: 'heartbeat' } };
const read = (item: Item) => readLease('default/x', item);
const GARBAGE: Item = Object.fromEntries(
  [...Object.keys(HELD), 'suspended', 'condition', 'run', 'labels', 'annotations', 'operator'].map(
    (name) => [name, { L: [{ NULL: true }] }],
  ),
);

describe('a manifest', () => {
  test('is a Lease of Kubernetes, with the rest in its status', () => {
    const item: Item = {
      ...HELD,
      suspended: { M: { since: { S: isoTime(NOW_MS) }, by: { S: 'ada' } } },
      labels: { M: { tier: { S: 'gold' } } },
      operator: { M: { labels: { M: { tier: { S: 'tin' }, stage: { S: 'blue' } } } } },
    };
    expect(leaseManifest(read(item), NOW_MS)).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: {
        name: 'x',
        namespace: 'default',
        resourceVersion: '1767000000042',
        labels: { tier: 'gold', stage: 'blue' },
      },
      spec: {
        holderIdentity: 'a',
        leaseDurationSeconds: 16,
        acquireTime: '2026-01-01T11:59:00.000000Z',
        renewTime: '2026-01-01T11:59:59.000000Z',
        leaseTransitions: 3,
      },
      status: {
        phase: 'Suspended',
        reason: 'by ada',
        kind: 'leader',
        fencingToken: 3,
        leaseDurationSeconds: 15.25,
        expireTime: '2026-01-01T12:00:14.000Z',
        suspended: { since: '2026-01-01T12:00:00.000Z', by: 'ada' },
      },
    });
  });

  test.each<[string, Item]>([
    ['nothing in it', {}],
    ['garbage everywhere', GARBAGE],
    ['a time beyond the calendar', { ...HELD, expireTime: { N: '1e300' } }],
    ['a year of five digits', { ...HELD, renewTime: { S: '+012026-01-01T00:00:00Z' } }],
    ['a token beyond int32', { ...HELD, leaseTransitions: { N: '99999999999' } }],
  ])('is valid of a record with %s', (_, item) => {
    expectLeaseList(leaseListManifest([leaseManifest(read(item), NOW_MS)]));
    expect(describeLease(read(item), NOW_MS, plain).join('\n')).toMatch(/^Name: +x$/m);
  });
});

describe('a token that is no count', () => {
  const broken = read({ ...HELD, leaseTransitions: { S: 'x' } });

  test('is left out of the manifest, and shown as unknown', () => {
    const { spec, status } = leaseManifest(broken, NOW_MS);
    expect(spec).not.toHaveProperty('leaseTransitions');
    expect(status).not.toHaveProperty('fencingToken');
    expect(status['corrupt']).toMatch(/more than any token/);
    const row = renderTable(LEASE_COLUMNS, [listed(broken, NOW_MS)], {
      paint: plain,
      headers: false,
    });
    expect(row[0]).toMatch(/<unknown>$/);
    const lines = describeLease(broken, NOW_MS, plain).join('\n');
    expect(lines).toMatch(/^Fencing Token: +<unknown>$/m);
  });

  test('is none where there is no attribute: nobody has ever held it', () => {
    expect(leaseManifest(read({}), NOW_MS).spec.leaseTransitions).toBe(0);
  });
});

describe('a description', () => {
  test('tells what somebody needs who has to decide', () => {
    const lines = describeLease(
      read({
        ...HELD,
        annotations: {
          M: {
            function: { S: 'api' },
            region: { S: 'eu-north-1' },
            logStream: { S: '2026/01/01/[7]ab' },
          },
        },
        run: {
          M: {
            end: { N: String(NOW_MS - 5_000) },
            outcome: { S: 'failed' },
            failures: { N: '2' },
            error: { S: 'no\u001b[2J' },
          },
        },
        condition: {
          M: {
            status: { S: 'NotReady' },
            reason: { S: 'expired' },
            since: { N: String(NOW_MS - 90_000) },
            seen: { N: '1767000000042' },
          },
        },
      }),
      NOW_MS,
      plain,
    ).join('\n');
    expect(lines).toMatch(/^Holder: +a$/m);
    expect(lines).toMatch(/^Fencing Token: +3$/m);
    expect(lines).toMatch(/^Expires: +2026-01-01T12:00:14.000Z \(in 14s\)$/m);
    expect(lines).toMatch(/^Logs: +https:\/\/eu-north-1\.console\.aws\.amazon\.com\/cloudwatch/m);
    expect(lines).toMatch(/^Last Run: +failed, ended 2026-01-01T11:59:55.000Z \(5s ago\)$/m);
    expect(lines).toContain('no\\u{1b}[2J');
    expect(lines).toMatch(/NotReady +expired +90s +1767000000042/);
  });
});

describe('what has changed', () => {
  const rest = without(HELD, 'holderIdentity', 'expireTime');
  test.each<[string, Item | undefined, Item | undefined, string[]]>([
    ['a renewal', HELD, { ...HELD, version: { N: '1767000000043' } }, []],
    ['a release', HELD, rest, ['vacant']],
    [
      'an acquisition',
      rest,
      { ...HELD, leaseTransitions: { N: '4' } },
      ['acquired by a (token 4)'],
    ],
    [
      'the same holder, anew',
      HELD,
      { ...HELD, leaseTransitions: { N: '4' } },
      ['acquired by a (token 4)'],
    ],
    [
      'an acquisition without a token',
      rest,
      { ...HELD, leaseTransitions: { S: 'x' } },
      ['acquired by a (token <unknown>)'],
    ],
    [
      'a suspension',
      HELD,
      { ...HELD, suspended: { M: { since: { S: 's' }, by: { S: 'ada' }, why: { S: 'stuck' } } } },
      ['suspended by ada: stuck'],
    ],
    ['a resumption', { ...HELD, suspended: { M: {} } }, HELD, ['resumed']],
    [
      'a request',
      HELD,
      { ...HELD, stepDownRequested: { M: { since: { S: 's' } } } },
      ['asked to step down'],
    ],
    [
      'a worker that says it is not ready',
      BEATING,
      { ...BEATING, annotations: { M: { ready: { S: 'false' }, readyReason: { S: 'no db' } } } },
      ['Ready: says that it is not ready: no db'],
    ],
    ['a deletion', HELD, undefined, ['record deleted']],
    ['a new lease', undefined, HELD, ['new: ready, held by a (token 3), expires in 14s']],
    [
      'an eviction',
      HELD,
      {
        ...rest,
        version: { N: '1767000000043' },
        condition: { M: { status: { S: 'Evicted' }, seen: { N: '1767000000043' } } },
      },
      ['evicted: a'],
    ],
  ])('is told of %s', (_, before, after, told) => {
    const looked = { beforeMs: NOW_MS - 2_000, first: false };
    const changes = changesOf(before && read(before), after && read(after), NOW_MS, looked);
    expect(changes).toEqual(told);
  });

  describe('when only time has passed', () => {
    const later = (beforeMs: number, nowMs: number, item: Item = HELD) =>
      changesOf(read(item), read(item), NOW_MS + nowMs, {
        beforeMs: NOW_MS + beforeMs,
        first: false,
      });
    const expired = 'expired 2s ago, not renewed since 2026-01-01T11:59:59.000Z';

    test('is told of an expiry, once', () => {
      expect(later(12_000, 14_000)).toEqual([]);
      expect(later(14_000, 16_000)).toEqual([expired]);
      expect(later(16_000, 18_000)).toEqual([]);
    });

    test('is told of that of a suspended lease, too', () => {
      const suspended: Item = { ...HELD, suspended: { M: { since: { S: 's' } } } };
      expect(later(14_000, 16_000, suspended)).toEqual([expired]);
    });

    test('is told that a holder lives after all', () => {
      const renewed = { ...HELD, expireTime: { N: String(NOW_MS + 30_000) } };
      const looked = { beforeMs: NOW_MS + 16_000, first: false };
      const changes = changesOf(read(HELD), read(renewed), NOW_MS + 18_000, looked);
      expect(changes).toEqual(['Ready']);
    });

    test('is told nothing of a vacant lease', () => {
      expect(later(0, 1e9, { ...rest, notBefore: { N: String(NOW_MS + 5) } })).toEqual([]);
    });
  });
});

describe('a duration', () => {
  test.each([
    ['90', 90],
    ['15s', 15],
    ['1m30s', 90],
    ['500ms', 0.5],
    ['1.5h', 5_400],
  ])('%s is %d seconds', (text, seconds) => {
    expect(parseSeconds('--wait', text)).toBe(seconds);
  });

  test.each(['', '0', '-5', '5x', 's', '5 s', 'report', '1e9', '400000h', 'NaN'])(
    'is not %j',
    (text) => {
      expect(() => parseSeconds('--wait', text)).toThrow(/--wait is .*must be a duration/);
    },
  );
});
