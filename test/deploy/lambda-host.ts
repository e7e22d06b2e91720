// Where the deployed functions run: environments with Lambda's own runtime, behind the address to
// which the emulator sends each invocation instead of running it itself.
//
//   H1. An invocation gets an idle environment of its function, or else a new one; never a busy
//       one, and never one that was started with other code or settings.
//   H2. Its deadline is the function's time-out from when it came: then the environment is killed.
//   H3. What EventBridge Scheduler fills into a schedule's input, and the emulator does not, is
//       filled in here: the scheduled time.
//   H4. What the handler returned is the answer. A function error is an answer with status 500:
//       the emulator makes of that what Lambda makes of it, retries and failure queues included.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import {
  type Invocation,
  type InvokeOptions,
  LambdaEnvironment,
} from '../support/lambda-runtime/index.ts';

/** What is needed to run a function as it is deployed at this moment. */
export interface DeployedFunction {
  readonly taskRoot: string;
  readonly handler: string;
  readonly env: Readonly<Record<string, string>>;
  readonly timeoutMs: number;
}

export type Describe = (functionName: string) => Promise<DeployedFunction>;

interface Member {
  readonly functionName: string;
  /** Code and settings as text: the same for the same (H1). */
  readonly version: string;
  readonly environment: LambdaEnvironment;
  busy: boolean;
}

export class LambdaHost implements AsyncDisposable {
  /** Lines that the functions printed, each with its function's name, for when a test fails. */
  readonly output: string[] = [];

  readonly #server: Server;
  readonly #members = new Set<Member>();
  #describe: Describe | undefined;
  #closed = false;

  static async start(): Promise<LambdaHost> {
    const host = new LambdaHost();
    host.#server.listen(0, '127.0.0.1');
    await once(host.#server, 'listening');
    return host;
  }

  private constructor() {
    this.#server = createServer((request, response) => {
      void this.#answer(request, response);
    });
    // Closing idle connections would now and then meet a request on its way.
    this.#server.keepAliveTimeout = 0;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/`;
  }

  /** Must come before the first invocation: only after a deployment are there functions. */
  serve(describe: Describe): void {
    this.#describe = describe;
  }

  /** Those that are alive. */
  environments(functionName: string): readonly LambdaEnvironment[] {
    return [...this.#members]
      .filter((member) => member.functionName === functionName && member.environment.alive)
      .map(({ environment }) => environment);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    const closed = once(this.#server, 'close');
    this.#server.close();
    this.#server.closeAllConnections();
    await Promise.all([...this.#members].map(({ environment }) => environment.kill()));
    await closed;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const functionName = header(request, 'x-amzn-lambda-function-name');
    const requestId = header(request, 'x-amzn-lambda-request-id');
    let outcome: { readonly status: number; readonly body: string };
    try {
      const event = filledIn(await json(request));
      const invocation = await this.#invoke(functionName, event, { requestId });
      outcome = answerOf(invocation);
    } catch (error) {
      this.output.push(`${functionName}: ${String(error)}`);
      outcome = { status: 500, body: String(error) };
    }
    response.writeHead(outcome.status, { 'content-type': 'application/json' });
    response.end(outcome.body);
  }

  async #invoke(functionName: string, event: unknown, options: InvokeOptions): Promise<Invocation> {
    if (this.#describe === undefined) throw new Error('Nothing is deployed yet.');
    const deployed = await this.#describe(functionName);
    const member = await this.#idle(functionName, deployed);
    try {
      return await member.environment.invoke(event, { ...options, timeoutMs: deployed.timeoutMs });
    } finally {
      member.busy = false;
      if (!member.environment.alive) this.#members.delete(member);
    }
  }

  async #idle(functionName: string, deployed: DeployedFunction): Promise<Member> {
    const version = JSON.stringify(deployed);
    for (const member of this.#members) {
      if (member.functionName !== functionName || member.busy) continue;
      if (member.version === version && member.environment.alive) {
        member.busy = true;
        return member;
      }
      this.#members.delete(member);
      await member.environment.kill();
    }
    const environment = await LambdaEnvironment.start({
      ...deployed,
      functionName,
      runtime: 'ric',
      onOutput: ({ text }) => this.output.push(`${functionName}: ${text}`),
    });
    if (this.#closed) {
      await environment.kill();
      throw new Error('The host of the functions was closed meanwhile.');
    }
    const member = { functionName, version, environment, busy: true };
    this.#members.add(member);
    return member;
  }
}

function answerOf(invocation: Invocation): { readonly status: number; readonly body: string } {
  if (invocation.kind === 'returned') {
    return { status: 200, body: JSON.stringify(invocation.response ?? null) };
  }
  return { status: 500, body: JSON.stringify(invocation) };
}

function header(request: IncomingMessage, name: string): string {
  const value = request.headers[name];
  if (typeof value !== 'string') throw new Error(`The emulator sent no header ${name}.`);
  return value;
}

const SECOND_MS = 1_000;

function filledIn(event: unknown): unknown {
  const tick = new Date(Math.floor(Date.now() / SECOND_MS) * SECOND_MS).toISOString();
  const text = JSON.stringify(event).replaceAll('<aws.scheduler.scheduled-time>', tick);
  return JSON.parse(text) as unknown;
}
