// What middy's middlewares of a lease have in common: a thin layer over the invocation's lease,
// with less to see than a wrapper. It is told when the handler has returned or thrown only if no
// other middleware prevents that; so it must be registered last, and where it cannot know that the
// work has settled, it leaves the lease to expire.
//
// The type is structural and imports nothing from middy: it fits middy 5, 6 and 7.

import { readEnvironment } from './environment.ts';
import { isLeaseError } from './errors.ts';
import type { LambdaContext } from './invocation-options.ts';
import type { Lease } from './lease-handle.ts';
import { checkFilled, invalid, show } from './options.ts';
import type { Skipped } from './refusal.ts';
import { provide } from './with-lease.ts';

export interface MiddlewareOptions<TKey extends string> {
  /** Under which name the handler finds its lease in the context. Default `lease`. */
  readonly contextKey?: TKey;
  /**
   * The value that middy was given, when it was given one (default 5). A handler that outlasts
   * middy's early time-out is still running when middy says that it is over.
   */
  readonly timeoutEarlyInMillis?: number;
}

export const MIDDLEWARE_OPTIONS = ['contextKey', 'timeoutEarlyInMillis'];

/** The lease of one invocation. */
export interface OpenLease<TLease extends Lease> {
  readonly lease: TLease;
  settle(outcome: 'completed' | 'failed', error?: unknown): Promise<unknown>;
  abandon(): void;
}

export type OpenedLease<TLease extends Lease> =
  | { readonly kind: 'opened'; readonly open: OpenLease<TLease> }
  | { readonly kind: 'skipped'; readonly result: Skipped };

/**
 * Lambda's context with all that middy's types ask of it, so that they let ours through: what is
 * optional there is left out.
 */
export interface FullLambdaContext extends LambdaContext {
  callbackWaitsForEmptyEventLoop: boolean;
  readonly functionName: string;
  readonly functionVersion: string;
  readonly invokedFunctionArn: string;
  readonly memoryLimitInMB: string;
  readonly awsRequestId: string;
  readonly logGroupName: string;
  readonly logStreamName: string;
  done(error?: Error, result?: unknown): void;
  fail(error: Error | string): void;
  succeed(result: unknown, object?: unknown): void;
}

/** What is needed of middy's request. */
interface Request<TEvent, TContext> {
  readonly event: TEvent;
  readonly context: TContext;
  response?: unknown;
  earlyResponse?: unknown;
  readonly error: Error | null | undefined;
  readonly internal: object;
}

export interface LeaseMiddleware<
  TEvent,
  TContext extends LambdaContext,
  TKey extends string,
  TLease extends Lease,
> {
  /** Takes the lease, or ends the request with a `Skipped`. */
  before: (request: Request<TEvent, TContext & Readonly<Record<TKey, TLease>>>) => Promise<unknown>;
  /** Gives the lease back. */
  after: (request: Request<TEvent, TContext & Readonly<Record<TKey, TLease>>>) => Promise<void>;
  /** Gives the lease back, unless the handler may still be running. */
  onError: (request: Request<TEvent, TContext & Readonly<Record<TKey, TLease>>>) => Promise<void>;
}

/** @throws LeaseError `invalid-configuration`, at once, for options that cannot work. */
export function leaseMiddleware<
  TEvent,
  TContext extends LambdaContext,
  TKey extends string,
  TLease extends Lease,
>(
  options: MiddlewareOptions<TKey>,
  openLease: (event: TEvent, context: TContext) => Promise<OpenedLease<TLease>>,
): LeaseMiddleware<TEvent, TContext, TKey, TLease> {
  const { timeoutEarlyInMillis = 5, contextKey = 'lease' } = options;
  checkFilled('contextKey', contextKey);
  if (!Number.isFinite(timeoutEarlyInMillis) || timeoutEarlyInMillis < 0) {
    throw invalid(
      `timeoutEarlyInMillis is ${show(timeoutEarlyInMillis)}; ` +
        'it must be a number of milliseconds, 0 or more.',
    );
  }
  /** By request, for one middleware serves many at once on Managed Instances. */
  const opened = new Map<object, OpenLease<TLease>>();

  const take = (request: object): OpenLease<TLease> | undefined => {
    const open = opened.get(request);
    opened.delete(request);
    return open;
  };

  /** Another middleware may have ended a request without our being told. It may be at work yet. */
  const abandonLeftovers = () => {
    for (const request of opened.keys()) take(request)?.abandon();
  };

  const timesOutEarly = timeoutEarlyInMillis > 0;
  /** An early time-out may look like a handler that returned, or threw, so late. */
  const maybeTimedOut = (context: Partial<LambdaContext>) =>
    timesOutEarly &&
    typeof context.getRemainingTimeInMillis === 'function' &&
    context.getRemainingTimeInMillis() <= timeoutEarlyInMillis + 1;

  return {
    before: async function lambdaLeaseBefore(request) {
      // One at a time: when this one begins, Lambda has ended those before it.
      if (!readEnvironment().managedInstances) abandonLeftovers();

      const answer = await openLease(request.event, request.context);
      if (answer.kind === 'skipped') {
        await cleanUpPowertools(request);
        return answer.result;
      }
      const { lease } = answer.open;
      try {
        provide(request.context, contextKey, lease);
      } catch (error) {
        await answer.open.settle('failed', error);
        throw error;
      }
      opened.set(request, answer.open);
      // An early time-out comes before the deadline: who has not been told by then never will be.
      lease.signal.addEventListener('abort', () => {
        const reason: unknown = lease.signal.reason;
        const atDeadline = isLeaseError(reason) && reason.reason === 'deadline';
        if (timesOutEarly && atDeadline) take(request)?.abandon();
      });
      return undefined;
    },

    after: async function lambdaLeaseAfter(request) {
      const open = take(request);
      if (open === undefined) return;
      if (maybeTimedOut(request.context)) open.abandon();
      else await open.settle('completed');
    },

    onError: async function lambdaLeaseOnError(request) {
      const open = take(request);
      if (open === undefined) return;
      if (isEarlyTimeout(request.error) || maybeTimedOut(request.context)) open.abandon();
      else await open.settle('failed', request.error);
    },
  };
}

/** Middy's own, whatever it was told to wait: other things time out with an error of that name. */
function isEarlyTimeout(error: unknown): boolean {
  if (!(error instanceof Error) || error.name !== 'TimeoutError') return false;
  const { cause } = error;
  const by: unknown =
    typeof cause === 'object' && cause !== null && 'package' in cause ? cause.package : undefined;
  return by === '@middy/core';
}

/**
 * Powertools' middlewares leave functions here to be called by whoever ends a request early: else
 * metrics are not flushed and trace segments stay open.
 */
async function cleanUpPowertools(request: { readonly internal: object }): Promise<void> {
  for (const [key, cleanUp] of Object.entries(request.internal)) {
    if (key.startsWith('powertools-for-aws.') && typeof cleanUp === 'function') {
      await (cleanUp as (request: unknown) => unknown)(request);
    }
  }
}
