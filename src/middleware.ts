// The middlewares for middy: withLease, scheduledSingleton and withHeartbeat as such. Each must be
// registered last.

import type { InvocationOptions, LambdaContext } from './invocation-options.ts';
import { InvocationLeases } from './invocation.ts';
import type { Lease } from './lease-handle.ts';
import {
  leaseMiddleware,
  MIDDLEWARE_OPTIONS,
  type FullLambdaContext,
  type LeaseMiddleware,
  type MiddlewareOptions,
} from './lease-middleware.ts';
import { ScheduledJobs, type ScheduledLease } from './scheduled-job.ts';
import type { ScheduledJobOptions } from './scheduled-options.ts';

export { heartbeat, type HeartbeatMiddleware } from './heartbeat-middleware.ts';
export type { FullLambdaContext } from './lease-middleware.ts';

/** The options of `withLease`, and those of a middleware. */
export interface LeaderElectionOptions<TEvent, TContext, TKey extends string = 'lease'>
  extends InvocationOptions<TEvent, TContext>, MiddlewareOptions<TKey> {}

/** What `leaderElection` returns: a middleware for middy 5, 6 and 7. */
export type LeaderElectionMiddleware<
  TEvent,
  TContext extends LambdaContext,
  TKey extends string,
> = LeaseMiddleware<TEvent, TContext, TKey, Lease>;

/**
 * A middy middleware that lets the handler run only while it holds the lease. Register it last.
 *
 * @throws LeaseError `invalid-configuration`, at once, for options that cannot work.
 */
export function leaderElection<
  TEvent = unknown,
  TContext extends LambdaContext = FullLambdaContext,
  TKey extends string = 'lease',
>(
  options: LeaderElectionOptions<TEvent, TContext, TKey>,
): LeaderElectionMiddleware<TEvent, TContext, TKey> {
  const leases = new InvocationLeases<TEvent, TContext>(
    'leaderElection',
    options,
    MIDDLEWARE_OPTIONS,
  );
  return leaseMiddleware(options, (event, context) => leases.open(event, context));
}

/** The options of a scheduled job, and those of a middleware; there is no `catchUp`. */
export interface ScheduledMiddlewareOptions<TEvent, TContext, TKey extends string = 'lease'>
  extends ScheduledJobOptions<TEvent, TContext>, MiddlewareOptions<TKey> {}

/**
 * A middy middleware that lets the handler run once for each tick of its schedule, one run at a
 * time, as the wrapper of that name does. It cannot catch up: middy runs the handler once. Register
 * it last.
 *
 * @throws LeaseError `invalid-configuration`, at once, for options that cannot work.
 */
export function scheduledSingleton<
  TEvent = unknown,
  TContext extends LambdaContext = FullLambdaContext,
  TKey extends string = 'lease',
>(
  options: ScheduledMiddlewareOptions<TEvent, TContext, TKey>,
): LeaseMiddleware<TEvent, TContext, TKey, ScheduledLease> {
  const jobs = new ScheduledJobs<TEvent, TContext>(
    'scheduledSingleton',
    options,
    MIDDLEWARE_OPTIONS,
  );
  return leaseMiddleware(options, async (event, context) => {
    const opened = await jobs.open(event, context);
    if (opened.kind === 'skipped') return opened;
    const { run } = opened;
    try {
      const lease = run.begin(run.tickMs, run.missed());
      const open = {
        lease,
        settle: run.settle.bind(run),
        abandon: run.abandon.bind(run),
      };
      return { kind: 'opened', open };
    } catch (error) {
      await run.settle('failed', error);
      throw error;
    }
  });
}
