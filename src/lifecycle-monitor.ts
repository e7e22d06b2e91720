// The lifecycle monitor: passes over the table, flags expired holders and, after a toleration,
// evicts them. A thin shell: verdict.ts says what is to be done with a lease, zones.ts how fast,
// pass-memory.ts whether anything may be held against anybody.
//
// Nothing depends on it (L6). Killed between any two effects, it leaves nothing that the next pass
// does not complete; two of it at once get in each other's way and nobody else's.

import { systemClock, type Clock } from './clock.ts';
import { consoleLogger, type Logger } from './environment.ts';
import { describeError, isPermanent, LeaseError } from './errors.ts';
import { makeEvent, type EventSink } from './events.ts';
import { asNumber, asText, readLease, type Item, type LeaseRecord } from './lease.ts';
import type { Metrics } from './metrics.ts';
import { collect, evict, flag, heartbeatsOfZones, published, suspects } from './monitor-writes.ts';
import { nextPass, readPassMemory, writePassMemory, type PassMemory } from './pass-memory.ts';
import { MonitorTable } from './monitor-table.ts';
import { KEY_ATTRIBUTE, MONITOR_LEASE } from './schema.ts';
import type { WatchableStore } from './store.ts';
import { Timeline } from './timeline.ts';
import { judge, readVerdict, REPORTED, type Circumstances, type Verdict } from './verdict.ts';
import { asRead, type Write } from './writes.ts';
import { mayBeDisrupted, ZONE_LABEL, zoneMode, type ZoneMode } from './zones.ts';

export interface LifecycleMonitorOptions {
  readonly store: WatchableStore;
  readonly events: EventSink;
  readonly metrics?: Metrics;
  readonly logger?: Logger;
  readonly clock?: Clock;
  /** How long after its expiry a lease becomes NotReady. Default 40. */
  readonly graceSeconds?: number;
  /** How long after that verdict its holder is evicted, at the earliest. Default 300. */
  readonly tolerationSeconds?: number;
  /** How long an evicted heartbeat or identity is kept. Default 86,400. */
  readonly retentionSeconds?: number;
  /** How many heartbeats of a zone one pass evicts at most; 1 in a disrupted zone. Default 10. */
  readonly evictionsPerPass?: number;
  /** Parts of the table that are scanned side by side. Default 4. */
  readonly segments?: number;
}

export interface PassReport {
  /** Why the pass passed no verdict. */
  readonly blind: 'store' | 'clock' | undefined;
  readonly scanned: number;
  readonly suspects: number;
  readonly notReady: number;
  readonly evicted: number;
  readonly collected: number;
  readonly published: number;
  readonly unpublished: number;
  /** Records that could not be judged; the log says why. */
  readonly unusable: number;
  readonly zones: Readonly<Record<string, ZoneMode>>;
}

type Counts = { -readonly [Key in keyof Omit<PassReport, 'blind' | 'zones'>]: number };

/** What one pass knows and counts. */
interface Pass {
  readonly at: Circumstances;
  readonly counts: Counts;
  /** Silent heartbeats, by zone. */
  readonly silent: Map<string, number>;
  /** Evictions wait until the zones are known. */
  readonly doomed: string[];
}

/** Suspects that are attended to at once. */
const ATTENDED_AT_ONCE = 16;
/** Of one suspect in one pass: flag, publish, clear, and once more. */
const STEPS = 6;
/** What a pass keeps in mind at most; the next one does the rest. */
const MOST_DOOMED = 10_000;

const OWN_LEASE = `${MONITOR_LEASE.namespace}/${MONITOR_LEASE.name}`;

export class LifecycleMonitor {
  readonly #options: LifecycleMonitorOptions;
  readonly #logger: Logger;
  readonly #timeline: Timeline;
  readonly #table: MonitorTable;
  #blind = false;

  constructor(options: LifecycleMonitorOptions) {
    this.#options = options;
    const clock = options.clock ?? systemClock;
    this.#logger = options.logger ?? consoleLogger;
    this.#timeline = new Timeline(clock);
    this.#table = new MonitorTable(options.store, clock, this.#timeline, options.segments ?? 4);
  }

  /** One pass over the whole table. Does not reject: what it could not do, the next one does. */
  async pass(): Promise<PassReport> {
    const start = this.#timeline.look();
    const counts: Counts = {
      scanned: 0,
      suspects: 0,
      notReady: 0,
      evicted: 0,
      collected: 0,
      published: 0,
      unpublished: 0,
      unusable: 0,
    };
    let zones: Record<string, ZoneMode> = {};
    let blind: PassReport['blind'];
    try {
      const own = await this.#table.read(OWN_LEASE);
      const clock = await this.#table.clockStatus();
      if (clock.kind === 'checked' || clock.kind === 'unverifiable') {
        zones = await this.#lookAround(own, counts);
      } else {
        blind = 'clock';
        this.#logger.error("The lifecycle monitor's clock is not right: it passes no verdict.", {
          ...clock,
        });
      }
      this.#blind = blind !== undefined;
    } catch (error) {
      blind = 'store';
      this.#blind = true;
      this.#logger.error('A pass of the lifecycle monitor could not see the table.', {
        error: describeError(error),
      });
    }
    const report = { blind, ...counts, zones };
    this.#measure(report, this.#timeline.look().elapsedMs - start.elapsedMs);
    return report;
  }

  async #lookAround(own: Item, counts: Counts): Promise<Record<string, ZoneMode>> {
    const nowMs = Math.floor(this.#timeline.look().wallMs);
    const seconds = (value: number | undefined, otherwise: number) => (value ?? otherwise) * 1_000;
    const graceMs = seconds(this.#options.graceSeconds, 40);
    const memory = nextPass(readPassMemory(own), this.#blind, nowMs, graceMs);
    const pass: Pass = {
      at: {
        nowMs,
        graceMs,
        tolerationMs: seconds(this.#options.tolerationSeconds, 300),
        retentionMs: seconds(this.#options.retentionSeconds, 86_400),
        frozenUntilMs: memory.frozenUntilMs,
        tolerationsFromMs: memory.tolerationsFromMs,
        extraTolerationMs: 0,
      },
      counts,
      silent: new Map(),
      doomed: [],
    };
    await this.#attendToSuspects(pass);
    const zones = await this.#zones(pass);
    await this.#evictDoomed(pass, zones);
    await this.#remember(own, memory);
    return Object.fromEntries(zones);
  }

  async #attendToSuspects(pass: Pass): Promise<void> {
    const filter = suspects(pass.at.nowMs, pass.at.retentionMs);
    const counted = await this.#table.scanAll(filter, async (items) => {
      pass.counts.suspects += items.length;
      await inParallel(items, ATTENDED_AT_ONCE, async (item) => {
        const lease = asText(item[KEY_ATTRIBUTE]);
        if (lease !== undefined) await this.#attendSafely(lease, pass, pass.at, false);
      });
    });
    pass.counts.scanned = counted;
  }

  /** A record that cannot be attended to keeps nobody from the others. */
  async #attendSafely(
    lease: string,
    pass: Pass,
    at: Circumstances,
    mayEvict: boolean,
  ): Promise<void> {
    try {
      await this.#attend(lease, pass, at, mayEvict);
    } catch (error) {
      if (!isPermanent(error)) throw error;
      pass.counts.unusable += 1;
      this.#logger.error('The lifecycle monitor cannot judge a lease.', {
        lease,
        error: describeError(error),
      });
    }
  }

  /** Does what is to be done with one lease, step by step, as long as nobody interferes. */
  async #attend(lease: string, pass: Pass, at: Circumstances, mayEvict: boolean): Promise<void> {
    let record: LeaseRecord | undefined = readLease(lease, await this.#table.read(lease));
    if (record.corrupt !== undefined) throw new LeaseError('corrupt-record', record.corrupt);
    for (let step = 0; step < STEPS && record !== undefined; step++) {
      const own = withOwnPatience(record, at);
      const action = judge(record, own);
      switch (action.kind) {
        case 'nothing':
          this.#count(record, pass);
          return;
        case 'publish':
          record = await this.#publish(record, pass);
          break;
        case 'flag':
          record = await this.#write(flag(record, action.verdict), record, action.verdict);
          break;
        case 'evict':
          if (!mayEvict) {
            this.#count(record, pass);
            if (pass.doomed.length < MOST_DOOMED) pass.doomed.push(lease);
            return;
          }
          record = await this.#write(
            evict(record, action.verdict, at.nowMs),
            record,
            action.verdict,
          );
          if (record !== undefined) pass.counts.evicted += 1;
          break;
        case 'collect':
          await this.#collect(record, pass);
          return;
      }
    }
  }

  #count(record: LeaseRecord, pass: Pass): void {
    const verdict = readVerdict(record);
    if (verdict?.status !== 'NotReady') return;
    pass.counts.notReady += 1;
    // Who says that it is not ready is not silent.
    if (record.kind !== 'heartbeat' || verdict.reason === REPORTED) return;
    const zone = record.labels[ZONE_LABEL] ?? '';
    pass.silent.set(zone, (pass.silent.get(zone) ?? 0) + 1);
  }

  /** Only where so many are silent that it matters, the others are counted too. */
  async #zones(pass: Pass): Promise<Map<string, ZoneMode>> {
    const disturbed = [...pass.silent].filter(([, silent]) => mayBeDisrupted(silent));
    if (disturbed.length === 0) return new Map();
    const heartbeats = new Map<string, number>();
    await this.#table.scanAll(heartbeatsOfZones(), (items) => {
      for (const item of items) {
        const zone = readLease('', item).labels[ZONE_LABEL] ?? '';
        heartbeats.set(zone, (heartbeats.get(zone) ?? 0) + 1);
      }
      return Promise.resolve();
    });
    const modes = new Map(
      disturbed.map(([zone, silent]) => [zone, zoneMode(heartbeats.get(zone) ?? silent, silent)]),
    );
    for (const [zone, mode] of modes) {
      if (mode === 'Normal') continue;
      this.#logger.warn('A zone is in disruption: evictions slow down.', { zone, mode });
    }
    return modes;
  }

  async #evictDoomed(pass: Pass, zones: ReadonlyMap<string, ZoneMode>): Promise<void> {
    const evictedIn = new Map<string, number>();
    const most = this.#options.evictionsPerPass ?? 10;
    for (const lease of pass.doomed) {
      const record = readLease(lease, await this.#table.read(lease));
      const zone = record.kind === 'heartbeat' ? '' : undefined;
      const name = record.labels[ZONE_LABEL] ?? zone;
      const mode = name === undefined ? 'Normal' : (zones.get(name) ?? 'Normal');
      if (name !== undefined) {
        const already = evictedIn.get(name) ?? 0;
        if (already >= (mode === 'Partial' ? 1 : most)) continue;
        evictedIn.set(name, already + 1);
      }
      const patience = withOwnPatience(record, pass.at).tolerationMs;
      const extraTolerationMs = mode === 'Full' ? patience : 0;
      await this.#attendSafely(lease, pass, { ...pass.at, extraTolerationMs }, true);
    }
  }

  async #publish(record: LeaseRecord, pass: Pass): Promise<LeaseRecord | undefined> {
    const verdict = readVerdict(record);
    if (verdict?.event === undefined) return undefined;
    const [accepted] = await this.#options.events.publish([
      makeEvent(record, verdict, verdict.event),
    ]);
    if (accepted !== true) {
      pass.counts.unpublished += 1;
      return undefined;
    }
    pass.counts.published += 1;
    return this.#write(published(record, verdict), record, undefined);
  }

  async #collect(record: LeaseRecord, pass: Pass): Promise<void> {
    const answer = await this.#table.remove(record.lease, collect(record));
    if (answer.kind === 'applied') pass.counts.collected += 1;
  }

  /** The record as it is now, or undefined when somebody was faster: the next pass looks again. */
  async #write(
    write: Write,
    record: LeaseRecord,
    verdict: Verdict | undefined,
  ): Promise<LeaseRecord | undefined> {
    const answer = await this.#table.write(record.lease, write);
    if (answer.kind === 'refused') return undefined;
    if (verdict?.event !== undefined) {
      this.#logger.info('A lease changed its condition.', {
        lease: record.lease,
        event: verdict.event.type,
        status: verdict.status,
        reason: verdict.reason,
        holderIdentity: verdict.event.holderIdentity,
        fencingToken: record.leaseTransitions,
        logStream: record.annotations['logStream'],
      });
    }
    return readLease(record.lease, answer.item);
  }

  /** Conditional on the last pass that was read: a slow second monitor overwrites nothing newer. */
  async #remember(own: Item, memory: PassMemory): Promise<void> {
    const condition = asRead('pass', own);
    await this.#table.write(OWN_LEASE, {
      condition,
      set: { pass: writePassMemory(memory) },
      remove: [],
    });
  }

  #measure(report: PassReport, durationMs: number): void {
    const { metrics } = this.#options;
    if (metrics === undefined) return;
    const zones = Object.values(report.zones);
    metrics.addMetric('MonitorPass', 'Count', 1);
    metrics.addMetric('MonitorPassDuration', 'Milliseconds', Math.round(durationMs));
    metrics.addMetric('MonitorBlind', 'Count', report.blind === undefined ? 0 : 1);
    metrics.addMetric('LeasesScanned', 'Count', report.scanned);
    metrics.addMetric('LeasesNotReady', 'Count', report.notReady);
    metrics.addMetric('LeasesEvicted', 'Count', report.evicted);
    metrics.addMetric('EventsUnpublished', 'Count', report.unpublished);
    metrics.addMetric('ZonesPartiallySilent', 'Count', zones.filter((m) => m === 'Partial').length);
    metrics.addMetric('ZonesSilent', 'Count', zones.filter((m) => m === 'Full').length);
    metrics.publishStoredMetrics?.();
  }
}

/** A lease may carry its own patience: the longest silence that is nothing unusual. */
function withOwnPatience(record: LeaseRecord, at: Circumstances): Circumstances {
  const own = (name: string) => {
    const seconds = asNumber({ N: record.annotations[name] ?? '' });
    return seconds !== undefined && seconds > 0 ? seconds * 1_000 : undefined;
  };
  return {
    ...at,
    graceMs: own('graceSeconds') ?? at.graceMs,
    tolerationMs: own('tolerationSeconds') ?? at.tolerationMs,
  };
}

async function inParallel<T>(
  items: readonly T[],
  atOnce: number,
  each: (item: T) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  await Promise.all(
    Array.from({ length: Math.min(atOnce, items.length) }, async () => {
      for (const item of queue) await each(item);
    }),
  );
}
