// `npm run chaos [-- --minutes 20] [--seed 7] [--contenders 10]`: ten processes fight for one lease
// through a bad network, on a server that is killed now and then, with clocks that are set. Exits 1
// when a promise was broken.

import { parseArgs } from 'node:util';
import { runStorm } from './run.ts';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    contenders: { type: 'string', default: '10' },
  },
});
const [minutes, seed, contenders] = [values.minutes, values.seed, values.contenders].map(Number);
if (![minutes, seed, contenders].every((value) => value !== undefined && value > 0)) {
  throw new Error('minutes, seed and contenders must be numbers above 0.');
}

console.log(`${contenders} contenders, ${minutes} min, seed ${seed}`);
const { report, struck } = await runStorm({
  seed: seed ?? 1,
  seconds: (minutes ?? 1) * 60,
  contenders,
});
const { broken, takeovers, handOvers, ...figures } = report;
console.table(struck);
console.table(figures);
console.table({ 'takeovers after a crash or freeze': takeovers, 'hand-overs': handOvers });
for (const line of broken) console.log(`BROKEN: ${line}`);
if (broken.length === 0) console.log('Every promise was kept.');
else process.exitCode = 1;
