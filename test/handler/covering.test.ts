// Without a duration the lease covers the invocation's remaining time plus the tolerance, and is
// never renewed: no event loop can be starved of a heartbeat that does not exist.

import { beforeEach, describe, expect, test } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import { gate, rejection, Stage } from './stage.ts';

type Context = ReturnType<Stage['context']>;

let stage: Stage;
beforeEach(() => (stage = new Stage()));

const job = (
  work: (lease: Lease) => unknown,
  options: Partial<WithLeaseOptions<null, Context>> = {},
) =>
  withLease<null, unknown, Context>({ ...stage.options, name: 'job', ...options }, (_, context) =>
    work(context.lease),
  );

describe('a lease without a duration', () => {
  test('lasts for the remaining time and 5 s of tolerance', async () => {
    const deadlineMs = stage.nowMs + 60_000;
    await job((lease) => expect(lease.remainingMs()).toBe(60_000))(null, stage.context(60_000));

    expect(stage.expiries()).toEqual([deadlineMs + 5_000]);
    expect(stage.record('job').leaseDurationMs).toBe(65_000);
  });

  test('lasts for the remaining time and the tolerance that is set', async () => {
    const deadlineMs = stage.nowMs + 60_000;
    await job(() => 1, { toleranceSeconds: 2.75 })(null, stage.context(60_000));

    expect(stage.expiries()).toEqual([deadlineMs + 2_750]);
  });

  test('says once, and not in each invocation, that so small a tolerance proves no clock', async () => {
    const handler = job(() => 1, { toleranceSeconds: 2 });
    for (let i = 0; i < 3; i++) await handler(null, stage.context(60_000));

    const warnings = stage.logged.filter(({ level }) => level === 'warn');
    expect(warnings).toMatchObject([
      { message: expect.stringMatching(/differing by at most 2 s/) as string },
    ]);
  });

  test('has no timer for renewals: one that ends belief at the deadline, and no other', async () => {
    const work = gate();
    const running = job(() => work.opened)(null, stage.context(900_000));
    await stage.clock.advance(0);
    expect(stage.clock.timers).toBe(1);

    await stage.clock.advance(890_000);
    expect(stage.store.sent).toEqual(['acquire']);
    expect(stage.clock.timers).toBe(1);

    work.open();
    await stage.until(running);
    expect(stage.clock.timers).toBe(0);
  });

  test('is held to the deadline, and its signal aborts there', async () => {
    const work = gate();
    let seen: Lease | undefined;
    const running = job((lease) => {
      seen = lease;
      return work.opened;
    })(null, stage.context(60_000));

    await stage.clock.advance(59_999);
    expect(seen?.signal.aborted).toBe(false);
    expect(seen?.isHeld()).toBe(true);

    await stage.clock.advance(1);
    expect(seen?.signal.aborted).toBe(true);
    expect(isLeaseError(seen?.signal.reason, 'lease-lost')).toBe(true);
    expect(seen?.isHeld()).toBe(false);
    work.open();
    await stage.until(running);
  });

  test('counts from before the send: a slow store shortens it, and does not lengthen it', async () => {
    stage.store.after = async (what) => {
      if (what === 'acquire') await stage.clock.advance(900);
    };

    await job((lease) => expect(lease.remainingMs()).toBe(59_100))(null, stage.context(60_000));
  });

  test('survives an event loop that is busy for most of the invocation', async () => {
    await job((lease) => {
      stage.clock.freeze(58_000);
      expect(lease.isHeld()).toBe(true);
    })(null, stage.context(60_000));

    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.errors()).toEqual([]);
  });

  test('is not released by work that outlasted it: others may have started (L4)', async () => {
    const work = gate();
    const running = job(() => work.opened)(null, stage.context(10_000));
    await stage.clock.advance(10_001);
    work.open();
    await stage.until(running);

    expect(stage.store.sent).toEqual(['acquire']);
    expect(stage.errors()).toMatchObject([{ details: { reason: 'expired', released: false } }]);
  });

  test.each([
    ['both clocks run on', {}],
    ['the monotonic clock stands still', { monotonicRuns: false }],
    ['the wall clock stands still', { wallRuns: false }],
  ])(
    'ends in a freeze while %s: at the first look, before any timer (L4, L6)',
    async (_, clocks) => {
      const aborts: unknown[] = [];
      let looked = false;
      await job((lease) => {
        lease.signal.addEventListener('abort', () => aborts.push(lease.signal.reason));
        stage.clock.freeze(60_000, clocks);
        expect(lease.signal.aborted).toBe(true);
        expect(lease.isHeld()).toBe(false);
        expect(lease.remainingMs()).toBe(0);
        expect(() => lease.signal.throwIfAborted()).toThrow(/was lost: expired/);
        looked = true;
      })(null, stage.context(60_000));

      expect(looked).toBe(true);
      expect(aborts).toMatchObject([{ code: 'lease-lost', reason: 'expired' }]);
      expect(stage.store.sent).toEqual(['acquire']);
    },
  );

  test('that was slept through is reported also when nobody has looked, and not released', async () => {
    await job(() => stage.clock.freeze(60_000))(null, stage.context(60_000));

    expect(stage.store.sent).toEqual(['acquire']);
    expect(stage.errors()).toMatchObject([{ details: { reason: 'expired', released: false } }]);
    expect(stage.clock.timers).toBe(0);
  });

  test('is never revived: a wall clock that is set back changes nothing (L4)', async () => {
    await job((lease) => {
      stage.clock.freeze(60_000);
      expect(lease.isHeld()).toBe(false);
      stage.clock.stepWall(-3_600_000);
      expect(lease.isHeld()).toBe(false);
      expect(lease.signal.aborted).toBe(true);
    })(null, stage.context(60_000));
  });

  test('of a killed invocation is taken over right after its deadline plus the tolerance', async () => {
    void job(() => gate().opened)(null, stage.context(10_000));
    await stage.clock.advance(15_000);
    expect(await job(() => 1)(null, stage.context())).toMatchObject({ skipped: true });

    await stage.clock.advance(1);
    expect(await job(() => 'next')(null, stage.context())).toBe('next');
    expect(stage.record('job').leaseTransitions).toBe(2);
  });
});

describe('a context that tells no time', () => {
  test.each([
    ['is missing', undefined],
    ['is null', null],
    ['has no getRemainingTimeInMillis', { awsRequestId: 'x' }],
    ['has one that is no function', { getRemainingTimeInMillis: 3_000 }],
  ])('%s: an error that says what to set, before any write', async (_, context) => {
    const error = await rejection(job(() => 1)(null, context as never));

    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    expect((error as Error).message).toMatch(
      /leaseDurationSeconds is missing.*getRemainingTimeInMillis/s,
    );
    expect(stage.store.sent).toEqual([]);
  });

  test.each([undefined, null, { awsRequestId: 'x' }])(
    'is enough beside a duration: %j',
    async (context) => {
      const handler = job((lease) => lease.fencingToken, { leaseDurationSeconds: 15 });

      expect(await handler(null, context as never)).toBe(1);
      expect(stage.store.sent).toEqual(['acquire', 'release']);
    },
  );

  test.each([
    ['NaN', Number.NaN],
    ['Infinity', Infinity],
    ['"5000"', '5000'],
    ['undefined', undefined],
  ])('but %s is an error, before any write', async (_, left) => {
    const context = { getRemainingTimeInMillis: () => left } as never;

    const error = await rejection(job(() => 1)(null, context));

    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    expect((error as Error).message).toContain(String(left));
    expect(stage.store.sent).toEqual([]);
  });

  test.each([0, -3])('or says that %d ms are left: nothing is taken', async (left) => {
    const error = await rejection(
      job(() => 1)(null, { awsRequestId: 'x', getRemainingTimeInMillis: () => left }),
    );

    expect(isLeaseError(error, 'lease-stopped')).toBe(true);
    expect(error).toHaveProperty('reason', 'deadline');
    expect(stage.store.sent).toEqual([]);
  });
});
