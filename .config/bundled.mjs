// What a bundle with others' code in it needs: a `require`, and the notice that their licences ask
// for, with each package in it, its version, and the text of its licence.

import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Bundled CommonJS code calls `require` for Node's own modules; ES modules have none. */
export const requireForEsm =
  "import { createRequire as __createRequire } from 'node:module';" +
  'const require = __createRequire(import.meta.url);';

/** Of the inputs of a bundle, as esbuild's metafile has them: relative to `root`. */
export function noticesOf(inputs, root) {
  const folders = Object.keys(inputs).flatMap(
    (path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path) ?? [],
  );
  const notices = new Map();
  for (const folder of folders.map((path) => join(root, path))) {
    const { name, version, license } = JSON.parse(
      readFileSync(join(folder, 'package.json'), 'utf8'),
    );
    const texts = readdirSync(folder)
      .filter((file) => /^(?:licen[cs]e|notice|copying)/i.test(file))
      .sort()
      .map((file) => readFileSync(join(folder, file), 'utf8').trim());
    if (texts.length === 0) {
      // Some packages name their licence, and do not bring it. Ours is the same.
      if (license !== 'Apache-2.0') throw new Error(`${name} ${version} has no licence with it.`);
      texts.push(readFileSync(join(root, 'LICENSE'), 'utf8').trim());
    }
    notices.set(`${name} ${version} (${license})`, texts.join('\n\n'));
  }
  const packagesOf = Map.groupBy([...notices.keys()].sort(), (name) => notices.get(name));
  return [...packagesOf]
    .map(([text, packages]) => `${packages.join('\n')}\n\n${text}\n`)
    .join(`\n${'-'.repeat(80)}\n\n`);
}
