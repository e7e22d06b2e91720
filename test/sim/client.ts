// One process's client of the table, over a network on which anything can happen to a call.

import type { Condition } from '../../src/condition.ts';
import { LeaseError } from '../../src/errors.ts';
import { asText, type Item } from '../../src/lease.ts';
import type {
  ReadCall,
  RemoveAnswer,
  ScanAnswer,
  ScanCall,
  StoreCall,
  WatchableStore,
  WriteAnswer,
} from '../../src/store.ts';
import type { Write } from '../../src/writes.ts';
import { shortName, type Happening } from './history.ts';
import { EPOCH_MS, type Machine } from './machine.ts';
import { operationOf, type Sender, type Table } from './table.ts';
import type { VirtualTime } from './time.ts';
import type { Luck, WeatherStation } from './weather.ts';

export interface Network {
  readonly time: VirtualTime;
  readonly table: Table;
  readonly weather: WeatherStation;
  readonly record: (happening: Happening) => void;
  /** Until when something that was sent may still be on its way. */
  latestMs: number;
}

type CarryOut<T> = (luck: Luck, sender: Sender) => Promise<T>;

export interface Transaction {
  readonly lease: string;
  readonly write: Write;
  /** Its ClientRequestToken. */
  readonly request: string;
  readonly call: StoreCall;
  readonly onApplied: () => void;
}

/** A transaction that meets another write of an item is told so. */
const CONFLICT_MS = 3;
/** A client that resends waits so long for the first answer. */
const RESEND_AFTER_MS = 80;
const REFUSAL: Readonly<Record<string, string>> = {
  'store-unavailable': 'The table answered 500, or throttled.',
  'access-denied': 'The table answered: access denied.',
};

export class Client implements WatchableStore {
  readonly description = 'the simulated table';
  readonly tableName = 'leases';
  readonly #network: Network;
  readonly #host: string;
  readonly #machine: Machine;
  #calls = 0;
  #open = 0;

  constructor(network: Network, host: string, machine: Machine) {
    this.#network = network;
    this.#host = host;
    this.#machine = machine;
  }

  /** Calls that have neither been answered nor ended by their caller, deaf ones left aside. */
  get open(): number {
    return this.#open;
  }

  read(lease: string, call: ReadCall): Promise<Item | undefined> {
    return this.#call(call, false, async ({ staleMs }) => {
      const { table, time } = this.#network;
      return call.consistent || staleMs === 0
        ? table.peek(lease)
        : table.asOf(lease, time.nowMs - staleMs);
    });
  }

  write(lease: string, write: Write, call: StoreCall): Promise<WriteAnswer> {
    const { table, record, time } = this.#network;
    const operation = operationOf(write);
    if (operation === 'renew' || operation === 'release') {
      const holder = write.set.holderIdentity;
      const name = holder !== undefined && 'S' in holder ? holder.S : undefined;
      record({
        kind: 'sent',
        atMs: time.nowMs,
        by: this.#machine.name,
        lease,
        operation,
        holder: name === undefined ? undefined : shortName(name),
      });
    }
    return this.#call(call, true, async ({ hidden }, sender) => {
      const answer = await table.write(lease, write, sender);
      return answer.kind === 'refused' && hidden ? { ...answer, item: undefined } : answer;
    });
  }

  remove(lease: string, condition: Condition, call: StoreCall): Promise<RemoveAnswer> {
    return this.#call(call, true, async ({ hidden }, sender) => {
      const answer = await this.#network.table.remove(lease, condition, sender);
      return answer.kind === 'refused' && hidden ? { ...answer, item: undefined } : answer;
    });
  }

  scan(call: ScanCall): Promise<ScanAnswer> {
    return this.#call(call, false, () => this.#network.table.scan(call));
  }

  /** A transaction of the user's own, whose last operation is the lease's. */
  transact(transaction: Transaction): Promise<WriteAnswer | 'conflict'> {
    const { table, time } = this.#network;
    const { lease, write, request, call, onApplied } = transaction;
    return this.#call(call, true, async ({ hidden }, sender) => {
      if (time.nowMs - table.changedAtMs(lease) < CONFLICT_MS) return 'conflict';
      const answer = await table.transact(lease, write, { request, sender, onApplied });
      return answer.kind === 'refused' && hidden ? { ...answer, item: undefined } : answer;
    });
  }

  /** A call of the user's own, over the same network: nothing is told of it but what it did. */
  tell(act: () => void): void {
    const { time } = this.#network;
    const luck = this.#luck(true);
    const lateMs = luck.lateMs ?? 0;
    this.#underWay(luck);
    if (luck.lose !== 'request') time.after(luck.requestMs + lateMs, act);
    if (luck.againMs !== undefined) time.after(luck.requestMs + lateMs + luck.againMs, act);
  }

  #luck(writes: boolean): Luck {
    const { weather, time } = this.#network;
    const place = this.#calls++;
    return weather.luckOf({ host: this.#host, place, writes, nowMs: time.nowMs });
  }

  #call<T>(call: StoreCall, writes: boolean, carryOut: CarryOut<T>): Promise<T> {
    const { time } = this.#network;
    const luck = this.#luck(writes);
    const sender = { by: this.#machine.name, sentAtMs: time.nowMs };
    const { signal } = call;
    return new Promise<T>((resolve, reject) => {
      let over = false;
      const settle = (act: () => void) => {
        if (over) return;
        over = true;
        signal.removeEventListener('abort', aborted);
        if (!luck.deaf) this.#open -= 1;
        act();
      };
      const aborted = () =>
        settle(() =>
          reject(new LeaseError('store-unavailable', 'Aborted.', { cause: signal.reason })),
        );
      if (!luck.deaf) {
        this.#open += 1;
        signal.addEventListener('abort', aborted);
      }
      const told = (act: () => void) =>
        time.after(luck.answerMs, () => this.#machine.run(() => settle(act)));
      this.#send({ call, luck, sender, carryOut, told, resolve, reject });
      if (signal.aborted) aborted();
    });
  }

  #send<T>(under: {
    readonly call: StoreCall;
    readonly luck: Luck;
    readonly sender: Sender;
    readonly carryOut: CarryOut<T>;
    readonly told: (act: () => void) => void;
    readonly resolve: (answer: T) => void;
    readonly reject: (error: LeaseError) => void;
  }): void {
    const { call, luck, sender, carryOut, told, resolve, reject } = under;
    const { time } = this.#network;
    const answered = call.attempt();
    const failed = (code: 'store-unavailable' | 'access-denied', message: string) => {
      if (!luck.silent) told(() => reject(new LeaseError(code, message)));
    };
    const unheard = () => void carryOut(luck, sender).catch(() => undefined);
    this.#underWay(luck);
    if (luck.lateMs !== undefined) {
      time.after(luck.requestMs + luck.lateMs, unheard);
      failed('store-unavailable', 'The connection was reset.');
      return;
    }
    time.after(luck.requestMs, () => {
      if (luck.lose === 'request') {
        failed('store-unavailable', 'The connection was reset.');
        return;
      }
      const date = this.#date(luck);
      if (luck.refused !== undefined) {
        const { refused: code } = luck;
        told(() => {
          answered(date);
          reject(new LeaseError(code, REFUSAL[code] ?? code));
        });
        return;
      }
      const done = (answer: T) => {
        if (luck.againMs !== undefined) time.after(luck.againMs, unheard);
        if (luck.lose === 'answer') {
          failed('store-unavailable', 'The answer was lost.');
        } else if (luck.resent) {
          const again = { ...under, luck: { ...luck, resent: false }, sender };
          time.after(RESEND_AFTER_MS, () => this.#machine.run(() => this.#send(again)));
        } else {
          told(() => {
            answered(date);
            this.#acknowledge(answer);
            resolve(answer);
          });
        }
      };
      carryOut(luck, sender).then(done, (error: unknown) =>
        told(() => {
          answered(date);
          reject(error as LeaseError);
        }),
      );
    });
  }

  /** Until when something of this call may still be on its way. */
  #underWay({ requestMs, lateMs = 0, againMs = 0, answerMs }: Luck): void {
    const latestMs = this.#network.time.nowMs + requestMs + lateMs + againMs + answerMs;
    this.#network.latestMs = Math.max(this.#network.latestMs, latestMs + RESEND_AFTER_MS);
  }

  #acknowledge(answer: unknown): void {
    if (typeof answer !== 'object' || answer === null || !('item' in answer)) return;
    const { kind, item } = answer as { kind?: string; item: Item | undefined };
    const lease = asText(item?.['lease']);
    const version = item?.['version'];
    if (kind !== 'applied' || lease === undefined || version === undefined) return;
    this.#network.record({
      kind: 'acknowledged',
      atMs: this.#network.time.nowMs,
      by: this.#machine.name,
      lease,
      version: 'N' in version ? Number(version.N) : 0,
    });
  }

  #date({ dateMs }: Luck): string | undefined {
    if (dateMs === undefined) return undefined;
    return new Date(EPOCH_MS + this.#network.time.nowMs + dateMs).toUTCString();
  }
}
