// The Runtime API of one execution environment: the HTTP server that a runtime asks for
// work and tells the results.
//
// It pairs events with polls, first come first served, and passes on what the runtime
// posts. It never decides when an invocation is over, nor touches the process.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

/** What a handler threw, in the form in which the runtime reports it. */
export interface HandlerError {
  readonly errorType: string;
  readonly errorMessage: string;
  readonly trace: readonly string[];
}

/** What the runtime posted for an invocation. */
export type Answer =
  | { readonly kind: 'response'; readonly response: unknown }
  | { readonly kind: 'error'; readonly error: HandlerError };

export interface Delivery {
  readonly requestId: string;
  readonly deadlineMs: number;
  readonly functionArn: string;
  readonly body: string;
}

export interface RuntimeApiListener {
  polled(): void;
  answered(requestId: string, answer: Answer): void;
  initFailed(error: HandlerError): void;
}

const nextPath = '/2018-06-01/runtime/invocation/next';
const initErrorPath = '/2018-06-01/runtime/init/error';
const answerPath = /^\/2018-06-01\/runtime\/invocation\/([^/]+)\/(response|error)$/;

export class RuntimeApi {
  readonly #server: Server;
  readonly #polls: ServerResponse[] = [];
  readonly #deliveries: Delivery[] = [];
  #listener: RuntimeApiListener | undefined;

  static async listen(): Promise<RuntimeApi> {
    const api = new RuntimeApi();
    await new Promise<void>((resolve, reject) => {
      api.#server.once('error', reject);
      api.#server.listen(0, '127.0.0.1', resolve);
    });
    return api;
  }

  private constructor() {
    // A frozen runtime is silent for as long as the test likes, even in mid-request.
    this.#server = createServer(
      { keepAliveTimeout: 0, headersTimeout: 0, requestTimeout: 0 },
      (request, response) => {
        this.#serve(request, response).catch(() => response.destroy());
      },
    );
  }

  /** In the form of AWS_LAMBDA_RUNTIME_API. */
  get address(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `${address}:${port}`;
  }

  /** Who hears of the runtime's requests. To be called before there is a runtime. */
  report(listener: RuntimeApiListener): void {
    this.#listener = listener;
  }

  /** Hands the event to the poll that has waited longest, or to the next one to come. */
  deliver(delivery: Delivery): void {
    this.#deliveries.push(delivery);
    this.#pair();
  }

  close(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    if (request.method === 'GET' && path === nextPath) {
      this.#poll(response);
      return;
    }
    const body = await text(request);
    const [, requestId, kind] = answerPath.exec(path) ?? [];
    if (path === initErrorPath) {
      this.#listener?.initFailed(JSON.parse(body) as HandlerError);
    } else if (requestId !== undefined) {
      this.#listener?.answered(
        decodeURIComponent(requestId),
        kind === 'response'
          ? { kind: 'response', response: JSON.parse(body) as unknown }
          : { kind: 'error', error: JSON.parse(body) as HandlerError },
      );
    } else {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(202, { 'content-type': 'application/json' }).end('{"status":"OK"}');
  }

  #poll(response: ServerResponse): void {
    this.#polls.push(response);
    response.once('close', () => {
      const at = this.#polls.indexOf(response);
      if (at >= 0) this.#polls.splice(at, 1);
    });
    // The listener may stop the process here, or deliver: the poll waits already.
    this.#listener?.polled();
    this.#pair();
  }

  #pair(): void {
    while (this.#polls.length > 0 && this.#deliveries.length > 0) {
      const poll = this.#polls.shift();
      const delivery = this.#deliveries.shift();
      if (poll === undefined || delivery === undefined) return;
      poll
        .writeHead(200, {
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(delivery.body),
          'lambda-runtime-aws-request-id': delivery.requestId,
          'lambda-runtime-deadline-ms': String(delivery.deadlineMs),
          'lambda-runtime-invoked-function-arn': delivery.functionArn,
        })
        .end(delivery.body);
    }
  }
}
