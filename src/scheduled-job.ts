// A scheduled job behind both its wrapper and its middleware: the tick of an event, the lease of a
// run, and what the record keeps of it. The tick's condition is part of the one write that takes
// the lease, its completion part of the one that gives it back.

import type { Waiting } from './answers.ts';
import { systemClock } from './clock.ts';
import { isFinal } from './decide.ts';
import { consoleLogger, unfailing, type Logger } from './environment.ts';
import { describeError } from './errors.ts';
import type { LambdaContext } from './invocation-options.ts';
import { InvocationLeases, type EndingRun, type Job, type Opened } from './invocation.ts';
import type { OpenInvocation } from './invocation.ts';
import { backoffEnd, noteOf, type EndedRun, type JobTerms, type Outcome } from './job.ts';
import { COMPLETIONS, transactionTarget, type Lease } from './lease-handle.ts';
import { isCalendarTime, isoTime, type LeaseRecord } from './lease.ts';
import { milliseconds } from './options.ts';
import type { Skipped } from './refusal.ts';
import { checkTick, isTick, missedTicks, overdueAt, scheduleOf, tickOf } from './schedule.ts';
import type { Schedule, Tick, TickTime } from './schedule.ts';
import { checkJobOptions, DEFAULT_MAX_BACKOFF_SECONDS, JOB_OPTIONS } from './scheduled-options.ts';
import type { ScheduledJobOptions } from './scheduled-options.ts';
import type { EndReason } from './tenure.ts';
import { updateItem, type ItemFormat } from './transaction-items.ts';
import type { NativeUpdateItem, UpdateItem } from './transaction-items.ts';
import { completeTick } from './writes.ts';

/** The lease of one run, for one tick. */
export interface ScheduledLease extends Lease {
  /** The tick that this run is for. */
  readonly tick: Tick;
  /**
   * As `conditionCheck`, and completes the tick: for the `TransactItems` of a transaction of your
   * own, in the place of `conditionCheck`, once in a run. The effects of that transaction and the
   * completion commit together, so that no other delivery of this tick can have them again.
   */
  completeTick(format?: { readonly marshalled?: false }): NativeUpdateItem;
  /** The same with marshalled values, for TransactWriteItemsCommand. */
  completeTick(format: { readonly marshalled: true }): UpdateItem;
}

/** An earlier run is at work, or may be. */
const OVERRUN: readonly Waiting['because'][] = ['held', 'clock unchecked'];

export type OpenedJob =
  | { readonly kind: 'opened'; readonly run: JobRun }
  | { readonly kind: 'skipped'; readonly result: Skipped };

/** One for each wrapped handler. */
export class ScheduledJobs<TEvent, TContext extends LambdaContext> {
  readonly #options: ScheduledJobOptions<TEvent, TContext>;
  readonly #leases: InvocationLeases<TEvent, TContext>;
  readonly #schedule: Schedule | undefined;
  readonly #logger: Logger;

  constructor(who: string, options: ScheduledJobOptions<TEvent, TContext>, also: string[]) {
    this.#leases = new InvocationLeases(who, options, [...JOB_OPTIONS, ...also]);
    checkJobOptions(options);
    this.#options = Object.freeze({ ...options });
    this.#schedule = scheduleOf(options);
    this.#logger = unfailing(options.logger ?? consoleLogger);
  }

  /** @throws LeaseError `invalid-tick` for an event whose tick cannot be used. */
  async open(event: TEvent, context: TContext): Promise<OpenedJob> {
    const { tick, clock = systemClock } = this.#options;
    const at = tickOf(event, tick && (() => tick(event, context)));
    checkTick(at, clock.read().wallMs);
    const doing: Doing = { tickMs: at.timeMs, terms: this.#termsOf(at.timeMs) };
    const opened = await this.#counted((onRefused) =>
      this.#leases.open(event, context, {
        tickMs: at.timeMs,
        onRefused,
        noteAtRelease: (ending) => noteAtRelease(ending, doing),
      }),
    );
    if (opened.kind === 'skipped') return opened;
    const run = new JobRun(opened.open, at, doing, this.#schedule, {
      termsOf: (tickMs) => this.#termsOf(tickMs),
      count: (name, value) => this.#count(name, value),
      nowMs: () => clock.read().wallMs,
      logger: this.#logger,
    });
    return { kind: 'opened', run };
  }

  /** Counts what stood in the way, whether that was waited for, skipped or thrown. */
  async #counted(open: (onRefused: Job['onRefused']) => Promise<Opened>): Promise<Opened> {
    const refusals: Waiting[] = [];
    let opened: Opened | undefined;
    try {
      return (opened = await open((waiting) => refusals.push(waiting)));
    } finally {
      const last = refusals.at(-1);
      const done = last !== undefined && isFinal(last);
      const overrun = refusals.some(({ because }) => OVERRUN.includes(because));
      if (overrun && !done) this.#count('TickOverrun', 1);
      else if (last !== undefined && opened?.kind !== 'opened') this.#count('TickSkipped', 1);
    }
  }

  /** A metric that cannot be counted fails no job. */
  #count(name: string, value: number): void {
    try {
      this.#options.metrics?.addMetric(name, 'Count', value);
    } catch (error) {
      this.#logger.error('A metric could not be added.', { name, error: describeError(error) });
    }
  }

  /** Asks the schedule before anything is written: one that throws must not keep a release back. */
  #termsOf(tickMs: number): JobTerms {
    const { failureBackoffSeconds, maxFailureBackoffSeconds, overdueAfterSeconds } = this.#options;
    const ms = (value: number | undefined) => (value === undefined ? value : milliseconds(value));
    const dueMs = overdueAt(tickMs, this.#schedule, ms(overdueAfterSeconds));
    return {
      dueMs: dueMs !== undefined && isCalendarTime(dueMs) ? dueMs : undefined,
      failureBackoffMs: ms(failureBackoffSeconds),
      maxFailureBackoffMs: milliseconds(maxFailureBackoffSeconds ?? DEFAULT_MAX_BACKOFF_SECONDS),
    };
  }
}

/** What the tenure is about at this moment: it may be given back at any. */
interface Doing {
  tickMs: number;
  terms: JobTerms;
  startMs?: number;
  /** The record as the run found it, where another run came before it in this tenure. */
  found?: LeaseRecord;
  /** Set when the last run has been recorded, and no other has begun. */
  recorded?: boolean;
  error?: unknown;
}

interface World {
  readonly logger: Logger;
  readonly termsOf: (tickMs: number) => JobTerms;
  readonly count: (name: string, value: number) => void;
  readonly nowMs: () => number;
}

/** One tenure of a job: a run for its tick, and where it catches up, for others before it. */
export class JobRun {
  readonly #open: OpenInvocation;
  readonly #at: TickTime;
  readonly #doing: Doing;
  readonly #schedule: Schedule | undefined;
  readonly #world: World;
  #lastMs: number | undefined;
  /** Of the present run. */
  #completions = { count: 0 };

  constructor(
    open: OpenInvocation,
    at: TickTime,
    doing: Doing,
    schedule: Schedule | undefined,
    world: World,
  ) {
    this.#open = open;
    this.#at = at;
    this.#doing = doing;
    this.#schedule = schedule;
    this.#world = world;
    this.#lastMs = open.found.lastTickMs;
  }

  get tickMs(): number {
    return this.#at.timeMs;
  }

  /**
   * The ticks that nobody has completed, oldest first.
   *
   * @throws LeaseError `invalid-configuration` when `nextTick` fails.
   */
  missed(): readonly number[] {
    const ticks = missedTicks(this.#lastMs, this.#at.timeMs, this.#schedule);
    if (ticks.length > 0) this.#world.count('TicksMissed', ticks.length);
    return ticks;
  }

  /** The run for this tick begins; `missed` are those before it that stay undone. */
  begin(tickMs: number, missed: readonly number[]): ScheduledLease {
    const { lease } = this.#open;
    const { scheduleArn } = this.#at;
    this.#doing.tickMs = tickMs;
    this.#doing.terms = this.#world.termsOf(tickMs);
    this.#doing.startMs = this.#world.nowMs();
    this.#doing.recorded = false;
    const tick: Tick = {
      time: new Date(tickMs),
      ...(scheduleArn === undefined ? {} : { scheduleArn }),
      ...(isTick(this.#lastMs) ? { lastTick: new Date(this.#lastMs) } : {}),
      missed: missed.map((ms) => new Date(ms)),
    };
    const { dueMs } = this.#doing.terms;
    const completion = completeTick(lease.holderIdentity, lease.fencingToken, tickMs, dueMs);
    const target = transactionTarget(lease);
    const completions = (this.#completions = { count: 0 });
    // A lease of its own for each run: a handler may keep that of the last one.
    return Object.defineProperties({} as ScheduledLease, {
      ...Object.getOwnPropertyDescriptors(lease),
      tick: { value: tick, enumerable: true },
      completeTick: {
        value: (format?: ItemFormat) => {
          completions.count += 1;
          return updateItem(target, completion, format);
        },
        enumerable: true,
      },
      [COMPLETIONS]: { value: completions },
    });
  }

  /**
   * The run for this tick has succeeded, and another follows.
   *
   * @throws LeaseError when the lease was lost, or the work is to finish.
   */
  async completed(): Promise<void> {
    const { lease, found } = this.#open;
    // What was told to stop may have returned before it was done.
    lease.signal.throwIfAborted();
    this.#completions.count += 1;
    const { tickMs, terms } = this.#doing;
    const nowMs = this.#world.nowMs();
    const ending = { startMs: nowMs, endMs: nowMs, fencingToken: lease.fencingToken, found };
    const ended = endedRun({ ...ending, reason: 'completed' }, this.#doing);
    const record = await this.#open.write(noteOf(ended, terms));
    if (record !== undefined) {
      this.#doing.found = record;
      this.#doing.recorded = true;
      this.#lastMs = tickMs;
      this.#world.count('TickCompleted', 1);
    }
    lease.signal.throwIfAborted();
  }

  /** The work has returned or thrown. Releases the lease, and waits for that. Never rejects. */
  async settle(outcome: 'completed' | 'failed', error?: unknown): Promise<void> {
    this.#doing.error = error;
    const reason = await this.#open.settle(outcome);
    if (this.#doing.recorded === true) return;
    this.#world.count(reason === 'completed' ? 'TickCompleted' : 'TickFailed', 1);
  }

  /** Its invocation has no time left for the rest of its ticks. */
  leave(ticks: readonly number[]): void {
    this.#world.logger.warn('Ticks are left to the next invocation: this one has no time left.', {
      lease: `${this.#open.lease.namespace}/${this.#open.lease.name}`,
      ticks: ticks.map(isoTime),
    });
  }

  /** The work may still be running: the lease expires by itself. */
  abandon(): void {
    this.#open.abandon();
  }
}

function noteAtRelease(ending: EndingRun, doing: Doing): ReturnType<Job['noteAtRelease']> {
  if (doing.recorded === true) return {};
  const ended = endedRun(ending, doing);
  return { note: noteOf(ended, doing.terms), restUntilMs: backoffEnd(ended, doing.terms) };
}

function endedRun(ending: EndingRun, { tickMs, error, startMs, found }: Doing): EndedRun {
  return {
    ...ending,
    tickMs,
    error,
    outcome: outcomeOf(ending.reason),
    startMs: startMs ?? ending.startMs,
    found: found ?? ending.found,
  };
}

/** What was told to stop may have returned before it was done: its tick stays open. */
function outcomeOf(reason: EndReason): Outcome {
  if (reason === 'completed') return 'succeeded';
  return reason === 'failed' ? 'failed' : 'stopped';
}
