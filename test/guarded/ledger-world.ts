// Environments that run the ledger's job on virtual time against a real table, and what happens to
// them: deaths and freezes at any request, and whatever the proxy does to answers.
//
// Time passes only while no request is under way, so that virtual time-outs mean what they say.

import { setTimeout as sleep } from 'node:timers/promises';
import type { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { Clock, Timer } from '../../src/clock.ts';
import { isLeaseError } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { isSkipped } from '../../src/refusal.ts';
import { scheduledSingleton } from '../../src/scheduled-singleton.ts';
import { silent } from '../election/harness.ts';
import { type Site, randomOf } from '../integration/fixture.ts';
import { testClient } from '../support/dynamodb.ts';
import type { Fault } from '../support/fault-proxy.ts';
import { post, type Way } from './ledger-job.ts';

export type Doom = 'dies' | 'freezes';

/** What happens to one delivery, at its request with this number, before it is sent or after. */
export interface Plan {
  readonly doom: Doom;
  readonly request: number;
  readonly when: 'before' | 'after';
  readonly forMs: number;
}

/** How a delivery ended: what the handler came to, or `died`. */
export type Ending =
  'ran' | 'died' | 'tick done' | 'newer tick done' | 'held' | `failed: ${string}`;

/** What the network does to one request of anybody. */
const NETWORK: readonly Fault[] = [
  { kind: 'reset', when: 'before' },
  { kind: 'reset', when: 'after' },
  { kind: 'error', error: 'InternalServerError', when: 'before' },
  { kind: 'error', error: 'InternalServerError', when: 'after' },
  { kind: 'error', error: 'ThrottlingException' },
  { kind: 'error', error: 'TransactionConflictException' },
  { kind: 'truncate' },
  { kind: 'strip-item' },
];

/** A process that can stand still, or be gone: its timers do what it does. */
class Machine implements Clock {
  dead = false;
  thawed: Promise<void> | undefined;
  readonly #time: Clock;

  constructor(time: Clock) {
    this.#time = time;
  }

  read() {
    return this.#time.read();
  }

  setTimer(delayMs: number, run: () => void): Timer {
    let cancelled = false;
    const timer = this.#time.setTimer(delayMs, () => {
      void (this.thawed ?? Promise.resolve()).then(() => {
        if (!cancelled && !this.dead) run();
      });
    });
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  freeze(ms: number): Promise<void> {
    this.thawed = new Promise<void>((resolve) => this.#time.setTimer(ms, resolve)).then(() => {
      this.thawed = undefined;
    });
    return this.thawed;
  }
}

export class LedgerWorld {
  readonly clock = new FakeClock(Math.floor(Date.now() / 60_000) * 60_000);
  readonly random: () => number;
  readonly #site: Site;
  readonly #way: Way;
  #underWay = 0;

  constructor(site: Site, way: Way, seed: number) {
    this.#site = site;
    this.#way = way;
    this.random = randomOf(seed);
    this.hideServerTime();
  }

  /** It is not the time of this world. */
  hideServerTime(): void {
    this.#site.proxy.inject({ fault: { kind: 'date-removed' }, times: Infinity });
  }

  get nowMs(): number {
    return this.clock.read().wallMs;
  }

  /** Does something to one request that is to come. */
  disturbNetwork(): void {
    const fault = NETWORK[Math.floor(this.random() * NETWORK.length)]!;
    this.#site.proxy.inject({ fault });
  }

  /** A new environment gets the event of this tick. */
  async deliver(tickMs: number, plan?: Plan): Promise<Ending> {
    const machine = new Machine(this.clock);
    const client = testClient(this.#site.proxy.endpoint, {
      maxAttempts: this.random() < 0.5 ? 1 : 2,
      retryMode: 'standard',
    });
    const died = new Promise<Ending>((resolve) => this.#lead(client, machine, plan, resolve));
    const { tableName } = this.#site.table;
    const { namespace, name } = this.#site;
    const handler = scheduledSingleton(
      {
        ...{ client, tableName, namespace, name, logger: silent, clock: machine },
        tick: (event: { readonly at: number }) => event.at,
      },
      (_event: { readonly at: number }, { lease }) => post(client, tableName, lease, this.#way),
    );
    const deadlineMs = this.nowMs + 10_000;
    const context = { getRemainingTimeInMillis: () => deadlineMs - this.nowMs };
    const ended = handler({ at: tickMs }, context).then(
      (result): Ending => (isSkipped(result) ? (result.reason as Ending) : 'ran'),
      (error: unknown): Ending => `failed: ${isLeaseError(error) ? error.code : String(error)}`,
    );
    return Promise.race([ended, died]);
  }

  #lead(
    client: DynamoDBClient,
    machine: Machine,
    plan: Plan | undefined,
    die: (ending: Ending) => void,
  ): void {
    let requests = 0;
    const meet = async (when: Plan['when'], request: number) => {
      if (plan?.request !== request || plan.when !== when) return;
      if (plan.doom === 'freezes') return machine.freeze(plan.forMs);
      machine.dead = true;
      die('died');
      return new Promise<never>(() => undefined);
    };
    client.middlewareStack.add(
      (next) => async (args) => {
        const request = ++requests;
        await meet('before', request);
        this.#underWay += 1;
        try {
          return await next(args);
        } finally {
          this.#underWay -= 1;
          await meet('after', request);
        }
      },
      { step: 'deserialize', priority: 'low', name: 'doom' },
    );
  }

  /** Lets time pass. */
  async pass(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    while (this.nowMs < endMs) {
      if (this.#underWay > 0) await sleep(1);
      else await this.clock.advance(Math.min(250, endMs - this.nowMs));
    }
  }
}
