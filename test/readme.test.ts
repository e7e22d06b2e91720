// What the README and the pages in docs promise that a machine can check: their snippets compile,
// their commands exist, their tables are whole.

import { readFileSync } from 'node:fs';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';
import { makeProgram } from '../src/cli.ts';
import type { Host } from '../src/cli-process.ts';
import { blocksOf, firstCellsOf, PAGES, root, sectionOf, textOf } from './docs/pages.ts';

const pages = PAGES.map((path) => ({ path, text: textOf(path) }));
const snippets = pages.flatMap(({ path, text }) =>
  blocksOf(text, 'ts').map((snippet, index) => ({ path, index, snippet })),
);

/** What the snippets take from the reader's own program. */
const READERS_OWN = `
declare global {
  function buildReport(with_: { signal: AbortSignal; fencingToken: number }): Promise<void>;
  function pagesOf(tenant: string): Iterable<string>;
  function copy(page: string): Promise<void>;
  function pollOnce(token: number): Promise<void>;
  function migrate(signal: AbortSignal): Promise<void>;
  var context: { awsRequestId: string; getRemainingTimeInMillis(): number };
}
export {};
`;

describe('the documentation', () => {
  test('has snippets that compile, strictly', () => {
    expect(new Set(snippets.map(({ path }) => path)).size).toBeGreaterThanOrEqual(6);
    expect(snippets.length).toBeGreaterThanOrEqual(18);
    const files = new Map(
      snippets.map(({ path, index, snippet }) => [
        `${root}test/${path.replaceAll(/\W/g, '-')}-${index}.ts`,
        snippet,
      ]),
    );
    files.set(`${root}test/readme-readers-own.ts`, READERS_OWN);
    const options: ts.CompilerOptions = {
      ...ts.convertCompilerOptionsFromJson(
        (JSON.parse(readFileSync(`${root}tsconfig.json`, 'utf8')) as { compilerOptions: object })
          .compilerOptions,
        root,
      ).options,
      noUnusedLocals: false,
      noUnusedParameters: false,
      paths: {
        'lambda-lease': [`${root}src/index.ts`],
        'lambda-lease/cdk': [`${root}lib/index.ts`],
        'lambda-lease/middy': [`${root}src/middleware.ts`],
        'lambda-lease/testing': [`${root}src/testing.ts`],
      },
    };
    const host = ts.createCompilerHost(options);
    const [fileExists, readFile] = [host.fileExists.bind(host), host.readFile.bind(host)];
    host.fileExists = (path) => files.has(path) || fileExists(path);
    host.readFile = (path) => files.get(path) ?? readFile(path);
    const original = host.getSourceFile.bind(host);
    host.getSourceFile = (path, language, ...rest) => {
      const text = files.get(path);
      return text === undefined
        ? original(path, language, ...rest)
        : ts.createSourceFile(path, text, language);
    };
    const program = ts.createProgram([...files.keys()], options, host);
    const problems = ts.getPreEmitDiagnostics(program).map(({ file, messageText }) => {
      const name = file?.fileName.replace(`${root}test/`, '') ?? '';
      return `${name}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
    });
    expect(problems).toEqual([]);
    // Of the CDK's types there are more than a million lines.
  }, 240_000);

  test('names only npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
      scripts: Record<string, string>;
    };
    const named = pages.flatMap(({ text }) =>
      [...text.matchAll(/(?:`|&& |^)npm (?:run )?([a-z:]+)/gm)].map((match) => match[1]),
    );
    expect(named.length).toBeGreaterThan(10);
    const known = [...Object.keys(scripts), 'ci', 'install', 'pack'];
    expect(named.filter((name) => !known.includes(name ?? ''))).toEqual([]);
  });

  test('names only commands and options of the command line that exist', () => {
    const program = makeProgram({} as Host, '0', () => undefined);
    const used = pages.flatMap(({ text }) => [
      ...blocksOf(text, 'sh')
        .join('\n')
        .matchAll(/\blambda-lease ([a-z-]+)([^\n#]*)/g),
      ...text.matchAll(/`(?:npx )?lambda-lease ([a-z-]+)([^`\n]*)`/g),
    ]);
    expect(used.length).toBeGreaterThan(15);
    const unknown = used.flatMap(([words, name = '', rest = '']) => {
      const command = program.commands.find((each) => each.name() === name);
      if (command === undefined) return name === 'help' ? [] : [words];
      const [own = ''] = rest.split(' -- ');
      const flags = [...own.matchAll(/(?<=\s)--?[a-zA-Z][\w-]*/g)].map(([flag]) => flag);
      const known = [...program.options, ...command.options].flatMap(({ short, long }) => [
        short,
        long,
      ]);
      return flags.filter((flag) => !known.includes(flag)).map((flag) => `${words}: ${flag}`);
    });
    expect(unknown).toEqual([]);
  });

  test.each([
    ['withLease', 'invocation-options'],
    ['scheduledSingleton', 'scheduled-options'],
  ])('names every option of %s', (_, file) => {
    const source = readFileSync(`${root}src/${file}.ts`, 'utf8');
    const own = [...source.matchAll(/^ {2}'(\w+)',$/gm)].map((match) => match[1] ?? '');
    expect(own.length).toBeGreaterThan(6);
    const handlers = textOf('docs/handlers.md');
    for (const name of own) expect(handlers, name).toContain(`\`${name}\``);
  });

  test('says what to do about every code of an error', () => {
    const rows = firstCellsOf(sectionOf(textOf('docs/operating.md'), '## Errors'));
    const source = readFileSync(`${root}src/errors.ts`, 'utf8');
    const codes = [...source.matchAll(/^ {2}\| '([a-z-]+)'/gm)].map((match) => match[1] ?? '');
    expect(codes.length).toBeGreaterThan(10);
    for (const code of codes) expect(rows.join(' '), code).toContain(`\`${code}\``);
  });

  test('has a front page that is read in ten minutes', () => {
    expect(textOf('README.md').split(/\s+/).length).toBeLessThanOrEqual(2_600);
  });
});
