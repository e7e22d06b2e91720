// What the conditions of a write mean: the same in memory as in DynamoDB, also where an attribute
// is missing or of another type.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Item } from '../../src/lease.ts';
import type { Condition } from '../../src/condition.ts';
import {
  call,
  type MakeStore,
  NOT_A_NUMBER,
  type StoreUnderTest,
  UNKNOWN,
} from './store-under-test.ts';

const conditions = {
  absent: { absent: 'notBefore' },
  'the number 7': { equals: ['notBefore', { N: '7' }] },
  'the text 7': { equals: ['notBefore', { S: '7' }] },
  'below 8': { below: ['notBefore', 8] },
  'a number': { isNumber: 'notBefore' },
} satisfies Record<string, Condition>;

type Name = keyof typeof conditions;

const rows: readonly (readonly [string, Item | undefined, readonly Name[]])[] = [
  ['a record that does not exist', undefined, ['absent']],
  ['a record without the attribute', UNKNOWN, ['absent']],
  ['the number', number('7'), ['the number 7', 'below 8', 'a number']],
  ['the number in full', number('7.00'), ['the number 7', 'below 8', 'a number']],
  ['the bound', number('8'), ['a number']],
  ['a fraction below the bound', number('7.999'), ['below 8', 'a number']],
  ['a negative number', number('-9e9'), ['below 8', 'a number']],
  ['a large number', number('1.7e12'), ['a number']],
  ['a text of digits', { notBefore: { S: '7' } }, ['the text 7']],
  ...Object.entries(NOT_A_NUMBER)
    .filter(([name]) => name !== 'a text of digits')
    .map(([name, value]) => [name, { notBefore: value }, []] as const),
];

const ALWAYS: Condition = { not: { equals: ['kind', { S: 'no such kind' }] } };
const NEVER: Condition = { equals: ['kind', { S: 'no such kind' }] };

export function conditionsContract(name: string, makeStore: MakeStore): void {
  describe(`a condition (${name})`, () => {
    let tested: StoreUnderTest;
    let count = 0;

    beforeAll(async () => {
      tested = await makeStore();
    });

    afterAll(async () => {
      await tested[Symbol.asyncDispose]();
    });

    async function met(condition: Condition, attributes: Item | undefined): Promise<boolean> {
      const lease = `conditions/${++count}`;
      if (attributes !== undefined) await tested.put(lease, attributes);
      const write = { condition, set: { run: { S: 'x' } }, remove: [] };
      return (await tested.store.write(lease, write, call())).kind === 'applied';
    }

    test.each(rows)('and its opposite judge %s', async (_, attributes, expected) => {
      const holding: string[] = [];
      const opposite: string[] = [];
      for (const [name, condition] of Object.entries(conditions)) {
        if (await met(condition, attributes)) holding.push(name);
        if (!(await met({ not: condition }, attributes))) opposite.push(name);
      }
      expect(holding).toEqual(expected);
      expect(opposite).toEqual(expected);
    });

    test.each(Object.entries(NOT_A_NUMBER))('finds %s as it was read', async (_, value) => {
      const found = await met({ equals: ['holderIdentity', value] }, { holderIdentity: value });
      expect(found).toBe(tested.comparesLists || !('L' in value || 'M' in value));
    });

    test.each<[string, Condition, boolean]>([
      ['all of two that hold', { all: [ALWAYS, { absent: 'run' }] }, true],
      ['all of two of which one holds', { all: [ALWAYS, NEVER] }, false],
      ['any of two of which one holds', { any: [NEVER, ALWAYS] }, true],
      ['any of two of which none holds', { any: [NEVER, { absent: 'version' }] }, false],
      ['all within all', { all: [{ all: [ALWAYS, NEVER] }, ALWAYS] }, false],
      ['any within any', { any: [{ any: [NEVER, ALWAYS] }, NEVER] }, true],
      ['any within all', { all: [{ any: [NEVER, ALWAYS] }, { any: [ALWAYS, NEVER] }] }, true],
      ['all within any', { any: [{ all: [ALWAYS, NEVER] }, { all: [NEVER, ALWAYS] }] }, false],
      ['any before all', { all: [{ any: [ALWAYS, ALWAYS] }, NEVER] }, false],
      ['what is not all of two', { not: { all: [ALWAYS, NEVER] } }, true],
      ['what is not any of two', { not: { any: [ALWAYS, NEVER] } }, false],
      ['what is not so, beside what is', { all: [{ not: NEVER }, NEVER] }, false],
      ['what is not not so', { not: { not: NEVER } }, false],
    ])('joins others: %s', async (_, condition, expected) => {
      expect(await met(condition, { version: { N: '1' } })).toBe(expected);
    });
  });
}

function number(digits: string): Item {
  return { notBefore: { N: digits } };
}
