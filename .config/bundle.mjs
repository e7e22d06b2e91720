// Bundles every Lambda handler for deployment: functions/NAME.ts becomes
// dist/functions/NAME/index.mjs, with everything that it imports, the AWS SDK included. `cdk synth`
// and `cdk deploy` run it first; the constructs of lib take their code from there.

import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const root = fileURLToPath(new globalThis.URL('..', import.meta.url));
const outdir = join(root, 'dist/functions');

// Bundled CommonJS code calls `require` for Node's own modules; ES modules have none.
const requireForEsm =
  "import { createRequire as __createRequire } from 'node:module';" +
  'const require = __createRequire(import.meta.url);';

const names = readdirSync(join(root, 'functions'))
  .filter((file) => file.endsWith('.ts'))
  .map((file) => file.slice(0, -'.ts'.length));

// What is bundled no longer must not be deployed any more.
rmSync(outdir, { recursive: true, force: true });
await build({
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
});
globalThis.console.log(`Bundled ${names.join(', ')} into dist/functions.`);

if (!names.includes('lease-widget')) {
  mkdirSync(join(outdir, 'lease-widget'), { recursive: true });
  writeFileSync(
    join(outdir, 'lease-widget/index.mjs'),
    "export const handler = async () => '<p>The widget is not here yet.</p>';\n",
  );
}
