// What can go wrong between a client and the store, and which request it happens to.
//
// "Before" and "after" are before and after the store has applied the request. A
// client cannot tell them apart, and that is why both are here.
//
//   P1. Faults strike in the order they were injected.
//   P2. A request meets at most one fault that ends it (an error, a reset, a black
//       hole, a truncated answer). Beside it, it may meet one of each other kind.

export type When = 'before' | 'after';

export type Fault =
  /** Held up for `ms` on the way there, or back. */
  | { readonly kind: 'delay'; readonly when: When; readonly ms: number }
  /** Held up until the handle's `release()`. */
  | { readonly kind: 'hold'; readonly when: When }
  /** Never answered. The connection stays open. */
  | { readonly kind: 'black-hole'; readonly when: When }
  /** The connection is reset. */
  | { readonly kind: 'reset'; readonly when: When }
  /** Answered with an error, before the store saw the request unless told otherwise. */
  | { readonly kind: 'error'; readonly error: ErrorType; readonly when?: When }
  /** Half an answer, then a reset. */
  | { readonly kind: 'truncate' }
  /** The answer's Date header tells another time, or there is none. */
  | { readonly kind: 'date-shift'; readonly ms: number }
  | { readonly kind: 'date-removed' }
  /** A failed condition does not tell the old item: some servers never do. */
  | { readonly kind: 'strip-item' };

export type ErrorType =
  | 'InternalServerError'
  | 'ThrottlingException'
  | 'ProvisionedThroughputExceededException'
  | 'TransactionConflictException'
  | 'AccessDeniedException'
  | 'ResourceNotFoundException';

/** The fields of a request that tests look at; the others are there as well. */
export interface RequestBody {
  readonly TableName?: string;
  readonly Key?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly Item?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly ReturnValuesOnConditionCheckFailure?: string;
  readonly ConsistentRead?: boolean;
  readonly [other: string]: unknown;
}

export interface Injection {
  readonly fault: Fault;
  /** 'UpdateItem', say. Every operation, if absent. */
  readonly operation?: string;
  readonly match?: (body: RequestBody) => boolean;
  /** How many matching requests it strikes: 1, if absent; `Infinity` is allowed. */
  readonly times?: number;
}

export interface FaultHandle {
  /** Requests it has struck; a request that is being held counts. */
  readonly hits: number;
  /** Resolves when it has struck `hits` requests. */
  reached(hits?: number): Promise<void>;
  /** Strikes no further request. One that is held stays held. */
  remove(): void;
  /** Lets all held requests go, and strikes no further one. */
  release(): void;
}

/** A fault that a request is going to meet. */
export interface Strike {
  readonly fault: Fault;
  readonly released: Promise<void>;
  /** To be called when the request meets it. */
  struck(): void;
}

export class FaultQueue {
  #faults: InjectedFault[] = [];

  inject(injection: Injection): FaultHandle {
    const fault = new InjectedFault(injection);
    this.#faults.push(fault);
    return fault;
  }

  /** The faults this request will meet: they are used up now, in order (P1, P2). */
  take(operation: string, body: RequestBody): readonly Strike[] {
    const taken = new Map<string, InjectedFault>();
    for (const fault of this.#faults) {
      if (!taken.has(fault.slot) && fault.wants(operation, body)) taken.set(fault.slot, fault);
    }
    for (const fault of taken.values()) fault.left -= 1;
    return [...taken.values()];
  }

  /** Removes them all. Used-up ones are among them: they may still be holding a request. */
  clear(): void {
    for (const fault of this.#faults) fault.release();
    this.#faults = [];
  }
}

class InjectedFault implements FaultHandle, Strike {
  readonly fault: Fault;
  /** A request meets one fault for each slot (P2). */
  readonly slot: string;
  left: number;
  hits = 0;
  readonly released: Promise<void>;
  #letGo: () => void = () => undefined;
  readonly #injection: Injection;
  #waiting: { hits: number; resolve: () => void }[] = [];

  constructor(injection: Injection) {
    this.fault = injection.fault;
    this.slot = slotOf(injection.fault);
    this.left = injection.times ?? 1;
    this.#injection = injection;
    this.released = new Promise((resolve) => (this.#letGo = resolve));
  }

  wants(operation: string, body: RequestBody): boolean {
    const { operation: wanted, match } = this.#injection;
    if (this.left <= 0 || (wanted !== undefined && wanted !== operation)) return false;
    return match === undefined || match(body);
  }

  struck(): void {
    this.hits += 1;
    this.#waiting = this.#waiting.filter(({ hits, resolve }) => {
      if (hits <= this.hits) resolve();
      return hits > this.hits;
    });
  }

  async reached(hits = 1): Promise<void> {
    if (this.hits >= hits) return;
    await new Promise<void>((resolve) => this.#waiting.push({ hits, resolve }));
  }

  remove(): void {
    this.left = 0;
  }

  release(): void {
    this.remove();
    this.#letGo();
  }
}

function slotOf(fault: Fault): string {
  switch (fault.kind) {
    case 'delay':
    case 'hold':
      return `${fault.kind} ${fault.when}`;
    case 'date-shift':
    case 'date-removed':
      return 'date';
    case 'strip-item':
      return fault.kind;
    case 'black-hole':
    case 'reset':
    case 'error':
    case 'truncate':
      return 'end';
  }
}

/** Where a request meets the fault; undefined for those that only change the answer. */
export function whenOf(fault: Fault): When | undefined {
  if (fault.kind === 'error') return fault.when ?? 'before';
  return 'when' in fault ? fault.when : undefined;
}
