// The same as withLease, as a middy middleware: a thin layer, with less to see. It is told when
// the handler has returned or thrown only if no other middleware prevents that; so it must be
// registered last, and where it cannot know that the work has settled, it leaves the lease to
// expire.
//
// The type is structural and imports nothing from middy: it fits middy 5, 6 and 7.

import type { Lease } from './holding.ts';
import type { InvocationOptions, LambdaContext } from './invocation-options.ts';
import { InvocationLeases, type OpenInvocation } from './invocation.ts';
import { invalid } from './options.ts';
import { provide } from './with-lease.ts';

export interface LeaderElectionOptions<
  TEvent,
  TContext,
  TKey extends string = 'lease',
> extends InvocationOptions<TEvent, TContext> {
  /** Under which name the handler finds its lease in the context. Default `lease`. */
  readonly contextKey?: TKey;
  /**
   * The value that middy was given, when it was given one (default 5). A handler that outlasts
   * middy's early time-out is still running when middy says that it is over.
   */
  readonly timeoutEarlyInMillis?: number;
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

export interface LeaderElectionMiddleware<
  TEvent,
  TContext extends LambdaContext,
  TKey extends string,
> {
  before: (request: Request<TEvent, TContext & Readonly<Record<TKey, Lease>>>) => Promise<unknown>;
  after: (request: Request<TEvent, TContext & Readonly<Record<TKey, Lease>>>) => Promise<void>;
  onError: (request: Request<TEvent, TContext & Readonly<Record<TKey, Lease>>>) => Promise<void>;
}

/**
 * A middy middleware that lets the handler run only while it holds the lease. Register it last.
 *
 * @throws LeaseError `invalid-configuration`, at once, for options that cannot work.
 */
export function leaderElection<
  TEvent = unknown,
  TContext extends LambdaContext = LambdaContext,
  TKey extends string = 'lease',
>(
  options: LeaderElectionOptions<TEvent, TContext, TKey>,
): LeaderElectionMiddleware<TEvent, TContext, TKey> {
  const { timeoutEarlyInMillis = 5, contextKey = 'lease' } = options;
  if (!Number.isFinite(timeoutEarlyInMillis) || timeoutEarlyInMillis < 0) {
    throw invalid(
      `timeoutEarlyInMillis is ${timeoutEarlyInMillis}; it must be a number of milliseconds.`,
    );
  }
  const leases = new InvocationLeases<TEvent, TContext>('leaderElection', options, [
    'contextKey',
    'timeoutEarlyInMillis',
  ]);
  /** By request, for one middleware serves many at once on Managed Instances. */
  const opened = new WeakMap<object, OpenInvocation>();

  const take = (request: object): OpenInvocation | undefined => {
    const open = opened.get(request);
    opened.delete(request);
    return open;
  };

  return {
    before: async function lambdaLeaseBefore(request) {
      const answer = await leases.open(request.event, request.context);
      if (answer.kind === 'skipped') {
        await cleanUpPowertools(request);
        return answer.result;
      }
      try {
        provide(request.context, contextKey, answer.open.lease);
      } catch (error) {
        await answer.open.settle('failed');
        throw error;
      }
      opened.set(request, answer.open);
      return undefined;
    },

    after: async function lambdaLeaseAfter(request) {
      const open = take(request);
      if (open === undefined) return;
      // An early time-out with a response of its own looks like a handler that returned. It fires
      // when no more than this is left.
      const leftMs = request.context.getRemainingTimeInMillis();
      if (leftMs <= timeoutEarlyInMillis + 1) open.abandon();
      else await open.settle('completed');
    },

    onError: async function lambdaLeaseOnError(request) {
      const open = take(request);
      if (open === undefined) return;
      if (isEarlyTimeout(request.error)) open.abandon();
      else await open.settle('failed');
    },
  };
}

function isEarlyTimeout(error: unknown): boolean {
  return error instanceof Error && error.name === 'TimeoutError';
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
