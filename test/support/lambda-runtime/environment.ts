// One execution environment of a function: a runtime process, its Runtime API, and the
// invocations that run in it.
//
// It keeps Lambda's rules for a single environment:
//
//   E1. An invocation is over when its answer and the next poll have both arrived.
//   E2. Between invocations the processes are frozen, and thawed before the next event.
//   E3. At its deadline an invocation is ended by SIGKILL, and the environment with it.
//   E4. With Managed Instances several invocations run at once, nothing is frozen, and a
//       deadline only gives the caller its answer: the code goes on.
//
// It never starts a second process: a lost environment stays lost, as the test's sign
// that Lambda would go on with a new one. Not modelled: memory limits, the share of CPU,
// extensions, response streaming.

import { randomUUID } from 'node:crypto';
import {
  type EnvironmentOptions,
  type ResolvedOptions,
  resolveOptions,
} from './environment-options.ts';
import { LambdaInitError } from './init-error.ts';
import { type Invocation, type InvokeOptions, RunningInvocation } from './invocation.ts';
import { functionArn, lambdaVariables } from './lambda-variables.ts';
import { type Answer, type HandlerError, RuntimeApi } from './runtime-api.ts';
import { type Exit, type OutputLine, RuntimeProcess } from './runtime-process.ts';
import { runtimeEntry, type RuntimeKind } from './runtimes.ts';

/** What Lambda allows for loading the handler. */
const initLimitMs = 10_000;

/** What Lambda leaves a runtime between SIGTERM and SIGKILL. */
const shutdownGraceMs = 500;

export class LambdaEnvironment implements AsyncDisposable {
  readonly #options: ResolvedOptions;
  readonly #process: RuntimeProcess;
  readonly #api: RuntimeApi;
  readonly #waitingForOutput = new Set<() => void>();
  readonly #running = new Set<RunningInvocation>();
  readonly #gone: Promise<Exit>;
  #initError: HandlerError | undefined;
  #firstPoll: () => void = () => undefined;

  /** Resolves when the handler is loaded and waits for events; rejects with LambdaInitError. */
  static async start(options: EnvironmentOptions): Promise<LambdaEnvironment> {
    const resolved = resolveOptions(options);
    const api = await RuntimeApi.listen();
    let environment: LambdaEnvironment;
    try {
      environment = new LambdaEnvironment(resolved, api);
    } catch (error) {
      api.close();
      throw error;
    }
    await environment.#initialize();
    return environment;
  }

  private constructor(options: ResolvedOptions, api: RuntimeApi) {
    this.#options = options;
    this.#api = api;
    api.report({
      polled: () => this.#polled(),
      answered: (requestId, answer) => this.#answered(requestId, answer),
      initFailed: (error) => {
        this.#initError = error;
      },
    });
    const entry = runtimeEntry(options.runtime);
    this.#process = new RuntimeProcess({
      entry,
      cwd: options.taskRoot,
      env: lambdaVariables(options, api.address, entry),
      onLine: (line) => {
        options.onOutput(line);
        this.#wakeOutputWaiters();
      },
    });
    this.#gone = this.#process.exited.then((exit) => {
      this.#lost(exit);
      return exit;
    });
  }

  get runtime(): RuntimeKind {
    return this.#options.runtime;
  }

  get functionName(): string {
    return this.#options.functionName;
  }

  get logStreamName(): string {
    return this.#options.logStreamName;
  }

  get pid(): number {
    return this.#process.pid;
  }

  get alive(): boolean {
    return !this.#process.ended;
  }

  get frozen(): boolean {
    return this.alive && this.#process.stopped;
  }

  /**
   * All that the runtime and the handler have printed so far. A burst of much more than a
   * hundred lines may fill the pipe; what did not fit is written after the next thaw.
   */
  get output(): readonly OutputLine[] {
    return this.#process.output;
  }

  /** Resolves to the first line that holds `text`, past or to come. */
  async printed(text: string): Promise<OutputLine> {
    for (;;) {
      const line = this.output.find((each) => each.text.includes(text));
      if (line !== undefined) return line;
      if (!this.alive) throw new Error(`${this.#name} is gone and never printed ${text}`);
      await new Promise<void>((resolve) => this.#waitingForOutput.add(resolve));
    }
  }

  /** Throws where Lambda would have taken another environment: when this one is lost or full. */
  async invoke(event: unknown, options: InvokeOptions = {}): Promise<Invocation> {
    if (!this.alive) throw new Error(`${this.#name} is gone`);
    if (this.#running.size >= this.#options.capacity) throw new Error(`${this.#name} is busy`);

    const running = new RunningInvocation(
      options.requestId ?? randomUUID(),
      options.timeoutMs ?? this.#options.timeoutMs,
      (late) => this.#deadlinePassed(late),
    );
    this.#running.add(running);
    this.thaw();
    this.#api.deliver({
      requestId: running.requestId,
      deadlineMs: running.deadlineMs,
      functionArn: functionArn(this.functionName),
      body: JSON.stringify(event ?? null),
    });
    return running.ended;
  }

  /** Stops the processes at once, also in mid-work. Deadlines go on. */
  freeze(): void {
    this.#process.stop();
  }

  thaw(): void {
    this.#process.continue();
  }

  /** Ends the environment at once; running invocations end as crashed. */
  async kill(): Promise<void> {
    this.#process.kill();
    await this.#gone;
  }

  /** Ends the environment as Lambda does with an idle one that has an extension: SIGTERM first. */
  async shutdown(): Promise<void> {
    this.thaw();
    this.#process.terminate();
    const timer = setTimeout(() => {
      this.#process.kill();
    }, shutdownGraceMs);
    await this.#gone;
    clearTimeout(timer);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
  }

  get #name(): string {
    return `The environment of ${this.functionName} (pid ${this.pid})`;
  }

  async #initialize(): Promise<void> {
    const limit = setTimeout(() => {
      this.#process.kill();
    }, initLimitMs);
    const exit = await Promise.race([
      new Promise<undefined>((resolve) => {
        this.#firstPoll = () => {
          resolve(undefined);
        };
      }),
      this.#gone,
    ]);
    clearTimeout(limit);
    if (exit !== undefined) throw new LambdaInitError(this.#initError, exit, this.output);
  }

  #polled(): void {
    this.#firstPoll();
    // E4: a worker polls while its invocations still run, so a poll says nothing of them.
    if (this.#options.managedInstances) return;
    if (this.#options.freezeBetween) this.freeze();
    for (const running of this.#running) {
      if (running.answer !== undefined) this.#finish(running, running.answer);
    }
  }

  #answered(requestId: string, answer: Answer): void {
    // The oldest with that id, when a duplicate runs beside it. None is left when its
    // deadline passed (E4).
    const running = [...this.#running].find((each) => each.requestId === requestId);
    if (running === undefined) return;
    if (this.#options.managedInstances) this.#finish(running, answer);
    else running.answer = answer;
  }

  #finish(running: RunningInvocation, answer: Answer): void {
    this.#running.delete(running);
    running.finish(answer);
  }

  #deadlinePassed(running: RunningInvocation): void {
    if (this.#options.managedInstances) {
      this.#running.delete(running);
      running.timeOut();
    } else {
      running.overdue = true;
      this.#process.kill();
    }
  }

  #lost(exit: Exit): void {
    this.#api.close();
    this.#wakeOutputWaiters();
    for (const running of this.#running) running.lose(exit);
    this.#running.clear();
  }

  #wakeOutputWaiters(): void {
    for (const wake of this.#waitingForOutput) wake();
    this.#waitingForOutput.clear();
  }
}
