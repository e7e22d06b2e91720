// The constructs in apps of both kinds of module: they synthesise, find the bundles of their
// functions, and deploy a handler that NodejsFunction has bundled with the package.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { manifest, PATIENCE_MS, run, tools, type Stage } from './stage.ts';

const HANDLER = `
import { withLease } from 'lambda-lease';
import { fakeContext, MemoryStore } from 'lambda-lease/testing';
export const handler = withLease(
  { name: 'job', store: new MemoryStore() },
  async (_event: unknown, { lease }) => lease.fencingToken,
);
export const tried = () => handler({}, fakeContext());
`;

const NAMES = {
  'aws-cdk-lib': '{ App, Stack }',
  'aws-cdk-lib/aws-lambda-nodejs': '{ NodejsFunction }',
  'aws-cdk-lib/aws-lambda': '{ Code, Runtime }',
  'lambda-lease/cdk': '{ LeaseTable, LifecycleMonitor, singleton, SingletonFunction }',
};

const APP = `
const stack = new Stack(new App({ outdir: 'OUTDIR' }), 'Stack');
const table = new LeaseTable(stack, 'Leases');
new LifecycleMonitor(stack, 'Monitor', { table });
new SingletonFunction(stack, 'Inline', {
  table,
  leaseName: 'inline',
  code: Code.fromInline('exports.handler = async () => 1;'),
});
const fn = new NodejsFunction(stack, 'Bundled', {
  entry: 'handler.ts',
  projectRoot: process.cwd(),
  depsLockFilePath: 'package-lock.json',
  runtime: Runtime.NODEJS_22_X,
});
singleton(fn, { table, leaseName: 'job' });
stack.node.root.synth();
`;

function app(kind: 'esm' | 'cjs'): string {
  const head = Object.entries(NAMES).map(([from, names]) =>
    kind === 'esm' ? `import ${names} from '${from}';` : `const ${names} = require('${from}');`,
  );
  return `${head.join('\n')}\n${APP.replace('OUTDIR', `out-${kind}`)}`;
}

interface Template {
  readonly Resources: Readonly<
    Record<string, { readonly Type: string; readonly Properties: { readonly Handler?: string } }>
  >;
}

export function cdkApps(stage: () => Stage): void {
  describe('a CDK app', () => {
    test.each([
      ['esm', 'app.mjs', 'node24'],
      ['cjs', 'app.cjs', 'node22'],
    ] as const)(
      'of kind %s has the constructs, and bundles a handler: %s on %s',
      async (kind, file, node) => {
        const peers = ['aws-cdk-lib', 'constructs', 'esbuild', '.bin/esbuild'];
        const folder = stage().project(`cdk-app-${kind}`, ['@aws-sdk/client-dynamodb', ...peers], {
          'package.json': manifest('commonjs'),
          'package-lock.json': '{}',
          [file]: app(kind),
          'handler.ts': HANDLER,
        });
        await run(tools[node], [file], folder);

        const out = join(folder, `out-${kind}`);
        const text = readFileSync(join(out, 'Stack.template.json'), 'utf8');
        const { Resources } = JSON.parse(text) as Template;
        const kinds = Object.values(Resources).map(({ Type }) => Type);
        expect(kinds.filter((type) => type === 'AWS::DynamoDB::GlobalTable')).toHaveLength(1);
        expect(kinds.filter((type) => type === 'AWS::Lambda::Function')).toHaveLength(3);

        const assets = readdirSync(out).filter((name) => name.startsWith('asset.'));
        const monitor = assets.find((name) => existsSync(join(out, name, 'index.mjs')));
        const bundled = assets.find((name) => existsSync(join(out, name, 'index.js')));
        expect(monitor, 'the prebuilt monitor').toBeDefined();
        expect(bundled, 'the bundled handler').toBeDefined();

        const script = `require('./out-${kind}/${bundled}').tried().then(console.log)`;
        expect((await run(tools.node22, ['-e', script], folder)).stdout).toBe('1\n');
      },
      PATIENCE_MS,
    );
  });
}
