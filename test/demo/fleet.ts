// The execution environments of one function, each invoked again and again, as by a schedule that
// fires far too often. Where one is lost, another is started in its place, as Lambda does.

import { setTimeout as sleep } from 'node:timers/promises';
import type { WorkEvent, WorkResult } from '../../functions/singleton-worker.ts';
import { isSkipped } from '../../src/index.ts';
import {
  type EnvironmentOptions,
  type Invocation,
  LambdaEnvironment,
} from '../support/lambda-runtime/index.ts';

/** What an environment is doing, in words, and how much that matters. */
export interface Doing {
  readonly mood: 'busy' | 'idle' | 'hurt' | 'gone';
  readonly text: string;
}

export interface Member {
  /** A, B, C, … in the order in which they were started. */
  readonly name: string;
  readonly environment: LambdaEnvironment;
  /** How often it has been invoked. */
  invocations: number;
  doing: Doing;
}

/** What each invocation gets. */
export interface Work extends WorkEvent {
  readonly timeoutMs: number;
}

export interface FleetListener {
  /** The handler threw: its error as one line. */
  failed(member: Member, message: string): void;
  /** An environment could not be started. */
  broken(error: unknown): void;
}

/** Between two invocations of one environment. */
const PAUSE_MS = 200;

export class Fleet implements AsyncDisposable {
  readonly members: Member[] = [];
  work: Work;
  readonly #options: EnvironmentOptions;
  readonly #listener: FleetListener;
  readonly #running: Promise<void>[] = [];
  readonly #waiting = new Map<Member, (invocation: Invocation) => void>();
  #stopping = false;

  constructor(options: EnvironmentOptions, work: Work, listener: FleetListener) {
    this.#options = options;
    this.work = work;
    this.#listener = listener;
  }

  async start(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#startOne()));
  }

  /** Whose acquisition it is. For display: the log stream is a part of the identity. */
  whoIs(holderIdentity: string): Member | undefined {
    return this.members.find(({ environment }) =>
      holderIdentity.includes(environment.logStreamName),
    );
  }

  /** How the next invocation of this member ends: of the one that runs, if one does. */
  async ended(member: Member): Promise<Invocation> {
    return new Promise((resolve) => this.#waiting.set(member, resolve));
  }

  /** Begins no further invocation. Those that run go on. */
  stop(): void {
    this.#stopping = true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.stop();
    const killAll = () => Promise.all(this.members.map(({ environment }) => environment.kill()));
    await killAll();
    await Promise.all(this.#running);
    // One may just have been started in the place of another.
    await killAll();
  }

  async #startOne(): Promise<void> {
    const environment = await LambdaEnvironment.start(this.#options);
    const member: Member = {
      name: String.fromCharCode('A'.charCodeAt(0) + this.members.length),
      environment,
      invocations: 0,
      doing: { mood: 'idle', text: 'started' },
    };
    this.members.push(member);
    const running = this.#invokeAgainAndAgain(member);
    this.#running.push(running.catch((error: unknown) => this.#listener.broken(error)));
  }

  async #invokeAgainAndAgain(member: Member): Promise<void> {
    const { environment } = member;
    while (!this.#isStopping() && environment.alive) {
      const { timeoutMs, ...event } = this.work;
      member.invocations += 1;
      const invocation = await environment.invoke(event, { timeoutMs });
      if (this.#isStopping()) return;
      member.doing = doingAfter(invocation, this);
      if (invocation.kind === 'failed' && !isLost(invocation)) {
        this.#listener.failed(member, invocation.error.errorMessage);
      }
      this.#waiting.get(member)?.(invocation);
      this.#waiting.delete(member);
      await sleep(PAUSE_MS);
    }
    if (!this.#isStopping()) await this.#startOne();
  }

  /** As a call, so that the compiler does not take an earlier answer for a later one. */
  #isStopping(): boolean {
    return this.#stopping;
  }
}

function doingAfter(invocation: Invocation, fleet: Fleet): Doing {
  switch (invocation.kind) {
    case 'returned': {
      const { response } = invocation;
      if (isSkipped(response)) {
        const holder = fleet.whoIs(response.holderIdentity ?? '')?.name ?? 'another';
        return { mood: 'idle', text: `asks again and again; ${holder} holds the lease` };
      }
      return isLost(invocation)
        ? { mood: 'hurt', text: 'lost its lease and stopped working' }
        : { mood: 'idle', text: 'done; the lease is released' };
    }
    case 'failed':
      return isLost(invocation)
        ? { mood: 'hurt', text: 'lost its lease and stopped working' }
        : { mood: 'hurt', text: `failed: ${invocation.error.errorMessage}` };
    case 'timed-out':
      return { mood: 'gone', text: 'killed at its time-out' };
    case 'crashed':
      return { mood: 'gone', text: 'killed (SIGKILL)' };
  }
}

/** Whether the worker says that it lost its lease, with its work undone. */
export function isLost(invocation: Invocation): boolean {
  // A request of its that was under way is taken back, and the handler throws.
  if (invocation.kind === 'failed') return invocation.error.errorType === 'LeaseError';
  if (invocation.kind !== 'returned' || isSkipped(invocation.response)) return false;
  return !(invocation.response as WorkResult).completed;
}
