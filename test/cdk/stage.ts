// Stacks in memory for template tests, with every feature flag of the CDK and with none; and what
// their templates say once tokens are names.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { App, Duration, Stack, type Environment } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Code, Function as LambdaFunction, Runtime } from 'aws-cdk-lib/aws-lambda';
import { afterAll, vi } from 'vitest';

// The first template of a process takes seconds, and longer beside others.
vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** Constructs take the handlers from their bundles. */
export function bundle(): void {
  execFileSync(process.execPath, [`${root}.config/bundle.mjs`], { stdio: 'pipe' });
}

const recommended = createRequire(import.meta.url).resolve(
  'aws-cdk-lib/recommended-feature-flags.json',
);

export const FLAGS: readonly (readonly [string, Readonly<Record<string, unknown>>])[] = [
  [
    'all feature flags',
    JSON.parse(readFileSync(recommended, 'utf8')) as Readonly<Record<string, unknown>>,
  ],
  ['no feature flag', {}],
];

// An app makes its folder when it is constructed, and leaves it behind.
const assemblies = mkdtempSync(join(tmpdir(), 'lambda-lease-cdk-'));
afterAll(() => rmSync(assemblies, { recursive: true, force: true }));

/** Its cloud assembly is gone when the file's tests are over. */
export function newApp(context: Readonly<Record<string, unknown>> = {}): App {
  return new App({ context: { ...context }, outdir: mkdtempSync(join(assemblies, 'app-')) });
}

/** In eu-west-1, or of no Region where `env` is `{}`. */
export function stackWith(
  context: Readonly<Record<string, unknown>> = {},
  env: Environment = { region: 'eu-west-1', account: '123456789012' },
): Stack {
  return new Stack(newApp(context), 'Test', { env });
}

/** The template of whatever `build` puts into a stack. */
export function templateOf(
  build: (stack: Stack) => unknown,
  context: Readonly<Record<string, unknown>> = {},
): Template {
  const stack = stackWith(context);
  build(stack);
  return Template.fromStack(stack);
}

/** A function that somebody has already. */
export function someFunction(stack: Stack, id = 'Theirs', timeoutSeconds?: number): LambdaFunction {
  return new LambdaFunction(stack, id, {
    code: someCode(),
    handler: 'index.handler',
    runtime: Runtime.NODEJS_24_X,
    ...(timeoutSeconds === undefined ? {} : { timeout: Duration.seconds(timeoutSeconds) }),
  });
}

export const someCode = () => Code.fromInline('exports.handler = async () => 1;');

export interface CfnResource {
  readonly Type: string;
  readonly Properties: Readonly<Record<string, unknown>>;
  readonly DeletionPolicy?: string;
}

export function resourcesOf(template: Template, type: string): [string, CfnResource][] {
  return Object.entries(template.findResources(type)) as [string, CfnResource][];
}

/** A value as text, `<Name>` for a reference and `<Name.Attribute>` for an attribute. */
export function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value !== 'object' || value === null) return value;
  const [[name, inner] = ['', undefined], ...others] = Object.entries(value) as [string, unknown][];
  if (others.length === 0) {
    if (name === 'Ref') return `<${String(inner)}>`;
    if (name === 'Fn::GetAtt') return `<${(inner as string[]).join('.')}>`;
    if (name === 'Fn::Join') {
      const [separator, parts] = inner as [string, unknown[]];
      return parts.map((part) => String(plain(part))).join(separator);
    }
  }
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, plain(each)]));
}
