// The package at work: on Node 22 and 24, as both kinds of module and in bundles, and its program.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Format } from 'esbuild';
import { beforeAll, describe, expect, test } from 'vitest';
import { manifest, PATIENCE_MS, root, run, tools, type Stage } from './stage.ts';

/** A module's first lines in each kind, then what is the same in both. */
function program(kind: 'esm' | 'cjs', text: string): string {
  const imports = (names: string, from: string) =>
    kind === 'esm'
      ? `import ${names.replaceAll(':', ' as')} from '${from}';\n`
      : `const ${names} = require('${from}');\n`;
  return (
    imports('{ strict: assert }', 'node:assert') +
    imports('{ acquireLease, DynamoDBStore, isSkipped, withLease }', 'lambda-lease') +
    imports('{ leaderElection }', 'lambda-lease/middy') +
    imports('{ FakeClock, fakeContext, MemoryStore }', 'lambda-lease/testing') +
    text
  );
}

const WORK = `
async function main() {
  const clock = new FakeClock();
  const store = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
  const handler = withLease({ name: 'job', store, clock }, (hangs, { lease }) =>
    hangs ? new Promise(() => undefined) : lease.fencingToken,
  );
  void handler(true, fakeContext({ clock }));
  assert.ok(isSkipped(await handler(false, fakeContext({ clock }))));
  await clock.advance(36_000);
  assert.equal(await handler(false, fakeContext({ clock })), 2);

  const context = fakeContext({ clock });
  const request = { event: {}, context, response: 1, error: undefined, internal: {} };
  const middleware = leaderElection({ name: 'middleware', store, clock });
  await middleware.before(request);
  assert.equal(context.lease.isHeld(), true);
  await middleware.after(request);

  const lease = await acquireLease({ name: 'block', store, clock });
  await lease.release();
  // Its client is of the SDK, which must be there and of a kind that can be loaded.
  assert.match(new DynamoDBStore({ tableName: 'leases' }).description, /leases/);
}
main().then(() => console.log('worked'), (error) => {
  console.error(error);
  process.exitCode = 1;
});
`;

const CHAIN = `
import middy from '@middy/core';
import { leaderElection } from 'lambda-lease/middy';
import { fakeContext, MemoryStore } from 'lambda-lease/testing';
const handler = middy()
  .use(leaderElection({ name: 'job', store: new MemoryStore() }))
  .handler((event, { lease }) => lease.fencingToken);
if ((await handler({}, fakeContext())) === 1) console.log('worked');
`;

const BOTH_KINDS = `
import { strict as assert } from 'node:assert';
import { createRequire } from 'node:module';
import { TransactWriteItemsCommand } from '@aws-sdk/client-dynamodb';
import * as esm from 'lambda-lease';
import { MemoryStore } from 'lambda-lease/testing';
const cjs = createRequire(import.meta.url)('lambda-lease');
assert.notEqual(cjs.LeaseError, esm.LeaseError);

const store = new MemoryStore({ serverTimeMs: Date.now });
for (const [theirs, ours] of [[cjs, esm], [esm, cjs]]) {
  const lease = await theirs.acquireLease({ name: 'job', store });
  const refusal = await theirs.acquireLease({ name: 'job', store, maxWaitSeconds: 0 }).catch((e) => e);
  assert.ok(ours.isLeaseError(refusal, 'lease-held'));
  const sent = [];
  const client = { send: async (command) => void sent.push(command.input.TransactItems.length) };
  const Put = { TableName: 't', Item: { id: { S: '1' } } };
  await ours.sendGuarded(client, new TransactWriteItemsCommand({ TransactItems: [{ Put }] }), lease);
  assert.deepEqual(sent, [2]);
  await lease.release();
}
console.log('worked');
`;

/** Nothing of Node's newer help for mixing kinds of modules. */
const ON_ITS_OWN = ['--no-experimental-require-module', '--no-experimental-detect-module'];

/** Writes where each module is that a program loads, Node's own apart. */
const LOADED = `
import { registerHooks } from 'node:module';
import { writeFileSync } from 'node:fs';
const loaded = [];
registerHooks({
  load(url, context, next) {
    if (!url.startsWith('node:')) loaded.push(url);
    return next(url, context);
  },
});
process.on('exit', () => writeFileSync(process.env.LOADED, JSON.stringify(loaded)));
`;

const SDK = ['@aws-sdk/client-dynamodb'];

export function consumers(stage: () => Stage): void {
  let modules: string;
  beforeAll(() => {
    modules = stage().project('modules', [...SDK, '@middy/core'], {
      'package.json': manifest('commonjs'),
      'work.mjs': program('esm', WORK),
      'work.cjs': program('cjs', WORK),
      'chain.mjs': CHAIN,
      'both-kinds.mjs': BOTH_KINDS,
      'loaded.mjs': LOADED,
    });
  });

  describe.each(['node22', 'node24'] as const)('on %s', (node) => {
    test.each(['work.mjs', 'work.cjs', 'both-kinds.mjs'])(
      '%s works, with no help between the kinds of modules',
      async (file) => {
        const { stdout, stderr } = await run(tools[node], [...ON_ITS_OWN, file], modules);
        expect(stdout).toBe('worked\n');
        expect(stderr).toBe('');
      },
      PATIENCE_MS,
    );

    test('works in a chain of middy', async () => {
      expect((await run(tools[node], ['chain.mjs'], modules)).stdout).toBe('worked\n');
    });

    test('runs the program that npm links', async () => {
      const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
        version: string;
      };
      const program = join(modules, 'node_modules/.bin/lambda-lease');
      expect((await run(tools[node], [program, '--version'], modules)).stdout).toBe(`${version}\n`);
      expect((await run(tools[node], [program, '--help'], modules)).stdout).toContain('Usage');
    });
  });

  describe('the program loads no more than it needs', () => {
    const files = async (...args: string[]) => {
      const program = join(modules, 'node_modules/lambda-lease/dist/bin.js');
      const list = join(modules, `loaded-${args.join('-')}.json`);
      const env = {
        ...{ LOADED: list, LEASE_TABLE_NAME: 'leases', AWS_REGION: 'eu-north-1' },
        // Nobody listens there, and that takes no time to find out.
        ...{ AWS_ENDPOINT_URL_DYNAMODB: 'http://127.0.0.1:1', AWS_MAX_ATTEMPTS: '1' },
        ...{ AWS_ACCESS_KEY_ID: 'x', AWS_SECRET_ACCESS_KEY: 'x', HOME: modules },
      };
      const hooked = ['--import', join(modules, 'loaded.mjs'), program, ...args];
      await run(tools.node24, hooked, modules, env).catch(() => undefined);
      const urls = JSON.parse(readFileSync(list, 'utf8')) as string[];
      return urls.filter((url) => !url.endsWith('loaded.mjs'));
    };

    test.each([[['--version']], [['--help']], [['get', '--help']], [['completion', 'bash']]])(
      '%j: nothing but parts of itself, and few',
      async (args) => {
        const loaded = await files(...args);
        expect(loaded.filter((url) => !url.includes('/lambda-lease/dist/bin'))).toEqual([]);
        expect(loaded.length).toBeLessThanOrEqual(12);
      },
    );

    test('get: of the SDK the client of DynamoDB, and of credentials only where to look', async () => {
      const loaded = await files('get');
      const packages = new Set(
        loaded.map((url) => /.*node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? url),
      );
      expect(packages).toContain('@aws-sdk/client-dynamodb');
      expect([...packages].filter((name) => /client-(?!dynamodb)|sso|nested/.test(name))).toEqual(
        [],
      );
      expect(packages).not.toContain('commander');
      expect(loaded.length).toBeLessThan(60);
    });
  });

  describe('in a bundle', () => {
    test.each<[Format, string, boolean]>([
      ['esm', 'mjs', false],
      ['esm', 'mjs', true],
      ['cjs', 'cjs', false],
      ['cjs', 'cjs', true],
    ])(
      'of esbuild works: %s, .%s, the SDK in it: %s',
      async (format, ending, whole) => {
        const name = `bundle-${whole ? 'whole' : 'part'}.${ending}`;
        await build({
          absWorkingDir: modules,
          entryPoints: [`work.${ending}`],
          outfile: join(modules, name),
          bundle: true,
          minify: true,
          platform: 'node',
          target: 'node22',
          format,
          external: whole ? [] : ['@aws-sdk/*', '@smithy/*'],
          // Bundled CommonJS code calls `require` for Node's own modules; ES modules have none.
          ...(format === 'esm' && {
            banner: {
              js: "import { createRequire as r } from 'node:module'; const require = r(import.meta.url);",
            },
          }),
          logLevel: 'error',
        });
        const { stdout } = await run(tools.node22, [...ON_ITS_OWN, name], modules);
        expect(stdout).toBe('worked\n');
      },
      PATIENCE_MS,
    );
  });
}
