// What a LeaseStore must do, whatever keeps the records. Every row is one that all stores must
// agree on: where they differed, a test in memory would prove nothing about the table.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Value } from '../../src/lease.ts';
import type { AttributeName } from '../../src/schema.ts';
import type { LeaseStore, StoreCall } from '../../src/store.ts';
import type { Condition } from '../../src/condition.ts';
import type { Write } from '../../src/writes.ts';
import {
  call,
  type MakeStore,
  NOT_A_NUMBER,
  type StoreUnderTest,
  UNKNOWN,
} from './store-under-test.ts';

const ALWAYS: Condition = { not: { equals: ['kind', { S: 'no such kind' }] } };
const NEVER: Condition = { equals: ['kind', { S: 'no such kind' }] };

export function storeContract(name: string, makeStore: MakeStore): void {
  describe(`a lease store (${name})`, () => {
    let tested: StoreUnderTest;
    let store: LeaseStore;
    let count = 0;
    const newLease = () => `contract/${++count}`;
    const read = (lease: string) => store.read(lease, { ...call(), consistent: true });
    const write = (lease: string, change: Partial<Write>) =>
      store.write(lease, { condition: ALWAYS, set: {}, remove: [], ...change }, call());

    beforeAll(async () => {
      tested = await makeStore();
      store = tested.store;
    });

    afterAll(async () => {
      await tested[Symbol.asyncDispose]();
    });

    describe('a write', () => {
      test('creates the record, and answers with it', async () => {
        const lease = newLease();
        const set = { kind: { S: 'leader' }, version: { incrementFrom: 1_700_000_000_000 } };
        const item = {
          lease: { S: lease },
          kind: { S: 'leader' },
          version: { N: '1700000000001' },
        };
        expect(await write(lease, { set, remove: ['run'] })).toEqual({ kind: 'applied', item });
        expect(await read(lease)).toEqual(item);
      });

      test('leaves alone what it does not name, and answers with that too', async () => {
        const lease = newLease();
        await tested.put(lease, { ...UNKNOWN, version: { N: '4' }, expireTime: { S: 'soon' } });
        const set = { version: { incrementFrom: 0 }, labels: { M: { a: { S: 'b' } } } };
        const item = { ...UNKNOWN, lease: { S: lease }, version: { N: '5' }, labels: set.labels };
        const answer = await write(lease, { set, remove: ['expireTime', 'notBefore'] });
        expect(answer).toEqual({ kind: 'applied', item });
        expect(await read(lease)).toEqual(item);
      });

      test('may name every attribute of a lease, reserved words among them', async () => {
        const lease = newLease();
        await write(lease, { set: EVERY_ATTRIBUTE });
        expect(await read(lease)).toEqual({ ...EVERY_ATTRIBUTE, lease: { S: lease } });
        const condition: Condition = {
          all: attributeNames.map((each) => ({ not: { absent: each } })),
        };
        const kind = { S: 'identity' };
        const remove = attributeNames.filter((each) => each !== 'kind');
        expect(await write(lease, { condition, set: { kind }, remove })).toMatchObject({
          item: { kind },
        });
        expect(await read(lease)).toEqual({ lease: { S: lease }, kind });
      });

      test('replaces a value by one of another type', async () => {
        const lease = newLease();
        await tested.put(lease, { run: { L: [] }, dueTime: { S: 'never' } });
        const set = { run: { M: {} }, dueTime: { N: '1' } };
        await write(lease, { set });
        expect(await read(lease)).toEqual({ lease: { S: lease }, ...set });
      });

      test.each([
        ['an absent attribute, from the given count', undefined, '1700000000001'],
        ['a number, whatever count is given', '41', '42'],
        ['zero', '0', '1'],
        ['a negative number', '-1', '0'],
        ['a fraction', '0.5', '1.5'],
        ['the second largest whole number that is safe', '9007199254740990', '9007199254740991'],
      ])('raises %s by one', async (_, from, to) => {
        const lease = newLease();
        await tested.put(lease, from === undefined ? {} : { version: { N: from } });
        await write(lease, { set: { version: { incrementFrom: 1_700_000_000_000 } } });
        expect(await read(lease)).toMatchObject({ version: { N: to } });
      });

      test.each(Object.entries(NOT_A_NUMBER))(
        'that should count up from %s is refused, and changes nothing',
        async (_, value) => {
          const lease = newLease();
          const attributes = { leaseTransitions: value, dueTime: { N: '1' } };
          await tested.put(lease, attributes);
          const set = { leaseTransitions: { incrementFrom: 0 }, run: { S: 'x' } } as const;
          await expect(write(lease, { set, remove: ['dueTime'] })).rejects.toMatchObject({
            name: 'LeaseError',
            code: 'request-refused',
          });
          expect(await read(lease)).toEqual({ lease: { S: lease }, ...attributes });
        },
      );

      test('is refused by its condition before it can count up from garbage', async () => {
        const lease = newLease();
        await tested.put(lease, { version: { S: '7' } });
        const set = { version: { incrementFrom: 0 } };
        expect(await write(lease, { condition: NEVER, set })).toMatchObject({ kind: 'refused' });
      });

      test.each([
        '9007199254740991',
        '-9007199254740991',
        '1790000000000123',
        '0.001',
        '0.1',
        '12345678901234567890123456789012345678',
        '-0.00000000000000000000012345678901234567',
      ])('keeps the number %s exactly', async (number) => {
        const lease = newLease();
        await write(lease, { set: { dueTime: { N: number } } });
        expect(await read(lease)).toMatchObject({ dueTime: { N: number } });
        const condition: Condition = { equals: ['dueTime', { N: number }] };
        expect(await write(lease, { condition, set: { run: { S: 'x' } } })).toMatchObject({
          kind: 'applied',
        });
      });
    });

    describe('a refused write', () => {
      test('changes nothing, and shows the record where the server does', async () => {
        const lease = newLease();
        await tested.put(lease, { ...UNKNOWN, version: { N: '1' } });
        const item = { ...UNKNOWN, lease: { S: lease }, version: { N: '1' } };
        const set = { version: { incrementFrom: 0 } };
        const answer = await write(lease, { condition: NEVER, set, remove: ['run'] });
        expect(answer).toEqual({
          kind: 'refused',
          item: tested.showsRefusedItem ? item : undefined,
        });
        expect(await read(lease)).toEqual(item);
      });

      test('of a record that does not exist creates none, and shows none', async () => {
        const lease = newLease();
        const answer = await write(lease, { condition: NEVER, set: { run: { S: 'x' } } });
        expect(answer).toEqual({ kind: 'refused', item: undefined });
        expect(await read(lease)).toBeUndefined();
      });
    });

    describe('of many writers at once', () => {
      test('lets exactly one create the record, and shows the others its record', async () => {
        const lease = newLease();
        const answers = await Promise.all(
          Array.from({ length: 8 }, (_, writer) =>
            write(lease, {
              condition: { absent: 'holderIdentity' },
              set: { holderIdentity: { S: `writer ${writer}` } },
            }),
          ),
        );
        const item = await read(lease);
        const [won, ...others] = answers.filter(({ kind }) => kind === 'applied');
        expect(won).toEqual({ kind: 'applied', item });
        expect(others).toEqual([]);
        if (!tested.showsRefusedItem) return;
        for (const lost of answers.filter(({ kind }) => kind === 'refused')) {
          expect(lost).toEqual({ kind: 'refused', item });
        }
      });

      test('lets exactly one swap a version, again and again (L1)', async () => {
        const lease = newLease();
        await tested.put(lease, { version: { N: '0' } });
        for (let version = 0; version < 5; version++) {
          const condition: Condition = { equals: ['version', { N: String(version) }] };
          const swap = { condition, set: { version: { N: String(version + 1) } } };
          const answers = await Promise.all(Array.from({ length: 8 }, () => write(lease, swap)));
          expect(answers.filter(({ kind }) => kind === 'applied')).toHaveLength(1);
        }
        expect(await read(lease)).toMatchObject({ version: { N: '5' } });
      });
    });

    describe('a read', () => {
      test('of a record that does not exist is undefined', async () => {
        const lease = newLease();
        expect(await read(lease)).toBeUndefined();
        expect(await store.read(lease, { ...call(), consistent: false })).toBeUndefined();
      });

      test('that is consistent sees every write that was answered before', async () => {
        const lease = newLease();
        for (let version = 1; version <= 20; version++) {
          await write(lease, { set: { version: { N: String(version) } } });
          expect(await read(lease)).toMatchObject({ version: { N: String(version) } });
        }
      });
    });

    describe('a call', () => {
      const operations: [string, (lease: string, call: StoreCall) => Promise<unknown>][] = [
        ['a read', (lease, call) => store.read(lease, { ...call, consistent: true })],
        ['a write', (lease, call) => store.write(lease, writeOf(ALWAYS), call)],
        ['a refused write', (lease, call) => store.write(lease, writeOf(NEVER), call)],
      ];

      test.each(operations)('that is %s tells of its attempt and of its Date', async (_, send) => {
        const events: string[] = [];
        const attempt = () => {
          events.push('sent');
          return (date: string | undefined) => {
            events.push(Number.isNaN(Date.parse(date ?? '')) ? `no Date: ${date}` : 'dated');
          };
        };
        await send(newLease(), { ...call(), attempt });
        expect(events).toEqual(['sent', 'dated']);
      });

      test.each(operations)('that is %s and aborted cannot tell (L7)', async (_, send) => {
        const aborting = new AbortController();
        const sent = send(newLease(), { ...call(), signal: aborting.signal });
        aborting.abort();
        await expect(sent).rejects.toMatchObject({
          name: 'LeaseError',
          code: 'store-unavailable',
        });
      });

      test('that was aborted before it began changes nothing', async () => {
        const lease = newLease();
        const signal = AbortSignal.abort();
        await expect(
          store.write(lease, writeOf(ALWAYS), { ...call(), signal }),
        ).rejects.toMatchObject({ code: 'store-unavailable' });
        expect(await read(lease)).toBeUndefined();
      });
    });
  });
}

function writeOf(condition: Condition): Write {
  return { condition, set: { run: { S: 'x' } }, remove: [] };
}

const EVERY_ATTRIBUTE: Readonly<Record<AttributeName, Value>> = {
  kind: { S: 'leader' },
  holderIdentity: { S: 'a/b/c' },
  leaseDurationSeconds: { N: '14.999' },
  acquireTime: { S: '2026-01-01T00:00:00.000Z' },
  renewTime: { S: '2026-01-01T00:00:00.001Z' },
  expireTime: { N: '1767225615000' },
  leaseTransitions: { N: '3' },
  version: { N: '1767225600007' },
  notBefore: { N: '1767225600000' },
  lastTick: { N: '1767225600000' },
  dueTime: { N: '1767225600000' },
  run: { M: { outcome: { S: 'completed' } } },
  suspended: { M: { by: { S: 'me' } } },
  stepDownRequested: { M: {} },
  operator: { M: { count: { N: '1' } } },
  labels: { M: { tier: { S: 'gold' } } },
  annotations: { M: { region: { S: 'eu-north-1' } } },
  condition: { M: { status: { S: 'Ready' } } },
  openVerdict: { N: '1' },
  pass: { M: { at: { N: '1' } } },
  timeToLive: { N: '1767225600' },
};
const attributeNames = Object.keys(EVERY_ATTRIBUTE) as AttributeName[];
