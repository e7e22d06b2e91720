// Which events there are, each of them once, and none lost.

import { describe, expect, test } from 'vitest';
import { makeEvent } from '../../src/events.ts';
import type { Item } from '../../src/lease.ts';
import { flag } from '../../src/monitor-writes.ts';
import { readVerdict, writeVerdict } from '../../src/stored-verdict.ts';
import { at, heldSince, OneLease, TOLERATION_S, vacated } from './one-lease.ts';

describe('a change of leader on a live lease', () => {
  test('is announced once', async () => {
    const lease = new OneLease(heldSince(0, { token: 3 }));
    await lease.look(at(1));
    lease.renewed(heldSince(10, { token: 3, version: 101 }));
    await lease.look(at(11));
    expect(lease.events).toEqual(['LeaderChanged 1']);
    lease.renewed(heldSince(20, { by: 'host/2/b', token: 4, version: 102 }));
    await lease.watch(21, 60, 1);
    expect(lease.events).toEqual(['LeaderChanged 1', 'LeaderChanged 21']);
  });

  test('does not hide that the new one is silent', async () => {
    const lease = new OneLease(heldSince(0, { token: 3 }));
    await lease.look(at(1_000));
    expect(lease.events).toEqual(['LeaderChanged 1000', 'NotReady 1000']);
  });

  test.each(['heartbeat', 'identity'] as const)('is none on a %s', async (kind) => {
    const lease = new OneLease(heldSince(0, { kind, token: 3 }));
    expect(await lease.look(at(1))).toEqual([]);
  });
});

describe('an overdue job', () => {
  const due = (item: Item, second: number): Item => ({
    ...item,
    dueTime: { N: String(at(second).nowMs) },
  });

  test.each<[string, Item]>([
    ['on a vacant lease', vacated(heldSince(0, { token: 0 }))],
    ['on a held lease', heldSince(100, { token: 0 })],
  ])('%s is announced once for each dueTime', async (_, item) => {
    const lease = new OneLease(due(item, 100));
    await lease.look(at(100));
    expect(lease.events).toEqual([]);
    await lease.watch(101, 110, 1);
    expect(lease.events).toEqual(['ScheduleMissed 101']);
    lease.renewed(due(item, 105));
    await lease.watch(111, 112, 1);
    expect(lease.events).toEqual(['ScheduleMissed 101', 'ScheduleMissed 111']);
  });

  test('is not announced while it is suspended, and is when it is resumed', async () => {
    const item = due(vacated(heldSince(0)), 100);
    const lease = new OneLease({ ...item, suspended: { M: { by: { S: 'me' } } } });
    await lease.watch(101, 120, 1);
    expect(lease.events).toEqual([]);
    lease.renewed(item);
    await lease.look(at(130));
    expect(lease.events).toEqual(['ScheduleMissed 130']);
  });

  test('is announced beside the silence of its holder', async () => {
    const lease = new OneLease(due(heldSince(0, { token: 0 }), 20));
    await lease.look(at(60));
    expect(lease.events).toEqual(['ScheduleMissed 60', 'NotReady 60']);
  });

  test('leaves an eviction standing', async () => {
    const lease = new OneLease(heldSince(0, { token: 0 }));
    await lease.watch(60, 60 + TOLERATION_S);
    lease.renewed(due(lease.item!, 370));
    await lease.watch(380, 400);
    expect(lease.status).toBe('Evicted');
    expect(lease.events.at(-1)).toBe('ScheduleMissed 380');
  });
});

describe('an event that is not published yet', () => {
  async function recorded(): Promise<OneLease> {
    const lease = new OneLease(heldSince(0, { token: 0 }));
    const action = lease.judge(at(60));
    if (action.kind !== 'flag') throw new Error(action.kind);
    const { condition, openVerdict } = flag(lease.record, action.verdict).set;
    lease.put({ ...lease.item, condition, openVerdict } as Item);
    return lease;
  }

  const afterwards: [string, (lease: OneLease) => void, number][] = [
    ['it is renewed', (lease) => lease.renewed(heldSince(61, { token: 0, version: 101 })), 62],
    ['it is vacated', (lease) => lease.renewed(vacated(heldSince(0))), 62],
    [
      'another takes it',
      (lease) => lease.renewed(heldSince(61, { by: 'b', token: 9, version: 101 })),
      62,
    ],
    ['its toleration is over', () => undefined, 60 + TOLERATION_S],
    ['its job is overdue', (lease) => lease.renewed({ ...lease.item, dueTime: { N: '1' } }), 62],
  ];

  test.each(afterwards)('is never overwritten: %s', async (_, happens, second) => {
    const lease = await recorded();
    happens(lease);
    expect(lease.judge(at(second))).toMatchObject({ kind: 'publish', event: { type: 'NotReady' } });
    await lease.look(at(second));
    expect(lease.events[0]).toBe('NotReady 60');
    expect(new Set(lease.ids).size).toBe(lease.ids.length);
  });

  test('keeps its id and its holder when another takes the lease before', async () => {
    const lease = await recorded();
    const event = () => {
      const verdict = lease.verdict!;
      return makeEvent(lease.record, verdict, verdict.event!);
    };
    const before = event();
    lease.renewed(heldSince(61, { by: 'host/2/b', token: 9, version: 101 }));
    const after = event();
    expect(after.detail.metadata.id).toBe(before.detail.metadata.id);
    expect(after.detail.data).toMatchObject({ holderIdentity: 'host/1/a', fencingToken: 0 });
    // Those of the new holder would lead to the wrong logs.
    expect(after.detail.data.annotations).toEqual({});
    expect(before.detail.data.annotations).toEqual({ logStream: 'logs of host/1/a' });
  });
});

describe('a verdict', () => {
  test('reads as it was written', async () => {
    const lease = new OneLease({ ...heldSince(0, { token: 7 }), dueTime: { N: '12' } });
    for (const second of [60, 61, 400, 10_000]) {
      const action = lease.judge(at(second));
      if (action.kind === 'flag' || action.kind === 'evict') {
        lease.put({ ...lease.item!, condition: writeVerdict(action.verdict) });
        expect(readVerdict(lease.record)).toEqual(action.verdict);
      }
      await lease.look(at(second));
    }
  });

  test('rises in count with each write, also where it says the same', async () => {
    const lease = new OneLease(heldSince(0, { trustsClocks: false, token: 0 }));
    const counts: number[] = [];
    for (let round = 1; round < 5; round++) {
      lease.renewed(heldSince(round, { trustsClocks: false, token: 0, version: 100 + round }));
      await lease.look(at(round));
      counts.push(lease.verdict!.count);
    }
    expect(counts).toEqual([1, 2, 3, 4]);
  });

  test.each<[string, Item[string]]>([
    ['a text', { S: 'Ready' }],
    ['an empty map', { M: {} }],
    ['a status of its own', { M: { status: { S: 'Sleepy' } } }],
    ['a list', { L: [] }],
    ['an event of no type', { M: { status: { S: 'Ready' }, event: { M: {} } } }],
    [
      'an event at no time',
      { M: { status: { S: 'Ready' }, event: { M: { type: { S: 'Ready' } } } } },
    ],
    [
      'an event beyond time',
      { M: { status: { S: 'Ready' }, event: { M: { type: { S: 'Ready' }, at: { N: '1e30' } } } } },
    ],
  ])('that is %s is replaced', async (_, condition) => {
    const lease = new OneLease({ ...heldSince(0), condition });
    await lease.look(at(60));
    expect(lease.verdict).toMatchObject({ status: 'NotReady', event: undefined });
  });
});
