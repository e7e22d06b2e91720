// What is in the package, and what is not.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { manifest, root, run, tools, type Stage } from './stage.ts';

interface Manifest {
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, unknown>>;
}

const own = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Manifest;

export function contents(stage: () => Stage): void {
  describe('the tarball', () => {
    test('holds these files, declarations and the parts of the program apart', () => {
      const paths = stage()
        .files.map(({ path }) => path.replace(/shared-[0-9A-Z]{8}\./, 'shared-HASH.'))
        .filter((path) => !path.startsWith('dist/types/') && !path.startsWith('dist/bin/'));
      const functions = readdirSync(join(root, 'functions')).map(
        (file) => `dist/functions/${file.replace(/\.ts$/, '')}/index.mjs`,
      );
      const modules = ['cdk', 'index', 'middy', 'shared-HASH', 'testing'].flatMap((name) => [
        `dist/${name}.cjs`,
        `dist/${name}.js`,
      ]);
      const programs = Object.values(own.bin ?? {});
      const notices = 'dist/functions/THIRD-PARTY-NOTICES';
      const texts = ['LICENSE', 'README.md', 'package.json', notices];
      expect([...new Set(paths)].sort()).toEqual(
        [...texts, ...programs, ...functions, ...modules].sort(),
      );
    });

    test('brings the licences of what is bundled: of the SDK in functions, of the program', () => {
      const folder = join(stage().project('notices', [], {}), 'node_modules/lambda-lease/dist');
      const notice = (of: string) => readFileSync(join(folder, of, 'THIRD-PARTY-NOTICES'), 'utf8');
      expect(notice('bin')).toMatch(/^commander \d+\.\d+\.\d+ \(MIT\)\n\n\(The MIT License\)/);
      expect(notice('bin')).toMatch(/^yaml \d+\.\d+\.\d+ \(ISC\)$/m);
      expect(notice('bin').match(/^.* \d+\.\d+\.\d+ \(.*\)$/gm)).toHaveLength(2);
      expect(notice('functions')).toMatch(/^@aws-sdk\/client-dynamodb \S+ \(Apache-2\.0\)$/m);
      expect(notice('functions')).toMatch(/^@smithy\/core \S+ \(Apache-2\.0\)$/m);
      expect(notice('functions')).toMatch(/^mnemonist \S+ \(MIT\)$/m);
    });

    test('holds each declaration for both kinds of module, and none of anything but a source', () => {
      const paths = stage()
        .files.map(({ path }) => path)
        .filter((path) => path.startsWith('dist/types/'));
      expect(paths.length).toBeGreaterThan(50);
      for (const path of paths) {
        const source = path.replace(/^dist\/types\//, '').replace(/\.d\.c?ts$/, '.ts');
        expect(source).toMatch(/^(?:src|lib)\//);
        expect(existsSync(join(root, source)), source).toBe(true);
        const other = path.endsWith('.d.ts')
          ? path.replace(/\.d\.ts$/, '.d.cts')
          : path.replace(/\.d\.cts$/, '.d.ts');
        expect(paths).toContain(other);
      }
    });

    test('has programs that can be run', () => {
      for (const program of Object.values(own.bin ?? {})) {
        expect(stage().files.find(({ path }) => path === program)?.mode, program).toBe(0o755);
      }
    });

    test('says nothing of the machine that built it', () => {
      const folder = stage().project('contents', [], {});
      for (const { path } of stage().files.filter(({ path }) => path.startsWith('dist/'))) {
        const text = readFileSync(join(folder, 'node_modules/lambda-lease', path), 'utf8');
        expect(text.includes(root), path).toBe(false);
      }
    });
  });

  describe('an install', () => {
    test('brings the package, and nothing else', () => {
      expect(stage().installed).toEqual(['lambda-lease']);
    });

    test('resolves each sub-path to a file, in both kinds of module', async () => {
      const peers = ['@aws-sdk', '@smithy', 'aws-cdk-lib', 'constructs'].filter((name) =>
        existsSync(join(root, 'node_modules', name)),
      );
      const names = Object.keys(own.exports).map((path) => path.replace('.', 'lambda-lease'));
      const list = JSON.stringify(names);
      const folder = stage().project('sub-paths', peers, {
        'package.json': manifest('module'),
        'all.cjs': `for (const name of ${list}) require(name);`,
        'all.mjs': `for (const name of ${list}.slice(0, -1)) await import(name);`,
      });
      expect(names.at(-1)).toBe('lambda-lease/package.json');
      await Promise.all(['all.cjs', 'all.mjs'].map((file) => run(tools.node24, [file], folder)));
    });
  });

  describe('judges of packages', () => {
    test('publint finds nothing, not even a suggestion', async () => {
      const folder = stage().project('judged', [], {});
      const { stdout } = await run(
        tools.node24,
        [tools.publint, 'node_modules/lambda-lease', '--strict', '--pack', 'false'],
        folder,
      );
      expect(stdout).toContain('All good!');
    });

    test('arethetypeswrong resolves every sub-path under every mode, node10 included', async () => {
      const { stdout } = await run(
        tools.node24,
        [tools.attw, stage().tarball, '--profile', 'strict', '--format', 'table', '--no-color'],
        root,
      );
      expect(stdout).toContain('No problems found');
    });
  });
}
