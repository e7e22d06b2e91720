// Updates as users may write them: clauses in any order, case and layout. With a fence each of them
// does to the item what it does without.

import { UpdateItemCommand, type UpdateItemCommandInput } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fenced } from '../../src/fence.ts';
import { openTable, randomOf, type Table } from '../integration/fixture.ts';
import {
  availableEngines,
  type Engine,
  type Item,
  putRawItem,
  rawItem,
} from '../support/dynamodb.ts';

const RUNS = 25;
const ITEM: Item = {
  a: { N: '1' },
  b: { N: '2' },
  set: { N: '3' },
  remove: { S: 'x' },
  add: { N: '4' },
  delete: { SS: ['x', 'y'] },
  setting: { S: 'x' },
  list: { L: [{ N: '1' }, { N: '2' }] },
  map: { M: { set: { N: '1' }, b: { N: '2' } } },
};
const VALUES = {
  ':one': { N: '1' },
  ':set': { N: '7' },
  ':REMOVE': { SS: ['x', 'z'] },
  ':fence': { L: [{ N: '8' }] },
};
const NAMES = {
  '#set': 'set',
  '#REMOVE': 'remove',
  '#add': 'add',
  '#delete': 'delete',
  '#fence': 'list',
  '#m': 'map',
  '#b': 'b',
};

/** Actions that do not meet: each writes an attribute of its own. Tokens, between them maybe room. */
const ACTIONS: Readonly<Record<'SET' | 'REMOVE' | 'ADD' | 'DELETE', readonly string[]>> = {
  SET: [
    '#set = :set',
    '#set = #set + :set',
    '#set = if_not_exists ( nowhere , :one )',
    '#fence = list_append ( #fence , :fence )',
    'a = b - :one',
    'fresh = #m . #set',
  ],
  REMOVE: ['#REMOVE', 'setting', '#m . #b', 'nowhere'],
  ADD: ['#add :one', 'counted :set'],
  DELETE: ['#delete :REMOVE'],
};

interface Update {
  readonly UpdateExpression: string;
  readonly ExpressionAttributeNames?: Record<string, string>;
  readonly ExpressionAttributeValues?: UpdateItemCommandInput['ExpressionAttributeValues'];
}

function randomUpdate(random: () => number, engine: Engine): Update {
  const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)]!;
  const shuffled = <T>(values: readonly T[]): T[] =>
    values
      .map((value) => [random(), value] as const)
      .sort(([a], [b]) => a - b)
      .map(([, value]) => value);
  const room = () => oneOf([' ', '  ', '\n', '\t', ' \r\n ']);
  const maybeRoom = () => (random() < 0.5 ? '' : room());
  /** Two words need room between them; beside a sign or a placeholder there may be none. */
  const laidOut = (tokens: readonly string[]) =>
    tokens.reduce((text, token) => {
      // Dynalite wants room behind the word that opens a clause.
      const parted = engine === 'dynalite' && /\b(?:set|remove|add|delete)$/i.test(text);
      const apart = parted || (/\w$/.test(text) && /^\w/.test(token));
      return text + (apart ? room() : maybeRoom()) + token;
    });
  const anyCase = (word: string) =>
    oneOf([word, word.toLowerCase(), word.slice(0, 1) + word.slice(1).toLowerCase()]);

  const clauses = shuffled(Object.keys(ACTIONS) as (keyof typeof ACTIONS)[])
    .slice(0, 1 + Math.floor(random() * 4))
    .map((clause) => {
      const written = new Set<string>();
      const actions = shuffled(ACTIONS[clause])
        .filter((action) => {
          const target = action.split(' ')[0]!;
          return !written.has(target) && written.add(target);
        })
        .slice(0, 1 + Math.floor(random() * 3));
      return [anyCase(clause), ...actions.join(' , ').split(' ')];
    });
  const UpdateExpression = maybeRoom() + laidOut(clauses.flat()) + maybeRoom();
  // A placeholder that is defined and not used is refused.
  const used = (all: object) =>
    Object.entries(all).filter(([name]) => clauses.flat().includes(name));
  const [names, values] = [used(NAMES), used(VALUES)];
  return {
    UpdateExpression,
    ...(names.length > 0 && { ExpressionAttributeNames: Object.fromEntries(names) }),
    ...(values.length > 0 && { ExpressionAttributeValues: Object.fromEntries(values) }),
  };
}

describe.each(availableEngines())('on %s', (engine) => {
  let table: Table;
  beforeAll(async () => {
    table = await openTable(engine);
  });
  afterAll(() => table[Symbol.asyncDispose]());

  /** What the update makes of the item, its key aside. */
  const effect = async (lease: string, update: Update, token?: number) => {
    const { direct, tableName: TableName } = table;
    const Key = { lease: { S: lease } };
    await putRawItem(direct, TableName, { ...ITEM, ...Key });
    const command = new UpdateItemCommand({ TableName, Key, ...update });
    await direct.send(token === undefined ? command : fenced(command, { fencingToken: token }));
    return { ...(await rawItem(direct, TableName, lease)), lease: undefined };
  };

  test.each([1, 2, 3])('a random update does the same with a fence (seed %i)', async (seed) => {
    const random = randomOf(seed);
    for (let run = 0; run < RUNS; run++) {
      const update = randomUpdate(random, engine);
      const what = `seed ${seed}, run ${run}: ${JSON.stringify(update.UpdateExpression)}`;
      const without = await effect('without', update).catch((error: unknown) => {
        throw new Error(`${what} is no update`, { cause: error });
      });
      const withFence = await effect('with', update, 5).catch((error: unknown) => {
        throw new Error(`${what} is refused with a fence`, { cause: error });
      });
      expect(withFence, what).toEqual({ ...without, fencingToken: { N: '5' } });
    }
  });
});
