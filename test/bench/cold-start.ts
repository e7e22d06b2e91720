// What the library adds to a cold start: the time of its import once the AWS SDK is there, and the
// size of a bundle without the SDK.

import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { build } from 'esbuild';
import { goal, type Measured, ms, spread } from './figures.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const PEERS = fileURLToPath(new URL('peers', import.meta.url));

interface Subject {
  readonly name: string;
  /** What a user writes. */
  readonly source: string;
  /** Where its imports are found. */
  readonly from: string;
  /** What Lambda has, or the library asks for beside itself. */
  readonly sdk: string;
}

const SDK_V3 = '@aws-sdk/client-dynamodb';
const SUBJECTS: readonly Subject[] = [
  {
    name: 'lambda-lease: withLease',
    source: `export { withLease } from '${ROOT}src/index.ts';`,
    from: ROOT,
    sdk: SDK_V3,
  },
  {
    name: 'lambda-lease: everything',
    source: `export * from '${ROOT}src/index.ts';`,
    from: ROOT,
    sdk: SDK_V3,
  },
  {
    name: 'dynamodb-lock-client',
    source: `export * from 'dynamodb-lock-client';`,
    from: PEERS,
    sdk: 'aws-sdk/clients/dynamodb.js',
  },
  {
    name: '@deliveryhero/dynamodb-lock',
    source: `export * from '@deliveryhero/dynamodb-lock';`,
    from: PEERS,
    sdk: '@aws-sdk/lib-dynamodb',
  },
  {
    name: '@aws-lambda-powertools/idempotency',
    source:
      `export * from '@aws-lambda-powertools/idempotency';` +
      `export * from '@aws-lambda-powertools/idempotency/dynamodb';`,
    from: PEERS,
    sdk: '@aws-sdk/lib-dynamodb',
  },
];

export async function coldStart(runs: number): Promise<Measured> {
  // Within the project, where a bundle finds the SDK.
  await mkdir(join(ROOT, 'coverage'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, 'coverage', 'bundles-'));
  try {
    const bundles = await Promise.all(SUBJECTS.map((subject, at) => bundled(subject, folder, at)));
    const tookMs = bundles.map(() => ({ own: [] as number[], sdk: [] as number[] }));
    for (let run = 0; run < runs; run++) {
      for (const [at, { file, sdk }] of bundles.entries()) {
        const took = await importTimes(file, sdk);
        tookMs[at]!.own.push(took.own);
        tookMs[at]!.sdk.push(took.sdk);
      }
    }
    const [own] = tookMs;
    const median = spread(own!.own).median;
    return {
      title: 'Cold start',
      how:
        `The import of a minified bundle without the SDK, in a new process that has imported the SDK ` +
        `just before; ${runs} each, taking turns.`,
      rows: bundles.map(({ name, bytes, gzipped }, at) => ({
        '': name,
        'import, ms: min': ms(spread(tookMs[at]!.own).min),
        median: ms(spread(tookMs[at]!.own).median),
        p99: ms(spread(tookMs[at]!.own).p99),
        'the SDK it needs, ms': ms(spread(tookMs[at]!.sdk).median),
        'minified, bytes': bytes.toLocaleString('en'),
        'gzipped, bytes': gzipped.toLocaleString('en'),
      })),
      goals: [goal("at most 8 ms over the SDK's own", median, median <= 8)],
    };
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function bundled({ name, source, from, sdk }: Subject, folder: string, at: number) {
  const entry = join(from === PEERS ? PEERS : ROOT, `.bundle-${process.pid}-${at}.ts`);
  // What is found from the peers' folder is bundled; the SDK of either version is not.
  await writeFile(entry, source);
  const file = join(folder, `${at}.mjs`);
  try {
    await build({
      entryPoints: [entry],
      outfile: file,
      bundle: true,
      minify: true,
      platform: 'node',
      target: 'node22',
      format: 'esm',
      external: ['@aws-sdk/*', 'aws-sdk'],
      banner: {
        js: "import{createRequire as __from}from'node:module';const require=__from(import.meta.url);",
      },
      logLevel: 'silent',
    });
  } finally {
    await rm(entry);
  }
  const { size } = await stat(file);
  const gzipped = (await promisify(gzip)(await readFile(file))).length;
  return {
    name,
    file,
    sdk: sdk.startsWith('aws-sdk') ? join(PEERS, 'node_modules', sdk) : sdk,
    bytes: size,
    gzipped,
  };
}

async function importTimes(file: string, sdk: string): Promise<{ own: number; sdk: number }> {
  const script =
    `const a=performance.now();await import(${JSON.stringify(sdk)});` +
    `const b=performance.now();await import(${JSON.stringify(file)});` +
    `console.log(JSON.stringify({sdk:b-a,own:performance.now()-b}))`;
  const { stdout } = await promisify(execFile)(
    process.execPath,
    ['--no-warnings', '--input-type=module', '-e', script],
    { cwd: ROOT, env: { ...process.env, AWS_SDK_JS_SUPPRESS_MAINTENANCE_MODE_MESSAGE: '1' } },
  );
  return JSON.parse(stdout) as { own: number; sdk: number };
}
