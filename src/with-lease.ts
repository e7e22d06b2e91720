// One invocation at a time: wraps a Lambda handler so that it runs only while it holds the lease.
//
// A wrapper with try and finally, because that is the only place that sees the handler settle
// whatever happens. When Lambda kills the process not even that runs: then expiry does the work.

import type { Lease } from './lease-handle.ts';
import type { InvocationOptions, LambdaContext, WhenHeld } from './invocation-options.ts';
import { InvocationLeases } from './invocation.ts';
import type { Skipped } from './refusal.ts';
import { checkFilled, invalid } from './options.ts';

/** Options of `withLease`. */
export interface WithLeaseOptions<
  TEvent,
  TContext,
  TKey extends string = 'lease',
  TWhenHeld extends WhenHeld = WhenHeld,
> extends InvocationOptions<TEvent, TContext> {
  readonly whenHeld?: TWhenHeld;
  /** Under which name the handler finds its lease in the context. Default `lease`. */
  readonly contextKey?: TKey;
}

/** The context of the handler: the given one, with the lease in it. */
export type WithLeaseContext<TContext, TKey extends string = 'lease'> = TContext &
  Readonly<Record<TKey, Lease>>;

/** What the handler returns, or a `Skipped` where that may be. */
export type WithLeaseResult<TResult, TWhenHeld extends WhenHeld> =
  TResult | ('skip' extends TWhenHeld ? Skipped : never);

/**
 * Wraps `handler` so that it runs only while it holds the lease, one invocation at a time. When
 * another holds it, the wrapped handler returns a `Skipped`, throws, or waits: `whenHeld`.
 *
 * The wrapped handler has two parameters; Lambda's Node 24 runtime refuses three. Handlers that
 * stream their response are not supported: they return before their work is done.
 *
 * @throws LeaseError `invalid-configuration`, at once, for options that cannot work.
 */
export function withLease<
  TEvent,
  TResult,
  TContext extends LambdaContext = LambdaContext,
  TKey extends string = 'lease',
  TWhenHeld extends WhenHeld = WhenHeld,
>(
  options: WithLeaseOptions<TEvent, TContext, TKey, TWhenHeld>,
  handler: (event: TEvent, context: WithLeaseContext<TContext, TKey>) => Promise<TResult> | TResult,
): (event: TEvent, context: TContext) => Promise<WithLeaseResult<TResult, TWhenHeld>> {
  if (typeof handler !== 'function') {
    throw invalid('withLease needs the handler as its second argument.');
  }
  const leases = new InvocationLeases('withLease', options, ['contextKey']);
  const { contextKey = 'lease' } = options;
  checkFilled('contextKey', contextKey);

  return async (event, context) => {
    const opened = await leases.open(event, context);
    if (opened.kind === 'skipped') return opened.result as WithLeaseResult<TResult, TWhenHeld>;
    const { open } = opened;
    let outcome: 'completed' | 'failed' = 'failed';
    try {
      const leased = provide(context, contextKey, open.lease) as WithLeaseContext<TContext, TKey>;
      const result = await handler(event, leased);
      outcome = 'completed';
      return result;
    } finally {
      await open.settle(outcome);
    }
  };
}

/** The context is the caller's own object, as with every middleware; without one, a new one. */
export function provide(context: unknown, key: string, lease: Lease): object {
  const target = typeof context === 'object' && context !== null ? context : {};
  return Object.defineProperty(target, key, {
    value: lease,
    configurable: true,
    enumerable: true,
    writable: true,
  });
}
