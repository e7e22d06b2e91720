// What stands in a tick's way: an earlier run that is still at work, an operator's suspension, the
// minimum hold, the rest after failures.

import { beforeEach, describe, expect, test } from 'vitest';
import { isoTime } from '../../src/lease.ts';
import { withLease } from '../../src/with-lease.ts';
import { without } from '../contract/writes.rows.ts';
import { gate, rejection } from '../handler/stage.ts';
import { JobStage, START, tick, type Options } from './job-stage.ts';

let stage: JobStage;
beforeEach(() => (stage = new JobStage()));

const fails = () => Promise.reject(new Error('broken'));

describe('a tick that comes while the last one still runs', () => {
  /** The run for hour 0 takes until `work` opens; its invocation has two hours. */
  function overrun(options: Options) {
    const work = gate();
    const job = stage.job(options, () => (stage.ran.length === 1 ? work.opened : 'done'));
    const first = job(tick(0), stage.context(7_200_000));
    return { work, job, first };
  }

  test('is skipped (the default), and counted', async () => {
    const { work, job, first } = overrun({});
    await stage.reach(1);
    expect(await job(tick(1), stage.context())).toMatchObject({
      skipped: true,
      reason: 'held',
      fencingToken: 1,
    });
    work.open();
    await first;
    expect(stage.counted).toEqual(['TickOverrun 1', 'TickCompleted 1']);
    expect(stage.ran).toEqual([0]);
  });

  test('is an error with whenHeld throw, and counted', async () => {
    const { work, job, first } = overrun({ whenHeld: 'throw' });
    await stage.reach(1);
    expect(await rejection(job(tick(1), stage.context()))).toMatchObject({ code: 'lease-held' });
    expect(stage.counted).toEqual(['TickOverrun 1']);
    work.open();
    await first;
  });

  test('waits with whenHeld wait, and is counted once', async () => {
    const { work, job, first } = overrun({ whenHeld: 'wait' });
    await stage.reach(1);
    const second = job(tick(1), stage.context(60_000));
    await stage.clock.advance(20_000);
    expect(stage.ran).toEqual([0]);
    work.open();
    expect(await stage.until(second)).toBe('done');
    await first;
    expect(stage.ran).toEqual([0, 1]);
    expect(stage.lastTick).toBe(1);
    expect(stage.counted.toSorted()).toEqual([
      'TickCompleted 1',
      'TickCompleted 1',
      'TickOverrun 1',
    ]);
  });

  test('waits in vain no longer than it may, and throws', async () => {
    const { work, job, first } = overrun({ whenHeld: 'wait', maxWaitSeconds: 10 });
    await stage.reach(1);
    const startedMs = stage.nowMs;
    const error = await rejection(stage.until(job(tick(1), stage.context(60_000))));
    expect(error).toMatchObject({ code: 'lease-held' });
    expect(stage.nowMs - startedMs).toBeLessThan(12_000);
    expect(stage.counted).toEqual(['TickOverrun 1']);
    work.open();
    await first;
  });

  test('as a duplicate is told so as soon as it is done, without waiting its time out', async () => {
    const { work, job, first } = overrun({ whenHeld: 'wait', maxWaitSeconds: 50 });
    await stage.clock.advance(1_000);
    const duplicate = job(tick(0), stage.context(60_000));
    await stage.clock.advance(5_000);
    work.open();
    await first;
    const startedMs = stage.nowMs;
    expect(await stage.until(duplicate)).toMatchObject({ skipped: true, reason: 'tick done' });
    expect(stage.nowMs - startedMs).toBeLessThan(2_500);
    expect(stage.ran).toEqual([0]);
    expect(stage.counted).toEqual(['TickCompleted 1', 'TickSkipped 1']);
    expect(stage.clock.timers).toBe(0);
  });
});

describe('a suspended job', () => {
  const since = '2026-01-01T00:00:00.000Z';
  const suspended = {
    suspended: { M: { since: { S: since }, by: { S: 'ops' }, why: { S: 'migration' } } },
  };
  const message = `Lease "default/job" is suspended since ${since} by ops: migration`;

  test('skips (the default), and says since when, by whom and why', async () => {
    stage.mark('job', suspended);
    expect(await stage.job()(tick(0), stage.context())).toMatchObject({
      skipped: true,
      reason: 'suspended',
      message,
    });
    expect(stage.ran).toEqual([]);
    expect(stage.counted).toEqual(['TickSkipped 1']);
  });

  test('throws with whenHeld throw', async () => {
    stage.mark('job', suspended);
    const error = await rejection(stage.job({ whenHeld: 'throw' })(tick(0), stage.context()));
    expect(error).toMatchObject({
      code: 'lease-suspended',
      message,
      record: { suspended: { since, by: 'ops', why: 'migration' } },
    });
    expect(stage.counted).toEqual(['TickSkipped 1']);
  });

  test('waits with whenHeld wait, and runs when it is resumed', async () => {
    stage.mark('job', suspended);
    const handled = stage.job({ whenHeld: 'wait' })(tick(0), stage.context(60_000));
    await stage.clock.advance(10_000);
    stage.table.poke('default/job', without(stage.record('job').raw, 'suspended'));
    expect(await stage.until(handled)).toBe('done');
    expect(stage.counted).toEqual(['TickCompleted 1']);
  });

  test('waits in vain, and throws', async () => {
    stage.mark('job', suspended);
    const handled = stage.job({ whenHeld: 'wait', maxWaitSeconds: 10 })(tick(0), stage.context());
    const error = await rejection(stage.until(handled));
    expect(error).toMatchObject({ code: 'lease-suspended', message });
    expect(stage.counted).toEqual(['TickSkipped 1']);
  });

  test('finishes the run that is under way, and completes its tick', async () => {
    const work = gate();
    const handled = stage.job({ leaseDurationSeconds: 15 }, () => work.opened.then(() => 'done'))(
      tick(0),
      stage.context(120_000),
    );
    await stage.clock.advance(100);
    stage.mark('job', suspended);
    await stage.clock.advance(30_000);
    work.open();
    expect(await handled).toBe('done');
    expect(stage.lastTick).toBe(0);
    expect(
      await stage
        .job()(tick(1), stage.context())
        .catch((e: unknown) => e),
    ).toMatchObject({
      code: 'invalid-tick',
    });
    await stage.reach(1);
    expect(await stage.job()(tick(1), stage.context())).toMatchObject({ reason: 'suspended' });
  });

  test('says of a tick that is done that it is done', async () => {
    await stage.job()(tick(0), stage.context());
    stage.mark('job', suspended);
    expect(await stage.job()(tick(0), stage.context())).toMatchObject({ reason: 'tick done' });
  });
});

describe('minimumHoldSeconds', () => {
  const notBefore = () => stage.record('job').notBeforeMs;
  const lease = (work: () => unknown, options: object = {}) =>
    withLease({ ...stage.options, name: 'job', minimumHoldSeconds: 60, ...options }, async () =>
      work(),
    )(null, stage.context());

  test('lets nobody take the lease until so long after it was acquired', async () => {
    await lease(async () => stage.clock.freeze(2_000));
    expect(notBefore()).toBe(START + 60_000);
    await stage.clock.advance(57_999);
    expect(await lease(() => 'ran')).toMatchObject({ skipped: true, reason: 'not before' });
    await stage.clock.advance(2);
    expect(await lease(() => 'ran')).toBe('ran');
  });

  test('costs nothing more', async () => {
    await lease(() => 'ran');
    expect(stage.store.sent).toEqual(['acquire', 'release']);
  });

  test('is over when the run took longer', async () => {
    const work = gate();
    const handled = withLease(
      { ...stage.options, name: 'job', minimumHoldSeconds: 1 },
      async () => work.opened,
    )(null, stage.context());
    await stage.clock.advance(5_000);
    work.open();
    await handled;
    expect(notBefore()).toBeUndefined();
  });

  test('is not for a run that threw: its retry shall run', async () => {
    await rejection(lease(fails));
    expect(notBefore()).toBeUndefined();
    expect(await lease(() => 'ran')).toBe('ran');
  });

  test.each([
    ['has not been checked since it was set', 4_000],
    ['is wrong', 600_000],
  ])('is not written by a clock that %s, and that is said', async (_, stepMs) => {
    await lease(async () => stage.clock.stepWall(-stepMs));
    expect(stage.record('job')).toMatchObject({ vacant: true, notBeforeMs: undefined });
    expect(stage.logged.filter(({ level }) => level === 'warn')).toMatchObject([
      { message: expect.stringMatching(/may be taken at once/) as string },
    ]);
  });

  test('works for a job: the next tick that comes too soon is skipped', async () => {
    const job = stage.job({ minimumHoldSeconds: 5_400 });
    await job(tick(0), stage.context());
    expect(notBefore()).toBe(START + 5_400_000);
    await stage.reach(1);
    expect(await job(tick(1), stage.context())).toMatchObject({ reason: 'not before' });
    await stage.reach(2);
    expect(await job(tick(2), stage.context())).toBe('done');
    expect(stage.counted).toEqual(['TickCompleted 1', 'TickSkipped 1', 'TickCompleted 1']);
  });

  test.each([
    [{ minimumHoldSeconds: 60, trustClocks: false }, /trustClocks: false exclude/],
    [{ minimumHoldSeconds: 60, sticky: true, leaseDurationSeconds: 90 }, /sticky exclude/],
    [{ minimumHoldSeconds: -1 }, /minimumHoldSeconds is -1/],
    [{ minimumHoldSeconds: NaN }, /minimumHoldSeconds is NaN/],
  ])('is refused as %j', (options, message) => {
    expect(() => withLease({ name: 'job', ...options }, () => 1)).toThrow(message);
  });
});

describe('failureBackoffSeconds', () => {
  const options = { failureBackoffSeconds: 60, maxFailureBackoffSeconds: 200 };

  test('skips a retry that comes too soon, and says until when', async () => {
    const job = stage.job(options, fails);
    await rejection(job(tick(0), stage.context()));
    await stage.clock.advance(30_000);
    expect(await job(tick(0), stage.context())).toMatchObject({
      skipped: true,
      reason: 'not before',
      until: isoTime(START + 60_000),
    });
    expect(stage.ran).toEqual([0]);
    expect(stage.counted).toEqual(['TickFailed 1', 'TickSkipped 1']);
  });

  test('throws for it with whenHeld throw, so that Lambda tries once more', async () => {
    const job = stage.job({ ...options, whenHeld: 'throw' }, fails);
    await rejection(job(tick(0), stage.context()));
    expect(await rejection(job(tick(0), stage.context()))).toMatchObject({
      code: 'lease-not-before',
    });
    expect(stage.counted).toEqual(['TickFailed 1', 'TickSkipped 1']);
  });

  test('doubles with each failure in a row up to its bound, and begins again', async () => {
    const rests = [];
    const outcomes = ['fails', 'fails', 'fails', 'fails', 'works', 'fails'];
    for (const [hour, outcome] of outcomes.entries()) {
      await stage.reach(hour);
      const job = stage.job(options, outcome === 'fails' ? fails : undefined);
      await job(tick(hour), stage.context()).catch((error: unknown) => error);
      const { notBeforeMs } = stage.record('job');
      rests.push(notBeforeMs === undefined ? 0 : (notBeforeMs - stage.nowMs) / 1_000);
    }
    expect(rests).toEqual([60, 120, 200, 200, 0, 60]);
  });

  test('is not written by a clock that was set meanwhile, and that is said', async () => {
    const job = stage.job(options, () => {
      stage.clock.stepWall(-4_000);
      return fails();
    });
    await rejection(job(tick(0), stage.context()));
    expect(stage.record('job')).toMatchObject({ vacant: true, notBeforeMs: undefined });
    expect(stage.run).toMatchObject({ outcome: 'failed' });
    expect(stage.logged.some(({ message }) => message.includes('may be taken at once'))).toBe(true);
  });
});
