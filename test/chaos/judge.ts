// What the storm has shown, from the words of the witness, the ledger and the contenders. Pure.

import type { Message, Overlap, Section } from '../support/witness.ts';
import type { Told } from './messages.ts';

export interface History {
  readonly sections: readonly Section[];
  readonly overlaps: readonly Overlap[];
  /** Steps of somebody who was not inside. */
  readonly strays: readonly Message[];
  readonly freezes: readonly Freeze[];
  readonly regressions: readonly Section[];
  readonly told: readonly Told[];
  readonly crashes: readonly string[];
  readonly ledger: { readonly writes: number; readonly lastToken: number };
  /** How long it took until somebody led when the storm was over; undefined if nobody did. */
  readonly recoveredMs: number | undefined;
}

/** By the witness's clock. */
export interface Freeze {
  readonly id: string;
  readonly fromMs: number;
  /** Absent while it lasts. */
  toMs?: number;
}

export interface Report {
  readonly tenures: number;
  readonly takeovers: Spread;
  readonly handOvers: Spread;
  readonly overlaps: number;
  readonly stepsAfterThaw: number;
  readonly tokensOutOfOrder: number;
  readonly guardedWrites: number;
  readonly refusedGuardedWrites: number;
  readonly guardViolations: number;
  readonly writesLost: number;
  readonly recoveredSeconds: number | undefined;
  /** What must not be, in words; empty when every promise was kept. */
  readonly broken: readonly string[];
}

export interface Spread {
  readonly count: number;
  readonly medianSeconds: number | undefined;
  readonly p99Seconds: number | undefined;
}

const WAKING_MS = 2_000;

export function judge(history: History): Report {
  const { sections, freezes, told, ledger, crashes, recoveredMs } = history;
  const count = (did: Told['did']) => told.filter((each) => each.did === did).length;
  const written = count('written');
  const report = {
    tenures: sections.length,
    takeovers: spread(gaps(sections, freezes, (ended) => ended !== 'exit')),
    handOvers: spread(gaps(sections, freezes, (ended) => ended === 'exit')),
    // Who is frozen does nothing. What it does when it wakes up is another matter.
    overlaps: history.overlaps.filter(
      ({ inside, entered }) => frozenAt(freezes, inside.id, entered.enteredAt) === undefined,
    ).length,
    stepsAfterThaw: history.strays.length + stepsTooLate(sections),
    tokensOutOfOrder: history.regressions.length,
    guardedWrites: written,
    refusedGuardedWrites: count('refused'),
    guardViolations: count('violated'),
    // What nobody was told of may be there as well; what somebody was told of must be.
    writesLost: Math.max(0, written - ledger.writes),
    recoveredSeconds: recoveredMs === undefined ? undefined : recoveredMs / 1_000,
  };
  const never = {
    overlaps: 'two at work at once',
    stepsAfterThaw: 'steps of a holder that was over',
    tokensOutOfOrder: 'tokens not above all earlier ones',
    guardViolations: 'writes that the guard should have refused',
    writesLost: 'acknowledged writes that are not in the ledger',
  } as const;
  const broken = Object.entries(never).flatMap(([name, what]) => {
    const times = report[name as keyof typeof never];
    return times > 0 ? [`${times} ${what}`] : [];
  });
  if (recoveredMs === undefined) broken.push('nobody led when the storm was over');
  if (written === 0) broken.push('no guarded write went through');
  return { ...report, broken: [...broken, ...crashes] };
}

/** Steps of a section when a later one had begun. */
function stepsTooLate(sections: readonly Section[]): number {
  return sections.reduce((sum, { steps, token }) => {
    const nextAt = Math.min(
      ...sections.flatMap((later) => (later.token > token ? [later.enteredAt] : [])),
    );
    return sum + steps.filter((at) => at > nextAt).length;
  }, 0);
}

/** Or so lately awake that it has not had time to say that it stops. */
function frozenAt(freezes: readonly Freeze[], id: string, atMs: number): Freeze | undefined {
  return freezes.find(
    (freeze) =>
      freeze.id === id && freeze.fromMs <= atMs && atMs <= (freeze.toMs ?? Infinity) + WAKING_MS,
  );
}

/** From each end of that kind to the next beginning. A freeze ends what nobody else could. */
function gaps(
  sections: readonly Section[],
  freezes: readonly Freeze[],
  wanted: (ended: Section['ended']) => boolean,
): number[] {
  return sections.flatMap((section, index) => {
    const next = sections[index + 1];
    if (next === undefined) return [];
    const freeze = frozenAt(freezes, section.id, next.enteredAt);
    const ended = freeze === undefined ? section.ended : undefined;
    const endedAt = freeze?.fromMs ?? section.endedAt;
    if (endedAt === undefined || !wanted(ended)) return [];
    return next.enteredAt >= endedAt ? [next.enteredAt - endedAt] : [];
  });
}

function spread(values: number[]): Spread {
  const sorted = [...values].sort((a, b) => a - b);
  const at = (part: number) => {
    const value = sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
    return value === undefined ? undefined : Math.round(value) / 1_000;
  };
  return { count: sorted.length, medianSeconds: at(0.5), p99Seconds: at(0.99) };
}
