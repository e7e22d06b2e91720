// The middleware beside others: Powertools' clean-up functions, many requests at once on Managed
// Instances, leases that are kept, and contexts of unit tests.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Lease } from '../../src/lease-handle.ts';
import { leaderElection, type LeaderElectionOptions } from '../../src/middleware.ts';
import { withLease } from '../../src/with-lease.ts';
import { gate, rejection, Stage, type Gate } from '../handler/stage.ts';
import { versions, type Chain, type Middleware, type Request } from './versions.ts';

type Context = ReturnType<Stage['context']>;
type Handler = (event: string, context: Context & { lease: Lease }) => unknown;

let stage: Stage;
beforeEach(() => (stage = new Stage()));
afterEach(() => vi.unstubAllEnvs());

describe.each(versions)('leaderElection in %s', (_, middy) => {
  const ours = (options: Partial<LeaderElectionOptions<string, Context>> = {}) =>
    leaderElection<string, Context>({
      ...stage.options,
      name: (event) => event,
      leaseDurationSeconds: 15,
      ...options,
    }) as unknown as Middleware;
  const chain = (
    handler: Handler,
    options: Partial<LeaderElectionOptions<string, Context>> = {},
  ): Chain =>
    middy()
      .use([ours(options)])
      .handler(handler);

  describe('with Powertools’ middlewares before it', () => {
    /** As Powertools' own do: a new object each time, functions and other things in it. */
    const remember = (entries: Record<string, unknown>): Middleware => ({
      before: (request) => {
        request.internal = { ...request.internal, ...entries };
      },
    });
    const called: string[] = [];
    const flush = (name: string) => (request: Request) => {
      called.push(`${name} ${request.event}`);
    };
    const before = [
      remember({
        'powertools-for-aws.tracer.lambdaSegment': { close: () => called.push('segment') },
        'powertools-for-aws.tracer.handlerSegment': { close: () => called.push('segment') },
        'powertools-for-aws.tracer': flush('tracer'),
      }),
      remember({ 'powertools-for-aws.metrics': flush('metrics') }),
      remember({
        'powertools-for-aws.logger': async (request: Request) => {
          await Promise.resolve();
          flush('logger')(request);
        },
      }),
      remember({
        'powertools-for-aws.idempotency.idempotencyHandler': new Map(),
        'powertools-for-aws.idempotency.skip': true,
        'another-middleware.cleanup': flush('another’s'),
      }),
    ];
    beforeEach(() => (called.length = 0));

    test('calls their clean-up functions, and no others, when it ends a request early', async () => {
      stage.holds('somebody', 'job', 60_000);
      const handled = middy()
        .use([...before, ours()])
        .handler(() => 'done');

      expect(await handled('job', stage.context())).toMatchObject({ skipped: true });
      expect(called).toEqual(['tracer job', 'metrics job', 'logger job']);
    });

    test('leaves them alone when the handler runs, or it throws: then their own hooks run', async () => {
      const handled = middy()
        .use([...before, ours({ whenHeld: 'throw' })])
        .handler(() => 'done');
      await handled('job', stage.context());
      stage.holds('somebody', 'job', 60_000);
      await rejection(handled('job', stage.context()));

      expect(called).toEqual([]);
    });
  });

  describe('on Managed Instances', () => {
    beforeEach(() => vi.stubEnv('AWS_LAMBDA_MAX_CONCURRENCY', '10'));

    test('serves many requests at once, each with a lease of its own', async () => {
      const gates = new Map<string, Gate>();
      const handled = chain(async (event, { lease }) => {
        const work = gate();
        gates.set(event, work);
        await work.opened;
        return [event, lease.name, lease.isHeld()];
      });
      const names = ['a', 'b', 'c', 'd', 'e'];
      const running = names.map((name) => handled(name, stage.context(600_000)));
      await stage.clock.advance(30_000);

      for (const [i, name] of [...names].reverse().entries()) {
        gates.get(name)?.open();
        expect(await stage.until(running[names.length - 1 - i]!)).toEqual([name, name, true]);
        expect(names.map((other) => stage.record(other).vacant)).toEqual(
          names.map((_name, j) => j >= names.length - 1 - i),
        );
      }
      expect(stage.clock.timers).toBe(0);
      expect(stage.errors()).toEqual([]);
    });

    test('lets one of them in for one lease', async () => {
      const work = gate();
      const handled = chain(async () => {
        await work.opened;
        return 'done';
      });
      const running = Array.from({ length: 5 }, () => handled('job', stage.context()));
      await stage.clock.advance(5_000);
      work.open();

      const results = await stage.until(Promise.all(running));
      expect(results.filter((result) => result === 'done')).toHaveLength(1);
      expect(stage.clock.timers).toBe(0);
    });

    test('does not take a request that goes on for one that is over, as the next begins', async () => {
      const work = gate();
      let first: Lease | undefined;
      const handled = chain(async (event, { lease }) => {
        if (event !== 'first') return 'done';
        first = lease;
        await work.opened;
        return 'done';
      });
      const running = handled('first', stage.context(600_000));
      await stage.clock.advance(1_000);
      await handled('second', stage.context());

      expect(first?.signal.aborted).toBe(false);
      expect(first?.isHeld()).toBe(true);
      work.open();
      await stage.until(running);
      expect(stage.record('first').vacant).toBe(true);
    });

    test('renews no further than the deadline for a request whose end nobody tells', async () => {
      const handled = middy()
        .use([ours(), { before: () => 'early' }])
        .handler(() => 'done');
      await handled('job', stage.context(30_000));
      await stage.clock.advance(300_000);

      expect(stage.store.count('renew')).toBeLessThanOrEqual(15);
      expect(stage.store.count('release')).toBe(0);
      expect(stage.clock.timers).toBe(0);
    });
  });

  describe('a lease that ends before its work does', () => {
    test.each([
      ['taken over', false, (): void => stage.holds('thief', 'job', 600_000, 9), {}],
      ['hold limit', true, (): void => undefined, { maxHoldSeconds: 20 }],
    ] as const)('because of this: %s, is logged once', async (reason, released, lose, options) => {
      const handled = chain(
        (_event, { lease }): Promise<unknown> =>
          new Promise((resolve) => {
            lose();
            lease.signal.addEventListener('abort', () => resolve('late'));
          }),
        options,
      );

      expect(await stage.until(handled('job', stage.context(600_000)))).toBe('late');
      expect(stage.errors()).toMatchObject([{ details: { reason, released } }]);
      expect(stage.store.count('release')).toBe(released ? 1 : 0);
      expect(stage.clock.timers).toBe(0);
    });
  });

  describe('a lease that is kept between requests', () => {
    const sticky = (handler: Handler) => chain(handler, { sticky: true });

    test('is kept: one write for two requests, and no timer between them', async () => {
      const handled = sticky(async (_event, { lease }) => lease.fencingToken);

      expect(await handled('job', stage.context())).toBe(1);
      expect(stage.clock.timers).toBe(0);
      expect(await handled('job', stage.context())).toBe(1);
      expect(stage.store.sent).toEqual(['acquire']);
    });

    test('is not kept for a request whose end nobody tells', async () => {
      let early = true;
      const handled = middy()
        .use([ours({ sticky: true }), { before: () => (early ? 'early' : undefined) }])
        .handler((_event, { lease }: Context & { lease: Lease }) => lease.fencingToken);
      await handled('job', stage.context());
      early = false;
      stage.clock.freeze(15_001);

      expect(await handled('job', stage.context())).toBe(2);
      expect(stage.clock.timers).toBe(0);
    });
  });

  describe('in a unit test', () => {
    test.each([{}, { awsRequestId: 'x' }])(
      'needs no time in the context beside a duration: %j',
      async (context) => {
        const handled = chain(async () => 'done');

        expect(await handled('job', { ...context })).toBe('done');
        expect(stage.record('job').vacant).toBe(true);
        expect(stage.clock.timers).toBe(0);
      },
    );

    test('may be given a context that is an object of a class', async () => {
      class Mock {
        leftMs = 20_000;
        getRemainingTimeInMillis() {
          return this.leftMs;
        }
      }
      // Middy 7 itself takes the function out of its object for an early time-out.
      const handled = middy({ timeoutEarlyInMillis: 0 })
        .use([ours()])
        .handler(async () => 'done');

      expect(await handled('job', new Mock())).toBe('done');
      expect(stage.record('job').vacant).toBe(true);
    });

    test('needs nothing at all with LEASE_DISABLED', async () => {
      vi.stubEnv('LEASE_DISABLED', 'true');
      const handled = middy()
        .use([leaderElection({ name: 'job' }) as unknown as Middleware])
        .handler(async (_event, { lease }: { lease: Lease }) => lease.isHeld());

      expect(await handled('job', {})).toBe(true);
    });

    test('takes nothing when the context cannot carry the lease', async () => {
      const handled = chain(async () => 'done');

      expect(await rejection(handled('job', Object.freeze(stage.context())))).toBeInstanceOf(
        TypeError,
      );
      expect(stage.record('job').vacant).toBe(true);
      expect(stage.clock.timers).toBe(0);
    });
  });

  test('is not needed: a handler wrapped by withLease fits middy as it is', async () => {
    const wrapped = withLease<string, boolean, Context>(
      { ...stage.options, name: 'job' },
      (_event, { lease }) => lease.isHeld(),
    );
    const handled = middy()
      .use([{ after: () => 'replaced' }])
      .handler(wrapped);

    expect(await handled('job', stage.context())).toBe('replaced');
    expect(stage.record('job').vacant).toBe(true);
  });
});
