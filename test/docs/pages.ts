// The documentation as the tests read it: its pages, and what is in them.

import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../..', import.meta.url));

/** A page, by its path from the top. */
export const textOf = (path: string): string => readFileSync(`${root}${path}`, 'utf8');

const markdownIn = (folder: string): string[] =>
  readdirSync(`${root}${folder}`)
    .filter((file) => file.endsWith('.md'))
    .map((file) => `${folder}/${file}`);

/** What is written by hand for users. */
export const PAGES: readonly string[] = ['README.md', ...markdownIn('docs')];

/** All pages that are linked from each other. */
export const ALL_PAGES: readonly string[] = [
  ...PAGES,
  ...markdownIn('docs/api'),
  ...markdownIn('.github'),
  'test/bench/results.md',
  'test/model/clock-check.md',
];

/** The blocks of code of that language, in their order. */
export function blocksOf(text: string, language: string): string[] {
  const fence = new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm');
  return [...text.matchAll(fence)].map(([, block = '']) => block);
}

/** What stands under a heading, down to the next one of its level or above. */
export function sectionOf(text: string, heading: string): string {
  const [hashes = ''] = heading.split(' ');
  const start = text.indexOf(`${heading}\n`);
  if (start === -1) throw new Error(`There is no heading "${heading}".`);
  const rest = text.slice(start + heading.length);
  const end = new RegExp(`^#{1,${hashes.length}} `, 'm').exec(rest)?.index ?? rest.length;
  return rest.slice(0, end);
}

/** The first cells of the rows of all tables in it. */
export function firstCellsOf(text: string): string[] {
  return text.split('\n').flatMap((line) => /^\| ([^|]+?) \|/.exec(line)?.[1] ?? []);
}
