// Declarations, checked by the compilers of users, libraries included: `skipLibCheck` is off.

import { describe, test } from 'vitest';
import { manifest, PATIENCE_MS, run, tools, type Stage } from './stage.ts';

const LIBRARY = `
import { isLeaseError, isSkipped, withLease, type Lease, type Skipped } from 'lambda-lease';
import { acquireLease, fenced, Heartbeat, Identity, LeaderElector } from 'lambda-lease';
import { FakeClock, fakeContext, MemoryStore } from 'lambda-lease/testing';

const clock = new FakeClock();
const store = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
export const handler = withLease(
  { name: (event: { tenant: string }) => event.tenant, store, clock },
  async (event, { lease }: { lease: Lease }) => event.tenant.length + lease.fencingToken,
);
export async function use(): Promise<number> {
  const result: number | Skipped = await handler({ tenant: 'acme' }, fakeContext({ clock }));
  // @ts-expect-error It may have been skipped: the types have not become any.
  const sum: number = result;
  // @ts-expect-error There is no such option.
  new LeaderElector({ name: 'poller', durationSeconds: 15, onStartedLeading: () => undefined });
  new Heartbeat({ name: 'worker', store });
  new Identity({ store });
  try {
    await using lease = await acquireLease({ name: 'migration', store });
    lease.signal.throwIfAborted();
  } catch (error) {
    if (!isLeaseError(error, 'lease-held')) throw error;
    console.log(error.record?.holderIdentity);
  }
  return isSkipped(result) ? sum : result;
}
export { fenced };
`;

const MIDDLEWARE = `
import { heartbeat, leaderElection, scheduledSingleton } from 'lambda-lease/middy';
export const election = leaderElection({ name: 'report' });
// @ts-expect-error The name is missing.
export const nameless = leaderElection({});
export { heartbeat, scheduledSingleton };
`;

const CHAIN = `
import type { ScheduledEvent } from 'aws-lambda';
import middy from '@middy/core';
import { leaderElection } from 'lambda-lease/middy';
export const handler = middy<ScheduledEvent, number>()
  .use(leaderElection({ name: 'report' }))
  .handler(async (event, { lease }) => {
    const token: number = lease.fencingToken;
    // @ts-expect-error The token is a number: the context has not become any.
    const text: string = lease.fencingToken;
    return token + event.id.length + text.length;
  });
`;

/** Middy's own types import it, and middy does not depend on it. */
const AMBIENT =
  "declare module '@aws/durable-execution-sdk-js' { export type { Context as DurableContext } from 'aws-lambda'; }";

const CONSTRUCTS = `
import { App, Duration, Stack } from 'aws-cdk-lib';
import { Code } from 'aws-cdk-lib/aws-lambda';
import { LeaseTable, LifecycleMonitor, SingletonFunction } from 'lambda-lease/cdk';
const stack = new Stack(new App(), 'Stack');
const table = new LeaseTable(stack, 'Leases');
new LifecycleMonitor(stack, 'Monitor', { table });
new SingletonFunction(stack, 'Job', {
  table,
  leaseName: 'job',
  timeout: Duration.minutes(2),
  code: Code.fromInline('exports.handler = async () => 1;'),
});
// @ts-expect-error The name of the lease is missing.
new SingletonFunction(stack, 'Nameless', { code: Code.fromInline('') });
`;

/** Without any optional peer. */
const PLAIN = ['@aws-sdk/client-dynamodb', '@types/node'];
const MIDDY = [...PLAIN, '@middy/core', '@types/aws-lambda'];
const CDK = [...PLAIN, 'aws-cdk-lib', 'constructs'];

const STRICT = {
  strict: true,
  noUncheckedIndexedAccess: true,
  skipLibCheck: false,
  noEmit: true,
  target: 'ES2022',
  // No DOM: a Lambda function has none.
  lib: ['ES2022'],
  types: ['node'],
};

const MODES = {
  /** Each file of its own kind: .mts and .cts. Here CommonJS may not import ES modules, */
  node16: { module: 'node16' },
  /** and here it may. */
  nodenext: { module: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
  /** What apps made by earlier versions of the CDK have; it knows no `exports`. */
  node10: { module: 'commonjs', moduleResolution: 'node10' },
} as const;

type Mode = keyof typeof MODES;
type Compiler = 'tsc5' | 'tsc6' | 'tsc7';

async function compile(
  stage: Stage,
  name: string,
  compiler: Compiler,
  mode: Mode,
  packages: readonly string[],
  sources: Readonly<Record<string, string>>,
): Promise<void> {
  const compilerOptions = {
    ...STRICT,
    ...MODES[mode],
    // The CDK's own declarations do not bear it.
    ...(packages === CDK ? {} : { exactOptionalPropertyTypes: true }),
  };
  const folder = stage.project(`${name}-${compiler}-${mode}`, packages, {
    'package.json': manifest('module'),
    'tsconfig.json': JSON.stringify({ compilerOptions, files: Object.keys(sources) }),
    ...sources,
  });
  await run(tools.node24, [tools[compiler], '-p', '.'], folder);
}

/** The same text as a module of each kind. */
const both = (name: string, text: string) => ({ [`${name}.mts`]: text, [`${name}.cts`]: text });

export function types(stage: () => Stage): void {
  describe.concurrent('the declarations compile, libraries included', () => {
    const modules = { ...both('library', LIBRARY), ...both('middleware', MIDDLEWARE) };

    test.each([
      ['tsc5', 'node16'],
      ['tsc6', 'nodenext'],
      ['tsc7', 'nodenext'],
    ] as const)(
      'without optional peers, as both kinds of module: %s, %s',
      (compiler, mode) => compile(stage(), 'plain', compiler, mode, PLAIN, modules),
      PATIENCE_MS,
    );
    test.each([
      ['tsc6', 'bundler'],
      ['tsc7', 'bundler'],
      ['tsc5', 'node10'],
    ] as const)(
      'without optional peers: %s, %s',
      (compiler, mode) =>
        compile(stage(), 'plain', compiler, mode, PLAIN, {
          'library.ts': LIBRARY,
          'middleware.ts': MIDDLEWARE,
        }),
      PATIENCE_MS,
    );
    test.each(['tsc5', 'tsc6', 'tsc7'] as const)(
      'in a chain of middy: %s',
      (compiler) =>
        compile(stage(), 'middy', compiler, 'nodenext', MIDDY, {
          'ambient.d.ts': AMBIENT,
          'chain.mts': CHAIN,
        }),
      PATIENCE_MS,
    );
    test.each([
      ['tsc5', 'node10'],
      ['tsc6', 'nodenext'],
      ['tsc7', 'nodenext'],
    ] as const)(
      'in a CDK app: %s, %s',
      (compiler, mode) =>
        compile(
          stage(),
          'cdk',
          compiler,
          mode,
          CDK,
          mode === 'node10' ? { 'app.ts': CONSTRUCTS } : both('app', CONSTRUCTS),
        ),
      PATIENCE_MS,
    );
  });
}
