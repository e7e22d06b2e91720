// The house rules that a reader relies on, kept by a test: floors, doors, sizes.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));

/** From the ground up: a file imports only from floors below its own. */
const FLOORS: readonly (readonly string[])[] = [
  ['schema', 'clock', 'random', 'environment', 'zones', 'courtesy'],
  ['lease', 'timeline', 'fake-clock', 'metrics', 'turns', 'holder'],
  ['errors', 'condition', 'pass-memory', 'stored-verdict', 'clock-check', 'renewal', 'tenure'],
  ['writes', 'decide', 'bounded', 'events', 'verdict', 'clock-refusal'],
  [
    'store',
    'expressions',
    'monitor-writes',
    'eventbridge',
    'claims',
    'pass-report',
    'job',
    'user-expressions',
  ],
  [
    'options',
    'memory-store',
    'dynamodb-store',
    'lease-access',
    'answers',
    'monitor-table',
    'interruptible-store',
    'transaction-items',
  ],
  ['health', 'departure', 'lifecycle-monitor', 'lease-handle', 'schedule', 'user-commands'],
  ['lock', 'fence'],
  ['slots'],
  ['refusal', 'holding', 'contention', 'setup', 'guarded'],
  ['invocation-options', 'acquire-lease', 'elector', 'pulse', 'selector'],
  ['invocation', 'publisher', 'invocation-pulse', 'scheduled-options'],
  ['with-lease', 'heartbeat', 'list-identities', 'scheduled-job'],
  ['identity', 'heartbeat-middleware', 'scheduled-singleton', 'lease-middleware'],
  ['middleware', 'index', 'testing'],
];

const sources = readdirSync(`${root}src`).map((file) => file.replace(/\.ts$/, ''));
const textOf = (name: string) => readFileSync(`${root}src/${name}.ts`, 'utf8');
const floorOf = (name: string) => FLOORS.findIndex((floor) => floor.includes(name));

function importsOf(name: string): string[] {
  return [...textOf(name).matchAll(/from '([^']+)'/g)].map((match) => match[1] ?? '');
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
    expect(text).toMatch(/^\/\/ [A-Z]/);
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
    door(/\bprocess\.(?:env|pid|on|exit|std)|\bconsole\.|node:os/, 'environment');
    door(/from '@(?:aws-sdk|smithy)/, 'dynamodb-store', 'eventbridge');
    door(/from '@?middy/);
  });

  test('exports by name only', () => {
    expect(text).not.toMatch(/export default/);
  });
});

test('no floor names a file that is gone', () => {
  const gone = FLOORS.flat().filter((name) => !sources.includes(name) && name !== 'testing');
  expect(gone).toEqual([]);
});

test.each(['functions', 'src', 'test', 'README.md', 'package.json', '.ci/run'])(
  '%s speaks of nothing outside the project',
  (path) => {
    const listed = path.includes('.')
      ? [path]
      : readdirSync(`${root}${path}`, { recursive: true, encoding: 'utf8' })
          .filter(
            (file) => /\.(?:ts|mts|mjs|json|sh)$/.test(file) && !file.includes('node_modules'),
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
