// The benchmark: `npm run bench` measures everything beside the peers, prints tables, and writes the
// page and the charts of its results. `npm run bench -- uncontended refused` measures only those, and
// leaves the rest of the page; with `--quick` it is short, and writes nothing.

import { BENCHES, type BenchName, FULL, QUICK } from './benches.ts';
import type { Measured } from './figures.ts';
import { installPeers } from './peers.ts';
import { conditionsNow, print, write } from './results.ts';

const args = process.argv.slice(2);
const quick = args.includes('--quick');
const asked = args.filter((arg) => !arg.startsWith('-'));
const known = Object.keys(BENCHES) as BenchName[];
const unknown = asked.filter((name) => !known.includes(name as BenchName));
if (unknown.length > 0) throw new Error(`No bench ${unknown.join()}. There are: ${known.join()}.`);
const names = known.filter((name) => asked.length === 0 || asked.includes(name));

installPeers();
const measured: Measured[] = [];
for (const name of names) {
  const from = performance.now();
  process.stderr.write(`${name} …\n`);
  const found = await BENCHES[name](quick ? QUICK : FULL);
  const one = { ...found, conditions: conditionsNow() };
  measured.push(one);
  // At once: what comes later may be cut short.
  if (!quick) write([one]);
  print(one);
  process.stderr.write(`${name}: ${((performance.now() - from) / 1_000).toFixed(0)} s\n`);
}
const missed = measured.flatMap(({ goals }) => goals).filter(({ met }) => !met);
process.stdout.write(
  `${missed.length} goals missed${missed.map(({ what, found }) => `\n- ${what}: ${found}`).join('')}\n`,
);
process.exit();
