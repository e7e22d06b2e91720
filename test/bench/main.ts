// The benchmark: `npm run bench` measures everything beside the peers, prints tables, and writes the
// page and the charts of its results. `npm run bench -- --quick` is short, and writes nothing;
// `npm run bench -- uncontended refused` measures only those.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { BENCHES, type BenchName, FULL, QUICK } from './benches.ts';
import type { Measured } from './figures.ts';
import { print, write } from './results.ts';

const PEERS = fileURLToPath(new URL('peers', import.meta.url));

const args = process.argv.slice(2);
const quick = args.includes('--quick');
const asked = args.filter((arg) => !arg.startsWith('-'));
const known = Object.keys(BENCHES) as BenchName[];
const unknown = asked.filter((name) => !known.includes(name as BenchName));
if (unknown.length > 0) throw new Error(`No bench ${unknown.join()}. There are: ${known.join()}.`);
const names = known.filter((name) => asked.length === 0 || asked.includes(name));

if (!existsSync(`${PEERS}/node_modules/.package-lock.json`)) {
  process.stderr.write('Installs the peers, into test/bench/peers only.\n');
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: PEERS, stdio: ['ignore', 2, 2] });
}

const measured: Measured[] = [];
for (const name of names) {
  const from = performance.now();
  process.stderr.write(`${name} …\n`);
  const found = await BENCHES[name](quick ? QUICK : FULL);
  measured.push(found);
  print(found);
  process.stderr.write(`${name}: ${((performance.now() - from) / 1_000).toFixed(0)} s\n`);
}
const missed = measured.flatMap(({ goals }) => goals).filter(({ met }) => !met);
process.stdout.write(
  `${missed.length} goals missed${missed.map(({ what, found }) => `\n- ${what}: ${found}`).join('')}\n`,
);
if (!quick && asked.length === 0) await write(measured);
process.exit();
