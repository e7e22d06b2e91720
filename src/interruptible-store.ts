// A store whose calls end when their caller can wait no longer: a process that is told to stop, an
// invocation whose handler has returned. An interrupted call leaves no timer behind; what became
// of it nobody can tell (L7).

import type { Condition } from './condition.ts';
import { LeaseError } from './errors.ts';
import type { Item } from './lease.ts';
import {
  canRemove,
  type LeaseStore,
  type ReadCall,
  type RemovableStore,
  type RemoveAnswer,
  type StoreCall,
  type WriteAnswer,
} from './store.ts';
import type { Write } from './writes.ts';

export class InterruptibleStore implements RemovableStore {
  readonly #store: LeaseStore;
  readonly #underWay = new Set<() => void>();
  #interrupted = false;

  constructor(store: LeaseStore) {
    this.#store = store;
  }

  get description(): string {
    return this.#store.description;
  }

  /** Ends the calls that are under way, and every further one, until `resume`. */
  interrupt(): void {
    this.#interrupted = true;
    for (const end of this.#underWay) end();
  }

  resume(): void {
    this.#interrupted = false;
  }

  read(lease: string, call: ReadCall): Promise<Item | undefined> {
    return this.#run(call, (own) => this.#store.read(lease, { ...call, ...own }));
  }

  write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer> {
    return this.#run(call, (own) => this.#store.write(lease, write, own));
  }

  remove(lease: string, condition: Condition, call: StoreCall): Promise<RemoveAnswer> {
    const store = this.#store;
    if (!canRemove(store)) {
      throw new LeaseError('invalid-configuration', `${store.description} cannot delete.`);
    }
    return this.#run(call, (own) => store.remove(lease, condition, own));
  }

  async #run<T>(call: StoreCall, send: (own: StoreCall) => Promise<T>): Promise<T> {
    const interruption = new LeaseError('store-unavailable', 'The call was interrupted.');
    if (this.#interrupted) throw interruption;
    const over = new AbortController();
    const forward = () => over.abort(call.signal.reason);
    if (call.signal.aborted) forward();
    call.signal.addEventListener('abort', forward);
    let end: () => void = () => undefined;
    const ended = new Promise<never>((_, reject) => {
      end = () => {
        reject(interruption);
        over.abort(interruption);
      };
    });
    this.#underWay.add(end);
    try {
      return await Promise.race([send({ signal: over.signal, attempt: call.attempt }), ended]);
    } finally {
      this.#underWay.delete(end);
      call.signal.removeEventListener('abort', forward);
    }
  }
}
