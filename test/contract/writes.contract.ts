// What each write of a lease does to which record: truth tables, which every store must agree on
// row by row.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isoTime, readLease, type Item, type Value } from '../../src/lease.ts';
import type { LeaseStore } from '../../src/store.ts';
import { acquire, completeTick, release, renew } from '../../src/writes.ts';
import type { JobNote, Takeable } from '../../src/writes.ts';
import { call, type MakeStore, type StoreUnderTest, UNKNOWN } from './store-under-test.ts';
import {
  acquisitions,
  CLAIM,
  GARBAGE,
  holding,
  MINE,
  overtaken,
  PAST,
  STAMP_MS,
  TICK_MS,
  ticks,
  VACANT,
  without,
} from './writes.rows.ts';

export function writesContract(name: string, makeStore: MakeStore): void {
  describe(`the writes of a lease (${name})`, () => {
    let tested: StoreUnderTest;
    let store: LeaseStore;
    let count = 0;
    const newLease = () => `writes/${++count}`;
    const read = (lease: string) => store.read(lease, { ...call(), consistent: true });

    beforeAll(async () => {
      tested = await makeStore();
      store = tested.store;
    });

    afterAll(async () => {
      await tested[Symbol.asyncDispose]();
    });

    /** Whether the lease could be taken; what it then says is checked here, once for all rows. */
    async function take(
      found: Item | undefined,
      takeable: Takeable | 'as read',
      seen = found,
    ): Promise<boolean> {
      const lease = newLease();
      const asRead = readLease(lease, seen ?? {});
      if (found !== undefined) await tested.put(lease, { ...found, ...UNKNOWN });
      const before = await read(lease);
      const way = takeable === 'as read' ? { asRead } : takeable;
      const answer = await store.write(lease, acquire(CLAIM, way), call());
      const after = await read(lease);
      if (answer.kind === 'refused') {
        expect(after).toEqual(before);
        expect(answer.item).toEqual(tested.showsRefusedItem ? before : undefined);
        return false;
      }
      expect(answer.item).toEqual(after);
      expect(after).toEqual({
        ...without(before ?? {}, 'notBefore', 'stepDownRequested'),
        lease: { S: lease },
        kind: { S: 'leader' },
        holderIdentity: { S: 'me' },
        leaseDurationSeconds: { N: '20.5' },
        acquireTime: { S: isoTime(STAMP_MS) },
        renewTime: { S: isoTime(STAMP_MS) },
        expireTime: { N: String(STAMP_MS + 20_500) },
        leaseTransitions: plusOne(before?.['leaseTransitions'], 0),
        version: plusOne(before?.['version'], STAMP_MS),
        annotations: { M: { region: { S: 'eu-north-1' } } },
      });
      return true;
    }

    describe('an acquisition', () => {
      test.each(acquisitions)('of %s', async (_, attributes, ways) => {
        const all = ways === 'all';
        expect({
          byClock: await take(attributes, 'vacant or expired'),
          vacant: await take(attributes, 'vacant'),
          asRead: await take(attributes, 'as read'),
        }).toEqual({
          byClock: all || ways.includes('by clock'),
          vacant: all || ways.includes('vacant'),
          asRead: all || ways.includes('as read'),
        });
      });

      test.each(overtaken)('of what was read, when %s', async (_, seen, found, taken) => {
        expect(await take(found, 'as read', seen ?? {})).toBe(taken);
      });

      test('of what was read finds a list, where the server can compare lists', async () => {
        const attributes = { holderIdentity: { L: [{ N: '1' }] } };
        expect(await take(attributes, 'as read')).toBe(tested.comparesLists);
      });

      test.each(Object.entries(GARBAGE))(
        'is refused where version or token is %s, and changes nothing',
        async (_, value) => {
          for (const attribute of ['version', 'leaseTransitions']) {
            const lease = newLease();
            await tested.put(lease, { ...VACANT, [attribute]: value });
            const before = await read(lease);
            for (const way of ['vacant', 'vacant or expired'] as const) {
              const written = store.write(lease, acquire(CLAIM, way), call());
              await expect(written).rejects.toMatchObject({ code: 'request-refused' });
            }
            expect(await read(lease)).toEqual(before);
          }
        },
      );

      test('of a record that was deleted goes on above the token that was known (L2)', async () => {
        const lease = newLease();
        await store.write(lease, acquire({ ...CLAIM, knownTransitions: 41 }, 'vacant'), call());
        expect(await read(lease)).toMatchObject({ leaseTransitions: { N: '42' } });
      });

      test('never lowers a token that is above what was known (L2)', async () => {
        const lease = newLease();
        await tested.put(lease, { ...VACANT, leaseTransitions: { N: '50' } });
        await store.write(lease, acquire({ ...CLAIM, knownTransitions: 41 }, 'vacant'), call());
        expect(await read(lease)).toMatchObject({ leaseTransitions: { N: '51' } });
      });

      test('takes back what was meant for the last holder', async () => {
        const lease = newLease();
        await tested.put(lease, { ...VACANT, notBefore: PAST, stepDownRequested: { M: {} } });
        await store.write(lease, acquire(CLAIM, 'vacant or expired'), call());
        const item = await read(lease);
        expect(item).not.toHaveProperty('notBefore');
        expect(item).not.toHaveProperty('stepDownRequested');
      });

      test('writes labels where there are any, and keeps others', async () => {
        const lease = newLease();
        const labels = { M: { tier: { S: 'gold' } } };
        await tested.put(lease, { ...VACANT, labels });
        await store.write(lease, acquire(CLAIM, 'vacant'), call());
        expect(await read(lease)).toMatchObject({ labels });
        const silver = { ...CLAIM, labels: { tier: 'silver' } };
        await store.write(lease, acquire(silver, { asRead: await record(lease) }), call());
        expect(await read(lease)).toMatchObject({ labels: { M: { tier: { S: 'silver' } } } });
      });

      test('of a holder that trusts no clocks leaves no expiry to judge it by', async () => {
        const lease = newLease();
        await tested.put(lease, { ...VACANT, expireTime: PAST });
        const claim = { ...CLAIM, writeExpireTime: false };
        await store.write(lease, acquire(claim, 'vacant'), call());
        expect(await read(lease)).not.toHaveProperty('expireTime');
      });
    });

    describe.each([
      ['a renewal', renew(CLAIM, 1767000000042)],
      ['a release', release('me', 1767000000042)],
    ])('%s', (_, write) => {
      test.each(holding)('of %s', async (_, attributes, applied) => {
        const lease = newLease();
        if (attributes !== undefined) await tested.put(lease, { ...attributes, ...UNKNOWN });
        const before = await read(lease);
        const answer = await store.write(lease, write, call());
        expect(answer.kind).toBe(applied ? 'applied' : 'refused');
        if (!applied) expect(await read(lease)).toEqual(before);
      });
    });

    test('a renewal says when and for how long, and leaves all else alone', async () => {
      const lease = newLease();
      await tested.put(lease, { ...MINE, ...UNKNOWN, notBefore: PAST });
      await store.write(lease, renew(CLAIM, 1767000000042), call());
      expect(await read(lease)).toEqual({
        ...MINE,
        ...UNKNOWN,
        lease: { S: lease },
        notBefore: PAST,
        leaseDurationSeconds: { N: '20.5' },
        renewTime: { S: isoTime(STAMP_MS) },
        expireTime: { N: String(STAMP_MS + 20_500) },
        version: { N: '1767000000043' },
      });
    });

    test('a renewal of a holder that trusts no clocks removes the expiry', async () => {
      const lease = newLease();
      await tested.put(lease, MINE);
      await store.write(lease, renew({ ...CLAIM, writeExpireTime: false }, 1767000000042), call());
      expect(await read(lease)).not.toHaveProperty('expireTime');
    });

    test('a release vacates the lease and keeps its record, with its token (L2, L3)', async () => {
      const lease = newLease();
      await tested.put(lease, { ...MINE, ...UNKNOWN });
      await store.write(lease, release('me', 1767000000042), call());
      expect(await read(lease)).toEqual({
        ...VACANT,
        ...UNKNOWN,
        lease: { S: lease },
        version: { N: '1767000000043' },
      });
    });

    describe('for a tick', () => {
      const claim = { ...CLAIM, tickMs: TICK_MS };
      const withLast = (item: Item, lastTick: Value | undefined): Item =>
        lastTick === undefined ? item : { ...item, lastTick };

      test.each(ticks)('a lease with %s may be taken, in every way: %s', async (_, last, open) => {
        for (const way of ['vacant or expired', 'vacant', 'as read'] as const) {
          const lease = newLease();
          const found = withLast(VACANT, last);
          await tested.put(lease, found);
          const before = await read(lease);
          const takeable = way === 'as read' ? { asRead: readLease(lease, found) } : way;
          const answer = await store.write(lease, acquire(claim, takeable), call());
          expect([way, answer.kind]).toEqual([way, open ? 'applied' : 'refused']);
          // An acquisition completes nothing.
          expect((await read(lease))?.['lastTick']).toEqual(before?.['lastTick']);
        }
      });

      test('an expired lease is taken under the same condition', async () => {
        for (const [lastTick, kind] of [
          [PAST, 'refused'],
          [{ N: String(TICK_MS - 1) }, 'applied'],
        ] as const) {
          const lease = newLease();
          await tested.put(lease, { ...MINE, expireTime: PAST, lastTick });
          const answer = await store.write(lease, acquire(claim, 'vacant or expired'), call());
          expect(answer.kind).toBe(kind);
        }
      });

      test.each(ticks)('is completed by its holder over %s: %s', async (_, last, open) => {
        const lease = newLease();
        await tested.put(lease, withLast({ ...MINE, ...UNKNOWN }, last));
        const before = await read(lease);
        const write = completeTick('me', 3, TICK_MS, TICK_MS + 60_000);
        const answer = await store.write(lease, write, call());
        expect(answer.kind).toBe(open ? 'applied' : 'refused');
        expect(await read(lease)).toEqual(
          open
            ? {
                ...before,
                lastTick: { N: String(TICK_MS) },
                dueTime: { N: String(TICK_MS + 60_000) },
                version: { N: '1767000000043' },
              }
            : before,
        );
      });

      test.each<[string, Item | undefined]>([
        ['no record', undefined],
        ['a vacant lease', VACANT],
        ["another's lease", { ...MINE, holderIdentity: { S: 'other' } }],
        ['a lease of a later tenure', { ...MINE, leaseTransitions: { N: '4' } }],
        ['a lease of an earlier tenure', { ...MINE, leaseTransitions: { N: '2' } }],
        ['a lease without a token', without(MINE, 'leaseTransitions')],
        ['a lease whose token is a text', { ...MINE, leaseTransitions: { S: '3' } }],
      ])('is not completed on %s', async (_, item) => {
        const lease = newLease();
        if (item !== undefined) await tested.put(lease, item);
        const before = await read(lease);
        const answer = await store.write(lease, completeTick('me', 3, TICK_MS), call());
        expect(answer.kind).toBe('refused');
        expect(await read(lease)).toEqual(before);
      });

      test.each([
        ['a renewal', renew(CLAIM, 1767000000042, NOTE), 'me'],
        ['a release', release('me', 1767000000042, NOTE), undefined],
      ])('%s writes the note of a run with it', async (_, write, holder) => {
        const lease = newLease();
        await tested.put(lease, { ...MINE, ...UNKNOWN, dueTime: PAST, run: { S: 'garbage' } });
        const answer = await store.write(lease, write, call());
        expect(answer.kind).toBe('applied');
        const item = await read(lease);
        expect(item).toMatchObject({ ...UNKNOWN, ...NOTE.set, version: { N: '1767000000043' } });
        expect(item).not.toHaveProperty('dueTime');
        expect(readLease(lease, item ?? {}).holderIdentity).toBe(holder);
      });

      test('a note is written by its holder only', async () => {
        const lease = newLease();
        await tested.put(lease, { ...MINE, holderIdentity: { S: 'other' } });
        const before = await read(lease);
        for (const write of [
          renew(CLAIM, 1767000000042, NOTE),
          release('me', 1767000000042, NOTE),
        ]) {
          expect((await store.write(lease, write, call())).kind).toBe('refused');
        }
        expect(await read(lease)).toEqual(before);
      });
    });

    async function record(lease: string) {
      return readLease(lease, (await read(lease)) ?? {});
    }
  });
}

const NOTE: JobNote = {
  set: {
    lastTick: { N: String(TICK_MS) },
    notBefore: { N: String(STAMP_MS) },
    run: { M: { outcome: { S: 'failed' }, error: { S: '' }, failures: { N: '2' } } },
  },
  remove: ['dueTime'],
};

function plusOne(value: Value | undefined, from: number): Value {
  return { N: String((value !== undefined && 'N' in value ? Number(value.N) : from) + 1) };
}
