// The README's promises that a machine can check: its snippets compile, its commands exist.

import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import ts from 'typescript';
import { describe, expect, test } from 'vitest';

const root = fileURLToPath(new URL('..', import.meta.url));
const readme = readFileSync(`${root}README.md`, 'utf8');
const snippets = [...readme.matchAll(/```ts\n([\s\S]*?)```/g)].map((match) => match[1] ?? '');

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

describe('the README', () => {
  test('has snippets that compile, strictly', () => {
    expect(snippets.length).toBeGreaterThanOrEqual(6);
    const files = new Map(
      snippets.map((text, index) => [`${root}test/readme-snippet-${index}.ts`, text]),
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
    const problems = ts
      .getPreEmitDiagnostics(program)
      .map((problem) => ts.flattenDiagnosticMessageText(problem.messageText, '\n'));
    expect(problems).toEqual([]);
    // Of the CDK's types there are more than a million lines.
  }, 240_000);

  test('names only npm scripts that exist', () => {
    const { scripts } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as {
      scripts: Record<string, string>;
    };
    const named = [...readme.matchAll(/(?:`|&& |^)npm (?:run )?([a-z:]+)/gm)].map(
      (match) => match[1],
    );
    expect(named.length).toBeGreaterThan(3);
    const known = [...Object.keys(scripts), 'ci', 'install', 'pack'];
    expect(named.filter((name) => !known.includes(name ?? ''))).toEqual([]);
  });

  test.each([
    ['withLease', 'invocation-options'],
    ['scheduledSingleton', 'scheduled-options'],
  ])('names every option of %s', (_, file) => {
    const source = readFileSync(`${root}src/${file}.ts`, 'utf8');
    const own = [...source.matchAll(/^ {2}'(\w+)',$/gm)].map((match) => match[1] ?? '');
    expect(own.length).toBeGreaterThan(6);
    for (const name of own) expect(readme, name).toContain(`\`${name}\``);
  });

  test('says what to do about every code of an error', () => {
    const section = readme.split('\n## ').find((text) => text.startsWith('Errors\n')) ?? '';
    const rows = section.split('\n').flatMap((line) => /^\| ([^|]+) \|/.exec(line)?.[1] ?? []);
    const source = readFileSync(`${root}src/errors.ts`, 'utf8');
    const codes = [...source.matchAll(/^ {2}\| '([a-z-]+)'/gm)].map((match) => match[1] ?? '');
    expect(codes.length).toBeGreaterThan(10);
    for (const code of codes) expect(rows.join(' '), code).toContain(`\`${code}\``);
  });
});
