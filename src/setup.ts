// From a user's options to what a lock needs: the store, the clocks, the names. What lasts longer
// than one lease is made here once per store: a client, and what its answers have told of the
// clock, so that a warm process need not ask again.

import type { Published } from './claims.ts';
import { ClockCheck } from './clock-check.ts';
import { systemClock, type Clock } from './clock.ts';
import { DynamoDBStore, type DynamoDBStoreOptions } from './dynamodb-store.ts';
import { consoleLogger, unfailing, type Environment, type Logger } from './environment.ts';
import { describeError } from './errors.ts';
import { annotationRoom, holderAnnotations, holderIdentity } from './holder.ts';
import type { LockWorld } from './lease-access.ts';
import { splitLeaseKey } from './lease.ts';
import { Lock } from './lock.ts';
import {
  checkFilled,
  checkFlag,
  checkMethods,
  checkTexts,
  invalid,
  leaseKey,
  show,
} from './options.ts';
import { systemRandom, type Random } from './random.ts';
import type { LeaseKind } from './schema.ts';
import { Slots, slotName, type Contender } from './slots.ts';
import type { LeaseStore } from './store.ts';
import { Timeline } from './timeline.ts';

/** What every way to use a lease takes. */
export interface CommonOptions extends Partial<DynamoDBStoreOptions> {
  /** Default: `LEASE_NAMESPACE`, then `default`. */
  readonly namespace?: string;
  /** Another store instead of a table, such as a MemoryStore in tests. */
  readonly store?: LeaseStore;
  /**
   * False: leases are taken by observation only, whatever the clocks say, and nobody shall judge
   * ours by a clock. Then a crashed holder is replaced one duration after a contender first saw it.
   * Who looks once and leaves cannot observe: a handler's killed run is freed by the lifecycle
   * monitor only. Default true: expiry is judged by clocks that have been checked.
   */
  readonly trustClocks?: boolean;
  /** Written to the record beside what says where the holder's logs are. */
  readonly annotations?: Readonly<Record<string, string>>;
  /** Written to the record, for selectors. */
  readonly labels?: Readonly<Record<string, string>>;
  /** Default: one JSON line per entry on the console, from `LEASE_LOG_LEVEL` (WARN) upwards. */
  readonly logger?: Logger;
  /** Another clock, such as a FakeClock in tests. Default: the system's. */
  readonly clock?: Clock;
  /** Another source of chance, for tests. Default: the system's. */
  readonly random?: Random;
}

export const COMMON_OPTIONS = [
  'namespace',
  'tableName',
  'client',
  'clientConfig',
  'store',
  'trustClocks',
  'annotations',
  'labels',
  'logger',
  'clock',
  'random',
] as const satisfies readonly (keyof CommonOptions)[];

export interface World extends LockWorld {
  readonly random: Random;
  readonly logger: Logger;
  /** Says once per store why a clock cannot be checked, where it cannot. */
  readonly tellUnverifiable: (lock: Contender, toleranceMs: number) => void;
}

export function makeWorld(options: CommonOptions, environment: Environment): World {
  const store = chooseStore(options, environment);
  const clock = options.clock ?? systemClock;
  const logger = unfailing(options.logger ?? consoleLogger);
  const { timeline, clockCheck, told } = measuresOf(store, clock);
  return {
    store,
    clock,
    timeline,
    clockCheck,
    random: options.random ?? systemRandom,
    logger,
    tellUnverifiable: (lock, toleranceMs) => {
      const status = lock.clockStatus;
      if (options.trustClocks === false || status.kind !== 'unverifiable') return;
      if (told.has(status.because)) return;
      told.add(status.because);
      logger.warn(
        'The clock of this machine cannot be checked; that no two holders act at once rests on ' +
          `all hosts' clocks differing by at most ${toleranceMs / 1_000} s. ` +
          (status.because === 'no date'
            ? `${store.description} sends no Date header.`
            : 'With a tolerance (leaseDuration less renewDeadline) of at least 2.5 s it would be.'),
        { lease: lock.lease },
      );
    },
  };
}

/** Everything about the options that can be checked before there is an event or a table. */
export function checkCommonOptions(options: CommonOptions): void {
  checkTexts('labels', options.labels);
  checkTexts('annotations', options.annotations);
  const given = (['store', 'client', 'clientConfig'] as const).filter(
    (name) => options[name] !== undefined,
  );
  if (given.length > 1) {
    throw invalid(`${given.join(' and ')} exclude each other: give one of them.`);
  }
  const { tableName, clientConfig } = options;
  if (tableName !== undefined) checkFilled('tableName', tableName);
  checkMethods('client', options.client, ['send']);
  if (clientConfig !== undefined && (typeof clientConfig as unknown) !== 'object') {
    throw invalid(`clientConfig is ${show(clientConfig)}; it must be an object.`);
  }
  checkMethods('store', options.store, ['read', 'write']);
  checkMethods('logger', options.logger, ['debug', 'info', 'warn', 'error']);
  checkMethods('clock', options.clock, ['read', 'setTimer']);
  checkMethods('random', options.random, ['fraction', 'uuid']);
  checkFlag('trustClocks', options.trustClocks);
}

export interface LockSetup {
  readonly name: unknown;
  readonly options: CommonOptions;
  readonly environment: Environment;
  readonly toleranceMs: number;
  readonly requestTimeoutMs: number;
  readonly leaseDurationMs: number;
  readonly requestId?: string | undefined;
  /** A scheduled job's. */
  readonly tickMs?: number | undefined;
  /** Default: a leader's. */
  readonly kind?: LeaseKind;
  /** Of a heartbeat or an identity. */
  readonly published?: Published;
}

export function makeLock(setup: LockSetup, world: World): Lock {
  const { options, environment } = setup;
  const lease = leaseKey(setup.name, options.namespace, environment);
  const newIdentity = () => holderIdentity(environment, world.random.uuid());
  const room = annotationRoom(lease, options.labels);
  return new Lock(
    {
      lease,
      kind: setup.kind ?? 'leader',
      trustClocks: options.trustClocks ?? true,
      toleranceMs: setup.toleranceMs,
      requestTimeoutMs: setup.requestTimeoutMs,
      leaseDurationMs: setup.leaseDurationMs,
      newIdentity,
      annotations: holderAnnotations(environment, setup.requestId, options.annotations, room),
      labels: options.labels ?? {},
      published: setup.published,
      tickMs: setup.tickMs,
    },
    world,
  );
}

/** What to contend for: one lease, or any of the slots of one. */
export function makeContender(
  setup: LockSetup,
  slots: number | undefined,
  world: World,
): Lock | Slots {
  const lock = makeLock(setup, world);
  if (slots === undefined) return lock;
  const { name } = splitLeaseKey(lock.lease);
  const locks = Array.from({ length: slots }, (_, slot) =>
    makeLock({ ...setup, name: slotName(name, slot) }, world),
  );
  return new Slots(lock, locks, world.random, (lease, error) =>
    world.logger.error('A slot of a lease cannot be used until it is mended.', {
      lease,
      error: describeError(error),
    }),
  );
}

const sharedStores = new Map<string, DynamoDBStore>();

export function chooseStore(options: CommonOptions, environment: Environment): LeaseStore {
  if (options.store !== undefined) return options.store;
  const tableName = options.tableName ?? environment.tableName;
  if (typeof tableName !== 'string' || tableName === '') {
    throw invalid('tableName is missing: set the option, or the variable LEASE_TABLE_NAME.');
  }
  const { client, clientConfig } = options;
  if (client !== undefined) return new DynamoDBStore({ tableName, client });
  if (clientConfig !== undefined) return new DynamoDBStore({ tableName, clientConfig });
  const shared = sharedStores.get(tableName) ?? new DynamoDBStore({ tableName });
  sharedStores.set(tableName, shared);
  return shared;
}

interface Measures {
  readonly timeline: Timeline;
  readonly clockCheck: ClockCheck;
  readonly told: Set<string>;
}

const measures = new WeakMap<LeaseStore, WeakMap<Clock, Measures>>();

function measuresOf(store: LeaseStore, clock: Clock): Measures {
  const byClock = measures.get(store) ?? new WeakMap<Clock, Measures>();
  measures.set(store, byClock);
  const known = byClock.get(clock);
  if (known !== undefined) return known;
  const timeline = new Timeline(clock);
  const made = { timeline, clockCheck: new ClockCheck(timeline), told: new Set<string>() };
  byClock.set(clock, made);
  return made;
}
