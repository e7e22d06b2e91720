// The world of one seed: its leases, who is after them, what their clocks may do, and what goes
// wrong. Everything is drawn here, before anything starts, so that it can be printed first.
//
// Two kinds of worlds. A storm is short: quick leases, up to 50 contenders, a fault every few
// seconds. A long one has many leases that last for minutes or hours, and runs for days: the same
// faults, as dense by the calls that are sent, with long quiet stretches between.

import { Dice } from './dice.ts';
import { drawFaults, drawSettings, numbered, type Fault, type Regime } from './faults.ts';

export interface Timing {
  readonly leaseDurationSeconds: number;
  readonly renewDeadlineSeconds: number;
  readonly retryPeriodSeconds: number;
}

export interface ContenderPlan {
  readonly host: string;
  readonly kind: 'elector' | 'handler' | 'block';
  readonly leaseName: string;
  readonly timing: Timing;
  readonly trustClocks: boolean;
}

export interface WorkerPlan {
  readonly host: string;
  readonly kind: 'heartbeat' | 'identity';
  readonly leaseName: string;
  readonly durationSeconds: number;
  readonly trustClocks: boolean;
  readonly zone: string | undefined;
  /** Published beside the invocations of a function. */
  readonly beside: boolean;
  /** Crashes in the calm, and is not started again: it must be noticed. */
  readonly doomed: boolean;
}

/** A scheduled job, and the environments of its function. */
export interface JobPlan {
  readonly leaseName: string;
  readonly hosts: readonly string[];
  readonly timing: Timing;
  readonly trustClocks: boolean;
  readonly periodMs: number;
  /** How many there are: the schedule ends before the calm. */
  readonly ticks: number;
  /** Its effects complete their ticks. Otherwise a run that returned does. */
  readonly guarded: boolean;
  /** Shorter than an invocation, and renewed. */
  readonly renewed: boolean;
  readonly catchUp: 'none' | 'once' | 'each';
  readonly backoff: boolean;
}

export interface MonitorPlan {
  readonly host: string;
  readonly everyMs: number;
  readonly graceSeconds: number;
  readonly tolerationSeconds: number;
}

export interface Plan {
  readonly seed: number;
  readonly kind: 'storm' | 'long';
  readonly regime: Regime;
  readonly contenders: readonly ContenderPlan[];
  readonly workers: readonly WorkerPlan[];
  readonly monitors: readonly MonitorPlan[];
  readonly jobs: readonly JobPlan[];
  readonly faults: readonly Fault[];
  /** Until then things go wrong. */
  readonly faultsMs: number;
  /** How long a message is under way at most. */
  readonly longestDelayMs: number;
  /** The longest duration of a lease. */
  readonly longestLeaseMs: number;
  readonly clockLimitMs: number;
  /** Whether the table sends no `Date` at all. */
  readonly dateless: boolean;
  /** Whether belief is also looked at whenever something happens at the table. */
  readonly watchful: boolean;
  /** How many records a page of a scan holds. */
  readonly pageSize: number;
}

/** How many leases the plan's world has. */
export function leasesOf({ contenders, workers, jobs }: Plan): string[] {
  return [
    ...new Set([...contenders, ...workers, ...jobs].map(({ leaseName }) => `default/${leaseName}`)),
  ];
}

const PROPORTIONS = [
  [15, 10, 2],
  [15, 10, 1],
  [12, 6, 1.5],
  [20, 14, 3],
] as const;
/** Too little to be proved by a `Date` of whole seconds. */
const SMALL_TOLERANCE = [6, 4, 0.8] as const;

/** Each eighth world is a long one. */
const LONG_EACH = 8;

export function planFor(seed: number): Plan {
  const dice = new Dice(seed, 'plan');
  const kind = seed % LONG_EACH === 0 ? 'long' : 'storm';
  const regime = dice.pick([
    'within tolerance',
    'within tolerance',
    'checked',
    'checked',
    'lying dates',
    // Only in storms: their lease-hours would be easily earned.
    kind === 'storm' ? 'wild' : 'checked',
  ] as const);
  const scale = kind === 'storm' ? 1 : dice.pick([120, 480, 960, 960]);
  const small = regime !== 'checked' && kind === 'storm' && dice.chance(0.15);
  const leaders = kind === 'storm' ? dice.whole(1, 3) : dice.whole(8, 24);
  const contenders = Array.from({ length: leaders }, (_, place) =>
    drawContenders(dice, `l${place}`, kind, scale, small),
  ).flat();
  const workers = Array.from(
    { length: kind === 'storm' ? dice.whole(0, 7) : dice.whole(5, 16) },
    (_, place) => drawWorker(dice, place, scale),
  );
  const watched = kind === 'storm' || (scale <= 120 && dice.chance(0.6));
  const monitors = watched ? drawMonitors(dice, kind) : [];
  const durations = [
    ...contenders.map(({ timing }) => timing.leaseDurationSeconds),
    ...workers.map(({ durationSeconds }) => durationSeconds),
  ];
  const tolerancesMs = contenders.map(({ timing }) => 1_000 * toleranceOf(timing));
  const largestMs = Math.min(...tolerancesMs) / 2 - 60;
  const clockLimitMs = dice.chance(0.8) ? Math.min(largestMs, 1_800) : largestMs;
  const leaseMs = 15_000 * scale;
  const faultsMs = kind === 'storm' ? dice.whole(90_000, 400_000) : leaseMs * dice.whole(25, 60);
  const jobs = Array.from({ length: kind === 'storm' ? dice.whole(0, 2) : 2 }, (_, place) =>
    drawJob(dice, place, scale, faultsMs, watched),
  );
  const longestDelayMs = dice.pick([500, 5_000, 1.5 * leaseMs, 4 * leaseMs]);
  const faults = drawFaults(dice, {
    hosts: [
      ...[...contenders, ...workers, ...monitors].map(({ host }) => host),
      ...jobs.flatMap(({ hosts }) => hosts),
    ],
    leaders: [...new Set([...contenders, ...jobs].map(({ leaseName }) => `default/${leaseName}`))],
    leases: [...contenders, ...workers, ...jobs].map(({ leaseName }) => `default/${leaseName}`),
    regime,
    leaseMs,
    untilMs: faultsMs,
    count: kind === 'storm' ? dice.whole(0, 60) : dice.whole(30, 150),
    longestDelayMs,
    clockLimitMs,
    shortLeases: scale === 1,
  });
  const seldomAsking = [
    ...contenders.filter((it) => it.kind !== 'elector').map(({ host }) => host),
    ...jobs.flatMap(({ hosts }) => hosts),
  ];
  const settings =
    kind === 'storm' && regime === 'checked'
      ? drawSettings(new Dice(seed, 'settings'), seldomAsking, { leaseMs, untilMs: faultsMs })
      : [];
  return {
    seed,
    kind,
    regime,
    contenders,
    workers,
    monitors,
    jobs,
    faults: numbered([...faults, ...settings]),
    faultsMs,
    longestDelayMs,
    longestLeaseMs: 1_000 * Math.max(...durations),
    clockLimitMs,
    dateless: regime === 'within tolerance' && dice.chance(0.15),
    watchful: dice.chance(0.4),
    pageSize: kind === 'storm' ? 5 : 100,
  };
}

export function toleranceOf({ leaseDurationSeconds, renewDeadlineSeconds }: Timing): number {
  return leaseDurationSeconds - renewDeadlineSeconds;
}

function drawContenders(
  dice: Dice,
  leaseName: string,
  kind: Plan['kind'],
  scale: number,
  small: boolean,
): ContenderPlan[] {
  const count = kind === 'long' ? dice.whole(2, 3) : 2 + Math.floor(48 * dice.fraction() ** 4);
  const proportions = small ? SMALL_TOLERANCE : dice.pick(PROPORTIONS);
  const uniform = small || dice.chance(0.5);
  return Array.from({ length: count }, (_, place) => ({
    host: `${leaseName}c${place}`,
    // The first is one that always wants to lead.
    kind: place === 0 ? 'elector' : dice.pick(['elector', 'elector', 'handler', 'block'] as const),
    leaseName,
    timing: scaled(uniform ? proportions : dice.pick(PROPORTIONS), scale),
    trustClocks: !dice.chance(0.12),
  }));
}

function scaled([duration, deadline, retry]: readonly [number, number, number], scale: number) {
  return {
    leaseDurationSeconds: duration * scale,
    renewDeadlineSeconds: deadline * scale,
    retryPeriodSeconds: retry * scale,
  };
}

function drawWorker(dice: Dice, place: number, scale: number): WorkerPlan {
  return {
    host: `w${place}`,
    kind: dice.chance(0.75) ? 'heartbeat' : 'identity',
    leaseName: `w${place}`,
    durationSeconds: dice.pick([20, 40]) * scale,
    trustClocks: !dice.chance(0.15),
    zone: dice.chance(0.5) ? dice.pick(['north', 'south']) : undefined,
    doomed: dice.chance(0.35),
    beside: dice.chance(0.2),
  };
}

function drawJob(
  dice: Dice,
  place: number,
  scale: number,
  faultsMs: number,
  watched: boolean,
): JobPlan {
  const leaseName = `j${place}`;
  const timing = scaled(PROPORTIONS[0], scale);
  const leaseMs = 1_000 * timing.leaseDurationSeconds;
  const periodMs = 1_000 * Math.round((leaseMs / 1_000) * dice.pick([0.4, 1, 2]));
  return {
    leaseName,
    hosts: Array.from({ length: dice.whole(2, 3) }, (_, host) => `${leaseName}e${host}`),
    timing,
    // An invocation is too short to watch a lease for its duration: the monitor does that.
    trustClocks: !dice.chance(0.12) || !watched,
    periodMs,
    ticks: Math.max(1, Math.floor(faultsMs / periodMs)),
    guarded: dice.chance(0.7),
    renewed: dice.chance(0.4),
    catchUp: dice.pick(['none', 'none', 'once', 'each'] as const),
    backoff: dice.chance(0.3),
  };
}

function drawMonitors(dice: Dice, kind: Plan['kind']): MonitorPlan[] {
  const settings = {
    everyMs: kind === 'storm' ? 10_000 : 100_000,
    graceSeconds: dice.pick([10, 40]),
    tolerationSeconds: dice.pick([20, 90, 300]),
  };
  const count = kind === 'storm' && dice.chance(0.3) ? 2 : 1;
  return Array.from({ length: count }, (_, place) => ({ host: `m${place}`, ...settings }));
}
