// Publishes that a Lambda function, or one of its environments, is alive: at most one renewal for
// each interval, when it is invoked, beside the handler.
//
// Never fails the handler, and delays its answer by a bounded time only. Between invocations
// everything is frozen: so no timer outlasts one, and the first thing after a thaw is a look at
// the clocks. Silence while nobody invokes is nothing unusual; how much of it is, only the user
// knows.

import { sleep } from './clock.ts';
import { unfailing, type Logger } from './environment.ts';
import { describeError } from './errors.ts';
import type { LambdaContext } from './invocation-options.ts';
import type { Pulse } from './pulse.ts';

/** Lambda's context, as far as it is needed; tests may call a handler without. */
export interface BeatContext extends Partial<LambdaContext> {
  readonly invokedFunctionArn?: string;
}

export interface OpenBeat {
  /** The handler has returned or thrown. Waits a little for the renewal. Never rejects. */
  settle(): Promise<void>;
}

const LONGEST_DELAY_MS = 1_000;
/** Of what is left of the invocation. */
const LARGEST_DELAY = 0.5;

export class InvocationPulse {
  readonly #makePulse: (context: BeatContext | undefined) => Pulse;
  readonly #logger: Logger;
  #pulse: Pulse | undefined;
  #open = 0;
  #sentAtMs: number | undefined;
  #beating: Promise<void> | undefined;

  constructor(makePulse: (context: BeatContext | undefined) => Pulse, logger: Logger) {
    this.#makePulse = makePulse;
    this.#logger = unfailing(logger);
  }

  /** Starts a renewal if one is due, and does not wait for it. Never throws. */
  open(context: BeatContext | undefined): OpenBeat {
    this.#open += 1;
    try {
      this.#beatIfDue(context);
    } catch (error) {
      this.#logger.error('A heartbeat or identity cannot be published.', {
        error: describeError(error),
      });
    }
    let settled = false;
    return {
      settle: async () => {
        if (settled) return;
        settled = true;
        this.#open -= 1;
        await this.#settle(context);
      },
    };
  }

  #beatIfDue(context: BeatContext | undefined): void {
    const pulse = (this.#pulse ??= this.#makePulse(context));
    if (this.#beating !== undefined) return;
    const { timing, world } = pulse;
    const nowMs = world.timeline.look().elapsedMs;
    if (this.#sentAtMs !== undefined && nowMs - this.#sentAtMs < timing.retryPeriodMs) return;
    this.#sentAtMs = nowMs;
    pulse.requestId = context?.awsRequestId;
    this.#beating = this.#beat(pulse)
      .catch((error: unknown) => this.#failed(pulse, error))
      .finally(() => (this.#beating = undefined));
  }

  async #beat(pulse: Pulse): Promise<void> {
    if (pulse.tenure !== undefined) {
      const answer = await pulse.renew();
      if (answer.kind === 'renewed') return;
      if (answer.kind === 'unknown') {
        this.#failed(pulse, answer.error);
        return;
      }
    }
    const before = pulse.seen?.holderIdentity;
    const answer = await pulse.take({ evenHeld: true });
    if (answer.kind === 'failed') this.#failed(pulse, answer.error);
    else if (answer.kind === 'refused') {
      this.#logger.warn('A heartbeat or identity may not be taken.', {
        lease: pulse.lock.lease,
        because: answer.waiting.because,
      });
    } else {
      this.#logger.info('This environment took a heartbeat or identity over.', {
        lease: pulse.lock.lease,
        holderIdentity: answer.tenure.holderIdentity,
        fencingToken: answer.tenure.fencingToken,
        before,
      });
    }
  }

  #failed(pulse: Pulse, error: unknown): void {
    this.#logger.warn('A heartbeat or identity could not be renewed.', {
      lease: pulse.lock.lease,
      error: describeError(error),
    });
  }

  /** While other invocations share the process, it is not about to be frozen. */
  async #settle(context: BeatContext | undefined): Promise<void> {
    const beating = this.#beating;
    const pulse = this.#pulse;
    if (beating === undefined || pulse === undefined || this.#open > 0) return;
    const leftMs = timeLeftMs(context);
    const over = new AbortController();
    const boundMs = Math.max(0, Math.min(LONGEST_DELAY_MS, LARGEST_DELAY * leftMs));
    await Promise.race([beating, sleep(pulse.world.clock, boundMs, over.signal)]);
    over.abort();
    if (this.#open > 0) return;
    pulse.interrupt();
    await beating;
    pulse.resume();
  }
}

/** By its context, of which a test may have made anything. */
function timeLeftMs(context: BeatContext | undefined): number {
  try {
    const leftMs = context?.getRemainingTimeInMillis?.() ?? Infinity;
    return Number.isNaN(leftMs) ? Infinity : leftMs;
  } catch {
    return Infinity;
  }
}
