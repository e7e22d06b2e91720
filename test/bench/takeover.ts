// A holder that dies without a word: how long until another has its lease, one that was waiting,
// and one that comes only afterwards and has seen nothing before.

import { setTimeout as sleep } from 'node:timers/promises';
import { CONTESTANTS, type Name } from './contestant.ts';
import { Crew, LATENCY_MS, type Timing } from './crew.ts';
import { contestants } from './peers.ts';
import { goal, type Measured, ms, spread } from './figures.ts';
import { rawItem } from '../support/dynamodb.ts';

export const TIMING: Timing = { leaseMs: 2_000, renewMs: 500, pollMs: 500 };
/** Those that poll are let poll as often as they like. */
const POLLING: Timing = { ...TIMING, pollMs: 50 };
const AT_ONCE = 4;
/** FailClosed has no takeover, and powertools none before its Lambda time is up. */
const NAMES = [
  'ours',
  'floor',
  'lock-client',
  'lock-client-trust',
  'deliveryhero',
  'deliveryhero-trust',
  ...contestants().filter((name) => name === 'awslabs'),
] as const satisfies readonly Name[];

export interface Takeover {
  readonly name: Name;
  readonly who: 'waiting' | 'newcomer';
  readonly fromKillMs: number;
  /** From the expiry that the record states, or from when the newcomer came, if that is later. */
  readonly fromExpiryMs: number;
}

export async function takeover(trials: number, names = NAMES): Promise<Measured> {
  await using crew = await Crew.open();
  const found: Takeover[] = [];
  for (const who of ['waiting', 'newcomer'] as const) {
    for (const name of names) {
      for (let left = trials; left > 0; left -= AT_ONCE) {
        const lanes = Array.from({ length: Math.min(left, AT_ONCE) }, (_, lane) =>
          trial(crew, name, who, `${name}/${who}/${left}/${lane}`),
        );
        found.push(...(await Promise.all(lanes)));
      }
    }
  }
  return shown(found, trials);
}

async function trial(crew: Crew, name: Name, who: Takeover['who'], key: string): Promise<Takeover> {
  const timing = name === 'ours' ? TIMING : POLLING;
  const [holder, other] = await Promise.all([crew.driver(name, timing), crew.driver(name, timing)]);
  await holder.order({ do: 'acquire', key });
  const waiting = who === 'waiting' ? other.order({ do: 'acquire', key }) : undefined;
  // Anywhere in a lease, so that a renewal may just have been, or be due.
  await sleep(TIMING.leaseMs * (0.5 + Math.random()));
  await crew.dismiss(holder);
  const killedAt = now();
  const expiry = await expiryOf(crew, name, key);
  let cameAt = 0;
  if (waiting === undefined) {
    await sleep(TIMING.leaseMs * 1.2 * Math.random());
    cameAt = now();
  }
  const { at = NaN } = await (waiting ?? other.order({ do: 'acquire', key }));
  await crew.dismiss(other);
  return { name, who, fromKillMs: at - killedAt, fromExpiryMs: at - Math.max(expiry, cameAt) };
}

/** By the wall clock, where the record tells. */
async function expiryOf(crew: Crew, name: Name, key: string): Promise<number> {
  if (name !== 'ours' && name !== 'floor') return NaN;
  const lease = name === 'ours' ? `default/${key}` : key;
  const item = await rawItem(crew.client, crew.tableName, lease);
  return Number(item?.[name === 'ours' ? 'expireTime' : 'expires']?.N);
}

const now = (): number => performance.timeOrigin + performance.now();

function shown(found: readonly Takeover[], trials: number): Measured {
  const of = (name: Name, who: Takeover['who']) =>
    found.filter((each) => each.name === name && each.who === who);
  const roundTripMs = 2 * LATENCY_MS + 3;
  const own = (who: Takeover['who']) => spread(of('ours', who).map((each) => each.fromExpiryMs));
  const rows = (['waiting', 'newcomer'] as const).flatMap((who) =>
    [...new Set(found.map(({ name }) => name))].map((name) => {
      const trialsOf = of(name, who);
      const kill = spread(trialsOf.map((each) => each.fromKillMs));
      const expiry = spread(trialsOf.map((each) => each.fromExpiryMs));
      const ours = spread(of('ours', who).map((each) => each.fromKillMs));
      return {
        '': CONTESTANTS[name],
        successor: who,
        'from the kill, ms: min': ms(kill.min),
        median: ms(kill.median),
        max: ms(kill.max),
        'in leases, median': (kill.median / TIMING.leaseMs).toFixed(2),
        'ours to it': (ours.median / kill.median).toFixed(2) + 'x',
        'from expiry, ms: median': ms(expiry.median),
        'max of it': ms(expiry.max),
      };
    }),
  );
  return {
    title: 'Crash takeover',
    how:
      `The holder is killed at a random moment; ${trials} trials each; leases of ` +
      `${TIMING.leaseMs} ms, renewed every ${TIMING.renewMs} ms. Ours looks every ` +
      `${TIMING.pollMs} ms, peers that poll every ${POLLING.pollMs} ms. A newcomer has seen ` +
      'nothing before, and comes at a random moment up to 1.2 leases after the kill; where it ' +
      'comes after the expiry, that is counted from when it came. Ours needs two requests for an ' +
      'expired lease then: its clock has not been checked yet. The raw UpdateItem renews nothing: ' +
      'its lease may run out before the kill.',
    rows,
    chart: {
      file: 'takeover.svg',
      title: `Median time from a crash to its takeover, leases of ${TIMING.leaseMs} ms`,
      unit: 'ms',
      groups: (['waiting', 'newcomer'] as const).map((who) => ({
        label: who === 'waiting' ? 'by one that was waiting' : 'by one that came later',
        bars: [...new Set(found.map(({ name }) => name))].map((name) => {
          const { median } = spread(of(name, who).map((each) => each.fromKillMs));
          const shown = `${median.toFixed(0)} ms`;
          return { label: CONTESTANTS[name], value: median, shown, own: name === 'ours' };
        }),
      })),
    },
    goals: (['waiting', 'newcomer'] as const).flatMap((who) => [
      goal(
        `${who}: median at most one round trip (${roundTripMs} ms) and 20 ms after the expiry`,
        own(who).median,
        own(who).median <= roundTripMs + 20,
      ),
      goal(
        `${who}: none later than one retry period after it`,
        own(who).max,
        own(who).max < TIMING.pollMs,
      ),
    ]),
  };
}
