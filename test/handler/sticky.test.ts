// A sticky lease is kept between the warm invocations of one environment, until it expires.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import { gate, rejection, Stage } from './stage.ts';

type Context = ReturnType<Stage['context']>;

let stage: Stage;
beforeEach(() => (stage = new Stage()));
afterEach(() => vi.unstubAllEnvs());

/** 15 / 10 / 2 s: fresh for 2 s after each write, believed for 10 s, expired after 15 s. */
const sticky = (
  work: (lease: Lease, event: string) => unknown = () => 'done',
  options: Partial<WithLeaseOptions<string, Context>> = {},
) =>
  withLease<string, unknown, Context>(
    { ...stage.options, name: 'job', leaseDurationSeconds: 15, sticky: true, ...options },
    (event, { lease }) => work(lease, event),
  );
const invoke = (handler: ReturnType<typeof sticky>, event = '') =>
  stage.until(handler(event, stage.context()));

describe('a sticky lease', () => {
  test('is kept for the next invocation, with its token: no request while it is fresh', async () => {
    const handler = sticky((lease) => [lease.holderIdentity, lease.fencingToken]);

    const first = await handler('', stage.context());
    const second = await handler('', stage.context());

    expect(second).toEqual(first);
    expect(stage.store.sent).toEqual(['acquire']);
    expect(stage.record('job').vacant).toBe(false);
  });

  test('leaves no timer between invocations: everything is frozen there', async () => {
    const handler = sticky();
    await invoke(handler);

    expect(stage.clock.timers).toBe(0);
    await stage.clock.advance(3_600_000);
    expect(stage.store.sent).toEqual(['acquire']);
  });

  test('leaves no timer either when a renewal is under way as the handler returns', async () => {
    const answer = gate();
    const handler = sticky(async () => {
      await stage.clock.advance(2_000);
      return 'done';
    });
    stage.store.before = (what) => (what === 'renew' ? answer.opened : undefined);
    const running = handler('', stage.context());
    await stage.clock.advance(2_500);
    answer.open();

    expect(await stage.until(running)).toBe('done');
    expect(stage.store.sent).toEqual(['acquire', 'renew']);
    expect(stage.clock.timers).toBe(0);
    expect(stage.errors()).toEqual([]);
  });

  test('is first checked, then renewed where it is not fresh, before the handler runs', async () => {
    const handler = sticky((lease) => [lease.fencingToken, ...stage.store.sent]);
    await handler('', stage.context());
    stage.clock.freeze(6_000);

    expect(await handler('', stage.context())).toEqual([1, 'acquire', 'renew']);
  });

  test('goes on being renewed while a later invocation works', async () => {
    const work = gate();
    const handler = sticky((_, event) => (event === 'long' ? work.opened : 'done'));
    await handler('', stage.context());
    stage.clock.freeze(6_000);

    const running = handler('long', stage.context(300_000));
    await stage.clock.advance(60_000);
    expect(stage.record('job').leaseTransitions).toBe(1);
    expect(stage.record('job').expireTimeMs).toBeGreaterThan(stage.nowMs + 12_000);
    work.open();
    await stage.until(running);
  });

  test('that expired in a freeze is taken as a new tenure with a new token (L5)', async () => {
    const handler = sticky((lease) => [lease.fencingToken, lease.holderIdentity]);
    const first = (await handler('', stage.context())) as [number, string];
    stage.clock.freeze(15_001);

    const second = (await handler('', stage.context())) as [number, string];

    expect([first[0], second[0]]).toEqual([1, 2]);
    expect(second[1]).not.toBe(first[1]);
    expect(stage.store.sent).toEqual(['acquire', 'acquire']);
  });

  test('whose belief is over before it has expired does not lock its own environment out', async () => {
    const handler = sticky((lease) => lease.fencingToken);
    await handler('', stage.context());
    stage.clock.freeze(12_000);

    expect(await handler('', stage.context())).toBe(2);
    expect(stage.store.sent).toEqual(['acquire', 'release', 'acquire']);
  });

  test('that was slept through by the handler itself is not kept, and that is logged', async () => {
    const handler = sticky(() => stage.clock.freeze(20_000));
    await handler('', stage.context());

    expect(stage.errors()).toMatchObject([{ details: { reason: 'expired', released: false } }]);
    expect(stage.clock.timers).toBe(0);
  });

  test('that another took meanwhile is theirs: the invocation is skipped', async () => {
    const handler = sticky();
    await handler('', stage.context());
    stage.clock.freeze(5_000);
    stage.holds('thief', 'job', 60_000, 9);

    expect(await handler('', stage.context())).toMatchObject({
      skipped: true,
      holderIdentity: 'thief',
      fencingToken: 9,
    });
    expect(stage.record('job').holderIdentity).toBe('thief');
  });

  test('carries on under what belief is left when the check is not answered (L6)', async () => {
    const handler = sticky((lease) => lease.remainingMs());
    await handler('', stage.context());
    stage.clock.freeze(5_000);
    stage.store.before = () => {
      throw new Error('ECONNRESET');
    };

    expect(await invoke(handler)).toBe(5_000);
  });

  test('has a signal of its own in each invocation', async () => {
    const leases: Lease[] = [];
    const handler = sticky((lease) => leases.push(lease));
    await handler('', stage.context());
    await handler('', stage.context());

    expect(leases[0]?.signal).not.toBe(leases[1]?.signal);
    // What an invocation leaves running has no lease, though the environment has.
    expect(leases[0]?.isHeld()).toBe(false);
  });

  test('is kept for each name of its own', async () => {
    const handler = sticky((lease) => [lease.name, lease.fencingToken], {
      name: (event: string) => event,
    });
    for (const name of ['a', 'b', 'a', 'b']) {
      expect(await handler(name, stage.context())).toEqual([name, 1]);
    }
    expect(stage.store.sent).toEqual(['acquire', 'acquire']);
  });

  test('lasts for its duration after the last invocation, whatever time was left', async () => {
    const handler = sticky();
    await handler('', stage.context(3_000));

    expect(stage.expiries()).toEqual([stage.nowMs + 15_000]);
  });
});

describe('a sticky lease is released', () => {
  test('when the handler throws', async () => {
    const handler = sticky((lease, event) => {
      if (event === 'bad') throw new Error('broken');
      return lease.fencingToken;
    });
    await handler('', stage.context());

    await rejection(handler('bad', stage.context()));
    expect(stage.record('job').vacant).toBe(true);
    expect(await handler('', stage.context())).toBe(2);
    expect(stage.clock.timers).toBe(0);
  });

  test('when the handler releases it', async () => {
    const handler = sticky(async (lease) => {
      await lease.release();
      return lease.fencingToken;
    });

    expect(await handler('', stage.context())).toBe(1);
    expect(stage.record('job').vacant).toBe(true);
    expect(await handler('', stage.context())).toBe(2);
    expect(stage.errors()).toEqual([]);
  });

  test.each(['suspended', 'stepDownRequested'])(
    'after the run in which a renewal has shown %s',
    async (mark) => {
      const work = gate();
      const handler = sticky(() => work.opened);
      const running = handler('', stage.context());
      await stage.clock.advance(1_000);
      stage.mark('job', { [mark]: { M: {} } });
      await stage.clock.advance(3_000);
      expect(stage.record('job').vacant).toBe(false);

      work.open();
      await stage.until(running);
      expect(stage.record('job').vacant).toBe(true);
      expect(stage.clock.timers).toBe(0);
    },
  );

  test('before the run, when the check shows that it is suspended: nothing runs', async () => {
    let runs = 0;
    const handler = sticky(() => (runs += 1));
    await handler('', stage.context());
    stage.mark('job', { suspended: { M: {} } });
    stage.clock.freeze(5_000);

    expect(await handler('', stage.context())).toMatchObject({ reason: 'suspended' });
    expect(runs).toBe(1);
    expect(stage.record('job').vacant).toBe(true);
  });

  test('after the run, when the check before it shows stepDownRequested', async () => {
    const handler = sticky((lease) => lease.fencingToken);
    await handler('', stage.context());
    stage.mark('job', { stepDownRequested: { M: {} } });
    stage.clock.freeze(5_000);

    expect(await handler('', stage.context())).toBe(1);
    expect(stage.record('job').vacant).toBe(true);
    expect(await handler('', stage.context())).toBe(2);
  });

  test.each(['suspended', 'stepDownRequested'])(
    'by the next run at the latest, when the last renewal of a run shows %s',
    async (mark) => {
      const answer = gate();
      const work = gate();
      const handler = sticky(() => work.opened);
      stage.store.before = (what) => (what === 'renew' ? answer.opened : undefined);
      const running = handler('', stage.context());
      await stage.clock.advance(2_000);
      stage.mark('job', { [mark]: { M: {} } });
      work.open();
      await stage.clock.advance(0);
      answer.open();
      await stage.until(running);

      await handler('', stage.context());
      expect(stage.record('job').vacant).toBe(true);
    },
  );
});

describe('two interleaved invocations in one process', () => {
  test.each([
    ['fresh', 0],
    ['to be renewed', 5_000],
  ])('never share a kept lease that is %s', async (_, frozenMs) => {
    const work = gate();
    let running = 0;
    const handler = sticky(async (_lease, event) => {
      if (event === '') return 'done';
      running += 1;
      await work.opened;
      return 'done';
    });
    await handler('', stage.context());
    stage.clock.freeze(frozenMs);

    const both = [handler('a', stage.context()), handler('b', stage.context())];
    await stage.clock.advance(100);
    expect(running).toBe(1);
    work.open();

    expect(await stage.until(Promise.all(both))).toEqual([
      'done',
      expect.objectContaining({ skipped: true }),
    ]);
    expect(await handler('', stage.context())).toBe('done');
  });

  test('never share one whose check fails', async () => {
    const handler = sticky((lease) => lease.fencingToken);
    await handler('', stage.context());
    stage.clock.freeze(20_000);

    const answers = await stage.until(
      Promise.all([handler('a', stage.context()), handler('b', stage.context())]),
    );
    const tokens = answers.filter((answer) => typeof answer === 'number');
    expect(new Set(tokens).size).toBe(tokens.length);
    expect(stage.clock.timers).toBe(0);
  });
});

describe('a sticky lease is refused', () => {
  test('on Managed Instances, where invocations share the process: before any write', async () => {
    vi.stubEnv('AWS_LAMBDA_MAX_CONCURRENCY', '10');

    const error = await rejection(sticky()('', stage.context()));

    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    expect((error as Error).message).toMatch(/sticky.*Managed Instances/);
    expect(stage.store.sent).toEqual([]);
  });

  test('without a duration, at once', () => {
    expect(() => withLease({ ...stage.options, name: 'job', sticky: true }, () => 1)).toThrow(
      /sticky needs leaseDurationSeconds/,
    );
  });
});
