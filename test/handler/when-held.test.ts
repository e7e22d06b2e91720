// What becomes of an invocation whose lease another holds: skip, throw, or wait.

import { beforeEach, describe, expect, test } from 'vitest';
import { isLeaseError, type LeaseError } from '../../src/errors.ts';
import { isoTime } from '../../src/lease.ts';
import { isSkipped } from '../../src/refusal.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import { gate, rejection, Stage } from './stage.ts';

let stage: Stage;
let ran: number;
beforeEach(() => {
  stage = new Stage();
  ran = 0;
});

type Options = Partial<WithLeaseOptions<null, Context>>;
type Context = ReturnType<Stage['context']>;

const job = (options: Options = {}) =>
  withLease<null, string, Context>({ ...stage.options, name: 'job', ...options }, async () => {
    ran += 1;
    return 'done';
  });

describe('a handler that skips (the default)', () => {
  test('returns who holds the lease, with which token, until when, and does not run', async () => {
    stage.holds('somebody', 'job', 20_000);

    const result = await job()(null, stage.context());

    expect(result).toEqual({
      skipped: true,
      reason: 'held',
      namespace: 'default',
      name: 'job',
      holderIdentity: 'somebody',
      fencingToken: 7,
      until: isoTime(stage.nowMs + 20_000),
      message: `Lease "default/job" is held by somebody (fencing token 7, until ${isoTime(stage.nowMs + 20_000)}).`,
    });
    expect(isSkipped(result)).toBe(true);
    expect(ran).toBe(0);
    expect(stage.store.sent).toEqual(['acquire']);
    expect(stage.clock.timers).toBe(0);
  });

  test('says so in the log, at a level that raises no alarm', async () => {
    stage.holds('somebody', 'job', 20_000);

    await job()(null, stage.context());

    expect(stage.logged.map(({ level }) => level)).toEqual(['info']);
    expect(stage.logged[0]?.details).toMatchObject({ holderIdentity: 'somebody', fencingToken: 7 });
  });

  test('says that the lease is suspended, since when, by whom and why', async () => {
    const since = '2026-01-01T00:00:00.000Z';
    stage.mark('job', {
      suspended: { M: { since: { S: since }, by: { S: 'ops' }, why: { S: 'migration' } } },
    });

    const result = await job()(null, stage.context());

    expect(result).toMatchObject({ skipped: true, reason: 'suspended', fencingToken: 0 });
    expect(result).toHaveProperty(
      'message',
      `Lease "default/job" is suspended since ${since} by ops: migration`,
    );
    expect(ran).toBe(0);
  });

  test('says from when on a vacant lease may be taken (L3)', async () => {
    const notBeforeMs = stage.nowMs + 90_000;
    stage.mark('job', { notBefore: { N: String(notBeforeMs) } });

    expect(await job()(null, stage.context())).toMatchObject({
      skipped: true,
      reason: 'not before',
      until: isoTime(notBeforeMs),
    });
  });

  test('takes an expired lease over, above its token (L2)', async () => {
    stage.holds('somebody', 'job', 20_000);
    await stage.clock.advance(20_001);

    expect(await job()(null, stage.context())).toBe('done');
    expect(stage.record('job').leaseTransitions).toBe(8);
  });

  test.each([
    ['a result', { skipped: true, fencingToken: 'x' }, true],
    ['another result', { skipped: false, fencingToken: 1 }, false],
    ['nothing', undefined, false],
    ['null', null, false],
    ['a text', 'skipped', false],
    ['an object of another make', { skipped: true }, false],
  ])('is told from %s by isSkipped', (_, result, expected) => {
    expect(isSkipped(result)).toBe(expected);
  });
});

describe('a handler that throws', () => {
  test('gives the holder, its token and its expiry in a LeaseError', async () => {
    stage.holds('somebody', 'job', 20_000);

    const error = await rejection(job({ whenHeld: 'throw' })(null, stage.context()));

    expect(isLeaseError(error, 'lease-held')).toBe(true);
    const { message, record } = error as LeaseError;
    expect(message).toContain('somebody');
    expect(message).toContain('fencing token 7');
    expect(record).toMatchObject({
      holderIdentity: 'somebody',
      leaseTransitions: 7,
      expireTimeMs: stage.nowMs + 20_000,
    });
    expect(ran).toBe(0);
  });

  test.each([
    ['lease-suspended', { suspended: { M: {} } }],
    ['lease-not-before', { notBefore: { N: '99999999999999' } }],
  ] as const)('says %s by its code', async (code, attributes) => {
    stage.mark('job', attributes);

    const error = await rejection(job({ whenHeld: 'throw' })(null, stage.context()));
    expect(isLeaseError(error, code)).toBe(true);
  });
});

describe.each(['skip', 'throw', 'wait'] as const)('when the store fails, %s', (whenHeld) => {
  test('throws: nobody can tell whether it would have been alone (L7)', async () => {
    stage.store.before = () => {
      throw new Error('ECONNREFUSED');
    };

    const error = await stage.until(rejection(job({ whenHeld })(null, stage.context())));

    expect(isLeaseError(error, 'store-unavailable')).toBe(true);
    expect(ran).toBe(0);
    expect(stage.clock.timers).toBe(0);
  });
});

describe('a handler that waits', () => {
  test('runs once the lease is released', async () => {
    stage.holds('somebody', 'job', 600_000);
    const running = job({ whenHeld: 'wait' })(null, stage.context());
    await stage.clock.advance(10_000);
    expect(ran).toBe(0);

    stage.mark('job', { version: { N: '1' } });
    stage.table.poke('default/job', without(stage.table.peek('default/job'), 'holderIdentity'));
    expect(await stage.until(running, 4_000)).toBe('done');
  });

  test('runs within a moment of the expiry that it has read', async () => {
    stage.holds('somebody', 'job', 12_000);
    const beganMs = stage.nowMs;

    expect(await stage.until(job({ whenHeld: 'wait' })(null, stage.context()))).toBe('done');

    expect(stage.nowMs - beganMs).toBeGreaterThan(12_000);
    expect(stage.nowMs - beganMs).toBeLessThan(12_200);
  });

  test('reads while it waits: a refused write costs ten times as much', async () => {
    stage.holds('somebody', 'job', 25_000);

    await stage.until(job({ whenHeld: 'wait' })(null, stage.context()));

    expect(stage.store.count('acquire')).toBe(2);
    expect(stage.store.count('read')).toBeGreaterThan(5);
  });

  test('gives up at half of the remaining time: what is left is for work, or to report', async () => {
    stage.holds('somebody', 'job', 600_000);
    const context = stage.context(60_000);

    const error = await stage.until(rejection(job({ whenHeld: 'wait' })(null, context)));

    expect(isLeaseError(error, 'lease-held')).toBe(true);
    expect(error).toHaveProperty('record.holderIdentity', 'somebody');
    expect(error).toHaveProperty('record.leaseTransitions', 7);
    expect(error).toHaveProperty('record.expireTimeMs', expect.any(Number));
    expect(context.getRemainingTimeInMillis()).toBeGreaterThan(29_900);
    expect(context.getRemainingTimeInMillis()).toBeLessThanOrEqual(30_000);
    expect(stage.clock.timers).toBe(0);
  });

  test('that got the lease late still covers the time that is left, and no more', async () => {
    stage.holds('somebody', 'job', 25_000);
    const context = stage.context(60_000);
    const deadlineMs = stage.nowMs + 60_000;

    await stage.until(job({ whenHeld: 'wait' })(null, context));

    expect(Math.max(...stage.expiries())).toBe(deadlineMs + 5_000);
  });

  test('gives up after maxWaitSeconds', async () => {
    stage.holds('somebody', 'job', 600_000);
    const context = stage.context(60_000);

    const handler = job({ whenHeld: 'wait', maxWaitSeconds: 3 });
    const error = await stage.until(rejection(handler(null, context)));

    expect(isLeaseError(error, 'lease-held')).toBe(true);
    expect(context.getRemainingTimeInMillis()).toBeGreaterThan(56_900);
  });

  test('tells of the holder that it saw last, not of the one that it met first', async () => {
    stage.holds('first', 'job', 5_000, 7);
    const running = rejection(job({ whenHeld: 'wait' })(null, stage.context(60_000)));
    await stage.clock.advance(3_000);
    stage.holds('second', 'job', 600_000, 8);

    const error = await stage.until(running);

    expect(error).toHaveProperty('record.holderIdentity', 'second');
    expect(error).toHaveProperty('record.leaseTransitions', 8);
    expect((error as Error).message).toContain('second');
  });

  test('may report before Lambda ends it, however long it was told to wait', async () => {
    stage.holds('somebody', 'job', 600_000);
    const context = stage.context(10_000);

    const handler = job({ whenHeld: 'wait', maxWaitSeconds: 60 });
    const error = await stage.until(rejection(handler(null, context)));

    expect(isLeaseError(error, 'lease-held')).toBe(true);
    expect(context.getRemainingTimeInMillis()).toBeGreaterThan(0);
  });

  test('throws at once what no waiting mends', async () => {
    stage.mark('job', { kind: { S: 'heartbeat' } });

    const error = await rejection(job({ whenHeld: 'wait' })(null, stage.context()));

    expect(isLeaseError(error, 'kind-mismatch')).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });

  test('holds out through failures of the store', async () => {
    let failures = 6;
    stage.store.before = () => {
      if (failures-- > 0) throw new Error('ECONNRESET');
    };

    expect(await stage.until(job({ whenHeld: 'wait' })(null, stage.context()))).toBe('done');
    expect(stage.record('job')).toMatchObject({ vacant: true, leaseTransitions: 1 });
  });

  test('takes turns with its like: each runs once, never two at a time', async () => {
    let now = 0;
    let most = 0;
    const handler = withLease<null, undefined, Context>(
      { ...stage.options, name: 'job', whenHeld: 'wait' },
      async () => {
        now += 1;
        most = Math.max(most, now);
        await workFor(500);
        now -= 1;
        ran += 1;
        return undefined;
      },
    );
    const workFor = async (ms: number) => {
      const over = gate();
      stage.clock.setTimer(ms, () => over.open());
      await over.opened;
    };

    const all = Array.from({ length: 6 }, () => handler(null, stage.context(120_000)));
    await stage.until(Promise.all(all));

    expect({ most, ran }).toEqual({ most: 1, ran: 6 });
    expect(stage.record('job').leaseTransitions).toBe(6);
  });
});

function without(item: object | undefined, name: string) {
  return Object.fromEntries(Object.entries(item ?? {}).filter(([key]) => key !== name));
}
