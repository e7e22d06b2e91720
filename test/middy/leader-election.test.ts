// The middleware in every situation that middy knows, in each of its versions: the lease is
// released only when the work has settled, and is left to expire where nobody can tell.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { leaderElection, type LeaderElectionOptions } from '../../src/middleware.ts';
import { gate, rejection, Stage, type Gate } from '../handler/stage.ts';
import { versions, type Chain, type Middleware, type Plugin } from './versions.ts';

type Context = ReturnType<Stage['context']>;
type Handler = (event: string, context: Context & { lease: Lease }) => unknown;

interface Parts {
  /** Registered before ours, as users are told. */
  readonly outer?: Middleware;
  /** Registered after ours, against the advice. */
  readonly inner?: Middleware;
  readonly handler?: Handler;
  readonly plugin?: Plugin;
  readonly options?: Partial<LeaderElectionOptions<string, Context>>;
}

let stage: Stage;
beforeEach(() => (stage = new Stage()));
afterEach(() => vi.unstubAllEnvs());

describe.each(versions)('leaderElection in %s', (_, middy) => {
  /** 15 / 10 / 2 s unless told otherwise; each event names its own lease. */
  const chain = ({ outer, inner, handler, plugin, options }: Parts): Chain => {
    const ours = leaderElection<string, Context>({
      ...stage.options,
      name: (event) => event,
      leaseDurationSeconds: 15,
      ...options,
    });
    return middy(plugin)
      .use([...(outer ? [outer] : []), ours as unknown as Middleware, ...(inner ? [inner] : [])])
      .handler(handler ?? (() => Promise.resolve('done')));
  };

  test('runs the handler while it holds the lease: two writes, and nothing else', async () => {
    const handled = chain({
      handler: async (_event, { lease }) => {
        expect(stage.record('job').holderIdentity).toBe(lease.holderIdentity);
        return lease.isHeld();
      },
    });

    expect(await handled('job', stage.context())).toBe(true);
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });

  test('gives the lease under the contextKey, in the very context of the request', async () => {
    const context = stage.context();
    const handled = chain({
      options: { contextKey: 'leader' as never },
      handler: async (_event, seen) => seen === context && Object.hasOwn(seen, 'leader'),
    });

    expect(await handled('job', context)).toBe(true);
  });

  test('takes a handler that is not async', async () => {
    expect(await chain({ handler: () => 'done' })('job', stage.context())).toBe('done');
    expect(stage.record('job').vacant).toBe(true);
  });

  test('releases when the handler throws, and lets that very error through', async () => {
    const error = new Error('broken');
    const handled = chain({ handler: () => Promise.reject(error) });

    expect(await rejection(handled('job', stage.context()))).toBe(error);
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.clock.timers).toBe(0);
  });

  const returned = { early: true };
  const error = new Error('broken');
  const fails: Handler = () => Promise.reject(error);
  const throwing = () => {
    throw error;
  };
  /** What becomes of the lease, and what the caller gets: a value, or an error. */
  const situations: [string, Parts, 'released' | 'left to expire' | 'never taken', unknown][] = [
    [
      'a later middleware returns early',
      { inner: { before: () => returned } },
      'left to expire',
      returned,
    ],
    ['a later middleware’s before throws', { inner: { before: throwing } }, 'released', error],
    [
      'an earlier middleware’s before throws',
      { outer: { before: throwing } },
      'never taken',
      error,
    ],
    [
      'an earlier middleware returns early',
      { outer: { before: () => returned } },
      'never taken',
      returned,
    ],
    [
      'a later middleware’s after returns a value',
      { inner: { after: () => returned } },
      'left to expire',
      returned,
    ],
    ['a later middleware’s after throws', { inner: { after: throwing } }, 'released', error],
    [
      'an earlier middleware’s after returns a value',
      { outer: { after: () => returned } },
      'released',
      returned,
    ],
    ['an earlier middleware’s after throws', { outer: { after: throwing } }, 'released', error],
    [
      'a later middleware’s onError returns a value',
      { handler: fails, inner: { onError: () => returned } },
      'left to expire',
      returned,
    ],
    [
      'a later middleware’s onError throws',
      { handler: fails, inner: { onError: throwing } },
      'left to expire',
      error,
    ],
    [
      'a later middleware’s onError only sets the response',
      { handler: fails, inner: { onError: (request) => void (request.response = returned) } },
      'released',
      returned,
    ],
    [
      'an earlier middleware’s onError returns a value',
      { handler: fails, outer: { onError: () => returned } },
      'released',
      returned,
    ],
    [
      'an earlier middleware’s onError throws',
      { handler: fails, outer: { onError: throwing } },
      'released',
      error,
    ],
  ];

  describe.each(situations)('when %s', (_situation, parts, outcome, result) => {
    const ask = (handled: Chain) =>
      handled('job', stage.context()).catch((thrown: unknown) => thrown);

    test(`the lease is ${outcome}`, async () => {
      expect(await ask(chain(parts))).toEqual(result);

      expect(stage.store.count('acquire')).toBe(outcome === 'never taken' ? 0 : 1);
      expect(stage.store.count('release')).toBe(outcome === 'released' ? 1 : 0);
      expect(stage.record('job').vacant).toBe(outcome !== 'left to expire');
      if (outcome !== 'left to expire') expect(stage.clock.timers).toBe(0);
    });

    test('nothing of it goes on into the next request of this environment', async () => {
      const own: number[] = [];
      let misbehave = true;
      /** The first request only is treated so. */
      const only = (middleware: Middleware = {}): Middleware => ({
        before: (request) => (misbehave ? middleware.before?.(request) : undefined),
        after: (request) => (misbehave ? middleware.after?.(request) : undefined),
        onError: (request) => (misbehave ? middleware.onError?.(request) : undefined),
      });
      const after = gate();
      const handled = chain({
        outer: only(parts.outer),
        inner: only(parts.inner),
        handler: (event, context) => {
          if (misbehave) return (parts.handler ?? (() => Promise.resolve('done')))(event, context);
          own.push(stage.clock.timers);
          return after.opened;
        },
      });
      await ask(handled);
      misbehave = false;
      const next = handled('next', stage.context(600_000));
      await stage.clock.advance(60_000);

      // The renewal and the end of belief of its own lease, and nothing else.
      expect(own).toEqual([2]);
      expect(stage.store.count('renew')).toBe(30);
      after.open();
      await stage.until(next);
      expect(stage.clock.timers).toBe(0);
    });
  });

  describe('middy’s early time-out', () => {
    let work: Gate;
    let lease: Lease;
    /** Runs until no more than `leftMs` is left, and then goes on. */
    const slow =
      (forMs: number): Handler =>
      async (_event, context) => {
        lease = context.lease;
        stage.clock.freeze(forMs);
        await work.opened;
        return 'late';
      };
    beforeEach(() => (work = gate()));

    const otherError = Object.assign(new Error('Service Unavailable'), { statusCode: 503 });
    test.each<[string, Plugin, number, unknown]>([
      ['by default', {}, 5, expect.objectContaining({ name: 'TimeoutError' })],
      ['that comes earlier', { timeoutEarlyInMillis: 40 }, 40, expect.any(Error)],
      ['that returns a response', { timeoutEarlyResponse: () => returned }, 5, returned],
      [
        'that throws an error of another name',
        {
          timeoutEarlyResponse: () => {
            throw otherError;
          },
        },
        5,
        otherError,
      ],
    ])(
      '%s, leaves the lease: the handler is still at work',
      async (_how, plugin, early, result) => {
        const handled = chain({
          plugin,
          options: { timeoutEarlyInMillis: early },
          handler: slow(30),
        });
        const answer = await handled('job', stage.context(30 + early)).catch((e: unknown) => e);

        expect(answer).toEqual(result);
        expect(stage.record('job').vacant).toBe(false);
        expect(lease.signal.aborted).toBe(true);
        expect(lease.isHeld()).toBe(false);
        expect(stage.clock.timers).toBe(0);

        work.open();
        await stage.clock.advance(60_000);
        expect(stage.store.sent).toEqual(['acquire']);
      },
    );

    test('that comes earlier than we were told, is known by its error', async () => {
      const handled = chain({ plugin: { timeoutEarlyInMillis: 500 }, handler: slow(20) });
      await rejection(handled('job', stage.context(520)));

      expect(stage.store.sent).toEqual(['acquire']);
      work.open();
    });

    test('is not a TimeoutError that the handler itself throws', async () => {
      const handled = chain({
        handler: () => Promise.reject(new DOMException('fetch took too long', 'TimeoutError')),
      });
      await rejection(handled('job', stage.context()));

      expect(stage.store.sent).toEqual(['acquire', 'release']);
    });

    test('that is switched off leaves the last word to the handler', async () => {
      const handled = chain({
        plugin: { timeoutEarlyInMillis: 0 },
        options: { timeoutEarlyInMillis: 0 },
        handler: async () => stage.clock.freeze(29),
      });
      await handled('job', stage.context(30));

      expect(stage.record('job').vacant).toBe(true);
    });
  });

  describe('when another holds the lease', () => {
    beforeEach(() => stage.holds('somebody', 'job', 60_000));

    test('answers early with who holds it, and the handler does not run', async () => {
      let ran = false;
      const handled = chain({ handler: async () => (ran = true) });

      expect(await handled('job', stage.context())).toMatchObject({
        skipped: true,
        holderIdentity: 'somebody',
        fencingToken: 7,
      });
      expect(ran).toBe(false);
      expect(stage.store.sent).toEqual(['acquire']);
      expect(stage.clock.timers).toBe(0);
    });

    test('throws where it is told to', async () => {
      const handled = chain({ options: { whenHeld: 'throw' } });

      expect(isLeaseError(await rejection(handled('job', stage.context())), 'lease-held')).toBe(
        true,
      );
      expect(stage.clock.timers).toBe(0);
    });

    test('waits where it is told to', async () => {
      const handled = chain({ options: { whenHeld: 'wait' } });

      expect(await stage.until(handled('job', stage.context(300_000)), 60_200)).toBe('done');
      expect(stage.record('job')).toMatchObject({ vacant: true, leaseTransitions: 8 });
    });
  });
});
