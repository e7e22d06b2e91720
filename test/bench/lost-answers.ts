// A write that was applied while its answer was lost on the way back, which resets the connection:
// does the library recognise its own work, and how long does that take?

import { setTimeout as sleep } from 'node:timers/promises';
import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, type Driver, type Timing } from './crew.ts';
import { goal, type Measured, ms, spread } from './figures.ts';

const TIMING: Timing = { leaseMs: 1_500, renewMs: 300, pollMs: 300 };
/** What the SDK's own back-off before it asks again may take, and a round trip. */
const SAME_CALL_MS = 500;
const NAMES: readonly Name[] = ['ours', 'floor', 'lock-client', 'deliveryhero'];

type Step = 'acquire' | 'renew' | 'release';

interface Found {
  readonly name: Name;
  readonly step: Step;
  readonly tookMs: readonly number[];
  readonly recognised: number;
}

export async function lostAnswers(times: number, names = NAMES): Promise<Measured> {
  await using crew = await Crew.open();
  const found: Found[] = [];
  for (const name of names) {
    const [own, rival] = [await crew.driver(name, TIMING), await crew.driver(name, TIMING, true)];
    for (const step of ['acquire', 'renew', 'release'] as const) {
      if (step === 'renew' && name === 'floor') continue;
      const tookMs: number[] = [];
      let recognised = 0;
      for (let trial = 0; trial < times; trial++) {
        const outcome = await trials[step](crew, own, rival, `${name}/${step}/${trial}`);
        tookMs.push(outcome.tookMs);
        if (outcome.recognised) recognised += 1;
      }
      found.push({ name, step, tookMs, recognised });
    }
    await crew.dismiss(own, rival);
  }
  return {
    title: 'Own writes whose answers were lost',
    how:
      `${times} of each: the proxy forwards the write, then resets the connection. Recognised: the ` +
      `call itself succeeds within ${SAME_CALL_MS} ms; for a renewal, that the holder still ` +
      'believes a lease later, and is the only one.',
    rows: found.map(({ name, step, tookMs, recognised }) => ({
      '': CONTESTANTS[name],
      lost: `answer to ${step}`,
      recognised: `${recognised} of ${times}`,
      'ms, median': step === 'renew' ? '' : ms(spread(tookMs).median),
    })),
    goals: found
      .filter(({ name }) => name === 'ours')
      .map(({ step, recognised }) =>
        goal(`${step}: recognised`, `${recognised} of ${times}`, recognised === times),
      ),
  };
}

interface Outcome {
  readonly tookMs: number;
  readonly recognised: boolean;
}

type Trial = (crew: Crew, own: Driver, rival: Driver, key: string) => Promise<Outcome>;

const trials: Readonly<Record<Step, Trial>> = {
  async acquire(crew, own, _rival, key) {
    loseNextWrite(crew);
    const from = performance.now();
    const answer = await own.order({ do: 'tryAcquire', key }).catch(() => ({ got: false }));
    const tookMs = performance.now() - from;
    crew.proxy.clearFaults();
    if (answer.got) await own.order({ do: 'release', key });
    return { tookMs, recognised: answer.got === true && tookMs < SAME_CALL_MS };
  },
  async renew(crew, own, rival, key) {
    await own.order({ do: 'acquire', key });
    const lost = loseNextWrite(crew);
    await lost.reached();
    crew.proxy.clearFaults();
    await sleep(1.2 * TIMING.leaseMs);
    const { held = false } = await own.order({ do: 'believes', key });
    const stolen = await rival.order({ do: 'tryAcquire', key });
    if (stolen.got === true) await rival.order({ do: 'release', key });
    await own.order({ do: 'release', key }).catch(() => undefined);
    return { tookMs: NaN, recognised: held && stolen.got !== true };
  },
  async release(crew, own, rival, key) {
    await own.order({ do: 'acquire', key });
    loseNextWrite(crew);
    const from = performance.now();
    const answered = await own.order({ do: 'release', key }).then(
      () => true,
      () => false,
    );
    const tookMs = performance.now() - from;
    crew.proxy.clearFaults();
    const { got = false } = await rival.order({ do: 'tryAcquire', key });
    if (got) await rival.order({ do: 'release', key });
    return { tookMs, recognised: answered && got && tookMs < SAME_CALL_MS };
  },
};

/** All writes of all contestants are conditional, and no reads. */
function loseNextWrite(crew: Crew) {
  const fault = { kind: 'reset', when: 'after' } as const;
  const match = (body: object) => 'ConditionExpression' in body;
  return crew.proxy.inject({ fault, match });
}
