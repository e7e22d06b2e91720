// Ten processes on one lease, each with a section of 20 ms to do again and again, before an
// independent witness.

import { setTimeout as sleep } from 'node:timers/promises';
import { CONTESTANTS, type Name, NAMES } from './contestant.ts';
import { Crew, type Timing } from './crew.ts';
import { goal, type Measured, ms, spread } from './figures.ts';

const TIMING: Timing = { leaseMs: 1_000, renewMs: 250, pollMs: 50 };
/** Time-outs of ours follow from the lease: on a busy machine a second's would be too short. */
const OWN_TIMING: Timing = { leaseMs: 5_000, renewMs: 50, pollMs: 50 };
const SECTION_MS = 20;
const CONTENDERS = 10;
const ROUNDS = 2;

export interface Contest {
  readonly name: Name;
  readonly perSecond: number;
  readonly overlaps: number;
  readonly each: readonly number[];
  readonly requests: number;
  readonly reads: number;
  readonly readUnits: number;
  readonly writeUnits: number;
  readonly acquireMs: readonly number[];
}

export async function contest(name: Name, seconds: number, graceMs = 15_000): Promise<Contest> {
  await using crew = await Crew.open();
  const drivers = await Promise.all(
    Array.from({ length: CONTENDERS }, () =>
      crew.driver(name, name === 'ours' ? OWN_TIMING : TIMING),
    ),
  );
  for (const driver of drivers) await driver.order({ do: 'cycle', key: driver.id });
  crew.proxy.reset();
  const untilMs = Date.now() + 1_000 * seconds;
  const running = drivers.map((driver) =>
    driver.order({
      do: 'contend',
      key: 'prize',
      untilMs,
      sectionMs: SECTION_MS,
      witnessPort: crew.witness.port,
    }),
  );
  await sleep(untilMs - Date.now());
  // At the bell: what the last ones do to come to their end is not part of it.
  const { requests, operations, readUnits, writeUnits } = crew.proxy.counts();
  const sections = crew.witness.sections.length;
  const per = drivers.map(({ id }) => crew.witness.sections.filter((one) => one.id === id).length);
  // Some wait for leases that nobody will give back.
  const answers = await Promise.race([
    Promise.allSettled(running),
    sleep(graceMs, [] as PromiseSettledResult<{ acquireMs?: readonly number[] }>[]),
  ]);
  return {
    name,
    perSecond: sections / seconds,
    overlaps: crew.witness.overlaps.length,
    each: per,
    requests: requests / sections,
    reads: (operations['GetItem'] ?? 0) / sections,
    readUnits: readUnits / sections,
    writeUnits: writeUnits / sections,
    acquireMs: answers.flatMap((answer) =>
      answer.status === 'fulfilled' ? (answer.value.acquireMs ?? []) : [],
    ),
  };
}

/** Of one contestant, the rounds of which were equally long. */
function together(rounds: readonly Contest[]) {
  const sections = rounds.map(({ perSecond }) => perSecond);
  const sum = sections.reduce((a, b) => a + b, 0);
  const perSection = (of: (one: Contest) => number) =>
    rounds.reduce((total, one, at) => total + of(one) * sections[at]!, 0) / sum;
  // By place, not by rank: chance that favours one in a round favours another in the next.
  const each = Array.from({ length: CONTENDERS }, (_, place) =>
    rounds.reduce((total, one) => total + one.each[place]!, 0),
  );
  return {
    name: rounds[0]!.name,
    perSecond: sum / rounds.length,
    overlaps: rounds.reduce((total, one) => total + one.overlaps, 0),
    served: each.filter((count) => count > 0).length,
    least: Math.min(...each),
    most: Math.max(...each),
    requests: perSection((one) => one.requests),
    reads: perSection((one) => one.reads),
    readUnits: perSection((one) => one.readUnits),
    writeUnits: perSection((one) => one.writeUnits),
    acquireMs: rounds.flatMap(({ acquireMs }) => acquireMs),
  };
}

/** Powertools is no lock: after the first success it would answer all others from its record. */
const CONTENDING = NAMES.filter((name) => name !== 'powertools');

export async function contention(seconds: number, names = CONTENDING): Promise<Measured> {
  const rounds: Contest[] = [];
  // In rounds: what else the machine does meets all of them alike.
  for (let round = 0; round < ROUNDS; round++) {
    for (const name of names) rounds.push(await contest(name, seconds / ROUNDS));
  }
  const contests = names.map((name) => together(rounds.filter((one) => one.name === name)));
  const own = contests.find(({ name }) => name === 'ours')!;
  const serving = contests.filter(
    ({ name, served }) => name !== 'ours' && name !== 'floor' && served === CONTENDERS,
  );
  const fastest = (of: typeof serving) => Math.max(0, ...of.map(({ perSecond }) => perSecond));
  const best = fastest(serving);
  const surviving = fastest(serving.filter(({ name }) => name !== 'lock-client-closed'));
  return {
    title: 'Ten contenders',
    how:
      `Ten processes on one lease, sections of ${SECTION_MS} ms, ${seconds} s in ${ROUNDS} rounds ` +
      `by turns; looking every ${TIMING.pollMs} ms where that can be set; leases of ` +
      `${TIMING.leaseMs} ms (ours ${OWN_TIMING.leaseMs} ms). FailClosed has no expiry: what a ` +
      'crash leaves locked stays locked. Where the lease is in other hands at every look, ours ' +
      'writes without a look: then most of its requests are no reads.',
    rows: contests.map((one) => {
      const took = spread(one.acquireMs);
      return {
        '': CONTESTANTS[one.name],
        'sections per second': one.perSecond.toFixed(1),
        'ours to it': `${(own.perSecond / one.perSecond).toFixed(2)}x`,
        overlaps: one.overlaps,
        served: one.served,
        'sections each': `${one.least} to ${one.most}`,
        'requests per section': one.requests.toFixed(1),
        'of them reads': one.reads.toFixed(1),
        'read units': one.readUnits.toFixed(1),
        'write units': one.writeUnits.toFixed(1),
        'waited, ms: median': ms(took.median),
        p99: ms(took.p99),
        max: ms(took.max),
      };
    }),
    goals: [
      goal(
        `at least as many sections per second as the best peer that survives a crash ` +
          `(${surviving.toFixed(1)})`,
        own.perSecond,
        own.perSecond >= surviving,
      ),
      goal(
        `at least as many sections per second as the best peer that serves all (${best.toFixed(1)})`,
        own.perSecond,
        own.perSecond >= best,
      ),
      goal('all ten are served', own.served, own.served === CONTENDERS),
      goal('most to least at most 2', own.most / own.least, own.most <= 2 * own.least),
      goal('at most 8 requests per section', own.requests, own.requests <= 8),
      goal(
        'most of them half-price reads',
        own.reads / own.requests,
        own.reads > own.requests / 2 && own.readUnits <= own.reads * 0.6,
      ),
      goal('0 overlaps', own.overlaps, own.overlaps === 0),
    ],
  };
}
