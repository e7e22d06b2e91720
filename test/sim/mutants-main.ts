// `npm run sim:mutants`: breaks a copy of the core in one way after the other, and lets the
// simulation loose on it. Each must break an oracle; a mutant that breaks none fails the command.
//
//   npm run sim:mutants                all of them
//   npm run sim:mutants -- renewal     those whose name contains this

import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { breed } from './breed.ts';
import { MUTANTS, type Mutant } from './mutants/index.ts';

const AT_ONCE = 2;
/** Seeds that a mutant must be caught in. */
const SEEDS = 200;

interface Result {
  readonly mutant: Mutant;
  readonly caughtBy: string | undefined;
  readonly seed: number | undefined;
}

function hunt(mutant: Mutant, folder: string): Promise<Result> {
  const args = [join(folder, 'test/sim/hunt.ts'), String(SEEDS)];
  const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', () => {
      const caught = /^caught by "(.+)", seed (\d+)$/m.exec(output);
      if (caught === null && !output.includes('not caught')) {
        reject(new Error(`The mutant "${mutant.name}" did not run:\n${output}`));
        return;
      }
      const seed = caught === null ? undefined : Number(caught[2]);
      resolve({ mutant, caughtBy: caught?.[1], seed });
    });
  });
}

async function main(): Promise<number> {
  const wanted = process.argv[2] ?? '';
  const waiting = MUTANTS.filter(({ name }) => name.includes(wanted));
  if (waiting.length === 0) {
    console.error(`No mutant has "${wanted}" in its name. There are:`);
    for (const { name } of MUTANTS) console.error(`- ${name}`);
    return 2;
  }
  const home = mkdtempSync(join(tmpdir(), 'lambda-lease-mutants-'));
  const results: Result[] = [];
  try {
    // All are bred first: a pattern that no longer fits is told at once.
    for (const [place, mutant] of waiting.entries()) breed(mutant, join(home, String(place)));
    const queue = [...waiting.entries()];
    const work = async () => {
      for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
        const [place, mutant] = next;
        const result = await hunt(mutant, join(home, String(place)));
        results.push(result);
        const verdict =
          result.caughtBy === undefined
            ? `NOT CAUGHT in ${SEEDS} seeds`
            : `caught by "${result.caughtBy}" (seed ${result.seed ?? 0})`;
        console.log(`${mutant.name}: ${verdict}`);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, work));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
  const free = results.filter(({ caughtBy }) => caughtBy === undefined);
  console.log(`${results.length - free.length} of ${results.length} mutants were caught.`);
  return free.length === 0 ? 0 : 1;
}

process.exitCode = await main();
