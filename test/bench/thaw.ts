// A holder that is frozen past its lease, replaced meanwhile, and then thawed: how many steps does
// it do as a holder that it no longer is?

import { setTimeout as sleep } from 'node:timers/promises';
import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, type Timing } from './crew.ts';
import { goal, type Measured } from './figures.ts';

const TIMING: Timing = { leaseMs: 1_500, renewMs: 300, pollMs: 100 };
const WATCHED_MS = 3 * TIMING.leaseMs;
const NAMES: readonly Name[] = ['ours', 'floor', 'lock-client', 'deliveryhero'];

export async function thaw(trials: number): Promise<Measured> {
  await using crew = await Crew.open();
  const found = await Promise.all(
    NAMES.map(async (name) => {
      const steps = [];
      for (let trial = 0; trial < trials; trial++) {
        steps.push(await falseSteps(crew, name, `${name}/thaw/${trial}`));
      }
      return { name, steps };
    }),
  );
  const own = found.find(({ name }) => name === 'ours')!.steps;
  const most = Math.max(...own);
  return {
    title: 'Steps of a false holder after a thaw',
    how:
      `The holder does a step every 20 ms while the library says that it holds. Stopped at 0.6 of a ` +
      `lease of ${TIMING.leaseMs} ms until 200 ms after another has it, then watched for ` +
      `${WATCHED_MS} ms. ${trials} trials each.`,
    rows: found.map(({ name, steps }) => ({
      '': CONTESTANTS[name],
      'false steps: least': Math.min(...steps),
      most: Math.max(...steps),
    })),
    goals: [goal('0 false steps', most, most === 0)],
  };
}

async function falseSteps(crew: Crew, name: Name, key: string): Promise<number> {
  const [holder, other] = await Promise.all([crew.driver(name, TIMING), crew.driver(name, TIMING)]);
  await holder.order({ do: 'acquire', key });
  await holder.order({ do: 'work', key });
  const acquiring = other.order({ do: 'acquire', key });
  await sleep(0.6 * TIMING.leaseMs);
  holder.signal('SIGSTOP');
  const { at = NaN } = await acquiring;
  await sleep(200);
  holder.signal('SIGCONT');
  await sleep(WATCHED_MS);
  const { steps = [] } = await holder.order({ do: 'steps', key });
  await crew.dismiss(holder, other);
  return steps.filter((step) => step > at).length;
}
