// Commands of another copy of the SDK, whose classes a bundler has renamed.

import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as lowLevel from '@aws-sdk/client-dynamodb';
import * as documents from '@aws-sdk/lib-dynamodb';
import { build } from 'esbuild';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { fenced, tombstone } from '../../src/fence.ts';

type Bundle = typeof lowLevel & typeof documents;

const lease = { fencingToken: 5 };
const sdk = { ...lowLevel, ...documents };
const own = { TableName: 't' };
/** Each class has its own type of input; here they are one. */
function classOf(from: object, name: string) {
  return Reflect.get(from, name) as unknown as new (input: object) => { readonly input: object };
}

let folder: string;
let bundle: Bundle;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'fence-'));
  const outfile = join(folder, 'sdk.cjs');
  await build({
    stdin: {
      contents: "export * from '@aws-sdk/client-dynamodb'; export * from '@aws-sdk/lib-dynamodb';",
      resolveDir: fileURLToPath(new URL('.', import.meta.url)),
    },
    outfile,
    bundle: true,
    minify: true,
    platform: 'node',
    format: 'cjs',
    logLevel: 'silent',
  });
  bundle = createRequire(import.meta.url)(outfile) as Bundle;
});
afterAll(() => rm(folder, { recursive: true }));

describe('a command of a minified bundle', () => {
  test('is of a class with another name', () => {
    expect(bundle.PutItemCommand.name).not.toBe('PutItemCommand');
    expect(bundle.PutCommand.name).not.toBe('PutCommand');
    expect(bundle.PutItemCommand).not.toBe(lowLevel.PutItemCommand);
  });

  test.each([
    ['PutItemCommand', { ...own, Item: {} }],
    ['UpdateItemCommand', { ...own, Key: {} }],
    ['DeleteItemCommand', { ...own, Key: {} }],
    ['PutCommand', { ...own, Item: {} }],
    ['UpdateCommand', { ...own, Key: {} }],
    ['DeleteCommand', { ...own, Key: {} }],
  ] as const)('is fenced as any other: %s', (name, input) => {
    const [Theirs, Ours] = [classOf(bundle, name), classOf(sdk, name)];
    const [theirs, ours] = [new Theirs(input), new Ours(input)];
    expect(fenced(theirs, lease).input).toEqual(fenced(ours, lease).input);
    expect(fenced(theirs, lease)).toBeInstanceOf(Theirs);
    expect(fenced(theirs, lease).input).toMatchObject({
      ExpressionAttributeValues: { ':fence': name.includes('Item') ? { N: '5' } : 5 },
    });
  });

  test('is fenced in a transaction', () => {
    const Put = { ...own, Item: {} };
    const low = new bundle.TransactWriteItemsCommand({ TransactItems: [{ Put }] });
    const document = new bundle.TransactWriteCommand({ TransactItems: [{ Put }] });
    expect(fenced(low, lease).input.TransactItems?.[0]?.Put?.Item).toEqual({
      fencingToken: { N: '5' },
    });
    expect(fenced(document, lease).input.TransactItems?.[0]?.Put?.Item).toEqual({
      fencingToken: 5,
    });
  });

  test('is known for a Delete', () => {
    const command = new bundle.DeleteCommand({ ...own, Key: {} });
    expect(tombstone(command, lease).ExpressionAttributeValues).toMatchObject({ ':mark': true });
  });

  test('is refused by the name that it has in the SDK', () => {
    expect(() => fenced(new bundle.GetItemCommand({ ...own, Key: {} }), lease)).toThrow(
      'command is GetItemCommand: a read changes nothing',
    );
    expect(() => fenced(new bundle.GetCommand({ ...own, Key: {} }), lease)).toThrow(
      'command is GetItemCommand: a read changes nothing',
    );
  });
});

test('a command that cannot be resolved is known by its class', () => {
  class PutItemCommand {
    readonly input: object;
    readonly middlewareStack = { use: () => undefined };
    constructor(input: object) {
      this.input = input;
    }
    resolveMiddleware(): never {
      throw new Error('No region.');
    }
  }
  expect(fenced(new PutItemCommand({ Item: {} }), lease).input).toMatchObject({
    Item: { fencingToken: { N: '5' } },
  });
});
