// What the record keeps of a scheduled job's runs: the last completed tick, when the next
// completion is overdue, how the last run went, and until when the job shall rest. Pure.

import { asCount, asMap, asNumber, asText, isCalendarTime } from './lease.ts';
import type { LeaseRecord, Value } from './lease.ts';
import { clip } from './holder.ts';
import { BYTE_BUDGET } from './schema.ts';
import type { JobNote } from './writes.ts';

/** How a run ended. `stopped`: it was told to finish, and nobody knows whether it had. */
export type Outcome = 'succeeded' | 'failed' | 'stopped';

/** The last run that gave its lease back, as the record tells of it. */
export interface LastRun {
  readonly start: Date | undefined;
  readonly end: Date | undefined;
  readonly durationMs: number | undefined;
  readonly outcome: string | undefined;
  readonly error: string | undefined;
  /** Runs in a row that did not succeed; those that were killed between two others count as one. */
  readonly failures: number;
  /** Its fencing token: runs with a later one, before the present, ended without a word. */
  readonly fencingToken: number | undefined;
}

export interface EndedRun {
  readonly tickMs: number;
  readonly outcome: Outcome;
  readonly error?: unknown;
  readonly startMs: number;
  readonly endMs: number;
  readonly fencingToken: number;
  /** The record as it was when this run began. */
  readonly found: LeaseRecord;
}

export interface JobTerms {
  /** When the completion of the tick after this one is overdue; where that is known. */
  readonly dueMs?: number | undefined;
  readonly failureBackoffMs?: number | undefined;
  readonly maxFailureBackoffMs: number;
}

export function lastRunOf(record: LeaseRecord): LastRun | undefined {
  const run = asMap(record.raw['run']);
  if (run === undefined) return undefined;
  const [startMs, endMs] = [asNumber(run['start']), asNumber(run['end'])];
  return {
    start: dateOf(startMs),
    end: dateOf(endMs),
    durationMs: startMs === undefined || endMs === undefined ? undefined : endMs - startMs,
    outcome: asText(run['outcome']),
    error: asText(run['error']),
    failures: asCount(run['failures']) ?? 0,
    fencingToken: asCount(run['token']),
  };
}

/** Runs in a row that have not succeeded, this one included. */
function failuresWith({ outcome, fencingToken, found }: EndedRun): number {
  if (outcome === 'succeeded') return 0;
  const last = lastRunOf(found);
  // Acquisitions since that left no word: runs that were killed, or acquisitions that were undone
  // before anything ran, since a clock was wrong say. A host with such a clock makes many of them,
  // and shall not drive a job into a long rest: together they count as one.
  const silent = last?.fencingToken !== undefined && last.fencingToken < fencingToken - 1;
  return (last?.failures ?? 0) + (silent ? 1 : 0) + 1;
}

/**
 * What a run writes when it gives its lease back. Only one that succeeded completes its tick; the
 * next attempt at one that did not shall run.
 */
export function noteOf(run: EndedRun, terms: JobTerms): JobNote {
  const failures = failuresWith(run);
  const { found, tickMs, outcome } = run;
  const { dueMs } = terms;
  // A run that did not complete its tick leaves what was due before it.
  const saysDue = outcome === 'succeeded' || asNumber(found.raw['dueTime']) === undefined;
  const note: Record<string, Value> = {
    start: number(run.startMs),
    end: number(run.endMs),
    outcome: { S: outcome },
    failures: number(failures),
    token: number(run.fencingToken),
    ...(outcome === 'failed'
      ? { error: { S: clip(messageOf(run.error), BYTE_BUDGET.runError) } }
      : {}),
  };
  return {
    set: {
      ...(outcome === 'succeeded' ? { lastTick: number(tickMs) } : {}),
      ...(dueMs !== undefined && saysDue ? { dueTime: number(dueMs) } : {}),
      run: { M: note },
    },
    // Of a job that no longer says when it is due.
    remove: dueMs === undefined && found.raw['dueTime'] !== undefined ? ['dueTime'] : [],
  };
}

/** How long the job rests after a run that failed; undefined where it does not. */
export function backoffEnd(run: EndedRun, terms: JobTerms): number | undefined {
  const { failureBackoffMs, maxFailureBackoffMs } = terms;
  if (run.outcome !== 'failed' || failureBackoffMs === undefined) return undefined;
  const doubled = failureBackoffMs * 2 ** Math.min(failuresWith(run) - 1, 50);
  return run.endMs + Math.min(doubled, maxFailureBackoffMs);
}

/**
 * The message only: the rest of an error may carry what no record should. Whatever was thrown, it
 * keeps no lease from being released.
 */
function messageOf(error: unknown): string {
  let message: unknown = error;
  try {
    if (typeof error === 'object' && error !== null) message = Reflect.get(error, 'message');
  } catch (thrown) {
    message = thrown;
  }
  const text = typeof message === 'string' ? message : `No error was thrown but ${typeof error}.`;
  // DynamoDB refuses half a character.
  return text.replace(/\p{Surrogate}/gu, '\u{fffd}');
}

function number(value: number): Value {
  return { N: String(Math.round(value)) };
}

function dateOf(ms: number | undefined): Date | undefined {
  return ms === undefined || !isCalendarTime(ms) ? undefined : new Date(ms);
}
