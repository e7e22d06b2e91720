// A table in memory that misbehaves as told, for tests on virtual time, and that remembers every
// call.
//
// One instance is one client and its network; several may share one table. Whatever can happen to
// a real request can happen here: it is slow on its way, or on the way back; it is lost either
// way; it is applied long after its sender gave up; it is never answered. The table itself is the
// MemoryStore: a call that goes unharmed does what it does there.

import { sleep, type Clock } from '../../src/clock.ts';
import type { Condition } from '../../src/condition.ts';
import { LeaseError, type LeaseErrorCode } from '../../src/errors.ts';
import type { Item } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import type {
  ReadCall,
  RemovableStore,
  RemoveAnswer,
  StoreCall,
  WriteAnswer,
} from '../../src/store.ts';
import type { Write } from '../../src/writes.ts';

/** What a call is for, told by what it does. */
export type CallKind = 'read' | 'acquire' | 'renew' | 'release' | 'remove' | 'other';

/** What becomes of one call. Nothing set: it is carried out and answered at once. */
export interface Fault {
  /** How long the request is under way. It goes on when its sender gives up. */
  readonly requestMs?: number;
  /** Then it waits at the table until this resolves. */
  readonly until?: Promise<unknown>;
  /** Happens at the table just before the call: another client, an operator. */
  readonly before?: () => void;
  /** Happens at the table just after the call. */
  readonly after?: () => void;
  /** How long the answer is under way. */
  readonly answerMs?: number;
  /** So often the server throttles it first, and the client asks again by itself. */
  readonly throttled?: number;
  /** What never arrives. The caller is told `store-unavailable`, as after a reset. */
  readonly lose?: 'request' | 'answer';
  /** The server answers with this error, and carries nothing out. */
  readonly fail?: LeaseErrorCode;
  /** Nobody tells the caller anything: only its own signal ends the call. */
  readonly hang?: true;
  /** Aborting does not end the call either. */
  readonly ignoreSignal?: true;
  /** Shifts the answer's `Date` header by so many ms, or removes it. */
  readonly date?: number | 'none';
  /** A refusal does not show the item, as with servers that do not return the old one. */
  readonly hideItem?: true;
  /** What a read shows, if it need not be consistent: the past. */
  readonly past?: Item;
}

/** A call that settles never, though it is carried out. */
export const NEVER_SETTLES: Fault = { hang: true, ignoreSignal: true };
/** The request is dropped on its way, and nobody says so. */
export const BLACK_HOLE: Fault = { lose: 'request', hang: true };

export interface Call {
  readonly kind: CallKind;
  /** Its place among all calls of this client, from 0. */
  readonly index: number;
  /** When it was sent, in ms since the client was made. */
  readonly atMs: number;
  readonly lease: string;
  readonly write: Write | undefined;
  /** Of a read. */
  readonly consistent: boolean | undefined;
  /** What became of it at the table. */
  readonly outcome: 'under way' | 'applied' | 'refused' | 'read' | 'lost' | LeaseErrorCode;
  readonly carriedOutAtMs: number | undefined;
  /** What its caller knows. */
  readonly answer: 'none' | 'given' | 'failed';
  readonly answeredAtMs: number | undefined;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

/** Decides about the calls that nothing was planned for. */
export type Script = (call: Call) => Fault | undefined;

export interface ScriptedStoreOptions {
  /** The client's: answers travel on it, so that a frozen client is told nothing. */
  readonly clock: Clock;
  /** True time, on which requests travel and by which the server dates its answers. */
  readonly network?: Clock;
  /** Shared by the clients of one table. */
  readonly memory?: MemoryStore;
  readonly script?: Script;
}

interface CarriedOut<T> {
  readonly outcome: 'applied' | 'refused' | 'read';
  readonly answer: T;
}

export class ScriptedStore implements RemovableStore {
  readonly description = 'a scripted table';
  readonly memory: MemoryStore;
  readonly calls: Call[] = [];
  script: Script;
  /** Called whenever a call is sent, carried out or answered. */
  onEvent: (call: Call) => void = () => undefined;
  readonly #clock: Clock;
  readonly #network: Clock;
  readonly #startMs: number;
  readonly #planned: { readonly kind: CallKind | 'any'; readonly fault: Fault }[] = [];

  constructor({ clock, network = clock, memory, script }: ScriptedStoreOptions) {
    this.#clock = clock;
    this.#network = network;
    this.#startMs = network.read().monotonicMs;
    this.memory = memory ?? new MemoryStore();
    this.script = script ?? (() => undefined);
  }

  /** What becomes of the next calls of this kind, in order. Goes before the script. */
  plan(kind: CallKind | 'any', ...faults: readonly Fault[]): void {
    this.#planned.push(...faults.map((fault) => ({ kind, fault })));
  }

  /** The kinds of the calls so far, in order. */
  kinds(): CallKind[] {
    return this.calls.map(({ kind }) => kind);
  }

  of(kind: CallKind): Call[] {
    return this.calls.filter((call) => call.kind === kind);
  }

  read(lease: string, call: ReadCall): Promise<Item | undefined> {
    const { consistent } = call;
    const what = { kind: 'read', lease, consistent, write: undefined } as const;
    return this.#call(what, call, async (own, { past }) => {
      const now = await this.memory.read(lease, { ...own, consistent });
      return { outcome: 'read', answer: consistent ? now : (past ?? now) };
    });
  }

  write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer> {
    const what = { kind: kindOf(write), lease, consistent: undefined, write };
    return this.#call(what, call, async (own, { hideItem = false }) => {
      const answer = await this.memory.write(lease, write, own);
      const hidden = answer.kind === 'refused' && hideItem;
      return { outcome: answer.kind, answer: hidden ? { ...answer, item: undefined } : answer };
    });
  }

  remove(lease: string, condition: Condition, call: StoreCall): Promise<RemoveAnswer> {
    const what = { kind: 'remove', lease, consistent: undefined, write: undefined } as const;
    return this.#call(what, call, async (own) => {
      const answer = await this.memory.remove(lease, condition, own);
      return { outcome: answer.kind, answer };
    });
  }

  #call<T>(
    what: Pick<Call, 'kind' | 'lease' | 'write' | 'consistent'>,
    { signal, attempt }: StoreCall,
    carryOut: (own: StoreCall, fault: Fault) => Promise<CarriedOut<T>>,
  ): Promise<T> {
    const call: Mutable<Call> = {
      ...what,
      index: this.calls.length,
      atMs: this.#nowMs(),
      outcome: 'under way',
      carriedOutAtMs: undefined,
      answer: 'none',
      answeredAtMs: undefined,
    };
    this.calls.push(call);
    const fault = this.#faultFor(call);
    for (let left = fault.throttled ?? 0; left > 0; left -= 1) attempt()(this.#date(fault));
    const answered = attempt();
    this.onEvent(call);
    const settled = (answer: 'given' | 'failed', date?: string) => {
      if (call.answer !== 'none') return;
      call.answer = answer;
      call.answeredAtMs = this.#nowMs();
      if (date !== undefined) answered(fault.date === 'none' ? undefined : date);
      this.onEvent(call);
    };
    const delivered = this.#deliver(call, fault, carryOut, settled);
    return fault.ignoreSignal === true
      ? delivered
      : Promise.race([delivered, whenAborted(signal, () => settled('failed'))]);
  }

  /** From the client to the table and back. Goes on when the client has given up. */
  async #deliver<T>(
    call: Mutable<Call>,
    fault: Fault,
    carryOut: (own: StoreCall, fault: Fault) => Promise<CarriedOut<T>>,
    settled: (answer: 'given' | 'failed', date?: string) => void,
  ): Promise<T> {
    if (fault.requestMs !== undefined) await sleep(this.#network, fault.requestMs);
    await fault.until;
    let answer: T | undefined;
    if (fault.lose === 'request') {
      call.outcome = 'lost';
    } else if (fault.fail !== undefined) {
      call.outcome = fault.fail;
    } else {
      fault.before?.();
      const own = { signal: new AbortController().signal, attempt: () => () => undefined };
      const done = await carryOut(own, fault);
      call.outcome = done.outcome;
      call.carriedOutAtMs = this.#nowMs();
      answer = done.answer;
      fault.after?.();
    }
    const date = this.#date(fault);
    this.onEvent(call);

    if (fault.hang === true) return new Promise(() => undefined);
    if (fault.answerMs !== undefined) await sleep(this.#clock, fault.answerMs);
    if (fault.lose !== undefined) {
      settled('failed');
      throw new LeaseError('store-unavailable', `The ${fault.lose} was lost.`);
    }
    if (fault.fail !== undefined) {
      settled('failed', date);
      throw new LeaseError(fault.fail, `The table answered: ${fault.fail}.`);
    }
    settled('given', date);
    return answer as T;
  }

  #faultFor(call: Call): Fault {
    const place = this.#planned.findIndex(({ kind }) => kind === 'any' || kind === call.kind);
    if (place === -1) return this.script(call) ?? {};
    return this.#planned.splice(place, 1)[0]!.fault;
  }

  #date({ date }: Fault): string {
    const shiftMs = typeof date === 'number' ? date : 0;
    return new Date(this.#network.read().wallMs + shiftMs).toUTCString();
  }

  #nowMs(): number {
    return this.#network.read().monotonicMs - this.#startMs;
  }
}

function kindOf({ set, remove }: Write): CallKind {
  if (set.leaseTransitions !== undefined) return 'acquire';
  if (set.holderIdentity !== undefined) return 'renew';
  return remove.includes('holderIdentity') ? 'release' : 'other';
}

/** Rejects as a client does whose caller gives up; the request may be under way all the same. */
function whenAborted(signal: AbortSignal, settled: () => void): Promise<never> {
  return new Promise((_, reject) => {
    const abort = () => {
      settled();
      reject(new LeaseError('store-unavailable', 'Aborted.', { cause: signal.reason }));
    };
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  });
}
