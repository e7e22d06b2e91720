// One record in a store: bounded calls that always settle, and records that can be used.

import { bounded } from './bounded.ts';
import type { ClockCheck } from './clock-check.ts';
import type { Clock } from './clock.ts';
import type { Condition } from './condition.ts';
import { asLeaseError, LeaseError } from './errors.ts';
import { readLease, type Item, type LeaseRecord } from './lease.ts';
import type { LeaseKind } from './schema.ts';
import { canRemove, type LeaseStore, type StoreCall } from './store.ts';
import type { Moment, Timeline } from './timeline.ts';
import type { Write } from './writes.ts';

/** What a lock needs of the world. */
export interface LockWorld {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly timeline: Timeline;
  readonly clockCheck: ClockCheck;
}

export interface LeaseAccessOptions {
  /** `namespace/name`. */
  readonly lease: string;
  readonly kind: LeaseKind;
  readonly requestTimeoutMs: number;
}

export type Written =
  | { readonly kind: 'applied'; readonly record: LeaseRecord }
  /** The record is undefined when there is none. */
  | { readonly kind: 'refused'; readonly record: LeaseRecord | undefined }
  | { readonly kind: 'failed'; readonly error: LeaseError };

/** As Written, but what was deleted shows no record. */
export type Removed = Exclude<Written, { kind: 'applied' }> | { readonly kind: 'applied' };

export class LeaseAccess {
  readonly #options: LeaseAccessOptions;
  readonly #world: LockWorld;
  #lastAnswer: Moment | undefined;
  #strained = false;

  constructor(options: LeaseAccessOptions, world: LockWorld) {
    this.#options = options;
    this.#world = world;
  }

  /** When the store last told something, in the timeline's elapsed ms. */
  get lastAnswerAtMs(): number | undefined {
    return this.#lastAnswer?.elapsedMs;
  }

  /**
   * Whether the last call got more than one answer: the store's client had to ask again, as it does
   * when it is throttled. A store out of reach gives none.
   */
  get strained(): boolean {
    return this.#strained;
  }

  /** Never rejects. A refusal that does not show the record costs a consistent read more. */
  async write(write: Write, timeoutMs: number): Promise<Written> {
    const { lease } = this.#options;
    try {
      const answer = await this.#call('write', timeoutMs, (call) =>
        this.#world.store.write(lease, write, call),
      );
      if (answer.kind === 'applied') return { kind: 'applied', record: this.#parse(answer.item) };
      // Missing, or not shown: a server need not return it.
      const record = answer.item === undefined ? await this.read(true) : this.#parse(answer.item);
      return { kind: 'refused', record };
    } catch (error) {
      return { kind: 'failed', error: asLeaseError(error) };
    }
  }

  /** Deletes the record if the condition holds. Never rejects. */
  async remove(condition: Condition, timeoutMs: number): Promise<Removed> {
    const { lease } = this.#options;
    const { store } = this.#world;
    try {
      if (!canRemove(store)) {
        throw new LeaseError('invalid-configuration', `${store.description} cannot delete.`);
      }
      const answer = await this.#call('delete', timeoutMs, (call) =>
        store.remove(lease, condition, call),
      );
      if (answer.kind === 'applied') return answer;
      const record = answer.item === undefined ? await this.read(true) : this.#parse(answer.item);
      return { kind: 'refused', record };
    } catch (error) {
      return { kind: 'failed', error: asLeaseError(error) };
    }
  }

  /** Undefined when there is no record. Rejects with a LeaseError. */
  async read(consistent: boolean): Promise<LeaseRecord | undefined> {
    const { lease, requestTimeoutMs } = this.#options;
    const item = await this.#call('read', requestTimeoutMs, (call) =>
      this.#world.store.read(lease, { ...call, consistent }),
    );
    return item === undefined ? undefined : this.#parse(item);
  }

  async #call<T>(
    verb: string,
    timeoutMs: number,
    send: (call: StoreCall) => Promise<T>,
  ): Promise<T> {
    const { clock, store, clockCheck, timeline } = this.#world;
    const what = `Lease "${this.#options.lease}": the ${verb} in ${store.description}`;
    const { attempt, told } = clockCheck.call();
    let answers = 0;
    const counted = () => {
      const answered = attempt();
      return (date: string | undefined) => {
        answers += 1;
        this.#strained = answers > 1;
        answered(date);
      };
    };
    this.#strained = false;
    const answer = await bounded(clock, timeoutMs, what, (signal) =>
      send({ signal, attempt: counted }),
    );
    told();
    this.#lastAnswer = timeline.look();
    return answer;
  }

  #parse(item: Item): LeaseRecord {
    const { lease, kind } = this.#options;
    const record = readLease(lease, item);
    if (record.corrupt !== undefined) {
      throw new LeaseError('corrupt-record', record.corrupt, { record });
    }
    if (record.raw['kind'] !== undefined && record.kind !== kind) {
      throw new LeaseError(
        'kind-mismatch',
        `Lease "${lease}" is of kind ${JSON.stringify(record.raw['kind'])}, not "${kind}": one ` +
          'name has one kind. Choose another name.',
        { record },
      );
    }
    return record;
  }
}
