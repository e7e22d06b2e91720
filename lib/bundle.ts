// Where the prebuilt bundle of a handler lies. The only file that knows how `lib` is packaged.
//
// A bundle is built once, before the app runs, and not by the construct: whoever uses it needs no
// esbuild, no Docker and no lock file.

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('../dist/functions', import.meta.url));

/** The folder that holds `index.mjs`, for `Code.fromAsset`; its handler is `index.handler`. */
export function bundleOf(name: string): string {
  const bundle = join(folder, name);
  if (existsSync(join(bundle, 'index.mjs'))) return bundle;
  throw new Error(
    `There is no bundle of functions/${name}.ts: ${join(bundle, 'index.mjs')} does not exist. ` +
      'Run `npm run bundle` first.',
  );
}
