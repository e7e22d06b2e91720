// What each write of an operator does to which record, on every store.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isoTime, readLease, type Item } from '../../src/lease.ts';
import {
  evict,
  readNotes,
  requestStepDown,
  resume,
  suspend,
  vacate,
  writeNotes,
  type Statement,
} from '../../src/operator-writes.ts';
import { judge } from '../../src/verdict.ts';
import type { LeaseStore } from '../../src/store.ts';
import { acquire, renew, type Write } from '../../src/writes.ts';
import { call, type MakeStore, type StoreUnderTest, UNKNOWN } from './store-under-test.ts';
import { CLAIM, GARBAGE, MINE, STAMP_MS, VACANT, without } from './writes.rows.ts';

const AT_MS = STAMP_MS + 5_000;
const BY: Statement = { atMs: AT_MS, by: 'ada@desk', why: 'stuck' };
const STATED = { M: { since: { S: isoTime(AT_MS) }, by: { S: 'ada@desk' }, why: { S: 'stuck' } } };
const AGAIN: Statement = { ...BY, atMs: AT_MS + 1_000 };
const NEXT_VERSION = { version: { N: '1767000000043' } };
const PENDING: Item = {
  condition: {
    M: {
      status: { S: 'NotReady' },
      since: { N: '1' },
      seen: { N: '1767000000042' },
      token: { N: '3' },
      count: { N: '7' },
      event: { M: { type: { S: 'NotReady' }, at: { N: '1' }, token: { N: '3' } } },
    },
  },
  openVerdict: { N: '1' },
};

/** What is there when the operator looks, what happens before the write, and whether it applies. */
type Row = readonly [string, Item | undefined, Item | undefined | 'as seen', boolean];

const ending: readonly Row[] = [
  ['of a held lease', MINE, 'as seen', true],
  ['of an expired lease', { ...MINE, expireTime: { N: '1' } }, 'as seen', true],
  ['of a suspended lease', { ...MINE, suspended: STATED }, 'as seen', true],
  ['of a lease without a version', without(MINE, 'version'), 'as seen', true],
  ['of one that was renewed', MINE, { ...MINE, ...NEXT_VERSION }, false],
  [
    'of one that changed hands',
    MINE,
    { ...MINE, ...NEXT_VERSION, leaseTransitions: { N: '4' } },
    false,
  ],
  [
    'of one that was given back',
    MINE,
    { ...without(MINE, 'holderIdentity'), ...NEXT_VERSION },
    false,
  ],
  ['of one whose record was deleted', MINE, undefined, false],
  ['of a vacant lease', VACANT, 'as seen', false],
  ['of no record', undefined, 'as seen', false],
  ...Object.entries(GARBAGE).map(
    ([what, version]) =>
      [`of one whose version is ${what}`, { ...MINE, version }, 'as seen', false] as const,
  ),
];

const suspending: readonly Row[] = [
  ['of a held lease', MINE, 'as seen', true],
  ['of a vacant lease', VACANT, 'as seen', true],
  ['of one that was renewed meanwhile', MINE, { ...MINE, ...NEXT_VERSION }, true],
  ['of one whose version is no number', { ...MINE, version: { S: 'x' } }, 'as seen', true],
  ['of one that was suspended meanwhile', MINE, { ...MINE, suspended: { M: {} } }, false],
  ['of one whose suspension cannot be read', { ...MINE, suspended: { S: 'x' } }, 'as seen', false],
  ['of one whose record was deleted', MINE, undefined, false],
  ['of no record', undefined, 'as seen', false],
];

const resuming: readonly Row[] = [
  ['of a suspended lease', { ...MINE, suspended: STATED }, 'as seen', true],
  ['of one whose suspension says nothing', { ...VACANT, suspended: { M: {} } }, 'as seen', true],
  ['of one whose suspension cannot be read', { ...VACANT, suspended: { S: 'x' } }, 'as seen', true],
  ['of one that is not suspended', MINE, 'as seen', false],
  ['of no record', undefined, 'as seen', false],
  [
    'of one that somebody resumed and another suspended again',
    { ...MINE, suspended: STATED },
    { ...MINE, suspended: { M: { since: { S: isoTime(AT_MS + 1) } } } },
    false,
  ],
];

const stepping: readonly Row[] = [
  ['of a held lease', MINE, 'as seen', true],
  ['of one that was asked before', { ...MINE, stepDownRequested: { M: {} } }, 'as seen', true],
  ['of one that was renewed meanwhile', MINE, { ...MINE, ...NEXT_VERSION }, true],
  ['of one whose holder took it anew', MINE, { ...MINE, leaseTransitions: { N: '4' } }, false],
  ['of one that another holds now', MINE, { ...MINE, holderIdentity: { S: 'third' } }, false],
  ['of one that was given back', MINE, VACANT, false],
  ['of a vacant lease', VACANT, 'as seen', false],
  ['of no record', undefined, 'as seen', false],
];

export function operatorWritesContract(name: string, makeStore: MakeStore): void {
  describe(`the writes of operators (${name})`, () => {
    let tested: StoreUnderTest;
    let store: LeaseStore;
    let count = 0;

    beforeAll(async () => {
      tested = await makeStore();
      store = tested.store;
    });

    afterAll(async () => {
      await tested[Symbol.asyncDispose]();
    });

    const read = (lease: string) => store.read(lease, { ...call(), consistent: true });
    const record = async (lease: string) => readLease(lease, (await read(lease)) ?? {});
    const newLease = async (item: Item | undefined) => {
      const lease = `operators/${++count}`;
      if (item !== undefined) await tested.put(lease, { ...item, ...UNKNOWN });
      return lease;
    };

    /** The item after the write, which applies or changes nothing. */
    async function check([, seen, found, applies]: Row, make: (lease: string) => Write) {
      const lease = await newLease(seen);
      const write = make(lease);
      if (found !== 'as seen') {
        if (found === undefined) await remove(lease);
        else await tested.put(lease, { ...found, ...UNKNOWN });
      }
      const before = await read(lease);
      const answer = await store.write(lease, write, call()).catch((error: unknown) => {
        // A server may refuse a comparison or a sum with garbage as a whole.
        expect(error).toMatchObject({ code: 'request-refused' });
        return { kind: 'refused' as const };
      });
      const after = await read(lease);
      expect(answer.kind).toBe(applies ? 'applied' : 'refused');
      if (!applies) expect(after).toEqual(before);
      return { before: before ?? {}, after: after ?? {} };
    }

    async function remove(lease: string) {
      const store = tested.store;
      await store.remove(lease, { not: { absent: 'lease' } }, call());
    }

    const seenAs = (row: Row) => readLease('operators/x', { ...row[1], ...UNKNOWN });

    test.each(ending)('a release %s', async (...row) => {
      const { before, after } = await check(row, () => vacate(seenAs(row), AT_MS));
      if (!row[3]) return;
      const version = 'version' in before ? NEXT_VERSION : { version: { N: String(AT_MS + 1) } };
      expect(after).toEqual({ ...without(before, 'holderIdentity', 'expireTime'), ...version });
    });

    test.each(ending)('an eviction %s', async (...row) => {
      const { before, after } = await check(row, () => evict(seenAs(row), BY));
      if (!row[3]) return;
      expect(after).not.toHaveProperty('holderIdentity');
      expect(after).toMatchObject({
        ...without(before, 'holderIdentity', 'expireTime', 'version'),
        openVerdict: { N: String(AT_MS) },
        condition: {
          M: {
            status: { S: 'Evicted' },
            reason: { S: 'by ada@desk: stuck' },
            event: { M: { type: { S: 'Evicted' }, holder: { S: 'me' } } },
          },
        },
      });
    });

    test('an eviction is one to the monitor: it publishes the event and leaves the rest', async () => {
      const lease = await newLease(MINE);
      await store.write(lease, evict(await record(lease), BY), call());
      const action = judge(await record(lease), {
        nowMs: AT_MS + 1_000,
        graceMs: 40_000,
        tolerationMs: 300_000,
        retentionMs: 1,
        frozenUntilMs: 0,
        tolerationsFromMs: 0,
        extraTolerationMs: 0,
      });
      expect(action).toMatchObject({ kind: 'publish', event: { type: 'Evicted' } });
    });

    test('an eviction overwrites no event that is not published yet', async () => {
      const lease = await newLease({ ...MINE, ...PENDING });
      await store.write(lease, evict(await record(lease), BY), call());
      expect(await read(lease)).toMatchObject({
        condition: {
          M: {
            status: { S: 'Evicted' },
            count: { N: '8' },
            event: { M: { type: { S: 'NotReady' } } },
          },
        },
      });
    });

    test('an eviction of a heartbeat leaves its record to its worker', async () => {
      const heartbeat = { ...MINE, kind: { S: 'heartbeat' } };
      const lease = await newLease(heartbeat);
      await store.write(lease, evict(await record(lease), BY), call());
      expect(await read(lease)).toMatchObject({
        ...heartbeat,
        condition: { M: { status: { S: 'Evicted' } } },
      });
    });

    test('who was released or evicted renews no more', async () => {
      for (const write of [vacate, (seen: ReturnType<typeof seenAs>) => evict(seen, BY)]) {
        const lease = await newLease(MINE);
        await store.write(lease, write(await record(lease), AT_MS), call());
        const renewal = await store.write(lease, renew(CLAIM, 1767000000042), call());
        expect(renewal.kind).toBe('refused');
        const taken = await store.write(lease, acquire(CLAIM, 'vacant'), call());
        expect(taken).toMatchObject({ kind: 'applied', item: { leaseTransitions: { N: '4' } } });
      }
    });

    test.each(suspending)('a suspension %s', async (...row) => {
      const { before, after } = await check(row, () => suspend(BY));
      if (row[3]) expect(after).toEqual({ ...before, suspended: STATED });
    });

    test('a suspension of all slots may create the record, which nobody can take', async () => {
      const lease = await newLease(undefined);
      await store.write(lease, suspend(BY, true), call());
      expect(await read(lease)).toEqual({ lease: { S: lease }, suspended: STATED });
      const taken = await store.write(lease, acquire(CLAIM, 'vacant'), call());
      expect(taken.kind).toBe('refused');
    });

    test.each(resuming)('a resumption %s', async (...row) => {
      const { before, after } = await check(row, () => resume(seenAs(row)));
      if (row[3]) expect(after).toEqual(without(before, 'suspended'));
    });

    test.each(stepping)('a request to step down %s', async (...row) => {
      const { before, after } = await check(row, () => requestStepDown(seenAs(row), BY));
      if (row[3]) expect(after).toEqual({ ...before, stepDownRequested: STATED });
    });

    test('none but an ending raises the version, so the holder renews as if nothing were', async () => {
      const lease = await newLease(MINE);
      const writes = [
        () => suspend(BY),
        (seen: ReturnType<typeof seenAs>) => requestStepDown(seen, AGAIN),
        (seen: ReturnType<typeof seenAs>) =>
          writeNotes(seen, { labels: {}, annotations: { ticket: '7' } }),
        (seen: ReturnType<typeof seenAs>) => resume(seen),
      ];
      for (const write of writes) {
        const answer = await store.write(lease, write(await record(lease)), call());
        expect(answer.kind).toBe('applied');
      }
      const renewal = await store.write(lease, renew(CLAIM, 1767000000042), call());
      expect(renewal.kind).toBe('applied');
    });

    test("operators' notes survive the holder's next acquisition", async () => {
      const lease = await newLease({ ...VACANT, annotations: { M: { host: { S: 'a' } } } });
      const notes = { labels: { stage: 'blue' }, annotations: { ticket: '7', who: 'ada' } };
      await store.write(lease, writeNotes(await record(lease), notes), call());
      await store.write(lease, acquire({ ...CLAIM, labels: { tier: 'gold' } }, 'vacant'), call());
      const now = await record(lease);
      expect(readNotes(now)).toEqual(notes);
      expect(now.annotations).toEqual({ region: 'eu-north-1' });
    });

    test("operators' notes are replaced as they were read, or not at all", async () => {
      const lease = await newLease(VACANT);
      const seen = await record(lease);
      const note = (ticket: string) => ({ labels: {}, annotations: { ticket } });
      expect((await store.write(lease, writeNotes(seen, note('1')), call())).kind).toBe('applied');
      expect((await store.write(lease, writeNotes(seen, note('2')), call())).kind).toBe('refused');
      const newer = writeNotes(await record(lease), note('3'));
      expect((await store.write(lease, newer, call())).kind).toBe('applied');
      const none = { labels: {}, annotations: {} };
      await store.write(lease, writeNotes(await record(lease), none), call());
      expect((await store.write(lease, newer, call())).kind).toBe('refused');
      expect(readNotes(await record(lease))).toEqual(none);
    });

    test('notes create no record', async () => {
      const lease = await newLease(undefined);
      const write = writeNotes(await record(lease), { labels: { a: 'b' }, annotations: {} });
      expect((await store.write(lease, write, call())).kind).toBe('refused');
      expect(await read(lease)).toBeUndefined();
    });
  });
}
