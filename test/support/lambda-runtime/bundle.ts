// Turns the source of a handler into a task root: a folder that a Lambda runtime can load.
//
// The bundle holds everything, the AWS SDK included, so that it runs from any folder. It
// is never minified and never type-checked.

import { mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { build } from 'esbuild';

export interface BundleOptions {
  /** `esm` writes index.mjs, `cjs` index.cjs. Default: `esm`. */
  readonly format?: 'esm' | 'cjs';
  /** Modules to leave out of the bundle. */
  readonly external?: readonly string[];
}

// Bundled CommonJS code calls `require` for Node's own modules; ES modules have none.
const requireForEsm = [
  "import { createRequire as __createRequire } from 'node:module';",
  'const require = __createRequire(import.meta.url);',
].join('\n');

/** Bundles `entryTs` into `outDir` and returns that folder; its handlers are `index.<export>`. */
export async function bundleHandler(
  entryTs: string,
  outDir: string,
  options: BundleOptions = {},
): Promise<string> {
  const format = options.format ?? 'esm';
  const taskRoot = resolve(outDir);
  await mkdir(taskRoot, { recursive: true });
  await build({
    entryPoints: [entryTs],
    outfile: join(taskRoot, format === 'esm' ? 'index.mjs' : 'index.cjs'),
    bundle: true,
    platform: 'node',
    target: 'node22',
    format,
    ...(format === 'esm' && { banner: { js: requireForEsm } }),
    external: [...(options.external ?? [])],
    logLevel: 'silent',
  });
  return taskRoot;
}
