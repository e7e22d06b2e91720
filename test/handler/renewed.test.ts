// With an explicit duration the lease is renewed in the background while the handler runs.

import { beforeEach, describe, expect, test } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import { gate, rejection, Stage, type Gate } from './stage.ts';

type Context = ReturnType<Stage['context']>;

let stage: Stage;
let work: Gate;
let held: Lease;
beforeEach(() => {
  stage = new Stage();
  work = gate();
});

/** 15 / 10 / 2 s: a tolerance of 5 s. */
const job = (
  body: (lease: Lease) => unknown = () => work.opened,
  options: Partial<WithLeaseOptions<null, Context>> = {},
) =>
  withLease<null, unknown, Context>(
    { ...stage.options, name: 'job', leaseDurationSeconds: 15, ...options },
    (_, { lease }) => {
      held = lease;
      return body(lease);
    },
  );

async function finish(running: Promise<unknown>): Promise<unknown> {
  work.open();
  return stage.until(running);
}

describe('a lease with a duration', () => {
  test('is renewed every retryPeriod: one write each', async () => {
    const running = job()(null, stage.context(60_000));
    await stage.clock.advance(9_999);
    expect(stage.store.sent).toEqual(['acquire', 'renew', 'renew', 'renew', 'renew']);

    await finish(running);
    expect(stage.store.sent.at(-1)).toBe('release');
    expect(stage.clock.timers).toBe(0);
  });

  test('keeps its token through all renewals (L2), and is held to the end', async () => {
    const running = job()(null, stage.context(60_000));
    await stage.clock.advance(45_000);

    expect(stage.record('job').leaseTransitions).toBe(1);
    expect(held.isHeld()).toBe(true);
    expect(held.signal.aborted).toBe(false);
    await finish(running);
  });

  test.each([8_000, 20_000, 31_234, 60_000])(
    'with %d ms left is never claimed past the deadline plus the tolerance',
    async (leftMs) => {
      const deadlineMs = stage.nowMs + leftMs;
      const running = job()(null, stage.context(leftMs));
      await stage.clock.advance(leftMs + 30_000);

      expect(Math.max(...stage.expiries())).toBe(deadlineMs + 5_000);
      await finish(running);
    },
  );

  test('is not renewed any more once it covers the deadline', async () => {
    const running = job()(null, stage.context(20_000));
    await stage.clock.advance(60_000);

    // Those up to 10 s claim less than the deadline; that at 10 s claims all there is.
    expect(stage.store.count('renew')).toBe(5);
    await finish(running);
  });

  test('is not renewed for fractions of a millisecond, which real clocks have', async () => {
    await stage.clock.advance(0.37);
    const running = job()(null, stage.context(20_000));
    stage.clock.setTimer(1_000.13, () => undefined);
    stage.clock.freeze(0.21);
    await stage.clock.advance(60_000);

    expect(stage.store.count('renew')).toBeLessThanOrEqual(6);
    await finish(running);
  });

  test('aborts its signal at the deadline', async () => {
    const running = job()(null, stage.context(20_000));
    await stage.clock.advance(19_999);
    expect(held.signal.aborted).toBe(false);
    expect(held.isHeld()).toBe(true);

    await stage.clock.advance(1);
    expect(held.signal.aborted).toBe(true);
    expect(isLeaseError(held.signal.reason, 'lease-lost')).toBe(true);
    await finish(running);
  });

  test('survives a busy event loop shorter than its renew deadline', async () => {
    const running = job()(null, stage.context(120_000));
    for (let i = 0; i < 5; i++) {
      await stage.clock.advance(1_000);
      stage.clock.freeze(8_500);
      expect(held.isHeld()).toBe(true);
      await stage.clock.advance(10);
    }
    expect(stage.record('job').leaseTransitions).toBe(1);

    await finish(running);
    expect(stage.errors()).toEqual([]);
  });

  test('survives a store that is out of reach for less than its renew deadline', async () => {
    const running = job()(null, stage.context(120_000));
    await stage.clock.advance(3_000);
    stage.store.before = () => {
      throw new Error('ETIMEDOUT');
    };
    await stage.clock.advance(8_000);
    stage.store.before = () => undefined;
    await stage.clock.advance(2_000);

    expect(held.isHeld()).toBe(true);
    await finish(running);
    expect(stage.errors()).toEqual([]);
  });
});

describe('a lease that is lost while its handler works', () => {
  const losses = [
    ['taken over', () => stage.holds('thief', 'job', 60_000, 9)],
    ['evicted', () => stage.table.poke('default/job', vacated())],
    ['record deleted', () => stage.table.poke('default/job', undefined)],
  ] as const;
  const vacated = () =>
    Object.fromEntries(
      Object.entries(stage.table.peek('default/job') ?? {}).filter(
        ([name]) => name !== 'holderIdentity' && name !== 'expireTime',
      ),
    );

  test.each(losses)('because it was %s: is told at the next renewal', async (reason, lose) => {
    const running = job()(null, stage.context(60_000));
    await stage.clock.advance(3_000);
    lose();
    await stage.clock.advance(1_000);

    expect(held.signal.aborted).toBe(true);
    expect(held.signal.reason).toMatchObject({ code: 'lease-lost', reason });
    expect(held.isHeld()).toBe(false);
    expect(held.remainingMs()).toBe(0);
    await finish(running);
  });

  test.each(losses)('because it was %s: releases nothing, and logs why', async (reason, lose) => {
    const running = job()(null, stage.context(60_000));
    await stage.clock.advance(3_000);
    lose();
    const sentBefore = stage.store.sent.length;
    await stage.clock.advance(20_000);
    await finish(running);

    expect(stage.store.count('release')).toBe(0);
    expect(stage.store.sent.slice(sentBefore).filter((sent) => sent === 'renew')).toHaveLength(1);
    expect(stage.errors()).toMatchObject([
      { message: 'A lease ended before its work did.', details: { reason, released: false } },
    ]);
    expect(stage.clock.timers).toBe(0);
  });

  test('because nothing was answered: ends at the renew deadline, whatever hangs (L4)', async () => {
    const running = job()(null, stage.context(60_000));
    await stage.clock.advance(2_001);
    stage.store.before = () => gate().opened;

    await stage.clock.advance(9_998);
    expect(held.signal.aborted).toBe(false);
    await stage.clock.advance(1);
    expect(held.signal.aborted).toBe(true);
    expect(held.signal.reason).toMatchObject({ reason: 'expired' });

    stage.store.before = () => undefined;
    await stage.clock.advance(30_000);
    expect(held.isHeld()).toBe(false);
    await finish(running);
    expect(stage.errors()).toMatchObject([{ details: { reason: 'expired' } }]);
  });

  test('is reported also when a renewal under way at the end shows it', async () => {
    const answer = gate();
    stage.store.before = (what) => (what === 'renew' ? answer.opened : undefined);
    const running = job()(null, stage.context(60_000));
    await stage.clock.advance(2_000);
    stage.holds('thief', 'job', 60_000, 9);
    work.open();
    await stage.clock.advance(100);
    answer.open();
    await stage.until(running);

    expect(stage.store.sent).toEqual(['acquire', 'renew']);
    expect(stage.errors()).toMatchObject([{ details: { reason: 'taken over', released: false } }]);
  });

  test('still gives the handler its own outcome', async () => {
    const returned = job(async () => {
      await work.opened;
      return 'done';
    })(null, stage.context(60_000));
    await stage.clock.advance(1_000);
    stage.holds('thief', 'job', 60_000, 9);
    await stage.clock.advance(5_000);

    expect(await finish(returned)).toBe('done');
    expect(stage.record('job').holderIdentity).toBe('thief');
  });

  test('may be left by its handler with the reason of the signal', async () => {
    const running = job(async (lease) => {
      await new Promise((_, reject) =>
        lease.signal.addEventListener('abort', () => reject(lease.signal.reason as Error)),
      );
    })(null, stage.context(60_000));
    await stage.clock.advance(1_000);
    stage.holds('thief', 'job', 60_000, 9);

    expect(isLeaseError(await stage.until(rejection(running)), 'lease-lost')).toBe(true);
    expect(stage.record('job').holderIdentity).toBe('thief');
  });
});

describe('a freeze that outlasts the lease', () => {
  test('is noticed by the first look, before any timer and any renewal (L4)', async () => {
    const running = job()(null, stage.context(600_000));
    await stage.clock.advance(3_000);
    const sentBefore = [...stage.store.sent];
    stage.clock.freeze(120_000);

    expect(held.signal.aborted).toBe(true);
    expect(held.isHeld()).toBe(false);
    await stage.clock.advance(30_000);
    expect(stage.store.sent).toEqual(sentBefore);
    await finish(running);
  });

  test('is noticed by the overdue timer: a check and no renewal', async () => {
    const aborted: boolean[] = [];
    const running = job((lease) => {
      lease.signal.addEventListener('abort', () => aborted.push(lease.isHeld()));
      return work.opened;
    })(null, stage.context(600_000));
    await stage.clock.advance(3_000);
    const sentBefore = [...stage.store.sent];
    stage.clock.freeze(120_000);
    await stage.clock.advance(0);

    expect(aborted).toEqual([false]);
    expect(stage.store.sent).toEqual(sentBefore);
    await finish(running);
  });

  test('leaves the lease of whoever took it meanwhile alone', async () => {
    const running = job()(null, stage.context(600_000));
    await stage.clock.advance(3_000);
    stage.clock.freeze(20_000);
    stage.holds('successor', 'job', 60_000, 2);
    const item = stage.table.peek('default/job');
    await stage.clock.advance(1);
    await finish(running);

    expect(stage.table.peek('default/job')).toEqual(item);
  });
});

describe('maxHoldSeconds', () => {
  test('asks the work to finish, and still releases for work that does', async () => {
    const running = job(
      (lease) =>
        new Promise<void>((resolve) => {
          lease.signal.addEventListener('abort', () => resolve());
        }),
      { maxHoldSeconds: 30 },
    )(null, stage.context(600_000));
    await stage.clock.advance(29_999);
    expect(held.signal.aborted).toBe(false);
    await stage.until(running);

    expect(held.signal.reason).toMatchObject({ code: 'lease-stopped', reason: 'hold limit' });
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.errors()).toMatchObject([{ details: { reason: 'hold limit', released: true } }]);
  });

  test('lets the lease of work that hangs expire: no renewal for ever, and no release', async () => {
    const running = job(undefined, { maxHoldSeconds: 30 })(null, stage.context(600_000));
    await stage.clock.advance(36_000);
    const sent = [...stage.store.sent];
    await stage.clock.advance(60_000);

    expect(stage.store.sent).toEqual(sent);
    expect(stage.record('job').vacant).toBe(false);
    expect(held.isHeld()).toBe(false);
    expect(stage.clock.timers).toBe(0);
    await finish(running);
    expect(stage.store.count('release')).toBe(0);
    expect(stage.errors()).toMatchObject([{ details: { reason: 'hold limit', released: false } }]);
  });

  test('holds for a lease without a duration too', async () => {
    const handler = withLease<null, unknown, Context>(
      { ...stage.options, name: 'job', maxHoldSeconds: 30 },
      (_, { lease }) => {
        held = lease;
        return work.opened;
      },
    );
    const running = handler(null, stage.context(600_000));
    await stage.clock.advance(30_000);

    expect(held.signal.aborted).toBe(true);
    await finish(running);
  });
});
