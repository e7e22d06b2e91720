// The heartbeat of a function, as a middy middleware. Nothing depends on its hearing of the
// handler's end: where another middleware prevents that, the renewal is bounded all the same.

import { readEnvironment } from './environment.ts';
import { functionPulse, type FunctionHeartbeatOptions } from './heartbeat.ts';
import type { BeatContext, OpenBeat } from './invocation-pulse.ts';

interface Request {
  readonly context: BeatContext;
}

/** What `heartbeat` returns: a middleware for middy 5, 6 and 7. */
export interface HeartbeatMiddleware {
  /** Starts a renewal if one is due, and does not wait for it. */
  before: (request: Request) => void;
  /** Waits a little for the renewal: at most a second. */
  after: (request: Request) => Promise<void>;
  /** As `after`. */
  onError: (request: Request) => Promise<void>;
}

/** @throws LeaseError `invalid-configuration`, at once, for options that cannot work. */
export function heartbeat(options: FunctionHeartbeatOptions): HeartbeatMiddleware {
  const pulse = functionPulse('heartbeat', options);
  const opened = new Map<object, OpenBeat>();
  const settle = async (request: Request) => {
    const open = opened.get(request);
    opened.delete(request);
    await open?.settle();
  };
  return {
    before: function lambdaLeaseHeartbeatBefore(request) {
      // One at a time: when this one begins, Lambda has ended those before it.
      if (!readEnvironment().managedInstances) {
        for (const left of opened.values()) void left.settle();
        opened.clear();
      }
      if (pulse !== undefined) opened.set(request, pulse.open(request.context));
    },
    after: settle,
    onError: settle,
  };
}
