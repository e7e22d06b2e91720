// A table in memory, monitors over it on virtual time, and a witness of every write: what is
// recorded is published, what is not published is not overwritten, no verdict goes back.

import { FakeClock } from '../../src/fake-clock.ts';
import type { Condition } from '../../src/condition.ts';
import { LeaseError } from '../../src/errors.ts';
import type { EventSink, LeaseEvent } from '../../src/events.ts';
import { readLease, type Item, type LeaseRecord } from '../../src/lease.ts';
import { LifecycleMonitor, type LifecycleMonitorOptions } from '../../src/lifecycle-monitor.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type { PassReport } from '../../src/pass-report.ts';
import type {
  ReadCall,
  RemoveAnswer,
  ScanAnswer,
  ScanCall,
  StoreCall,
  WatchableStore,
  WriteAnswer,
} from '../../src/store.ts';
import { eventId, readVerdict } from '../../src/stored-verdict.ts';
import type { Write } from '../../src/writes.ts';
import { heldSince, START_MS, type HolderOptions } from './one-lease.ts';

export const OWN_LEASE = 'lambda-lease/lifecycle-monitor';

/** What becomes of one effect: a write, a removal, a publication. */
export type Fault =
  /** The process is killed before the effect, or after it and before it is told. */
  'killed before' | 'killed after' | 'fails before' | 'fails after';

export type Effect = 'write' | 'remove' | 'publish';

export interface Call {
  readonly what: Effect | 'read' | 'scan';
  readonly lease: string;
  /** Its place among the effects of its process; undefined for what changes nothing. */
  readonly effect: number | undefined;
}

export class Table {
  readonly clock = new FakeClock(START_MS);
  readonly memory = new MemoryStore({
    pageSize: 3,
    serverTimeMs: () => this.clock.read().wallMs + this.serverAheadMs,
  });
  serverAheadMs = 0;
  /** No call is answered from here on. */
  out = false;
  /** Ids of events, in the order in which they were recorded, and accepted. */
  readonly recorded: string[] = [];
  readonly published: LeaseEvent[] = [];
  readonly wrongs: string[] = [];

  get nowS(): number {
    return (this.clock.read().wallMs - START_MS) / 1_000;
  }

  put(name: string, item: Item): string {
    const lease = `default/${name}`;
    const { condition, openVerdict } = this.memory.peek(lease) ?? {};
    const kept = Object.fromEntries(
      Object.entries({ condition, openVerdict }).filter(([, value]) => value !== undefined),
    ) as Item;
    this.memory.poke(lease, { ...kept, ...item, lease: { S: lease } });
    return lease;
  }

  /** Renewed now, at a version that tells when. */
  hold(name: string, options: HolderOptions = {}): string {
    const version = 1_000_000 + this.nowS;
    return this.put(name, heldSince(this.nowS, { version, by: `host/1/${name}`, ...options }));
  }

  record(name: string): LeaseRecord {
    const lease = `default/${name}`;
    return readLease(lease, this.memory.peek(lease) ?? {});
  }

  status(name: string): string | undefined {
    return readVerdict(this.record(name))?.status;
  }

  /** What has been published, each event once. */
  events(): string[] {
    return [...new Set(this.published.map(idOf))].map((id) => {
      const { detailType, timeMs, detail } = this.published.find((event) => idOf(event) === id)!;
      return `${detail.data.name}: ${detailType} ${(timeMs - START_MS) / 1_000}`;
    });
  }

  ids(): string[] {
    return [...new Set(this.published.map(idOf))].sort();
  }

  /** A record that was never looked at with its event unpublished would show here too. */
  unpublished(): string[] {
    const published = this.published.map(idOf);
    return this.recorded.filter((id) => !published.includes(id));
  }

  watch(lease: string, before: Item | undefined, after: Item | undefined): void {
    const [old, now] = [before, after].map((item) => {
      const verdict = item === undefined ? undefined : readVerdict(readLease(lease, item));
      const id = verdict?.event && eventId(lease, verdict.count, verdict.event);
      return { verdict, id };
    });
    if (now?.id !== undefined && now.id !== old?.id) this.recorded.push(now.id);
    if (old?.id !== undefined && now?.id !== old.id) {
      if (!this.published.some((event) => idOf(event) === old.id)) {
        this.wrongs.push(`${old.id} was overwritten before it was published`);
      }
    }
    if (old?.verdict === undefined || now?.verdict === undefined) return;
    if (now.verdict.count < old.verdict.count || now.verdict.sinceMs < old.verdict.sinceMs) {
      this.wrongs.push(`an older verdict was put over a newer one: ${lease} ${now.verdict.count}`);
    }
  }
}

/** One process with a monitor in it, which may be killed. */
export class Process implements WatchableStore, EventSink {
  readonly description = 'a table in memory';
  readonly #table: Table;
  readonly monitor: LifecycleMonitor;
  readonly logged: { readonly message: string; readonly details: object | undefined }[] = [];
  readonly calls: Call[] = [];
  dead = false;
  /** Which effect shall fail, and how. */
  fault: { readonly effect: number; readonly fault: Fault } | undefined;
  /** Happens just before a call reaches the table, and may hold it up. */
  before: (call: Call) => void | Promise<void> = () => undefined;
  accepts: (event: LeaseEvent) => boolean = () => true;

  constructor(table: Table, options: Partial<LifecycleMonitorOptions> = {}) {
    this.#table = table;
    const log = (message: string, details?: object) => this.logged.push({ message, details });
    this.monitor = new LifecycleMonitor({
      store: this,
      events: this,
      clock: table.clock,
      segments: 2,
      logger: { debug: log, info: log, warn: log, error: log },
      ...options,
    });
  }

  get effects(): Call[] {
    return this.calls.filter(({ effect }) => effect !== undefined);
  }

  /** A pass, until it is over or can go on no further by itself. */
  async pass(): Promise<PassReport | undefined> {
    let report: PassReport | undefined;
    void this.monitor.pass().then((done) => (report = done));
    for (let turn = 0; turn < 5; turn++) await this.#table.clock.advance(0);
    return report;
  }

  /** A pass that is over. */
  async whole(): Promise<PassReport> {
    const report = await this.pass();
    if (report === undefined) throw new Error('The pass does not come to an end.');
    return report;
  }

  read(lease: string, call: ReadCall): Promise<Item | undefined> {
    const own = { ...call, ...sent(call) };
    return this.#call('read', lease, () => this.#table.memory.read(lease, own));
  }

  scan(call: ScanCall): Promise<ScanAnswer> {
    const own = { ...call, ...sent(call) };
    return this.#call('scan', '', () => this.#table.memory.scan(own));
  }

  write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer> {
    const own = sent(call);
    const act = () => this.#table.memory.write(lease, write, own);
    return this.#call('write', lease, () => this.#watched(lease, act));
  }

  remove(lease: string, condition: Condition, call: StoreCall): Promise<RemoveAnswer> {
    const own = sent(call);
    const act = () => this.#table.memory.remove(lease, condition, own);
    return this.#call('remove', lease, () => this.#watched(lease, act));
  }

  publish(events: readonly LeaseEvent[]): Promise<readonly boolean[]> {
    return this.#call('publish', events[0]!.detail.data.lease, async () =>
      events.map((event) => {
        if (!this.accepts(event)) return false;
        this.#table.published.push(event);
        return true;
      }),
    );
  }

  async #watched<T>(lease: string, act: () => Promise<T>): Promise<T> {
    const before = this.#table.memory.peek(lease);
    const answer = await act();
    this.#table.watch(lease, before, this.#table.memory.peek(lease));
    return answer;
  }

  async #call<T>(what: Call['what'], lease: string, act: () => Promise<T>): Promise<T> {
    if (this.dead) return new Promise(() => undefined);
    const effect = ['read', 'scan'].includes(what) ? undefined : this.effects.length;
    const call: Call = { what, lease, effect };
    this.calls.push(call);
    const fault = this.fault?.effect === effect ? this.fault?.fault : undefined;
    if (fault === 'killed before') return this.#die();
    if (fault === 'fails before' || this.#table.out) throw unavailable();
    await this.before(call);
    const answer = await act();
    if (fault === 'killed after') return this.#die();
    if (fault === 'fails after') throw unavailable();
    return answer;
  }

  #die(): Promise<never> {
    this.dead = true;
    return new Promise(() => undefined);
  }
}

/** On its way from now on. It goes on when its sender has given up. */
function sent(call: StoreCall): StoreCall {
  const answered = call.attempt();
  return { signal: new AbortController().signal, attempt: () => answered };
}

function unavailable(): LeaseError {
  return new LeaseError('store-unavailable', 'No answer.');
}

function idOf(event: LeaseEvent): string {
  return event.detail.metadata.id;
}

/** The monitor has been looking for a while: its verdicts are not frozen. */
export async function seenBefore(table: Table): Promise<void> {
  await new Process(table).whole();
  for (let round = 0; round < 8; round++) {
    await table.clock.advance(60_000);
    await new Process(table).whole();
  }
}

/** A table that a monitor has been looking at for a while. */
export async function watched(): Promise<Table> {
  const table = new Table();
  await seenBefore(table);
  return table;
}

/** A pass every 60 s, each by a process of its own. */
export async function passes(
  table: Table,
  count: number,
  each: () => void = () => undefined,
): Promise<void> {
  for (let round = 0; round < count; round++) {
    await table.clock.advance(60_000);
    each();
    await new Process(table).whole();
  }
}
