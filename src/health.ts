// Whether an elector is well, from what it knows. Pure.

import type { ClockStatus } from './clock-check.ts';
import { describeError } from './errors.ts';
import type { Timing } from './options.ts';

/** What `LeaderElector.health()` tells. */
export interface Health {
  /** True while there are no problems. */
  readonly healthy: boolean;
  /** One sentence each; empty when healthy. */
  readonly problems: readonly string[];
  /** Whether it may act now. */
  readonly leading: boolean;
  /** The holder that was last seen, if any. */
  readonly leader: string | undefined;
  /** Since the store last answered. */
  readonly sinceContactSeconds: number;
  /** Since somebody was last seen to hold the lease; 0 while somebody does. */
  readonly withoutLeaderSeconds: number;
  /** How long the next renewal is overdue; 0 while none is. */
  readonly renewalOverdueSeconds: number;
}

export interface Signs {
  readonly lease: string;
  readonly timing: Timing;
  readonly running: boolean;
  readonly leading: boolean;
  readonly leader: string | undefined;
  readonly sinceContactMs: number;
  readonly sinceLeaderMs: number;
  readonly renewalOverdueMs: number;
  /** Work of a tenure that is over has not settled. */
  readonly unsettledWork: boolean;
  readonly clock: ClockStatus;
  readonly lastFailure: unknown;
}

export function judgeHealth(signs: Signs): Health {
  const { timing, lease } = signs;
  const problems: string[] = [];
  const inSeconds = (ms: number) => Math.round(ms) / 1_000;
  if (signs.running && signs.sinceContactMs > timing.leaseDurationMs) {
    problems.push(`The store has not answered for ${inSeconds(signs.sinceContactMs)} s.`);
  }
  // client-go's watchdog asks this of a leader only; but nobody leading is everybody's business.
  if (signs.running && signs.sinceLeaderMs > timing.leaseDurationMs + 2 * timing.retryPeriodMs) {
    problems.push(`Nobody has held lease "${lease}" for ${inSeconds(signs.sinceLeaderMs)} s.`);
  }
  if (signs.renewalOverdueMs > timing.renewDeadlineMs) {
    problems.push(`A renewal is overdue by ${inSeconds(signs.renewalOverdueMs)} s.`);
  }
  if (signs.unsettledWork) {
    problems.push('Work goes on although its tenure is over.');
  }
  if (signs.clock.kind === 'wrong') {
    const { lowerMs, upperMs } = signs.clock;
    const leastMs = Math.min(Math.abs(lowerMs), Math.abs(upperMs));
    problems.push(`The clock is wrong by at least ${inSeconds(leastMs)} s.`);
  }
  if (signs.lastFailure !== undefined) {
    problems.push(`The last tenure's work failed: ${describeError(signs.lastFailure)}`);
  }
  return {
    healthy: problems.length === 0,
    problems,
    leading: signs.leading,
    leader: signs.leader,
    sinceContactSeconds: inSeconds(signs.sinceContactMs),
    withoutLeaderSeconds: inSeconds(signs.sinceLeaderMs),
    renewalOverdueSeconds: inSeconds(signs.renewalOverdueMs),
  };
}
