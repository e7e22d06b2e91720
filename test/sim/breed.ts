// A copy of the core and of the simulation, with one mutant's patches in it.

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Mutant } from './mutants/index.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The patched texts of a mutant, by file. @throws Error when a pattern no longer matches. */
export function patched({ name, patches }: Mutant): Map<string, string> {
  const texts = new Map<string, string>();
  for (const { file, search, replace } of patches) {
    const source = texts.get(file) ?? readFileSync(join(ROOT, file), 'utf8');
    const places = source.split(search).length - 1;
    if (places !== 1) {
      throw new Error(
        `The mutant "${name}" does not fit any more: its pattern occurs ${places} times in ` +
          `${file}, and must once:\n${search}`,
      );
    }
    // As a function, so that nothing in the text counts as a pattern.
    texts.set(
      file,
      source.replace(search, () => replace),
    );
  }
  return texts;
}

export function breed(mutant: Mutant, folder: string): void {
  const texts = patched(mutant);
  mkdirSync(join(folder, 'test'), { recursive: true });
  for (const part of ['src', 'test/sim', 'package.json']) {
    cpSync(join(ROOT, part), join(folder, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  for (const [file, text] of texts) writeFileSync(join(folder, file), text);
}
