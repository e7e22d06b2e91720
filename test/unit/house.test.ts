// The house rules that a reader relies on, kept by a test: floors, doors, sizes.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** From the ground up: a file imports only from floors below its own. */
const FLOORS: readonly (readonly string[])[] = [
  ['schema', 'clock', 'random', 'environment', 'zones', 'ages', 'widget-html', 'in-parallel'],
  ['cli-process', 'cli-text'],
  ['lease', 'timeline', 'fake-clock', 'metrics', 'turns', 'holder', 'table-doctor'],
  ['item-size', 'fake-context'],
  ['errors', 'condition', 'pass-memory', 'stored-verdict', 'clock-check', 'renewal', 'tenure'],
  ['writes', 'decide', 'bounded', 'events', 'verdict', 'clock-refusal'],
  ['store', 'expressions', 'monitor-writes', 'eventbridge', 'claims', 'pass-report', 'job'],
  ['user-expressions', 'log-link'],
  ['options', 'memory-store', 'dynamodb-store', 'lease-access', 'answers', 'monitor-table'],
  ['interruptible-store', 'transaction-items', 'lease-summary', 'list-leases'],
  ['health', 'departure', 'lifecycle-monitor', 'lease-handle', 'schedule', 'user-commands'],
  ['widget-params', 'operator-writes'],
  ['lock', 'fence', 'widget-page'],
  ['slots', 'lease-widget', 'pace'],
  ['refusal', 'holding', 'contention', 'setup', 'guarded'],
  ['invocation-options', 'acquire-lease', 'elector', 'pulse', 'selector'],
  ['invocation', 'publisher', 'invocation-pulse', 'scheduled-options'],
  ['with-lease', 'heartbeat', 'list-identities', 'scheduled-job'],
  ['identity', 'heartbeat-middleware', 'scheduled-singleton', 'lease-middleware'],
  ['middleware', 'index', 'testing', 'cli-manifest', 'cli-findings', 'cli-completion'],
  ['cli-columns', 'cli-changes', 'cli-table'],
  ['cli-describe', 'cli-local', 'cli-operate', 'cli-run'],
  ['cli-get'],
  ['cli-doctor', 'cli-top'],
  ['cli'],
  ['bin'],
];

const sources = readdirSync(`${root}src`).map((file) => file.replace(/\.ts$/, ''));
const textOf = (name: string) => readFileSync(`${root}src/${name}.ts`, 'utf8');
const floorOf = (name: string) => FLOORS.findIndex((floor) => floor.includes(name));

function importsOf(name: string): string[] {
  return [...textOf(name).matchAll(/(?:from |\bimport\()'([^']+)'/g)]
    .map((match) => match[1] ?? '')
    .filter((path) => path !== '../package.json');
}

describe.each(sources)('src/%s.ts', (name) => {
  const text = textOf(name);

  test('stands on a floor, and imports only from below', () => {
    expect(floorOf(name), `${name} has no floor`).toBeGreaterThanOrEqual(0);
    for (const path of importsOf(name).filter((path) => path.startsWith('.'))) {
      const other = path.replace(/^\.\//, '').replace(/\.ts$/, '');
      expect(floorOf(other), `${name} imports ${other}`).toBeGreaterThanOrEqual(0);
      expect(floorOf(other), `${name} imports ${other}`).toBeLessThan(floorOf(name));
    }
  });

  test('opens with what it is', () => {
    expect(text).toMatch(/^(?:#!.*\n)?\/\/ [A-Z]/);
  });

  test('is still one idea: at most 400 lines of at most 100 characters', () => {
    const lines = text.split('\n');
    expect(lines.length).toBeLessThanOrEqual(400);
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
  });

  test('leaves time, chance, the process and the SDK to their doors', () => {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    const door = (pattern: RegExp, ...doors: string[]) => {
      if (!doors.includes(name)) expect(code).not.toMatch(pattern);
    };
    door(/Date\.now|performance\.|new Date\(\)|setTimeout|setInterval/, 'clock');
    door(/Math\.random|randomUUID|crypto/, 'random');
    door(
      /\bprocess\.(?:env|pid|on|exit|std)|\bconsole\.|node:(?:os|child_process|readline)/,
      'environment',
      'cli-process',
    );
    door(/(?:from |import\()'@(?:aws-sdk|smithy)/, 'dynamodb-store', 'eventbridge', 'table-doctor');
    door(/(?:from |import\()'(?:commander|yaml)/, 'cli', 'cli-get');
    door(/from '@?middy/);
  });

  test('exports by name only', () => {
    expect(text).not.toMatch(/export default/);
  });
});

/** All that a file brings with it, loaded now or later. */
function reached(name: string, seen = new Set<string>()): Set<string> {
  if (seen.has(name)) return seen;
  seen.add(name);
  for (const path of importsOf(name)) {
    if (path.startsWith('.')) reached(path.replace(/^\.\//, '').replace(/\.ts$/, ''), seen);
  }
  return seen;
}

test.each(['index', 'middleware', 'testing', 'lifecycle-monitor', 'lease-widget'])(
  'who imports %s gets nothing of the command line',
  (name) => {
    const files = [...reached(name)];
    expect(files.length).toBeGreaterThan(3);
    expect(files.filter((file) => /^cli|^bin$|^table-doctor$/.test(file))).toEqual([]);
  },
);

test('no floor names a file that is gone', () => {
  const gone = FLOORS.flat().filter((name) => !sources.includes(name) && name !== 'testing');
  expect(gone).toEqual([]);
});

const constructs = readdirSync(`${root}lib`).map((file) => file.replace(/\.ts$/, ''));

describe.each(constructs)('lib/%s.ts', (name) => {
  const text = readFileSync(`${root}lib/${name}.ts`, 'utf8');
  const lines = text.split('\n');

  test('opens with what it is, is one idea, and exports by name only', () => {
    expect(text).toMatch(/^\/\/ [A-Z]/);
    expect(lines.length).toBeLessThanOrEqual(400);
    expect(lines.filter((line) => line.length > 100)).toEqual([]);
    expect(text).not.toMatch(/export default/);
  });

  test('imports the CDK, its own folder, and of src only the schema', () => {
    const packaged = name === 'bundle' ? /^node:(?:fs|path|url)$/ : /^(?:aws-cdk-lib|constructs)/;
    for (const [, path = ''] of text.matchAll(/from '([^']+)'/g)) {
      const allowed = /^\.\/[\w-]+\.ts$/.test(path) || path === '../src/schema.ts';
      expect(allowed || packaged.test(path), path).toBe(true);
      expect(path).not.toMatch(/^aws-cdk-lib\/.+\/lib/);
    }
  });

  test('leaves the process and the place of the bundles to their doors', () => {
    const code = text.replace(/\/\*[\s\S]*?\*\/|\/\/.*$/gm, '');
    expect(code).not.toMatch(/\bprocess\.|\bconsole\./);
    if (name !== 'bundle') expect(code).not.toMatch(/import\.meta|__dirname|node:/);
  });

  test('gives each optional prop its default', () => {
    const undocumented = [
      ...text.matchAll(/(\/\*\*(?:(?!\*\/)[\s\S])*\*\/)?\n {2}readonly (\w+)\?:/g),
    ].flatMap(([, comment = '', prop = '']) => (comment.includes('@default') ? [] : [prop]));
    expect(undocumented).toEqual([]);
  });
});

const PLACES = ['functions', 'lib', 'src', 'test', 'docs', '.config', '.github'];

test.each([...PLACES, 'README.md', 'package.json', 'cdk.json', '.ci/run'])(
  '%s speaks of nothing outside the project',
  (path) => {
    const listed = !PLACES.includes(path)
      ? [path]
      : readdirSync(`${root}${path}`, { recursive: true, encoding: 'utf8' })
          .filter(
            (file) =>
              /\.(?:ts|mts|mjs|json|sh|md|yml)$/.test(file) && !file.includes('node_modules'),
          )
          .map((file) => `${path}/${file}`);
    for (const file of listed) {
      const text = readFileSync(`${root}${file}`, 'utf8');
      expect(text, file).not.toMatch(
        new RegExp(['\\.\\./', 'shared|', '/work', '/main|design', '\\.md'].join('')),
      );
    }
  },
);
