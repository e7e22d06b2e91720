// One lease before the eyes of a monitor, without the monitor: what judge() says is carried out in
// memory until there is nothing left to do, and the moments pass as told.

import { isoTime, readLease, type Item, type LeaseRecord, type Value } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { evict, flag, published } from '../../src/monitor-writes.ts';
import { eventId, readVerdict, type Verdict } from '../../src/stored-verdict.ts';
import { judge, type Action, type Circumstances } from '../../src/verdict.ts';
import type { Write } from '../../src/writes.ts';
import { call } from '../contract/store-under-test.ts';

export const START_MS = Date.UTC(2026, 0, 1, 12);
export const LEASE = 'default/watched';
export const GRACE_S = 40;
export const TOLERATION_S = 300;
export const RETENTION_S = 86_400;

export const at = (seconds: number, change: Partial<Circumstances> = {}): Circumstances => ({
  nowMs: START_MS + seconds * 1_000,
  graceMs: GRACE_S * 1_000,
  tolerationMs: TOLERATION_S * 1_000,
  retentionMs: RETENTION_S * 1_000,
  frozenUntilMs: 0,
  tolerationsFromMs: 0,
  extraTolerationMs: 0,
  ...change,
});

export interface HolderOptions {
  readonly kind?: 'leader' | 'heartbeat' | 'identity';
  readonly by?: string;
  readonly durationS?: number;
  readonly token?: number;
  readonly version?: number;
  /** How far the holder's clock is off. */
  readonly clockS?: number;
  readonly trustsClocks?: boolean;
  readonly labels?: Readonly<Record<string, string>>;
}

/** What a holder has written that renewed at this second. */
export function heldSince(seconds: number, options: HolderOptions = {}): Item {
  const { kind = 'leader', by = 'host/1/a', durationS = 15, token = 1, version = 100 } = options;
  const { clockS = 0, trustsClocks = true, labels = {} } = options;
  const renewMs = START_MS + (seconds + clockS) * 1_000;
  return {
    lease: { S: LEASE },
    kind: { S: kind },
    holderIdentity: { S: by },
    leaseDurationSeconds: { N: String(durationS) },
    acquireTime: { S: isoTime(renewMs) },
    renewTime: { S: isoTime(renewMs) },
    ...(trustsClocks ? { expireTime: { N: String(renewMs + durationS * 1_000) } } : {}),
    leaseTransitions: { N: String(token) },
    version: { N: String(version) },
    annotations: { M: { logStream: { S: `logs of ${by}` } } },
    ...(Object.keys(labels).length > 0 ? { labels: { M: texts(labels) } } : {}),
  };
}

export function without(item: Item, ...names: readonly string[]): Item {
  return Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)));
}

export function vacated(item: Item): Item {
  const version = { N: String(Number(numberIn(item, 'version')) + 1) };
  return { ...without(item, 'holderIdentity', 'expireTime'), version };
}

export class OneLease {
  readonly #store = new MemoryStore();
  /** Each event that was published, in order: type and second. */
  readonly events: string[] = [];
  readonly ids: string[] = [];
  writes = 0;

  constructor(item: Item) {
    this.put(item);
  }

  get item(): Item | undefined {
    return this.#store.peek(LEASE);
  }

  get record(): LeaseRecord {
    return readLease(LEASE, this.item ?? {});
  }

  get verdict(): Verdict | undefined {
    return readVerdict(this.record);
  }

  get status(): string | undefined {
    return this.verdict?.status;
  }

  put(item: Item): void {
    this.#store.poke(LEASE, item);
  }

  /** The holder writes: whatever the monitor has put there stays. */
  renewed(item: Item): void {
    const { condition, openVerdict } = this.item ?? {};
    this.put({ ...item, ...present({ condition, openVerdict }) });
  }

  judge(circumstances: Circumstances): Action {
    return judge(this.record, circumstances);
  }

  /** What a pass does with it, to the end. Returns what it did. */
  async look(circumstances: Circumstances): Promise<string[]> {
    const done: string[] = [];
    for (let step = 0; step < 12; step++) {
      const action = this.judge(circumstances);
      if (action.kind === 'nothing') return done;
      await this.#carryOut(action, circumstances);
      done.push(action.kind === 'flag' ? `flag ${action.verdict.status}` : action.kind);
    }
    throw new Error(`judge() never comes to an end: ${done.join(', ')}`);
  }

  /** Looks every so many seconds, from one second to another; `before` each look, if given. */
  async watch(
    fromS: number,
    toS: number,
    everyS = 10,
    before: (second: number) => void = () => undefined,
  ): Promise<void> {
    for (let second = fromS; second <= toS; second += everyS) {
      before(second);
      await this.look(at(second));
    }
  }

  async #carryOut(action: Action, circumstances: Circumstances): Promise<void> {
    const { record, verdict } = this;
    switch (action.kind) {
      case 'flag':
        return this.#write(flag(record, action.verdict));
      case 'evict':
        return this.#write(evict(record, action.verdict, circumstances.nowMs));
      case 'publish': {
        if (verdict === undefined) throw new Error('an event without a verdict');
        this.events.push(`${action.event.type} ${(action.event.atMs - START_MS) / 1_000}`);
        this.ids.push(eventId(LEASE, verdict.count, action.event));
        return this.#write(published(record, verdict));
      }
      case 'collect':
        this.#store.poke(LEASE, undefined);
        return;
      case 'nothing':
    }
  }

  async #write(write: Write): Promise<void> {
    this.writes += 1;
    const answer = await this.#store.write(LEASE, write, call());
    if (answer.kind === 'refused') throw new Error(`refused: ${JSON.stringify(write)}`);
  }
}

export function numberIn(item: Item, name: string): string | undefined {
  const value = item[name];
  return value !== undefined && 'N' in value ? value.N : undefined;
}

export function texts(map: Readonly<Record<string, string>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(map).map(([name, text]) => [name, { S: text }]));
}

function present(item: Readonly<Record<string, Value | undefined>>): Item {
  return Object.fromEntries(
    Object.entries(item).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
  );
}
