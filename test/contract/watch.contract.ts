// What keeping watch over all leases asks of a store: whole scans in pages, removals that hurt
// nobody, and conditions on parts of a record.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Condition } from '../../src/condition.ts';
import type { Item, Value } from '../../src/lease.ts';
import type { ScanAnswer } from '../../src/store.ts';
import { call, type MakeStore, type StoreUnderTest, UNKNOWN } from './store-under-test.ts';

const ALWAYS: Condition = { not: { equals: ['kind', { S: 'no such kind' }] } };
/** So large that a page of 1 MB does not take them all. */
const RECORDS = 300;
const PADDING = 'x'.repeat(8_000);

const verdict = (entries: Record<string, Value>): Item => ({ condition: { M: entries } });

export function watchContract(name: string, makeStore: MakeStore): void {
  describe(`a scan (${name})`, () => {
    let tested: StoreUnderTest;
    const keyOf = (index: number) => `scanned/${index}`;
    const all = Array.from({ length: RECORDS }, (_, index) => keyOf(index)).sort();

    beforeAll(async () => {
      tested = await makeStore();
      for (let start = 0; start < RECORDS; start += 20) {
        const puts = Array.from({ length: 20 }, (_, offset) => {
          const version = { N: String(start + offset) };
          return tested.put(keyOf(start + offset), { version, run: { S: PADDING } });
        });
        await Promise.all(puts);
      }
    });
    afterAll(() => tested[Symbol.asyncDispose]());

    async function scan(
      filter: Condition,
      segments: number,
      between: (page: ScanAnswer) => Promise<void> = async () => undefined,
    ) {
      const keys: string[] = [];
      let scanned = 0;
      let pages = 0;
      for (let segment = 0; segment < segments; segment++) {
        let after: string | undefined;
        do {
          const page = await tested.store.scan({ ...call(), filter, segment, segments, after });
          keys.push(...page.items.map(({ lease }) => (lease as { S: string }).S));
          scanned += page.scanned;
          pages += 1;
          ({ after } = page);
          await between(page);
        } while (after !== undefined);
      }
      return { keys, scanned, pages };
    }

    test.each([1, 2, 7])('in %i segments shows every record once', async (segments) => {
      const { keys, scanned, pages } = await scan(ALWAYS, segments);
      expect(keys.sort()).toEqual(all);
      // Some servers count the record after a page's end too.
      expect(scanned).toBeGreaterThanOrEqual(RECORDS);
      expect(scanned).toBeLessThanOrEqual(RECORDS + pages);
      if (segments === 1) expect(pages).toBeGreaterThan(1);
    });

    test('looks at what its filter drops, and shows the rest whole', async () => {
      const filter: Condition = { below: ['version', 7] };
      const { keys, scanned, pages } = await scan(filter, 2);
      expect(keys.sort()).toEqual(all.filter((key) => Number(key.split('/')[1]) < 7));
      expect(scanned).toBeGreaterThanOrEqual(RECORDS);
      expect(scanned).toBeLessThanOrEqual(RECORDS + pages);
      const [item] = (
        await tested.store.scan({
          ...call(),
          filter: { equals: ['version', { N: '3' }] },
          segment: 0,
          segments: 1,
        })
      ).items;
      const whole = { lease: { S: keyOf(3) }, version: { N: '3' }, run: { S: PADDING } };
      if (item !== undefined) expect(item).toEqual(whole);
    });

    test('goes on where it was when the record at its page’s end is gone', async () => {
      const gone: string[] = [];
      const { keys } = await scan(ALWAYS, 1, async ({ after }) => {
        if (after === undefined) return;
        gone.push(after);
        await tested.store.remove(after, ALWAYS, call());
      });
      for (const key of gone) {
        const version = { N: key.split('/')[1]! };
        await tested.put(key, { version, run: { S: PADDING } });
      }
      expect(gone.length).toBeGreaterThan(0);
      if (tested.keepsItsPlace) expect(keys.sort()).toEqual(all);
      else expect(new Set(keys).size).toBe(keys.length);
    });

    test('tells of its attempt and of its Date, and cannot tell when it is aborted', async () => {
      const dates: boolean[] = [];
      const attempt = () => (date: string | undefined) => {
        dates.push(!Number.isNaN(Date.parse(date ?? '')));
      };
      const page = { filter: ALWAYS, segment: 0, segments: 1 };
      await tested.store.scan({ ...call(), ...page, attempt });
      expect(dates).toEqual([true]);
      const signal = AbortSignal.abort();
      await expect(tested.store.scan({ ...call(), ...page, signal })).rejects.toMatchObject({
        name: 'LeaseError',
        code: 'store-unavailable',
      });
    });
  });

  describe(`a removal (${name})`, () => {
    let tested: StoreUnderTest;
    beforeAll(async () => {
      tested = await makeStore();
    });
    afterAll(() => tested[Symbol.asyncDispose]());
    const read = (lease: string) => tested.store.read(lease, { ...call(), consistent: true });
    const at = (version: string): Condition => ({ equals: ['version', { N: version }] });

    test('removes the record whose condition holds', async () => {
      await tested.put('a', { ...UNKNOWN, version: { N: '1' } });
      expect(await tested.store.remove('a', at('1'), call())).toEqual({ kind: 'applied' });
      expect(await read('a')).toBeUndefined();
    });

    test('is refused by a record that has moved on, and shows it where the server does', async () => {
      await tested.put('b', { version: { N: '2' } });
      const item = { lease: { S: 'b' }, version: { N: '2' } };
      expect(await tested.store.remove('b', at('1'), call())).toEqual({
        kind: 'refused',
        item: tested.showsRefusedItem ? item : undefined,
      });
      expect(await read('b')).toEqual(item);
    });

    test('of a record that does not exist is refused', async () => {
      expect(await tested.store.remove('c', at('1'), call())).toEqual({
        kind: 'refused',
        item: undefined,
      });
      expect(await read('c')).toBeUndefined();
    });

    test('tells of its attempt, and cannot tell when it is aborted (L7)', async () => {
      const dates: boolean[] = [];
      const attempt = () => (date: string | undefined) => {
        dates.push(!Number.isNaN(Date.parse(date ?? '')));
      };
      await tested.store.remove('d', at('1'), { ...call(), attempt });
      expect(dates).toEqual([true]);
      const signal = AbortSignal.abort();
      await expect(tested.store.remove('d', at('1'), { ...call(), signal })).rejects.toMatchObject({
        code: 'store-unavailable',
      });
    });
  });

  describe(`a condition on parts (${name})`, () => {
    let tested: StoreUnderTest;
    let count = 0;
    beforeAll(async () => {
      tested = await makeStore();
    });
    afterAll(() => tested[Symbol.asyncDispose]());

    async function met(condition: Condition, item: Item): Promise<boolean> {
      const lease = `parts/${++count}`;
      await tested.put(lease, item);
      const write = { condition, set: { run: { S: 'x' } }, remove: [] };
      return (await tested.store.write(lease, write, call())).kind === 'applied';
    }

    const SEEN: Condition = { same: ['condition.seen', 'version'] };
    const LATER: Condition = { after: ['renewTime', '2026-01-01T00:00:00.000Z'] };
    const OLD: Condition = { below: ['condition.since', 5] };
    const QUIET: Condition = { absent: 'condition.event' };
    const READY: Condition = { equals: ['condition.status', { S: 'Ready' }] };
    const seen = (value: Value, version: Value) => ({ ...verdict({ seen: value }), version });

    test.each<[string, Condition, Item, boolean]>([
      ['two equal numbers are the same', SEEN, seen({ N: '7' }, { N: '7.0' }), true],
      ['two other numbers are not', SEEN, seen({ N: '7' }, { N: '8' }), false],
      ['a text and a number are not', SEEN, seen({ S: '7' }, { N: '7' }), false],
      ['one that is absent and one that is not', SEEN, { version: { N: '7' } }, false],
      ['the other that is absent', SEEN, verdict({ seen: { N: '7' } }), false],
      ['two that are absent are not the same', SEEN, verdict({}), false],
      ['a later text', LATER, { renewTime: { S: '2026-01-01T00:00:00.001Z' } }, true],
      ['the same text', LATER, { renewTime: { S: '2026-01-01T00:00:00.000Z' } }, false],
      ['an earlier text', LATER, { renewTime: { S: '2025-12-31T23:59:59.999Z' } }, false],
      ['a longer text', LATER, { renewTime: { S: '2026-01-01T00:00:00.000Z ' } }, true],
      ['words', LATER, { renewTime: { S: 'ä' } }, true],
      ['no text', LATER, { renewTime: { N: '99999' } }, false],
      ['no attribute', LATER, {}, false],
      ['a part below', OLD, verdict({ since: { N: '4.9' } }), true],
      ['a part at the bound', OLD, verdict({ since: { N: '5' } }), false],
      ['a part of no map', OLD, { condition: { S: 'since' } }, false],
      ['a part that is absent', QUIET, verdict({ status: { S: 'Ready' } }), true],
      ['a part of nothing is absent', QUIET, {}, true],
      ['a part of a text is absent', QUIET, { condition: { S: 'event' } }, true],
      ['a part of a list is absent', QUIET, { condition: { L: [] } }, true],
      ['a part that is there', QUIET, verdict({ event: { M: {} } }), false],
      ['a part that equals', READY, verdict({ status: { S: 'Ready' } }), true],
      ['a part that does not', READY, verdict({ status: { S: 'ready' } }), false],
      ['a part of another type', READY, verdict({ status: { N: '1' } }), false],
    ])('and its opposite: %s', async (_, condition, item, expected) => {
      expect(await met(condition, item)).toBe(expected);
      expect(await met({ not: condition }, item)).toBe(!expected);
    });

    test('finds a map equal whatever the order of its entries, where any are', async () => {
      const one = { a: { S: '1' }, b: { M: { c: { N: '1' }, d: { BOOL: true } } } };
      const other = { b: { M: { d: { BOOL: true }, c: { N: '1.0' } } }, a: { S: '1' } };
      const equals: Condition = { equals: ['condition', { M: other }] };
      expect(await met(equals, { condition: { M: one } })).toBe(tested.comparesLists);
      expect(await met(equals, { condition: { M: { ...one, e: { S: '' } } } })).toBe(false);
      expect(await met(equals, { condition: { M: { a: one.a } } })).toBe(false);
    });
  });
}
