// One record that says that somebody is alive: a heartbeat's or an identity's. Taken, renewed and
// removed as any lease is, and written with what its holder says of itself at each renewal.
//
// Sets no timer but the bounds of its calls. When to beat, and what to do about a loss, is its
// callers' business: publisher.ts for processes, invocation-pulse.ts for Lambda functions.

import type { AcquireAnswer, AcquireOptions, ReleaseAnswer, RenewAnswer } from './answers.ts';
import type { ClockStatus } from './clock-check.ts';
import type { Environment } from './environment.ts';
import { annotationRoom, clip, holderAnnotations } from './holder.ts';
import { InterruptibleStore } from './interruptible-store.ts';
import type { LeaseRecord } from './lease.ts';
import type { Lock } from './lock.ts';
import { MemoryStore } from './memory-store.ts';
import {
  checkNames,
  invalid,
  leaseKey,
  milliseconds,
  resolveTiming,
  seconds,
  type Timing,
} from './options.ts';
import { BYTE_BUDGET, type LeaseKind } from './schema.ts';
import {
  checkCommonOptions,
  COMMON_OPTIONS,
  makeLock,
  makeWorld,
  type CommonOptions,
  type World,
} from './setup.ts';
import { canRemove, type RemovableStore } from './store.ts';
import type { Tenure } from './tenure.ts';

/** What every way to publish that one is alive takes. */
export interface PulseOptions extends CommonOptions {
  readonly store?: RemovableStore;
  /** How long a renewal lasts. */
  readonly leaseDurationSeconds?: number;
  /** Between two renewals. Default: a quarter of the duration; at most a third of it. */
  readonly renewEverySeconds?: number;
  /** When a call of the store that has not been answered counts as "cannot tell". Default 3. */
  readonly requestTimeoutSeconds?: number;
  /**
   * How long a record of which nothing is heard any more is kept, after all patience with it has
   * ended, before DynamoDB's Time to Live may clear it away. Default 86,400.
   */
  readonly retentionSeconds?: number;
}

export const PULSE_OPTIONS = [
  ...COMMON_OPTIONS,
  'leaseDurationSeconds',
  'renewEverySeconds',
  'requestTimeoutSeconds',
  'retentionSeconds',
] as const satisfies readonly (keyof PulseOptions)[];

export interface PulseSetup {
  readonly kind: Extract<LeaseKind, 'heartbeat' | 'identity'>;
  readonly name: unknown;
  readonly options: PulseOptions;
  readonly timing: Timing;
  readonly environment: Environment;
  readonly labels: Readonly<Record<string, string>>;
  /** Told beside the readiness, at every renewal. */
  readonly annotations: Readonly<Record<string, string>>;
  /** What silence after the expiry is nothing unusual. Default: the monitor's. */
  readonly patience?: { readonly graceSeconds?: number; readonly tolerationSeconds?: number };
}

/** What a job's record needs for its runs, and a heartbeat's does not. */
const NO_JOB_BYTES = 128;
const DEFAULT_RETENTION_SECONDS = 86_400;
/** The monitor's, where neither it nor the record says otherwise. */
const GRACE_SECONDS = 40;
const TOLERATION_SECONDS = 300;
/** A renewal or two may fail, and nobody shall take that for a death. */
const FEWEST_RENEWALS = 3;

/** @throws LeaseError `invalid-configuration` for options that cannot work. */
export function checkPulseOptions(
  who: string,
  options: PulseOptions & { readonly name?: string },
  also: readonly string[],
  environment: Environment,
  nameIsOptional = false,
): void {
  checkNames(who, options, [...PULSE_OPTIONS, 'name', ...also]);
  checkCommonOptions(options);
  // Without a name of its own it has that of its instance.
  leaseKey(nameIsOptional ? (options.name ?? 'x') : options.name, options.namespace, environment);
  seconds(options, 'retentionSeconds');
  if (options.store !== undefined && !canRemove(options.store)) {
    throw invalid('store must have the method remove: a clean stop deletes the record.');
  }
}

/** The kubelet's proportions: renewed each quarter, believed for three. */
export function pulseTiming(options: PulseOptions, defaultDurationSeconds: number): Timing {
  const duration = seconds(options, 'leaseDurationSeconds') ?? defaultDurationSeconds;
  const every = seconds(options, 'renewEverySeconds') ?? duration / 4;
  if (duration < FEWEST_RENEWALS * every - 1e-9) {
    throw invalid(
      `leaseDurationSeconds (${duration}) must be at least ${FEWEST_RENEWALS} x ` +
        `renewEverySeconds (${every}) = ${FEWEST_RENEWALS * every}: a renewal that fails is not ` +
        'yet a death.',
    );
  }
  const { requestTimeoutSeconds } = options;
  return resolveTiming({
    leaseDurationSeconds: duration,
    renewDeadlineSeconds: (duration * 3) / 4,
    retryPeriodSeconds: every,
    ...(requestTimeoutSeconds === undefined ? {} : { requestTimeoutSeconds }),
  });
}

export class Pulse {
  readonly lock: Lock;
  readonly world: World;
  readonly timing: Timing;
  /** Of the invocation that beats, where there is one. */
  requestId: string | undefined;
  /** Why its holder is not ready; undefined while it is. May be empty. */
  unready: string | undefined;
  readonly #store: InterruptibleStore;
  #tenure: Tenure | undefined;

  constructor(setup: PulseSetup) {
    const { options, environment, timing, labels } = setup;
    const store = environment.disabled ? { store: new MemoryStore() } : {};
    const world = makeWorld({ ...options, ...store }, environment);
    if (!canRemove(world.store)) throw invalid(`${world.store.description} cannot delete.`);
    this.#store = new InterruptibleStore(world.store);
    this.world = { ...world, store: this.#store };
    this.timing = timing;
    const { retentionSeconds = DEFAULT_RETENTION_SECONDS } = options;
    this.lock = makeLock(
      {
        name: setup.name,
        kind: setup.kind,
        options: { ...options, labels },
        environment,
        ...timing,
        published: {
          retentionMs: patienceMs(setup) + milliseconds(retentionSeconds),
          annotations: () => {
            const own = { ...options.annotations, ...setup.annotations, ...this.#readiness() };
            if (setup.kind === 'identity') {
              // Its labels tell the rest.
              return { ...whereItsLogsAre(environment), ...own };
            }
            const room = annotationRoom(this.lock.lease, labels) + NO_JOB_BYTES;
            return holderAnnotations(environment, this.requestId, own, room);
          },
        },
      },
      this.world,
    );
  }

  /** The tenure, if it may still be believed in. The first look after a freeze is this one. */
  get tenure(): Tenure | undefined {
    return this.#tenure?.isHeld() === true ? this.#tenure : undefined;
  }

  get seen(): LeaseRecord | undefined {
    return this.lock.seen;
  }

  get clockStatus(): ClockStatus {
    return this.lock.clockStatus;
  }

  async take(options: AcquireOptions): Promise<AcquireAnswer> {
    const answer = await this.lock.tryAcquire(() => this.timing, options);
    this.world.tellUnverifiable(this.lock, this.timing.toleranceMs);
    if (answer.kind === 'acquired') this.#tenure = answer.tenure;
    return answer;
  }

  async renew(): Promise<RenewAnswer> {
    const { tenure } = this;
    if (tenure === undefined) {
      return { kind: 'lost', reason: this.#tenure?.endReason ?? 'expired' };
    }
    return this.lock.renew(tenure, () => this.timing);
  }

  /** Deletes the record, also one of an expired tenure, or of a write that nobody answered. */
  remove(): Promise<ReleaseAnswer> {
    const tenure = this.#tenure;
    this.#tenure = undefined;
    return this.lock.remove(tenure);
  }

  /** Ends the calls that are under way, and all further ones until `resume`. */
  interrupt(): void {
    this.#store.interrupt();
  }

  resume(): void {
    this.#store.resume();
  }

  #readiness(): Record<string, string> {
    if (this.unready === undefined) return {};
    const readyReason = clip(this.unready, BYTE_BUDGET.readyReason);
    return { ready: 'false', ...(readyReason === '' ? {} : { readyReason }) };
  }
}

/** How long the monitor waits at most, from the expiry to the eviction. */
function patienceMs({ patience = {}, timing }: PulseSetup): number {
  const { graceSeconds = GRACE_SECONDS, tolerationSeconds = TOLERATION_SECONDS } = patience;
  const tolerationMs = Math.max(milliseconds(tolerationSeconds), timing.leaseDurationMs);
  const usualMs = milliseconds(GRACE_SECONDS + TOLERATION_SECONDS);
  return Math.max(milliseconds(graceSeconds) + tolerationMs, usualMs);
}

function whereItsLogsAre(environment: Environment): Record<string, string> {
  const { logStream, host, pid } = holderAnnotations(environment, undefined);
  return Object.fromEntries(
    Object.entries({ logStream, host, pid }).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  );
}
