// What is said of one lease: its status beside what the monitor thinks of it, and where its logs
// are.

import { describe, expect, test } from 'vitest';
import { readLease, type Item } from '../../src/lease.ts';
import { summarise, type SummaryStatus } from '../../src/lease-summary.ts';
import { logLink } from '../../src/log-link.ts';
import { at, heldSince, OneLease, START_MS, vacated, without } from '../monitor/one-lease.ts';
import { FUNCTION_LOGS, held, judged, NOW_MS, suspended, texts, vacant } from './stage.ts';

const summaryOf = (item: Item, nowMs = NOW_MS) => summarise(readLease('default/a', item), nowMs);

describe('the status', () => {
  const unready = { ...held('default/a', 1), annotations: texts({ ready: 'false' }) };
  test.each<readonly [string, Item, SummaryStatus, string | undefined]>([
    ['held and renewed', held('default/a', 3), 'Ready', undefined],
    ['held at the moment of its expiry', held('default/a', 15), 'Ready', undefined],
    ['held and expired', held('default/a', 16), 'Expired', undefined],
    ['vacant', vacant('default/a'), 'Vacant', undefined],
    [
      'vacant and not to be taken yet',
      vacant('default/a', { notBefore: { N: String(NOW_MS + 1) } }),
      'Vacant',
      'not to be taken yet',
    ],
    ['missing', {}, 'Vacant', undefined],
    ['found silent', judged(held('default/a', 90)), 'NotReady', 'expired'],
    [
      'found silent and renewed since',
      judged(held('default/a', 1), { seen: '99' }),
      'Ready',
      undefined,
    ],
    [
      'unready by its own word, with no monitor to judge it',
      { ...unready, kind: { S: 'heartbeat' } },
      'Ready',
      'says that it is not ready',
    ],
    [
      'unready by its own word, with a reason',
      {
        ...unready,
        kind: { S: 'identity' },
        annotations: texts({ ready: 'false', readyReason: 'no database' }),
      },
      'Ready',
      'says that it is not ready: no database',
    ],
    ['of a leader, who says no such thing', unready, 'Ready', undefined],
    [
      'unready by its own word, and renewed since',
      judged(unready, { reason: 'reported', seen: '99' }),
      'NotReady',
      'says so itself',
    ],
    ['evicted', judged(vacant('default/a'), { status: 'Evicted' }), 'Evicted', 'expired'],
    [
      'evicted and taken since',
      judged(held('default/a', 1), { status: 'Evicted', seen: '99' }),
      'Ready',
      undefined,
    ],
    ['suspended', suspended(vacant('default/a')), 'Suspended', 'by alice: migration'],
    ['suspended while held', suspended(held('default/a', 1)), 'Suspended', 'by alice: migration'],
    [
      'held without an expireTime, and not judged',
      without(held('default/a', 1), 'expireTime'),
      'Unknown',
      'no expireTime to judge by',
    ],
    [
      'held without an expireTime, and watched',
      judged(without(held('default/a', 1), 'expireTime'), { status: 'Ready' }),
      'Ready',
      'no expireTime: watched',
    ],
    [
      'held until long after its duration could end',
      { ...held('default/a', 1), expireTime: { N: '1e300' } },
      'Unknown',
      'no expireTime to judge by',
    ],
    [
      'unusable',
      { ...held('default/a', 1), version: { S: '7' } },
      'Unknown',
      'version or leaseTransitions is not a whole number',
    ],
    [
      'held by who has no name',
      { ...held('default/a', 1), holderIdentity: { N: '7' } },
      'Ready',
      'unreadable holder',
    ],
  ])('of a lease that is %s', (_, item, status, detail) => {
    expect(summaryOf(item)).toMatchObject({ status, detail });
  });

  test('follows the monitor from silence to eviction to the next holder', async () => {
    const lease = new OneLease(heldSince(0));
    const statuses: string[] = [];
    const note = (second: number) =>
      statuses.push(summarise(lease.record, START_MS + second * 1_000).status);
    await lease.watch(0, 600, 10, note);
    expect([...new Set(statuses)]).toEqual(['Ready', 'Expired', 'NotReady', 'Evicted']);
    lease.renewed(heldSince(601, { by: 'host/2/b', token: 2, version: 200 }));
    expect(summarise(lease.record, START_MS + 602_000).status).toBe('Ready');
    lease.renewed(vacated(heldSince(601, { token: 2, version: 201 })));
    await lease.look(at(603));
    expect(summarise(lease.record, START_MS + 604_000).status).toBe('Vacant');
  });
});

describe('the figures', () => {
  test('of a held lease count from its acquisition and to its expiry', () => {
    expect(summaryOf(held('default/a', 3, { token: 9 }))).toMatchObject({
      holderIdentity: 'report:7/stream/default/a',
      ageMs: 3_000,
      leftMs: 12_000,
      token: 9,
    });
  });

  test('of a vacant lease are of nobody', () => {
    const { holderIdentity, ageMs, leftMs } = summaryOf(vacant('default/a'));
    expect([holderIdentity, ageMs, leftMs]).toEqual([undefined, undefined, undefined]);
  });

  test('do not grow with what somebody has put into a record', () => {
    const long = '🔒'.repeat(50_000);
    const item = {
      ...suspended(held('default/a', 1)),
      suspended: texts({ why: long }),
      holderIdentity: { S: `x${long}` },
      annotations: texts({ ...FUNCTION_LOGS, logStream: long, logGroup: long }),
    };
    expect(JSON.stringify(summaryOf(item)).length).toBeLessThan(5_000);
    expect(summaryOf(item).holderIdentity).toMatch(/^x🔒+…$/u);
  });
});

describe('the link to the logs', () => {
  test('leads to the stream, encoded twice with $ for %', () => {
    expect(logLink(FUNCTION_LOGS)).toBe(
      'https://eu-central-1.console.aws.amazon.com/cloudwatch/home?region=eu-central-1' +
        '#logsV2:log-groups/log-group/$252Faws$252Flambda$252Freport/log-events/' +
        '2026$252F01$252F01$252F$255B$2524LATEST$255D0123456789abcdef0123456789abcdef',
    );
  });

  test.each([
    ['its own log group', { logGroup: 'my logs' }, /log-group\/my\$2520logs\/log-events/],
    ['no stream', { logStream: '' }, /\$252Freport$/],
    ['China', { region: 'cn-north-1' }, /^https:\/\/cn-north-1\.console\.amazonaws\.cn\//],
    [
      'GovCloud',
      { region: 'us-gov-west-1' },
      /^https:\/\/us-gov-west-1\.console\.amazonaws-us-gov\.com\//,
    ],
    ['a stream that may have been cut', { logStream: 'x'.repeat(64) }, /\$252Freport$/],
    ['half of a character', { logStream: '\ud800' }, /log-events\/\$25EF\$25BF\$25BD$/],
  ])('with %s', (_, annotations, link) => {
    expect(logLink({ ...FUNCTION_LOGS, ...annotations })).toMatch(link);
  });

  test.each([
    ['a Region that is a host of its own', { region: 'evil.example/' }],
    ['a Region that is markup', { region: '"><script>' }],
    ['a log group that may have been cut', { logGroup: 'x'.repeat(64) }],
  ])('is not made from %s', (_, annotations) => {
    expect(logLink({ ...FUNCTION_LOGS, ...annotations })).toBeUndefined();
  });

  test('is not made where the Region or the function is not known', () => {
    expect(logLink({ function: 'report' })).toBeUndefined();
    expect(logLink({ region: 'eu-central-1', host: 'laptop' })).toBeUndefined();
  });
});
