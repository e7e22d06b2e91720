// One invocation: how it can end, and the state it is in until then.
//
// It owns its deadline and the caller's promise. It never decides what a deadline does to
// the environment; that differs (E3 and E4 of `environment.ts`).

import type { Answer, HandlerError } from './runtime-api.ts';
import type { Exit } from './runtime-process.ts';

/** How an invocation ended. */
export type Invocation =
  | { readonly kind: 'returned'; readonly response: unknown; readonly durationMs: number }
  | { readonly kind: 'failed'; readonly error: HandlerError }
  | { readonly kind: 'timed-out' }
  | ({ readonly kind: 'crashed' } & Exit);

export interface InvokeOptions {
  /** Default: a new one. Lambda repeats an id when it retries an event. */
  readonly requestId?: string;
  /** Default: the function's. */
  readonly timeoutMs?: number;
}

export class RunningInvocation {
  readonly requestId: string;
  readonly deadlineMs: number;
  readonly ended: Promise<Invocation>;
  /** What the runtime has posted, while its next poll is still to come. */
  answer: Answer | undefined;
  /** The deadline has passed, and the environment is being killed for it. */
  overdue = false;

  readonly #startedMs = performance.now();
  readonly #timer: NodeJS.Timeout;
  #resolve: (invocation: Invocation) => void = () => undefined;

  constructor(
    requestId: string,
    timeoutMs: number,
    onDeadline: (running: RunningInvocation) => void,
  ) {
    this.requestId = requestId;
    this.deadlineMs = Date.now() + timeoutMs;
    this.#timer = setTimeout(() => {
      onDeadline(this);
    }, timeoutMs);
    this.ended = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  finish(answer: Answer): void {
    if (answer.kind === 'error') {
      this.#end({ kind: 'failed', error: answer.error });
    } else {
      const durationMs = performance.now() - this.#startedMs;
      this.#end({ kind: 'returned', response: answer.response, durationMs });
    }
  }

  timeOut(): void {
    this.#end({ kind: 'timed-out' });
  }

  lose(exit: Exit): void {
    this.#end(this.overdue ? { kind: 'timed-out' } : { kind: 'crashed', ...exit });
  }

  #end(invocation: Invocation): void {
    clearTimeout(this.#timer);
    // What the handler printed is in the pipe by now, but perhaps not yet read. After one
    // full turn of the event loop it is, and the test sees it when the invocation is over.
    setImmediate(() => {
      setImmediate(() => {
        this.#resolve(invocation);
      });
    });
  }
}
