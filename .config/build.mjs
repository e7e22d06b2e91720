// Builds the package into dist: each entry as an ES module and as CommonJS, what they share in
// chunks, the declarations of both kinds under dist/types, and the bundles of the functions.
//
// The CommonJS files are made from the ES modules, one for one, so that both kinds are the same
// code, cut in the same places.

import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build, transform } from 'esbuild';
import ts from 'typescript';
import { noticesOf, requireForEsm } from './bundled.mjs';

const { console, process, URL } = globalThis;

/** The name of each file in dist, and its source. Package.json's `exports` and `bin` name them. */
const ENTRIES = [
  { name: 'index', source: 'src/index.ts' },
  { name: 'middy', source: 'src/middleware.ts' },
  { name: 'testing', source: 'src/testing.ts' },
  { name: 'cdk', source: 'lib/index.ts' },
  { name: 'bin', source: 'src/bin.ts', program: true },
];
const FUNCTIONS = '.config/bundle.mjs';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const missing = (path) => !existsSync(join(root, path));

for (const path of [...ENTRIES.map(({ source }) => source), FUNCTIONS].filter(missing)) {
  console.warn(`\n!!! ${path} is not there: the package is built without it, and is not whole.\n`);
}
const entries = ENTRIES.filter(({ source }) => !missing(source));

// The bundles of the functions are replaced by their own script, one by one.
for (const name of existsSync(dist) ? readdirSync(dist) : []) {
  if (name !== 'functions') rmSync(join(dist, name), { recursive: true });
}

const target = 'node22';
const libraries = entries.filter(({ program }) => !program);
const programs = entries.filter(({ program }) => program);

// Apart from each other: what a program loads when it is needed must not cut up the libraries.
for (const output of (await bundle(libraries, 'shared-[hash]')).outputFiles) {
  const { path } = output;
  // Modules here have no side effects: an import of nothing is only what splitting has left.
  const text = output.text.replaceAll(/^import "\.\/shared-\w+\.js";\n/gm, '');
  write(path, text);
  write(path.replace(/\.js$/, '.cjs'), await commonJs(text));
}
for (const program of programs) {
  const { outputFiles, metafile } = await bundle([program], `${program.name}/[name]-[hash]`, {
    // Whoever installs the package installs nothing with it. The SDK is the user's own.
    packages: 'bundle',
    external: ['@aws-sdk/*'],
    banner: { js: requireForEsm },
  });
  for (const { path, text } of outputFiles) write(path, text);
  chmodSync(join(dist, `${program.name}.js`), 0o755);
  write(join(dist, program.name, 'THIRD-PARTY-NOTICES'), noticesOf(metafile.inputs, root));
}
writeDeclarations(libraries.map(({ source }) => source));
console.log(`Built ${entries.map(({ name }) => name).join(', ')} into dist.`);

if (!missing(FUNCTIONS)) await import(new URL(`../${FUNCTIONS}`, import.meta.url).href);

function write(path, contents) {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, contents);
}

function bundle(entries, chunkNames, options = {}) {
  return build({
    absWorkingDir: root,
    entryPoints: entries.map(({ name, source }) => ({ in: source, out: name })),
    outdir: dist,
    bundle: true,
    splitting: true,
    chunkNames,
    format: 'esm',
    platform: 'node',
    target,
    packages: 'external',
    logLevel: 'warning',
    metafile: true,
    write: false,
    ...options,
  });
}

async function commonJs(module) {
  const usesUrl = module.includes('import.meta.url');
  const { code } = await transform(module, {
    format: 'cjs',
    platform: 'node',
    target,
    define: { 'import.meta.url': '__moduleUrl' },
    // Node's URL of a file: the one that an ES module is told.
    ...(usesUrl && {
      banner: `const __moduleUrl = require('node:url').pathToFileURL(__filename).href;`,
    }),
  });
  return code.replaceAll(/\b(require|import)\("(\.\/[\w.-]+)\.js"\)/g, '$1("$2.cjs")');
}

/** One text serves both kinds: they differ in the names of the files that they import. */
function writeDeclarations(sources) {
  const config = ts.readConfigFile(join(root, 'tsconfig.json'), ts.sys.readFile).config;
  const { options } = ts.convertCompilerOptionsFromJson(config.compilerOptions, root);
  const program = ts.createProgram(
    sources.map((source) => join(root, source)),
    {
      ...options,
      noEmit: false,
      declaration: true,
      emitDeclarationOnly: true,
      rootDir: root,
      outDir: join(dist, 'types'),
    },
  );
  const writeBoth = (path, text) => {
    for (const [ending, imported] of [
      ['.d.ts', '.js'],
      ['.d.cts', '.cjs'],
    ]) {
      write(
        path.replace(/\.d\.ts$/, ending),
        text.replaceAll(/((?:from |import\()['"]\.{1,2}\/[^'"]+)\.ts(?=['"])/g, `$1${imported}`),
      );
    }
  };
  const { diagnostics } = program.emit(undefined, writeBoth);
  const all = [...ts.getPreEmitDiagnostics(program), ...diagnostics];
  if (all.length === 0) return;
  console.error(
    ts.formatDiagnosticsWithColorAndContext(all, {
      getCanonicalFileName: (name) => name,
      getCurrentDirectory: () => root,
      getNewLine: () => '\n',
    }),
  );
  process.exit(1);
}
