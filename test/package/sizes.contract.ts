// What the package weighs in a user's bundle, and what it costs to load. The README's table gives
// the figures, and is held to them.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { build, type Metafile } from 'esbuild';
import { beforeAll, describe, expect, test } from 'vitest';
import { manifest, PATIENCE_MS, root, run, tools, type Stage } from './stage.ts';

const WRAPPER = `
import { withLease } from 'lambda-lease';
export const handler = withLease({ name: 'job' }, async () => 1);
`;
const MIDDLEWARE = `
import { leaderElection } from 'lambda-lease/middy';
export const middleware = leaderElection({ name: 'job' });
`;

/** Prints how many milliseconds the package takes to load once the SDK is there. */
const LOAD = {
  'load.mjs': `
await import('@aws-sdk/client-dynamodb');
const began = performance.now();
await import('lambda-lease');
console.log(performance.now() - began);
`,
  'load.cjs': `
require('@aws-sdk/client-dynamodb');
const began = performance.now();
require('lambda-lease');
console.log(performance.now() - began);
`,
};

interface Bundle {
  readonly minified: number;
  readonly gzipped: number;
  readonly metafile: Metafile;
}

async function bundle(folder: string, contents: string, alias = {}): Promise<Bundle> {
  const { outputFiles, metafile } = await build({
    stdin: { contents, resolveDir: folder },
    absWorkingDir: folder,
    alias,
    bundle: true,
    minify: true,
    platform: 'node',
    target: 'node22',
    format: 'esm',
    external: ['@aws-sdk/*', '@smithy/*'],
    metafile: true,
    write: false,
    logLevel: 'error',
  });
  const [file] = outputFiles;
  if (file === undefined) throw new Error('esbuild has written nothing.');
  const { contents: bytes } = file;
  return { minified: bytes.length, gzipped: gzipSync(bytes).length, metafile };
}

/** The README's row of that name, in bytes. */
function said(name: string): { minified: number; gzipped: number } {
  const readme = readFileSync(join(root, 'README.md'), 'utf8');
  const row = readme.split('\n').find((line) => line.startsWith(`| ${name} | `)) ?? '';
  const [minified = NaN, gzipped = NaN] = [...row.matchAll(/([\d.]+) KB/g)].map(
    (match) => Number(match[1]) * 1_000,
  );
  return { minified, gzipped };
}

export function sizes(stage: () => Stage): void {
  describe('in a bundle without the SDK', () => {
    let wrapper: Bundle;
    let middleware: Bundle;
    let both: Bundle;
    let folder: string;
    beforeAll(async () => {
      folder = stage().project('sizes', ['@aws-sdk/client-dynamodb'], {
        'package.json': manifest('module'),
        ...LOAD,
      });
      wrapper = await bundle(folder, WRAPPER);
      middleware = await bundle(folder, MIDDLEWARE);
      both = await bundle(folder, WRAPPER + MIDDLEWARE);
    });

    test.each([
      { name: '`withLease`', measured: () => wrapper },
      { name: '`leaderElection` from `lambda-lease/middy`', measured: () => middleware },
      { name: 'both', measured: () => both },
    ])('$name weighs what the README says, give or take a thirtieth', ({ name, measured }) => {
      const { minified, gzipped } = measured();
      const claim = said(name);
      const is = `${name} is ${minified} bytes, ${gzipped} gzipped: correct the README's table`;
      expect(Math.abs(claim.minified - minified), is).toBeLessThan(minified / 30);
      expect(Math.abs(claim.gzipped - gzipped), is).toBeLessThan(gzipped / 30);
    });

    test('the middleware adds at most 5 KB to the wrapper', () => {
      expect(both.minified - wrapper.minified).toBeLessThan(5_000);
    });

    test('nothing is imported but the DynamoDB client and Node', () => {
      const [output] = Object.values(wrapper.metafile.outputs);
      expect(new Set(output?.imports.map(({ path }) => path))).toEqual(
        new Set(['@aws-sdk/client-dynamodb', 'node:os']),
      );
    });

    test('the wrapper brings nothing of the monitor, heartbeats, electors, jobs or the CLI', async () => {
      const sources = await bundle(root, WRAPPER, { 'lambda-lease': join(root, 'src/index.ts') });
      const [output] = Object.values(sources.metafile.outputs);
      const brought = Object.entries(output?.inputs ?? {})
        .filter(([, { bytesInOutput }]) => bytesInOutput > 0)
        .map(([path]) => path.replace(/^src\/|\.ts$/g, ''));
      expect(brought).toContain('with-lease');
      const unwanted =
        /monitor|eventbridge|verdict|heartbeat|pulse|publisher|identit|elector|scheduled|fence|guarded|memory|cli|widget|middleware/;
      expect(brought.filter((name) => unwanted.test(name))).toEqual([]);
      // What is built sheds as much as the sources do.
      expect(wrapper.minified / sources.minified).toBeLessThan(1.02);
    });

    test.each(['load.mjs', 'load.cjs'])(
      'loads within milliseconds, once the SDK is there: %s',
      async (file) => {
        const times: number[] = [];
        for (let n = 0; n < 5; n += 1) {
          times.push(Number((await run(tools.node24, [file], folder)).stdout));
        }
        const fastest = Math.min(...times);
        console.log(`${file}: ${fastest.toFixed(1)} ms`);
        // Some 6 ms on a machine that is not busy; this one may be.
        expect(fastest).toBeLessThan(60);
      },
      PATIENCE_MS,
    );
  });
}
