// How long things may take that must come right by themselves, from the plan's own durations.

import type { Plan } from './plan.ts';

export interface Bounds {
  /** Somebody leads so long after the last message of bad times: all trust their clocks. */
  readonly leadMs: number;
  /** The same where leases are watched instead, or somebody was asked to make room. */
  readonly leadPatientlyMs: number;
  /** A worker that fell silent is evicted so long after its lease has expired. */
  readonly evictMs: number;
  /** Workers that are to die do so within this time. */
  readonly doomWithinMs: number;
  readonly quietMs: number;
  /** So long after everybody was told to stop, everybody has. */
  readonly stopMs: number;
}

/** Requests, with their time-outs, and what clocks may differ. */
const ROUNDS_MS = 8_000;

export function boundsOf(plan: Plan): Bounds {
  const { longestLeaseMs, monitors, workers, contenders, jobs } = plan;
  const retryMs = Math.max(
    ...contenders.map(({ timing }) => 1_200 * timing.retryPeriodSeconds),
    2_000,
  );
  // An invocation's lease covers up to one and a half times the longest duration, and T.
  const coverMs = 1.5 * longestLeaseMs + 6 * (longestLeaseMs / 15);
  const leadMs = coverMs + 2 * retryMs + ROUNDS_MS;
  const leadPatientlyMs = leadMs + 2 * coverMs + 2 * retryMs;
  const passMs = Math.max(0, ...monitors.map(({ everyMs }) => everyMs)) + ROUNDS_MS;
  const graceMs = Math.max(0, ...monitors.map(({ graceSeconds }) => 1_000 * graceSeconds));
  const tolerationMs = Math.max(
    0,
    ...monitors.map(({ tolerationSeconds }) => 1_000 * tolerationSeconds),
  );
  const patienceMs = Math.max(tolerationMs, longestLeaseMs);
  // Where most of a zone is silent, one is evicted in a pass, or all wait once more.
  const evictMs = graceMs + patienceMs + tolerationMs + (2 + workers.length) * passMs;
  // The monitor may have been blind: it starts again. Silence without readable times is watched.
  const blindMs = graceMs + passMs + longestLeaseMs;
  const doomWithinMs = longestLeaseMs;
  // A job that trusts no clocks: its killed run is evicted, then the next one runs.
  const watched = jobs.some(({ trustClocks }) => !trustClocks) ? coverMs : 0;
  const evicts = monitors.length > 0 && (workers.length > 0 || watched > 0);
  const evictedMs = evicts ? evictMs + blindMs + watched : 0;
  return {
    leadMs,
    leadPatientlyMs,
    evictMs,
    doomWithinMs,
    quietMs: Math.max(leadPatientlyMs, doomWithinMs + longestLeaseMs + evictedMs) + ROUNDS_MS,
    stopMs: 3 * coverMs + ROUNDS_MS,
  };
}
