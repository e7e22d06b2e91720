// The table: the MemoryStore, which means what DynamoDB means, with a witness of every change and a
// memory of the recent past, for reads that may show it.

import { holds, type Condition } from '../../src/condition.ts';
import { asNumber, asText, readLease, UNREADABLE_DURATION_MS, type Item } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { eventId, readVerdict } from '../../src/stored-verdict.ts';
import type { RemoveAnswer, ScanAnswer, ScanCall, WriteAnswer } from '../../src/store.ts';
import type { Write } from '../../src/writes.ts';
import { shortName, type Happening, type Operation, type Side } from './history.ts';
import type { VirtualTime } from './time.ts';

/** Who sent a change, and when. */
export interface Sender {
  readonly by: string;
  readonly sentAtMs: number;
}

interface Past {
  readonly untilMs: number;
  readonly item: Item | undefined;
}

const REMEMBERED = 4;
const IDEMPOTENT_MS = 600_000;
const NEVER = new AbortController().signal;
const OWN_CALL = { signal: NEVER, attempt: () => () => undefined };

export class Table {
  readonly #time: VirtualTime;
  readonly #record: (happening: Happening) => void;
  readonly #memory: MemoryStore;
  readonly #past = new Map<string, Past[]>();
  readonly #requests = new Map<string, { readonly atMs: number; readonly answer: WriteAnswer }>();
  /** Called when a record has changed hands, or lost its holder. */
  onHolderChange: (lease: string) => void = () => undefined;
  /** Called after each change. */
  onChange: (lease: string) => void = () => undefined;

  constructor(time: VirtualTime, record: (happening: Happening) => void, pageSize: number) {
    this.#memory = new MemoryStore({ pageSize });
    this.#time = time;
    this.#record = record;
  }

  peek(lease: string): Item | undefined {
    return this.#memory.peek(lease);
  }

  /** What a read shows that need not be consistent. */
  asOf(lease: string, atMs: number): Item | undefined {
    const past = this.#past.get(lease)?.find(({ untilMs }) => untilMs > atMs);
    return past === undefined ? this.peek(lease) : past.item;
  }

  async write(lease: string, write: Write, sender: Sender): Promise<WriteAnswer> {
    const before = this.peek(lease);
    const answer = await this.#memory.write(lease, write, OWN_CALL);
    if (answer.kind === 'applied') {
      const sent = { ...sender, ...namedIn(write.condition) };
      this.#changed(lease, operationOf(write), before, sent);
    }
    return answer;
  }

  /** When a record was changed last. */
  changedAtMs(lease: string): number {
    return this.#past.get(lease)?.at(-1)?.untilMs ?? -Infinity;
  }

  /** Knows a request again for ten minutes, and answers as before. */
  async transact(
    lease: string,
    write: Write,
    { request, sender, onApplied }: { request: string; sender: Sender; onApplied: () => void },
  ): Promise<WriteAnswer> {
    const known = this.#requests.get(request);
    if (known !== undefined && this.#time.nowMs - known.atMs < IDEMPOTENT_MS) return known.answer;
    const answer = await this.write(lease, write, sender);
    if (answer.kind === 'refused') return answer;
    onApplied();
    this.#requests.set(request, { atMs: this.#time.nowMs, answer });
    return answer;
  }

  async remove(lease: string, condition: Condition, sender: Sender): Promise<RemoveAnswer> {
    const before = this.peek(lease);
    const answer = await this.#memory.remove(lease, condition, OWN_CALL);
    const operation = 'all' in condition && condition.all.length > 2 ? 'collect' : 'remove';
    if (answer.kind === 'applied') {
      this.#changed(lease, operation, before, { ...sender, ...namedIn(condition) });
    }
    return answer;
  }

  scan(call: ScanCall): Promise<ScanAnswer> {
    return this.#memory.scan({ ...call, ...OWN_CALL });
  }

  /** Whether a condition holds at this moment: of a transaction of the user's. */
  check(lease: string, condition: Condition): boolean {
    return holds(condition, this.peek(lease) ?? {});
  }

  /** What another client of the table, or an operator, does to a record. */
  tamper(lease: string, how: string, change: (item: Item) => Item | undefined): void {
    const before = this.peek(lease);
    if (before === undefined) return;
    const after = change(before);
    this.#memory.poke(lease, after);
    const sender = { by: 'table', sentAtMs: this.#time.nowMs, atVersion: true, named: true };
    this.#changed(lease, after === undefined ? 'delete' : 'tamper', before, sender, how);
  }

  #changed(
    lease: string,
    operation: Operation,
    before: Item | undefined,
    sender: Sender & Named,
    how?: string,
  ): void {
    const after = this.peek(lease);
    const past = this.#past.get(lease) ?? [];
    past.push({ untilMs: this.#time.nowMs, item: before });
    if (past.length > REMEMBERED) past.shift();
    this.#past.set(lease, past);
    const sides = { before: sideOf(lease, before), after: sideOf(lease, after) };
    this.#record({
      kind: 'applied',
      atMs: this.#time.nowMs,
      lease,
      operation,
      ...sender,
      ...sides,
      ...(how === undefined ? {} : { how }),
    });
    if (sides.before.holder !== sides.after.holder) this.onHolderChange(lease);
    this.onChange(lease);
  }
}

interface Named {
  readonly atVersion: boolean;
  readonly named: boolean;
}

function namedIn(condition: Condition): Named {
  const atVersion = names(condition, 'version');
  return { atVersion, named: atVersion && names(condition, 'holderIdentity') };
}

/** Whether nothing passes that does not have this very value. */
function names(condition: Condition, attribute: string): boolean {
  if ('equals' in condition) return condition.equals[0] === attribute;
  return 'all' in condition && condition.all.some((part) => names(part, attribute));
}

export function operationOf({ set, remove }: Write): Operation {
  if (set.leaseTransitions !== undefined) return 'acquire';
  if (set.holderIdentity !== undefined) return 'renew';
  const { condition } = set;
  if (condition !== undefined && 'M' in condition) {
    if (asText(condition.M['status']) === 'Evicted' && condition.M['event'] !== undefined) {
      return 'evict';
    }
    return condition.M['event'] === undefined ? 'clear event' : 'flag';
  }
  if (remove.includes('holderIdentity')) return 'release';
  return set.lastTick === undefined ? 'note' : 'complete';
}

function sideOf(lease: string, item: Item | undefined): Side {
  const record = readLease(lease, item ?? {});
  const verdict = item?.['condition'] === undefined ? undefined : readVerdict(record);
  const { holderIdentity } = record;
  return {
    holder: holderIdentity === undefined ? undefined : shortName(holderIdentity),
    token: record.leaseTransitions,
    version: record.version ?? asNumber(item?.['version']) ?? 0,
    renewTime: record.renewTime,
    durationMs: record.leaseDurationMs ?? UNREADABLE_DURATION_MS,
    expireTimeMs: record.expireTimeMs,
    kind: record.kind,
    status: verdict?.status,
    event: verdict?.event && eventId(lease, verdict.count, verdict.event),
    ready: record.annotations['ready'] !== 'false',
    ...(record.lastTickMs === undefined ? {} : { lastTick: record.lastTickMs }),
  };
}
