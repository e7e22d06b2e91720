// What goes wrong, drawn before anything starts: a list that can be printed, thinned out and
// repeated. A fault that lasts is a time in which calls have bad luck; which of them, chance says,
// and it says the same whatever other faults there are.

import type { LeaseErrorCode } from '../../src/errors.ts';
import type { Dice } from './dice.ts';
import type { Running } from './machine.ts';

export type Way = 'request' | 'answer';

/** What happens to calls while it lasts. `who` is a host, or everybody. */
export type Weather =
  | { readonly kind: 'slow'; readonly way: Way | 'both'; readonly upToMs: number }
  | { readonly kind: 'lost'; readonly way: Way; readonly silent: boolean }
  /** Applied long after its sender was told that it failed. */
  | { readonly kind: 'late'; readonly upToMs: number }
  /** Delivered twice: the second time some time after the first. */
  | { readonly kind: 'twice'; readonly upToMs: number }
  /** The client itself sends again what was applied and not answered. */
  | { readonly kind: 'resent' }
  | { readonly kind: 'refused'; readonly code: LeaseErrorCode }
  /** Neither answered, nor ended by its caller's signal. */
  | { readonly kind: 'deaf' }
  | { readonly kind: 'outage'; readonly silent: boolean }
  /** A refusal does not show the item. */
  | { readonly kind: 'hidden' }
  /** Reads that need not be consistent show the past. */
  | { readonly kind: 'stale'; readonly upToMs: number }
  /** The `Date` header is off by so much, or missing. */
  | { readonly kind: 'date'; readonly byMs: number | undefined }
  /** The sink of the monitor's events. */
  | { readonly kind: 'sink'; readonly how: 'refuses' | 'throws' | 'hangs' | 'loses answers' };

/** What happens once. */
export type Blow =
  | { readonly kind: 'crash'; readonly backAfterMs: number }
  | { readonly kind: 'freeze'; readonly running: Running; readonly lastFirst: boolean }
  | { readonly kind: 'step'; readonly byMs: number }
  | { readonly kind: 'drift'; readonly ppm: number }
  | { readonly kind: 'delete' }
  | { readonly kind: 'nonsense'; readonly what: Nonsense }
  | { readonly kind: 'operator'; readonly what: 'step down' | 'suspend' };

export const NONSENSE = [
  'renewTime is no time',
  'expireTime is a text',
  'expireTime is years ahead',
  'duration is a text',
  'duration is negative',
  'version rises',
  'version is a text for a while',
  'condition is a text',
  'condition is half a verdict',
  'labels are numbers',
  'annotations are missing',
  'openVerdict is a text',
  'dueTime has passed',
  'an unknown attribute',
  'notBefore is a text',
  'an unreadable holder of what is vacant',
] as const;
export type Nonsense = (typeof NONSENSE)[number];

export interface Fault {
  /** Its place in the list of its seed, by which it is named. */
  readonly id: number;
  readonly atMs: number;
  readonly forMs: number;
  /** A host's name, a lease's key, or `all`. */
  readonly who: string;
  /** How likely it is for a call to be hit. */
  readonly chance: number;
  readonly what: Weather | Blow;
}

/** What the clocks of a world may do. */
export type Regime =
  /** Any two are within the tolerance of each other. */
  | 'within tolerance'
  /** They are anything; the table tells the time, so that they are checked. */
  | 'checked'
  /** The table's `Date` is off by up to a second; the clocks themselves are within tolerance. */
  | 'lying dates'
  /** Anything, also what nobody promises to survive: belief is not judged. */
  | 'wild';

export interface Surroundings {
  readonly hosts: readonly string[];
  readonly leaders: readonly string[];
  readonly leases: readonly string[];
  readonly regime: Regime;
  /** The usual duration of a lease. */
  readonly leaseMs: number;
  readonly untilMs: number;
  readonly count: number;
  readonly longestDelayMs: number;
  readonly clockLimitMs: number;
  /** Nonsense about durations would break the promise of longer ones. */
  readonly shortLeases: boolean;
}

/** What goes wrong, in the order of time. */
export function numbered(faults: readonly Omit<Fault, 'id'>[]): Fault[] {
  return faults.toSorted((a, b) => a.atMs - b.atMs).map((fault, id) => ({ ...fault, id }));
}

export function drawFaults(dice: Dice, around: Surroundings): Omit<Fault, 'id'>[] {
  return Array.from({ length: around.count }, () => drawFault(dice, around));
}

/**
 * Clocks that are set so far forward that what is held looks expired, and right again later. Of
 * hosts that ask the table seldom, as functions between two invocations: what was proved of such a
 * clock was proved before it was set, and the next request may be the one that takes a lease.
 */
export function drawSettings(
  dice: Dice,
  hosts: readonly string[],
  { leaseMs, untilMs }: Pick<Surroundings, 'leaseMs' | 'untilMs'>,
): Omit<Fault, 'id'>[] {
  return hosts.flatMap((who): Omit<Fault, 'id'>[] => {
    const atMs = Math.round(dice.between(0, untilMs * 0.8));
    const backAtMs = Math.round(Math.min(atMs + leaseMs * dice.between(1, 4), untilMs * 0.95));
    const byMs = Math.round(leaseMs * dice.between(1, 4));
    const set = { forMs: 0, who, chance: 1 };
    return [
      { ...set, atMs, what: { kind: 'step', byMs } },
      { ...set, atMs: backAtMs, what: { kind: 'step', byMs: -byMs } },
    ];
  });
}

function drawFault(dice: Dice, around: Surroundings): Omit<Fault, 'id'> {
  const { leaseMs, untilMs } = around;
  const what = dice.chance(0.62) ? drawWeather(dice, around) : drawBlow(dice, around);
  const lasting = leaseMs * dice.pick([0.05, 0.3, 0.7, 1.1, 2, 5]) * dice.between(0.5, 1.5);
  const atMs = Math.round(dice.between(0, untilMs * 0.95));
  return {
    atMs,
    forMs: Math.round(Math.min(lasting, untilMs - atMs)),
    who: whomFor(dice, what, around),
    chance: dice.pick([0.05, 0.2, 0.5, 1]),
    what,
  };
}

function whomFor(dice: Dice, { kind }: Weather | Blow, around: Surroundings): string {
  if (kind === 'outage' || kind === 'sink') return 'all';
  if (kind === 'operator') return dice.pick(around.leaders);
  if (kind === 'delete' || kind === 'nonsense') return dice.pick(around.leases);
  const one = BLOWS.includes(kind) || dice.chance(0.5);
  return one ? dice.pick(around.hosts) : 'all';
}

function drawWeather(dice: Dice, around: Surroundings): Weather {
  const { regime, leaseMs, longestDelayMs } = around;
  const upToMs = Math.min(longestDelayMs, dice.pick([300, 3_000, leaseMs, 4 * leaseMs]));
  switch (dice.whole(0, 13)) {
    case 0:
    case 1:
      return { kind: 'slow', way: dice.pick(['request', 'answer', 'both']), upToMs };
    case 2:
      return { kind: 'lost', way: 'request', silent: dice.chance(0.5) };
    case 3:
      return { kind: 'lost', way: 'answer', silent: dice.chance(0.5) };
    case 4:
    case 5:
      return { kind: 'late', upToMs };
    case 6:
      return { kind: 'twice', upToMs };
    case 7:
      return { kind: 'resent' };
    case 8:
      return {
        kind: 'refused',
        code: dice.pick(['store-unavailable', 'store-unavailable', 'access-denied']),
      };
    case 9:
      return { kind: 'deaf' };
    case 10:
      return { kind: 'outage', silent: dice.chance(0.5) };
    case 11:
      return dice.chance(0.5) ? { kind: 'hidden' } : { kind: 'stale', upToMs: 3_000 };
    case 12:
      if (regime === 'checked') return { kind: 'lost', way: 'answer', silent: true };
      return {
        kind: 'date',
        byMs: regime === 'within tolerance' ? undefined : dice.pick([-1_000, 1_000, undefined]),
      };
    default:
      return { kind: 'sink', how: dice.pick(['refuses', 'throws', 'hangs', 'loses answers']) };
  }
}

function drawBlow(dice: Dice, around: Surroundings): Blow {
  const { regime, leaseMs, clockLimitMs } = around;
  switch (dice.whole(0, 12)) {
    case 0:
    case 1:
    case 2:
      return { kind: 'crash', backAfterMs: Math.round(dice.mostlyLittle(4 * leaseMs)) };
    case 3:
    case 4:
    case 5: {
      const running: Running = dice.pick(['both clocks', 'the wall clock', 'the wall clock']);
      const wild = regime === 'wild' && dice.chance(0.4);
      const lastFirst = dice.chance(0.3);
      return { kind: 'freeze', running: wild ? 'no clock' : running, lastFirst };
    }
    case 6:
    case 7: {
      const free = regime === 'checked' || regime === 'wild';
      const byMs = free
        ? dice.pick([-1, 1]) * dice.pick([40, 700, 2_000, 6_000, leaseMs, 3_600_000])
        : dice.between(-1, 1) * clockLimitMs;
      return { kind: 'step', byMs: Math.round(byMs * dice.between(0.3, 1)) };
    }
    case 8:
      return { kind: 'drift', ppm: Math.round(dice.pick([-1, 1]) * dice.between(50, 2_000)) };
    case 9:
      return dice.chance(0.4) ? { kind: 'delete' } : { kind: 'drift', ppm: 500 };
    case 10:
    case 11: {
      const what = dice.pick(NONSENSE);
      const tooLong = what.startsWith('duration') && !around.shortLeases;
      return { kind: 'nonsense', what: tooLong ? 'version rises' : what };
    }
    default:
      return { kind: 'operator', what: dice.chance(0.6) ? 'step down' : 'suspend' };
  }
}

export function describeFault({ id, atMs, forMs, who, chance, what }: Fault): string {
  const { kind, ...details } = what;
  const told = Object.entries(details)
    .map(([name, value]) => (name.endsWith('Ms') ? `${name} ${String(value)}` : String(value)))
    .join(', ');
  const lasting = INSTANT.includes(kind) ? '' : ` for ${(forMs / 1_000).toFixed(1)} s`;
  const likely = isWeather(what) ? ` (${chance * 100} %)` : '';
  const at = (atMs / 1_000).toFixed(1).padStart(9);
  return `#${id} ${at} s  ${who}: ${kind}${told === '' ? '' : `, ${told}`}${lasting}${likely}`;
}

const INSTANT: readonly string[] = ['crash', 'step', 'delete', 'nonsense'];
const BLOWS: readonly string[] = [...INSTANT, 'freeze', 'drift', 'operator'];

export function isWeather(what: Weather | Blow): what is Weather {
  return !BLOWS.includes(what.kind);
}

/** How often each kind occurs, for one line. */
export function tally(faults: readonly Fault[]): string {
  const counts = new Map<string, number>();
  for (const { what } of faults) counts.set(what.kind, (counts.get(what.kind) ?? 0) + 1);
  return [...counts].map(([kind, count]) => `${count} ${kind}`).join(', ');
}
