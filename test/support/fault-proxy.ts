// A proxy between an SDK and a DynamoDB-compatible server that counts what passes
// and does to it what networks and services do.
//
// It speaks plain HTTP, so that a process of its own, a Lambda runtime say, can be
// pointed at it. It adds `ReturnConsumedCapacity` to what it forwards: signatures
// would break, and the servers it is for do not check them.
//
//   P3. Once a request has arrived whole, it goes its way whether or not its client
//       still waits: giving up on a write does not stop the write.
//   P4. Between two faults the proxy adds none of its own: it keeps idle connections
//       open, and opens a new one to the store for each request.

import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { errorAnswer, forward, shape } from './fault-proxy-answers.ts';
import {
  FaultQueue,
  type FaultHandle,
  type Injection,
  type Strike,
  type When,
  whenOf,
} from './fault-proxy-faults.ts';
import {
  type Answer,
  chargeTo,
  type Counts,
  errorTypeOf,
  type Exchange,
  Ledger,
  parseObject,
} from './fault-proxy-ledger.ts';

export type * from './fault-proxy-faults.ts';
export type { Counts, Exchange } from './fault-proxy-ledger.ts';

export interface FaultProxy extends AsyncDisposable {
  readonly endpoint: string;
  /** What arrived since the last `reset()`, in order of arrival. */
  readonly requests: readonly Exchange[];
  /** Added to every request, on the way there and again on the way back. */
  latencyMs: number;
  /** Totals of `requests`, or of those of one operation. */
  counts(operation?: string): Counts;
  /** Forgets what was recorded. Faults and latency stay. */
  reset(): void;
  inject(injection: Injection): FaultHandle;
  /** Removes every fault that is not yet used up, and lets what they hold go. */
  clearFaults(): void;
  /** The store is down: resets every connection, and refuses new ones. */
  refuseConnections(): Promise<void>;
  /** The store is up again, on the same port. */
  acceptConnections(): Promise<void>;
  /** Connections that exist now stay open and carry nothing any more; new ones work. */
  muteSockets(): void;
  /** The store has moved: what arrives from now on goes there. */
  retarget(target: string): void;
  stop(): Promise<void>;
}

/** Starts a proxy to `target`, an endpoint such as "http://127.0.0.1:8000". */
export async function startFaultProxy(target: string): Promise<FaultProxy> {
  const proxy = new Proxy(new URL(target));
  await proxy.acceptConnections();
  return proxy;
}

/** How a request ends, if not with an answer. */
type Ending = 'silence' | 'reset' | Answer;

class Proxy implements FaultProxy {
  latencyMs = 0;
  #target: URL;
  readonly #server: Server;
  readonly #ledger = new Ledger();
  readonly #faults = new FaultQueue();
  readonly #sockets = new Set<Socket>();
  readonly #muted = new WeakSet<Socket>();
  readonly #stopping = new AbortController();
  readonly #stopped = once(this.#stopping.signal, 'abort');
  #port: number | undefined;

  constructor(target: URL) {
    this.#target = target;
    this.#server = createServer({ keepAliveTimeout: 0, requestTimeout: 0 });
    this.#server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('request', (request, response) => {
      this.#serve(request, response).catch((error: unknown) => {
        if (!this.#stopping.signal.aborted) throw error;
      });
    });
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port!}`;
  }

  get requests(): readonly Exchange[] {
    return this.#ledger.exchanges;
  }

  counts(operation?: string): Counts {
    return this.#ledger.counts(operation);
  }

  reset(): void {
    this.#ledger.reset();
  }

  inject(injection: Injection): FaultHandle {
    return this.#faults.inject(injection);
  }

  clearFaults(): void {
    this.#faults.clear();
  }

  retarget(target: string): void {
    this.#target = new URL(target);
  }

  async refuseConnections(): Promise<void> {
    if (!this.#server.listening) return;
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#sockets) socket.resetAndDestroy();
    await closed;
  }

  async acceptConnections(): Promise<void> {
    if (this.#server.listening) return;
    for (let attempt = 1; ; attempt++) {
      // Below the range the kernel takes for outgoing connections: it could lend the
      // port to one of them while we refuse, even to one that is aimed at us.
      const port = this.#port ?? randomInt(20_000, 32_768);
      try {
        await listen(this.#server, port);
        this.#port = port;
        return;
      } catch (error) {
        if (attempt === 50) throw error;
        if (this.#port !== undefined) await sleep(20);
      }
    }
  }

  muteSockets(): void {
    for (const socket of this.#sockets) this.#muted.add(socket);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.refuseConnections();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { socket } = request;
    const payload = await buffer(request).catch(() => undefined);
    // The client left before its request had arrived whole.
    if (payload === undefined) return;
    const target = request.headers['x-amz-target'];
    const operation =
      typeof target === 'string'
        ? target.slice(target.indexOf('.') + 1)
        : `${request.method} ${request.url}`;
    const body = parseObject(payload);
    const exchange = this.#ledger.open(operation, body);
    if (this.#muted.has(socket)) return;

    const strikes = this.#faults.take(operation, body);
    exchange.faults = strikes.map(({ fault }) => fault.kind);
    await this.#pause(this.latencyMs);
    let ending = await this.#meet(strikes, 'before');
    if (ending === undefined) {
      exchange.forwarded = true;
      const answer = await forward(
        this.#target,
        request,
        operation,
        payload,
        this.#stopping.signal,
      );
      if (answer !== undefined) chargeTo(exchange, answer);
      ending = (await this.#meet(strikes, 'after')) ?? answer ?? 'reset';
    }
    await this.#pause(this.latencyMs);

    // What follows happens to the client's connection, if there still is one (P3).
    if (ending === 'silence' || this.#muted.has(socket) || socket.destroyed) return;
    if (ending === 'reset') {
      socket.resetAndDestroy();
      return;
    }
    const answer = shape(ending, strikes);
    const cut = strikes.find(({ fault }) => fault.kind === 'truncate');
    response.sendDate = false;
    response.writeHead(answer.status, { ...answer.headers, 'content-length': answer.body.length });
    if (cut === undefined) {
      exchange.status = answer.status;
      exchange.errorType = errorTypeOf(parseObject(answer.body));
      response.end(answer.body);
      return;
    }
    cut.struck();
    response.write(answer.body.subarray(0, answer.body.length / 2), () => socket.resetAndDestroy());
  }

  /** Waits as long as the faults here say, and tells how the request ends here, if it does. */
  async #meet(strikes: readonly Strike[], when: When): Promise<Ending | undefined> {
    let ending: Ending | undefined;
    for (const strike of strikes) {
      const { fault } = strike;
      if (whenOf(fault) !== when) continue;
      strike.struck();
      if (fault.kind === 'delay') await this.#pause(fault.ms);
      else if (fault.kind === 'hold') await this.#orStopped(strike.released);
      else if (fault.kind === 'error') ending = errorAnswer(fault.error);
      else ending = fault.kind === 'reset' ? 'reset' : 'silence';
    }
    return ending;
  }

  async #pause(ms: number): Promise<void> {
    if (ms > 0) await sleep(ms, undefined, { signal: this.#stopping.signal });
  }

  async #orStopped(promise: Promise<void>): Promise<void> {
    await Promise.race([promise, this.#stopped]);
    this.#stopping.signal.throwIfAborted();
  }
}

async function listen(server: Server, port: number): Promise<void> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
}
