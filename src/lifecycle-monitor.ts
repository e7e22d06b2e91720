// The lifecycle monitor: passes over the table, flags expired holders and, after a toleration,
// evicts them. A thin shell: verdict.ts says what is to be done with a lease, zones.ts how fast,
// pass-memory.ts whether anything may be held against anybody.
//
// Nothing depends on it (L6). Killed between any two effects, it leaves nothing that the next pass
// does not complete; two of it at once get in each other's way and nobody else's.

import { systemClock, type Clock } from './clock.ts';
import { consoleLogger, unfailing, type Logger } from './environment.ts';
import { bounded } from './bounded.ts';
import { describeError, isLeaseError, LeaseError } from './errors.ts';
import { makeEvent, type EventSink, type LeaseEvent } from './events.ts';
import { asText, readLease, type Item, type LeaseRecord } from './lease.ts';
import { inParallel } from './in-parallel.ts';
import type { Metrics } from './metrics.ts';
import { collect, evict, flag, heartbeatsOfZones, published, suspects } from './monitor-writes.ts';
import { nextPass, readPassMemory, writePassMemory, type PassMemory } from './pass-memory.ts';
import { MonitorTable } from './monitor-table.ts';
import { measure, noCounts, type Counts, type PassReport } from './pass-report.ts';
import { KEY_ATTRIBUTE, MONITOR_LEASE } from './schema.ts';
import type { WatchableStore } from './store.ts';
import { Timeline } from './timeline.ts';
import { readVerdict, type Verdict } from './stored-verdict.ts';
import { isLeaderless, judge, REPORTED, type Circumstances, withOwnPatience } from './verdict.ts';
import type { Write } from './writes.ts';
import { isSurelyNormal, mayBeDisrupted, ZONE_LABEL, zoneMode, type ZoneMode } from './zones.ts';

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
  /** How many of a zone one pass evicts at most; 1 where the zone is Partial. Default 10. */
  readonly evictionsPerPass?: number;
  /** Parts of the table that are scanned side by side. Default 4. */
  readonly segments?: number;
}

/** What one pass knows and counts. */
interface Pass {
  readonly at: Circumstances;
  readonly counts: Counts;
  /** Silent heartbeats, by zone. */
  readonly silent: Map<string, number>;
  /** Evictions wait until the zones are known. */
  readonly doomed: Doomed[];
  /** Calls about single records that were not answered. */
  unanswered: number;
  /** Events that were not accepted, since the last that was. */
  refused: number;
}

interface Doomed {
  readonly lease: string;
  readonly zone: string | undefined;
}

/** Suspects that are attended to at once. */
const ATTENDED_AT_ONCE = 16;
/** Of one suspect in one pass: flag, publish, clear, and once more. */
const STEPS = 6;
/** What a pass keeps in mind at most; the next one does the rest. */
const MOST_DOOMED = 10_000;
/** So many unanswered calls about single records, and the table itself is out of reach. */
const MOST_UNANSWERED = 16;
/** So many events in a row that were not accepted, and the others wait for the next pass. */
const MOST_REFUSED = 16;
const PUBLISH_TIMEOUT_MS = 15_000;

const OWN_LEASE = `${MONITOR_LEASE.namespace}/${MONITOR_LEASE.name}`;

export class LifecycleMonitor {
  readonly #options: LifecycleMonitorOptions;
  readonly #logger: Logger;
  readonly #clock: Clock;
  readonly #timeline: Timeline;
  readonly #table: MonitorTable;
  #blind = false;

  constructor(options: LifecycleMonitorOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#logger = unfailing(options.logger ?? consoleLogger);
    this.#timeline = new Timeline(this.#clock);
    const { store, segments = 4 } = options;
    this.#table = new MonitorTable(store, this.#clock, this.#timeline, segments);
  }

  /** One pass over the whole table. Does not reject: what it could not do, the next one does. */
  async pass(): Promise<PassReport> {
    const start = this.#timeline.look();
    const counts = noCounts();
    let zones: Record<string, ZoneMode> = {};
    let blind: PassReport['blind'];
    try {
      const own = await this.#table.read(OWN_LEASE);
      await this.#table.checkClock();
      zones = await this.#lookAround(own, counts);
    } catch (error) {
      blind = isLeaseError(error, 'clock-wrong') ? 'clock' : 'store';
      this.#logger.error('A pass of the lifecycle monitor was blind: it passes no verdict.', {
        because: blind,
        error: describeError(error),
      });
    }
    this.#blind = blind !== undefined;
    const report = { blind, ...counts, zones };
    const durationMs = this.#timeline.look().elapsedMs - start.elapsedMs;
    this.#measure(report, durationMs);
    return report;
  }

  #measure(report: PassReport, durationMs: number): void {
    try {
      if (this.#options.metrics !== undefined) measure(report, durationMs, this.#options.metrics);
    } catch (error) {
      this.#logger.error('The metrics of a pass were not taken.', { error: describeError(error) });
    }
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
      unanswered: 0,
      refused: 0,
    };
    await this.#attendToSuspects(pass);
    const zones = await this.#zones(pass);
    await this.#evictDoomed(pass, zones);
    // Its end counts: a pass over a large table may take minutes, and looks all the while.
    const atMs = Math.floor(this.#timeline.look().wallMs);
    await this.#remember(own, { ...memory, atMs });
    return Object.fromEntries(zones);
  }

  async #attendToSuspects(pass: Pass): Promise<void> {
    const filter = suspects(pass.at.nowMs, pass.at.retentionMs);
    pass.counts.scanned = await this.#table.scanAll(filter, async (found) => {
      const items = found.filter((item) => !countLeaderless(item, pass));
      pass.counts.suspects += items.length;
      await inParallel(items, ATTENDED_AT_ONCE, async (item) => {
        const lease = asText(item[KEY_ATTRIBUTE]);
        // Its own lease changes hands every minute.
        if (lease === undefined || lease === OWN_LEASE) return;
        await this.#attendSafely(lease, pass, undefined);
      });
    });
  }

  /** A record that cannot be attended to keeps nobody from the others. True: it was evicted. */
  async #attendSafely(lease: string, pass: Pass, zone: ZoneMode | undefined): Promise<boolean> {
    try {
      return await this.#attend(lease, pass, zone);
    } catch (error) {
      if (isLeaseError(error, 'store-unavailable')) pass.unanswered += 1;
      else if (!isAboutOneRecord(error)) throw error;
      if (pass.unanswered > MOST_UNANSWERED) throw error;
      pass.counts.unusable += 1;
      this.#logger.error('The lifecycle monitor cannot attend to a lease.', {
        lease,
        error: describeError(error),
      });
      return false;
    }
  }

  /**
   * Does what is to be done with one lease, step by step, as long as nobody interferes. Evicts only
   * when it is told the mode of the zone.
   */
  async #attend(lease: string, pass: Pass, zone: ZoneMode | undefined): Promise<boolean> {
    let record: LeaseRecord | undefined = readLease(lease, await this.#table.read(lease));
    if (record.corrupt !== undefined) throw new LeaseError('corrupt-record', record.corrupt);
    for (let step = 0; step < STEPS && record !== undefined; step++) {
      const at = this.#circumstances(pass, record, zone);
      const action = judge(record, at);
      switch (action.kind) {
        case 'nothing':
          if (zone === undefined) this.#count(record, pass);
          return false;
        case 'publish':
          record = await this.#publish(record, pass);
          break;
        case 'flag':
          record = await this.#write(flag(record, action.verdict), record, action.verdict);
          if (record !== undefined) countChange(action.verdict, pass.counts);
          break;
        case 'evict': {
          if (zone === undefined) {
            this.#count(record, pass);
            if (pass.doomed.length < MOST_DOOMED) pass.doomed.push({ lease, zone: zoneOf(record) });
            return false;
          }
          const eviction = evict(record, action.verdict, at.nowMs);
          const evicted = await this.#write(eviction, record, action.verdict);
          if (evicted === undefined) return false;
          pass.counts.evicted += 1;
          await this.#publish(evicted, pass);
          return true;
        }
        case 'collect':
          await this.#collect(record, pass);
          return false;
      }
    }
    return false;
  }

  /** By the clock as it is now: a pass may take long, and its process may stand still in it. */
  #circumstances(pass: Pass, record: LeaseRecord, zone: ZoneMode | undefined): Circumstances {
    this.#table.assertClock();
    const nowMs = Math.floor(this.#timeline.look().wallMs);
    const at = withOwnPatience(record, { ...pass.at, nowMs });
    return zone === 'Full' ? { ...at, extraTolerationMs: at.tolerationMs } : at;
  }

  #count(record: LeaseRecord, pass: Pass): void {
    const verdict = readVerdict(record);
    if (verdict?.status !== 'NotReady') return;
    pass.counts.notReady += 1;
    // Who says that it is not ready is not silent.
    if (record.kind !== 'heartbeat' || verdict.reason === REPORTED) return;
    const zone = zoneOf(record) ?? '';
    pass.silent.set(zone, (pass.silent.get(zone) ?? 0) + 1);
  }

  /** Only where so many are silent that it matters, the others are counted too. */
  async #zones(pass: Pass): Promise<Map<string, ZoneMode>> {
    const disturbed = [...pass.silent].filter(([, silent]) => mayBeDisrupted(silent));
    if (disturbed.length === 0) return new Map();
    const heartbeats = new Map<string, number>();
    const count = (items: readonly Item[]) => {
      for (const item of items) {
        const zone = zoneOf(readLease('', item)) ?? '';
        heartbeats.set(zone, (heartbeats.get(zone) ?? 0) + 1);
      }
      return Promise.resolve();
    };
    // A few silent ones in a large fleet are no disruption, and the first pages show it.
    const enough = () =>
      disturbed.every(([zone, silent]) => isSurelyNormal(heartbeats.get(zone) ?? 0, silent));
    await this.#table.scanAll(heartbeatsOfZones(), count, enough);
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
    for (const { lease, zone } of pass.doomed) {
      const mode = zone === undefined ? 'Normal' : (zones.get(zone) ?? 'Normal');
      const already = zone === undefined ? 0 : (evictedIn.get(zone) ?? 0);
      if (already >= (mode === 'Partial' ? 1 : most)) continue;
      const evicted = await this.#attendSafely(lease, pass, mode);
      if (evicted && zone !== undefined) evictedIn.set(zone, already + 1);
    }
  }

  async #publish(record: LeaseRecord, pass: Pass): Promise<LeaseRecord | undefined> {
    const verdict = readVerdict(record);
    if (verdict?.event === undefined) return undefined;
    const event = makeEvent(record, verdict, verdict.event);
    const accepted = pass.refused < MOST_REFUSED && (await this.#isAccepted(event));
    pass.refused = accepted ? 0 : pass.refused + 1;
    if (!accepted) {
      pass.counts.unpublished += 1;
      this.#count(record, pass);
      return undefined;
    }
    pass.counts.published += 1;
    return this.#write(published(record, verdict), record, undefined);
  }

  /** A sink may never answer, or break its promise not to reject. */
  async #isAccepted(event: LeaseEvent): Promise<boolean> {
    const { events } = this.#options;
    const what = `The publication of event ${event.detail.metadata.id}`;
    try {
      const publish = () => events.publish([event]);
      const [accepted] = await bounded(this.#clock, PUBLISH_TIMEOUT_MS, what, publish);
      return accepted === true;
    } catch (error) {
      this.#logger.warn('An event was not published; it is published again.', {
        id: event.detail.metadata.id,
        error: describeError(error),
      });
      return false;
    }
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
    const { pass } = own;
    const at = pass !== undefined && 'M' in pass ? pass.M['at'] : undefined;
    await this.#table.write(OWN_LEASE, {
      condition: at === undefined ? { absent: 'pass.at' } : { equals: ['pass.at', at] },
      set: { pass: writePassMemory(memory) },
      remove: [],
    });
  }
}

/** True when there is nothing else to be done with it. */
function countLeaderless(item: Item, { at, counts }: Pass): boolean {
  const record = readLease(asText(item[KEY_ATTRIBUTE]) ?? '', item);
  if (!isLeaderless(record)) return false;
  counts.leaderless += 1;
  return judge(record, at).kind === 'nothing';
}

function countChange({ event }: Verdict, counts: Counts): void {
  if (event?.type === 'LeaderChanged') counts.leaderChanges += 1;
  if (event?.type === 'ScheduleMissed') counts.schedulesMissed += 1;
}

/** A heartbeat without a zone is in the one without a name; a leader's lease, in none. */
function zoneOf(record: LeaseRecord): string | undefined {
  return record.labels[ZONE_LABEL] ?? (record.kind === 'heartbeat' ? '' : undefined);
}

/** Somebody has to mend that record; the others can be judged. */
function isAboutOneRecord(error: unknown): boolean {
  return isLeaseError(error, 'corrupt-record') || isLeaseError(error, 'request-refused');
}
