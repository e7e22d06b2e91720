// Lambda Managed Instances: many invocations at once in one process, nothing is frozen, and a
// time-out is reported but not enforced. So the deadline asks the work to finish, and the lease is
// kept until it really has.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import { gate, rejection, Stage, type Gate } from './stage.ts';

type Context = ReturnType<Stage['context']>;

let stage: Stage;
let work: Gate;
let held: Lease;
beforeEach(() => {
  vi.stubEnv('AWS_LAMBDA_MAX_CONCURRENCY', '16');
  stage = new Stage();
  work = gate();
});
afterEach(() => vi.unstubAllEnvs());

const job = (
  body: (lease: Lease, event: string) => unknown = () => work.opened,
  options: Partial<WithLeaseOptions<string, Context>> = {},
) =>
  withLease<string, unknown, Context>({ ...stage.options, name: 'job', ...options }, (event, c) => {
    held = c.lease;
    return body(c.lease, event);
  });

async function finish(running: Promise<unknown>): Promise<unknown> {
  work.open();
  return stage.until(running);
}

describe('many invocations in one process', () => {
  test('hold different leases at once, each its own', async () => {
    const handler = job(() => work.opened, { name: (event: string) => event });
    const names = Array.from({ length: 12 }, (_, i) => `tenant-${i}`);

    const all = names.map((name) => handler(name, stage.context()));
    await stage.clock.advance(5_000);
    const holders = names.map((name) => stage.record(name).holderIdentity);
    expect(new Set(holders).size).toBe(12);
    expect(holders).not.toContain(undefined);

    await finish(Promise.all(all));
    expect(names.every((name) => stage.record(name).vacant)).toBe(true);
    expect(stage.store.count('acquire')).toBe(12);
    expect(stage.store.count('release')).toBe(12);
    expect(stage.clock.timers).toBe(0);
  });

  test('never hold one lease at once: one runs, the others are skipped', async () => {
    let runs = 0;
    const handler = job(() => {
      runs += 1;
      return work.opened;
    });

    const all = Array.from({ length: 12 }, () => handler('', stage.context()));
    await stage.clock.advance(20_000);
    expect(runs).toBe(1);

    const results = (await finish(Promise.all(all))) as unknown[];
    expect(results.filter((result) => result !== undefined)).toHaveLength(11);
    expect(stage.record('job')).toMatchObject({ vacant: true, leaseTransitions: 1 });
  });

  test('take turns where they wait: every token once, never two at work (L2)', async () => {
    const tokens: number[] = [];
    let most = 0;
    let now = 0;
    const handler = job(
      async (lease) => {
        most = Math.max(most, ++now);
        tokens.push(lease.fencingToken);
        const over = gate();
        stage.clock.setTimer(300, () => over.open());
        await over.opened;
        now -= 1;
      },
      { whenHeld: 'wait' },
    );

    await stage.until(
      Promise.all(Array.from({ length: 8 }, () => handler('', stage.context(300_000)))),
    );

    expect(most).toBe(1);
    expect(tokens).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
  });

  test('end apart: one that is lost or throws leaves the others alone', async () => {
    const leases = new Map<string, Lease>();
    const handler = job(
      (lease, event) => {
        leases.set(event, lease);
        return work.opened;
      },
      { name: (event: string) => event },
    );
    const all = ['a', 'b', 'c'].map((name) => handler(name, stage.context(600_000)));
    await stage.clock.advance(1_000);
    stage.holds('thief', 'b', 600_000, 9);
    await stage.clock.advance(30_000);

    expect(['a', 'b', 'c'].map((name) => leases.get(name)?.isHeld())).toEqual([true, false, true]);
    await finish(Promise.all(all));
    expect(stage.record('b').holderIdentity).toBe('thief');
    expect(stage.record('a').vacant && stage.record('c').vacant).toBe(true);
  });
});

describe('on Managed Instances a lease without a duration', () => {
  test('is renewed, 15 / 10 / 2 s, for nothing ends the work at the deadline', async () => {
    const running = job()('', stage.context(60_000));
    await stage.clock.advance(9_999);

    expect(stage.store.sent).toEqual(['acquire', 'renew', 'renew', 'renew', 'renew']);
    expect(stage.expiries().at(-1)).toBe(stage.nowMs - 1_999 + 15_000);
    await finish(running);
    expect(stage.clock.timers).toBe(0);
  });

  test('keeps the tolerance that was set', async () => {
    await job(() => 1, { toleranceSeconds: 8 })('', stage.context(60_000));

    const [expiresAt] = stage.expiries();
    expect(expiresAt).toBe(stage.nowMs + 10_000 + 8_000);
  });
});

describe.each([
  ['without a duration', {}],
  ['with a duration', { leaseDurationSeconds: 15 }],
])('the deadline of an invocation on Managed Instances, %s,', (_, options) => {
  test('aborts the signal by itself, and says why', async () => {
    const running = job(undefined, options)('', stage.context(30_000));
    await stage.clock.advance(29_999);
    expect(held.signal.aborted).toBe(false);

    await stage.clock.advance(1);
    expect(held.signal.aborted).toBe(true);
    expect(held.signal.reason).toMatchObject({ code: 'lease-stopped', reason: 'deadline' });
    await finish(running);
  });

  test('does not end the renewals: "passed" is not "dead"', async () => {
    const running = job(undefined, options)('', stage.context(30_000));
    await stage.clock.advance(300_000);

    expect(held.isHeld()).toBe(true);
    expect(stage.record('job').leaseTransitions).toBe(1);
    expect(stage.record('job').expireTimeMs).toBeGreaterThan(stage.nowMs + 12_000);
    expect(await job(() => 1)('', stage.context())).toMatchObject({ skipped: true });
    await finish(running);
  });

  test('is followed by a release once the work has settled, and by a log entry', async () => {
    const running = job(undefined, options)('', stage.context(30_000));
    await stage.clock.advance(100_000);
    await finish(running);

    expect(stage.record('job').vacant).toBe(true);
    expect(stage.errors()).toMatchObject([{ details: { reason: 'deadline', released: true } }]);
    expect(stage.clock.timers).toBe(0);
  });

  test('leaves nothing behind when the work was in time', async () => {
    await job(() => 'done', options)('', stage.context(30_000));

    expect(stage.clock.timers).toBe(0);
    expect(stage.errors()).toEqual([]);
  });
});

describe('work that hangs on Managed Instances', () => {
  test('is ended as a holder by maxHoldSeconds', async () => {
    const running = job(undefined, { maxHoldSeconds: 45 })('', stage.context(30_000));
    await stage.clock.advance(45_000 + 5_000);
    expect(held.isHeld()).toBe(false);
    const sent = [...stage.store.sent];
    await stage.clock.advance(60_000);

    expect(stage.store.sent).toEqual(sent);
    expect(stage.clock.timers).toBe(0);
    expect(await job(() => 'next')('', stage.context())).toBe('next');
    await finish(running);
    expect(stage.store.count('release')).toBe(1);
  });

  test('with no time left to begin with takes nothing', async () => {
    const error = await rejection(job()('', stage.context(0)));

    expect(isLeaseError(error, 'lease-stopped')).toBe(true);
    expect(stage.store.sent).toEqual([]);
  });
});
