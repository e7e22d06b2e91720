// What the filter of a scan shows, and what judge() would do: whatever needs doing is seen, in
// memory as in DynamoDB, and what needs nothing is not paid for again and again.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { holds, type Condition } from '../../src/condition.ts';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import { isoTime, readLease, type Item, type Value } from '../../src/lease.ts';
import { heartbeatsOfZones, suspects } from '../../src/monitor-writes.ts';
import { isOpen, markOf, writeVerdict, type Verdict } from '../../src/stored-verdict.ts';
import { judge } from '../../src/verdict.ts';
import { call } from '../contract/store-under-test.ts';
import {
  availableEngines,
  createLeaseTable,
  type DynamoDBServer,
  putRawItem,
  startDynamoDB,
  testClient,
} from '../support/dynamodb.ts';
import { at, heldSince, RETENTION_S, START_MS, vacated } from './one-lease.ts';

const NOW = at(0);
const FILTER = suspects(NOW.nowMs, NOW.retentionMs);
const SEED = Number(process.env['SEED'] ?? 20_260_101);

/** A small generator of numbers that anybody can repeat (mulberry32). */
function chance(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const GARBAGE: readonly Value[] = [
  { S: '' },
  { S: '12' },
  { S: 'zzz' },
  { NULL: true },
  { BOOL: false },
  { L: [{ N: '1' }] },
  { M: {} },
  { N: '-1' },
  { N: '9e20' },
  { SS: ['a'] },
];

class Records {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = chance(seed);
  }

  pick<T>(...choices: readonly T[]): T {
    return choices[Math.floor(this.#next() * choices.length)]!;
  }

  likely(probability: number): boolean {
    return this.#next() < probability;
  }

  /** Any record at all: each attribute may be missing, or garbage. */
  any(): Item {
    const item: Record<string, Value | undefined> = {
      ...this.#held(),
      ...(this.likely(0.3) ? { dueTime: this.#moment() } : {}),
      ...(this.likely(0.15) ? { suspended: { M: {} } } : {}),
    };
    if (this.likely(0.35)) item['holderIdentity'] = undefined;
    for (const name of Object.keys(item)) {
      if (this.likely(0.06)) item[name] = undefined;
      if (this.likely(0.04)) item[name] = this.pick(...GARBAGE);
    }
    const record = readLease('', present(item));
    if (this.likely(0.75)) Object.assign(item, this.#condition(markOf(record), item['dueTime']));
    return present(item);
  }

  #held(): Record<string, Value | undefined> {
    const second = this.pick(-86_400, -3_600, -500, -100, -56, -55, -54, -16, -1, 0, 5, 6, 3_600);
    const item: Record<string, Value | undefined> = heldSince(second, {
      kind: this.pick('leader', 'heartbeat', 'identity'),
      trustsClocks: this.likely(0.8),
      durationS: this.pick(1, 15, 900),
      token: this.pick(0, 1, 2),
    });
    if (this.likely(0.1)) item['annotations'] = { M: { ready: { S: 'false' } } };
    return item;
  }

  #moment(): Value {
    return { N: String(START_MS + this.pick(-100_000, -1, 0, 1, 100_000)) };
  }

  /** As this library stores it; now and then, as nobody does. */
  #condition(mark: string, dueTime: Value | undefined): Record<string, Value> {
    if (this.likely(0.05)) return { condition: this.pick(...GARBAGE) };
    const due = dueTime !== undefined && 'N' in dueTime ? Number(dueTime.N) : undefined;
    const sinceS = this.pick(-2 * RETENTION_S, -RETENTION_S, -1_000, -300, -299, -10, 0, 100);
    const verdict: Verdict = {
      status: this.pick('Ready', 'NotReady', 'Evicted'),
      reason: this.pick(undefined, 'expired', 'unchanged', 'reported'),
      sinceMs: START_MS + sinceS * 1_000,
      seen: this.pick(mark, mark, '99', ''),
      token: this.pick(0, 1, 2),
      count: 3,
      event: this.likely(0.1)
        ? { type: 'Ready', atMs: START_MS, holderIdentity: 'a', token: 1 }
        : undefined,
      missedDueTimeMs: this.pick(undefined, due, 5),
      mistrusted: this.likely(0.15),
    };
    return {
      condition: writeVerdict(verdict),
      ...(isOpen(verdict) ? { openVerdict: { N: '1' } } : {}),
    };
  }
}

function present(item: Readonly<Record<string, Value | undefined>>): Item {
  return Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}

function records(count: number): Item[] {
  const source = new Records(SEED);
  return Array.from({ length: count }, () => source.any());
}

describe(`of generated records (SEED=${SEED})`, () => {
  test('the filter shows each in which something is to be done', () => {
    const missed: unknown[] = [];
    const kinds = new Map<string, number>();
    for (const item of records(40_000)) {
      const action = judge(readLease('default/watched', item), NOW);
      kinds.set(action.kind, (kinds.get(action.kind) ?? 0) + 1);
      if (action.kind !== 'nothing' && !holds(FILTER, item)) missed.push({ action, item });
    }
    expect(missed).toEqual([]);
    // Control: each kind of action is among them, often.
    for (const kind of ['nothing', 'publish', 'flag', 'evict', 'collect']) {
      expect(kinds.get(kind), kind).toBeGreaterThan(100);
    }
  });

  test('the filter drops many in which nothing is', () => {
    const idle = records(40_000).filter(
      (item) => judge(readLease('default/watched', item), NOW).kind === 'nothing',
    );
    const dropped = idle.filter((item) => !holds(FILTER, item));
    expect(dropped.length / idle.length).toBeGreaterThan(0.3);
  });
});

describe('the filter does not show', () => {
  const verdict: Verdict = {
    status: 'Ready',
    reason: undefined,
    sinceMs: START_MS - 10_000,
    seen: '100',
    token: 1,
    count: 3,
    event: undefined,
    missedDueTimeMs: undefined,
    mistrusted: false,
  };
  const judged = (item: Item, change: Partial<Verdict>): Item => {
    const stored = { ...verdict, ...change };
    return {
      ...item,
      condition: writeVerdict(stored),
      ...(isOpen(stored) ? { openVerdict: { N: '1' } } : {}),
    };
  };
  const evicted = { status: 'Evicted', seen: '101' } as const;
  const future = { N: String(START_MS + 1) };
  const past = { N: String(START_MS - 1) };

  test.each<[string, Item]>([
    ['a vacant lease', vacated(heldSince(-1e6))],
    ['a vacant lease that was judged', judged(vacated(heldSince(-1e6)), {})],
    ['a leader that is known', judged(heldSince(0), {})],
    ['a heartbeat that was never judged', heldSince(0, { kind: 'heartbeat' })],
    ['an identity that was never judged', heldSince(0, { kind: 'identity' })],
    [
      'a lease that an eviction vacated, and that is to stay vacant',
      { ...judged(vacated(heldSince(-1e6)), evicted), suspended: { M: {} } },
    ],
    [
      'a heartbeat that was evicted as it is',
      judged(heldSince(-1e4, { kind: 'heartbeat' }), { ...evicted, seen: '100' }),
    ],
    ['a job that is not due', { ...vacated(heldSince(0)), dueTime: future }],
    [
      'an overdue job that was reported',
      judged({ ...vacated(heldSince(0)), dueTime: past }, { missedDueTimeMs: Number(past.N) }),
    ],
    [
      'an overdue job that is suspended',
      { ...vacated(heldSince(0)), dueTime: past, suspended: { M: {} } },
    ],
  ])('%s', (_, item) => {
    expect(judge(readLease('default/watched', item), NOW)).toEqual({ kind: 'nothing' });
    expect(holds(FILTER, item)).toBe(false);
  });
});

describe.each(availableEngines())('on %s', (engine) => {
  let server: DynamoDBServer;
  let store: DynamoDBStore;
  const client = () => testClient(server.endpoint);
  const generated = records(600);
  const keyOf = (index: number) => `generated/${index}`;

  beforeAll(async () => {
    server = await startDynamoDB({ engine });
    const tableName = await createLeaseTable(server.endpoint);
    const own = client();
    store = new DynamoDBStore({ tableName, client: own });
    for (let start = 0; start < generated.length; start += 50) {
      await Promise.all(
        generated.slice(start, start + 50).map((item, offset) => {
          const record = { ...item, lease: { S: keyOf(start + offset) } };
          return putRawItem(own, tableName, record);
        }),
      );
    }
  });
  afterAll(() => server.stop());

  async function shown(filter: Condition): Promise<string[]> {
    const keys: string[] = [];
    for (let segment = 0; segment < 3; segment++) {
      let after: string | undefined;
      do {
        const page = await store.scan({ ...call(), filter, segment, segments: 3, after });
        keys.push(...page.items.map(({ lease }) => (lease as { S: string }).S));
        after = page.after;
      } while (after !== undefined);
    }
    return keys.sort();
  }

  const expected = (filter: Condition) =>
    generated.flatMap((item, index) => (holds(filter, item) ? [keyOf(index)] : [])).sort();

  test.each<[string, Condition]>([
    ['that something is to be done', FILTER],
    ['the opposite of that', { not: FILTER }],
    ['the heartbeats of zones', heartbeatsOfZones()],
    ['two attributes are the same', { same: ['leaseTransitions', 'condition.token'] }],
    ['two are not', { not: { same: ['condition.seen', 'version'] } }],
    ['a text sorts after', { after: ['renewTime', isoTime(START_MS)] }],
    ['a part of a map is below', { below: ['condition.since', START_MS] }],
    ['a part of a map is missing', { absent: 'condition.event' }],
    ['a part of a map is a text', { equals: ['condition.status', { S: 'Ready' }] }],
  ])('a filter shows what it shows in memory: %s', { timeout: 60_000 }, async (_, filter) => {
    const keys = await shown(filter);
    const wanted = expected(filter);
    const wrong = [
      ...wanted.filter((key) => !keys.includes(key)).map((key) => `not shown: ${key}`),
      ...keys.filter((key) => !wanted.includes(key)).map((key) => `shown: ${key}`),
    ];
    expect(wrong.map((key) => [key, generated[Number(key.split('/')[1])]])).toEqual([]);
    expect(keys.length).toBeGreaterThan(0);
  });
});
