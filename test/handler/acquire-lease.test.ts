// A lease for a block of code: taken, renewed in the background, released when the block is left.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { acquireLease, type AcquireLeaseOptions } from '../../src/acquire-lease.ts';
import { isLeaseError, type LeaseError } from '../../src/errors.ts';
import { gate, rejection, Stage } from './stage.ts';

let stage: Stage;
beforeEach(() => (stage = new Stage()));
afterEach(() => vi.unstubAllEnvs());

const acquire = (options: Partial<AcquireLeaseOptions> = {}) =>
  acquireLease({ ...stage.options, name: 'job', ...options });

describe('await using', () => {
  test('holds the lease for a block, and releases it as the block is left', async () => {
    {
      await using lease = await acquire();
      expect(lease.isHeld()).toBe(true);
      expect(stage.record('job').holderIdentity).toBe(lease.holderIdentity);
    }
    expect(stage.record('job')).toMatchObject({ vacant: true, leaseTransitions: 1 });
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.clock.timers).toBe(0);
  });

  test('releases it when the block throws, and lets the error through', async () => {
    const error = new Error('broken');
    const block = async () => {
      await using lease = await acquire();
      expect(lease.isHeld()).toBe(true);
      throw error;
    };

    expect(await rejection(block())).toBe(error);
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });

  test('renews it while the block lasts: one write in each retryPeriod', async () => {
    {
      await using lease = await acquire();
      await stage.clock.advance(60_500);
      expect(lease.isHeld()).toBe(true);
      expect(lease.fencingToken).toBe(1);
    }
    expect(stage.store.count('renew')).toBe(30);
    expect(stage.store.count('release')).toBe(1);
  });
});

describe('a released lease', () => {
  test('is over at once: before the release is answered (L4)', async () => {
    const lease = await acquire();
    const answer = gate();
    stage.store.before = () => answer.opened;
    const released = lease.release();

    expect(lease.isHeld()).toBe(false);
    expect(lease.remainingMs()).toBe(0);
    expect(lease.signal.aborted).toBe(true);
    answer.open();
    await released;
  });

  test('may be released again: one write', async () => {
    const lease = await acquire();
    await Promise.all([lease.release(), lease.release()]);
    await lease.release();
    await lease[Symbol.asyncDispose]();

    expect(stage.store.sent).toEqual(['acquire', 'release']);
  });

  test('leaves nothing behind: no timer, no listener, no renewal', async () => {
    const controller = new AbortController();
    const remove = vi.spyOn(controller.signal, 'removeEventListener');
    const lease = await acquire({ signal: controller.signal });
    await stage.clock.advance(5_000);
    await lease.release();
    const sent = [...stage.store.sent];

    expect(stage.clock.timers).toBe(0);
    expect(remove).toHaveBeenCalledWith('abort', expect.any(Function));
    controller.abort();
    await stage.clock.advance(60_000);
    expect(stage.store.sent).toEqual(sent);
  });

  test('is given up after a while when nobody answers: it expires (L6)', async () => {
    const lease = await acquire();
    stage.store.before = () => gate().opened;
    await stage.until(lease.release(), 6_100);

    expect(stage.clock.timers).toBe(0);
    expect(stage.logged.map(({ level }) => level)).toEqual(['warn']);
  });

  test('that was lost long ago touches nobody else’s', async () => {
    const lease = await acquire();
    stage.clock.freeze(60_000);
    stage.holds('successor', 'job', 60_000, 2);
    const item = stage.table.peek('default/job');
    await lease.release();

    expect(stage.table.peek('default/job')).toEqual(item);
    expect(stage.store.sent).toEqual(['acquire']);
    expect(stage.clock.timers).toBe(0);
  });
});

describe('a lease that another holds', () => {
  test('is an error with the holder, its token and its expiry: one request', async () => {
    stage.holds('somebody', 'job', 20_000);

    const error = await rejection(acquire());

    expect(isLeaseError(error, 'lease-held')).toBe(true);
    expect((error as LeaseError).record).toMatchObject({
      holderIdentity: 'somebody',
      leaseTransitions: 7,
      expireTimeMs: stage.nowMs + 20_000,
    });
    expect(stage.store.sent).toEqual(['acquire']);
    expect(stage.clock.timers).toBe(0);
  });

  test('is tried once too with maxWaitSeconds: 0', async () => {
    stage.holds('somebody', 'job', 20_000);

    expect(isLeaseError(await rejection(acquire({ maxWaitSeconds: 0 })), 'lease-held')).toBe(true);
    expect(stage.store.sent).toEqual(['acquire']);
  });

  test('is waited for with maxWaitSeconds, and taken within a moment of its expiry', async () => {
    stage.holds('somebody', 'job', 20_000);
    const lease = await stage.until(acquire({ maxWaitSeconds: 30 }), 20_200);

    expect(lease.fencingToken).toBe(8);
    await lease.release();
    expect(stage.clock.timers).toBe(0);
  });

  test('is waited for no longer than maxWaitSeconds; then the error tells who', async () => {
    stage.holds('somebody', 'job', 600_000);
    const beganMs = stage.nowMs;
    const error = await stage.until(rejection(acquire({ maxWaitSeconds: 12.5 })));

    expect(isLeaseError(error, 'lease-held')).toBe(true);
    expect(error).toHaveProperty('record.holderIdentity', 'somebody');
    expect(stage.nowMs - beganMs).toBe(12_500);
    expect(stage.clock.timers).toBe(0);
  });

  test('is told of as it was seen last', async () => {
    stage.holds('first', 'job', 5_000, 7);
    const waiting = rejection(acquire({ maxWaitSeconds: 30 }));
    await stage.clock.advance(3_000);
    stage.holds('second', 'job', 600_000, 8);

    expect(await stage.until(waiting)).toHaveProperty('record.holderIdentity', 'second');
  });
});

describe('a store that does not answer', () => {
  test('is an error that says so: the lease may be ours, and expires then (L7)', async () => {
    stage.store.before = () => {
      throw new Error('ENOTFOUND');
    };

    expect(isLeaseError(await rejection(acquire()), 'store-unavailable')).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });

  test('is borne for as long as maxWaitSeconds allows', async () => {
    let failures = 9;
    stage.store.before = () => {
      if (failures-- > 0) throw new Error('ENOTFOUND');
    };
    const lease = await stage.until(acquire({ maxWaitSeconds: 60 }));

    expect(lease.isHeld()).toBe(true);
    await lease.release();
  });

  test('is what the error tells of when it was the last to be heard of', async () => {
    stage.store.before = () => {
      throw new Error('ENOTFOUND');
    };
    const error = await stage.until(rejection(acquire({ maxWaitSeconds: 10 })));

    expect(isLeaseError(error, 'store-unavailable')).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });
});

describe('the caller’s signal', () => {
  const reason = new Error('shutting down');

  test('that has aborted before sends nothing', async () => {
    const error = await rejection(acquire({ signal: AbortSignal.abort(reason) }));

    expect(isLeaseError(error, 'lease-stopped')).toBe(true);
    expect(error).toHaveProperty('cause', reason);
    expect(stage.store.sent).toEqual([]);
  });

  test.each([undefined, 60])(
    'that aborts while the write is under way leaves no lease (maxWaitSeconds %s)',
    async (maxWaitSeconds) => {
      const controller = new AbortController();
      stage.store.after = (what) => {
        if (what === 'acquire') controller.abort(reason);
      };
      const options = maxWaitSeconds === undefined ? {} : { maxWaitSeconds };
      const acquiring = rejection(acquire({ signal: controller.signal, ...options }));

      expect(isLeaseError(await stage.until(acquiring), 'lease-stopped')).toBe(true);
      expect(stage.store.sent).toEqual(['acquire', 'release']);
      expect(stage.record('job').vacant).toBe(true);
      expect(stage.clock.timers).toBe(0);
    },
  );

  test('that aborts while waiting ends the wait at once, and leaves no lease', async () => {
    stage.holds('somebody', 'job', 20_000);
    const controller = new AbortController();
    const waiting = rejection(acquire({ maxWaitSeconds: 60, signal: controller.signal }));
    await stage.clock.advance(7_000);
    controller.abort(reason);
    const beganMs = stage.nowMs;

    const error = await stage.until(waiting);

    expect(isLeaseError(error, 'lease-stopped')).toBe(true);
    expect(error).toHaveProperty('cause', reason);
    expect(stage.nowMs - beganMs).toBeLessThanOrEqual(50);
    expect(stage.clock.timers).toBe(0);
    await stage.clock.advance(60_000);
    expect(stage.record('job').leaseTransitions).toBe(7);
  });

  test('asks the work to finish; the lease is renewed until it does, then released', async () => {
    const controller = new AbortController();
    const lease = await acquire({ signal: controller.signal });
    controller.abort(reason);

    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: 'lease-stopped', reason: 'stopped' });
    await stage.clock.advance(30_000);
    expect(lease.isHeld()).toBe(true);
    await lease.release();
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });
});

describe('a lease of acquireLease', () => {
  test('is lost when another has it: its signal says why, and nothing is left', async () => {
    const lease = await acquire();
    await stage.clock.advance(1_000);
    stage.holds('thief', 'job', 60_000, 9);
    await stage.clock.advance(20_000);

    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ code: 'lease-lost', reason: 'taken over' });
    expect(stage.clock.timers).toBe(0);
    await lease.release();
    expect(stage.record('job').holderIdentity).toBe('thief');
  });

  test.each([
    ['is lost in a freeze', () => stage.clock.freeze(60_000)],
    ['is taken over', () => stage.holds('thief', 'job', 60_000, 9)],
    ['has reached its hold limit', () => undefined],
  ])('may be released as its signal aborts, because it %s: no timer is left', async (_, lose) => {
    const lease = await acquire({ maxHoldSeconds: 100 });
    const over = new Promise<void>((resolve) =>
      lease.signal.addEventListener('abort', () => void lease.release().then(resolve)),
    );
    lose();
    await stage.until(over);

    expect(lease.isHeld()).toBe(false);
    expect(stage.clock.timers).toBe(0);
  });

  test('whose work hangs is given up after maxHoldSeconds, and expires', async () => {
    const lease = await acquire({ maxHoldSeconds: 30 });
    await stage.clock.advance(60_000);

    expect(lease.isHeld()).toBe(false);
    expect(lease.signal.reason).toMatchObject({ reason: 'hold limit' });
    expect(stage.clock.timers).toBe(0);
    expect(stage.store.count('release')).toBe(0);
    await lease.release();
  });

  test('excludes a second one of the same process: identities differ, not processes', async () => {
    await using first = await acquire();

    expect(first.isHeld()).toBe(true);
    expect(isLeaseError(await rejection(acquire()), 'lease-held')).toBe(true);
  });
});
