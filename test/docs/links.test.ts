// Every relative link of the documentation leads somewhere, and every anchor to a heading.

import { existsSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ALL_PAGES, root, textOf } from './pages.ts';

const withoutCode = (text: string) =>
  text.replaceAll(/^```[\s\S]*?^```$/gm, '').replaceAll(/`[^`\n]*`/g, (code) => code.slice(1, -1));

/** As GitHub makes them of headings; and those that are set by hand. */
function anchorsOf(path: string): Set<string> {
  const text = textOf(path);
  const anchors = new Set([...text.matchAll(/<a id="([^"]+)">/g)].map(([, id = '']) => id));
  const seen = new Map<string, number>();
  for (const [, heading = ''] of withoutCode(text).matchAll(/^#{1,6} (.+)$/gm)) {
    const slug = heading
      .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\p{M} _-]/gu, '')
      .replaceAll(' ', '-');
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    anchors.add(times === 0 ? slug : `${slug}-${times}`);
  }
  return anchors;
}

/** Only in prose: what is in code is not a link. */
function linksOf(path: string): string[] {
  const prose = textOf(path)
    .replaceAll(/^```[\s\S]*?^```$/gm, '')
    .replaceAll(/`[^`\n]*`/g, 'code');
  const ofPages = [...prose.matchAll(/\]\(([^()\s]+)\)/g)].map(([, target = '']) => target);
  return ofPages.filter((target) => !/^[a-z]+:/.test(target));
}

describe.each(ALL_PAGES)('%s', (path) => {
  test('links to what is there', () => {
    const broken = linksOf(path).filter((link) => {
      const [file = '', anchor] = link.split('#');
      const target = file === '' ? path : normalize(join(dirname(path), file));
      if (!existsSync(join(root, target))) return true;
      return anchor !== undefined && !anchorsOf(target).has(anchor);
    });
    expect(broken).toEqual([]);
  });
});

test('the front page leads to every page that is written by hand', () => {
  const linked = linksOf('README.md').map((link) => link.split('#')[0]);
  const own = ALL_PAGES.filter((path) => path.startsWith('docs/') || path.startsWith('.github/'));
  expect(own.filter((path) => !linked.includes(path))).toEqual([]);
});

test('and its anchors are GitHub’s: a broken one is found', () => {
  expect(anchorsOf('docs/operating.md')).toContain('at-3-am');
  expect(anchorsOf('docs/handlers.md')).toContain('a-lambda-handler-withlease');
  expect(anchorsOf('docs/handlers.md')).not.toContain('no-such-heading');
});
