// The API reference is what the doc comments say now; and every export has one.

import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { root, textOf } from './pages.ts';

let fresh: string;
beforeAll(() => {
  fresh = mkdtempSync(join(tmpdir(), 'lambda-lease-api-'));
  execFileSync(process.execPath, [`${root}.config/docs.mjs`, fresh], { stdio: 'pipe' });
  // Of the SDK's and the CDK's types there are more than a million lines.
}, 240_000);
afterAll(() => rmSync(fresh, { recursive: true, force: true }));

test('the pages in docs/api are current: `npm run docs` writes them', () => {
  const pages = readdirSync(`${root}docs/api`).sort();
  expect(pages).toEqual(['cdk.md', 'index.md', 'middy.md', 'testing.md']);
  expect(readdirSync(fresh).sort()).toEqual(pages);
  for (const page of pages) {
    expect(textOf(`docs/api/${page}`), page).toBe(readFileSync(join(fresh, page), 'utf8'));
  }
});

test.each([
  ['index', 'src/index.ts'],
  ['middy', 'src/middleware.ts'],
  ['testing', 'src/testing.ts'],
  ['cdk', 'lib/index.ts'],
])('the page %s has what %s exports', (page, source) => {
  const text = textOf(source);
  const listed = [...text.matchAll(/^export (?:type )?\{([^}]+)\}/gm)].flatMap(([, names = '']) =>
    names.split(',').map((name) => name.replace('type ', '').trim()),
  );
  const declared = [...text.matchAll(/^export (?:function|interface|type|class) (\w+)/gm)];
  const names = [...listed, ...declared.map(([, name = '']) => name)].filter((name) => name !== '');
  expect(names.length).toBeGreaterThan(4);
  const headings = [...textOf(`docs/api/${page}.md`).matchAll(/^### (\w+)/gm)].map(
    ([, name]) => name,
  );
  expect(names.filter((name) => !headings.includes(name))).toEqual([]);
});
