// Bundles every Lambda handler for deployment: functions/NAME.ts becomes
// dist/functions/NAME/index.mjs, with everything that it imports, the AWS SDK included. `cdk synth`
// and `cdk deploy` run it first; the constructs of lib take their code from there.

import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { noticesOf, requireForEsm } from './bundled.mjs';

const root = fileURLToPath(new globalThis.URL('..', import.meta.url));
const outdir = join(root, 'dist/functions');

const names = readdirSync(join(root, 'functions'))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length));

const { outputFiles, metafile } = await build({
  absWorkingDir: root,
  entryPoints: names.map((name) => ({ in: `functions/${name}.ts`, out: `${name}/index` })),
  outdir,
  outExtension: { '.js': '.mjs' },
  bundle: true,
  platform: 'node',
  target: 'node22',
  format: 'esm',
  mainFields: ['module', 'main'],
  minify: true,
  // A thrown error's name is compared, and read in logs.
  keepNames: true,
  legalComments: 'none',
  banner: { js: requireForEsm },
  logLevel: 'warning',
  metafile: true,
  write: false,
});
const notices = {
  path: join(outdir, 'THIRD-PARTY-NOTICES'),
  contents: new globalThis.TextEncoder().encode(noticesOf(metafile.inputs, root)),
};

// What is bundled no longer must not be deployed any more.
for (const name of existsSync(outdir) ? readdirSync(outdir) : []) {
  if (!names.includes(name) && !name.startsWith('.'))
    rmSync(join(outdir, name), { recursive: true });
}
// Another process may be reading: what has not changed stays, and the rest changes at once.
for (const { path, contents } of [...outputFiles, notices]) {
  if (existsSync(path) && readFileSync(path).equals(contents)) continue;
  mkdirSync(dirname(path), { recursive: true });
  const written = join(outdir, `.${globalThis.process.pid}`);
  writeFileSync(written, contents);
  renameSync(written, path);
}
globalThis.console.log(`Bundled ${names.join(', ')} into dist/functions.`);
