// How a run may end besides returning or throwing, faults of the user's own functions, and what is
// left behind: never a lease that is held by nobody.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import { gate, rejection } from '../handler/stage.ts';
import { Process, seenBefore, Table } from '../monitor/pass-stage.ts';
import { HOUR, hourOf, JobStage, START, tick, type Options } from './job-stage.ts';

let stage: JobStage;
beforeEach(() => (stage = new JobStage()));
afterEach(() => vi.unstubAllEnvs());

describe('work that gives its lease back early', () => {
  test('has completed its tick, as if it had returned', async () => {
    const job = stage.job({}, async (lease) => {
      await lease.release();
      expect(lease.isHeld()).toBe(false);
      expect(stage.lastTick).toBe(0);
      return 'done';
    });
    expect(await job(tick(0), stage.context())).toBe('done');
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.counted).toEqual(['TickCompleted 1']);
  });

  test('and throws afterwards has completed it all the same', async () => {
    const late = new Error('late');
    const job = stage.job({}, async (lease) => {
      await lease.release();
      throw late;
    });
    expect(await rejection(job(tick(0), stage.context()))).toBe(late);
    expect(stage.run).toMatchObject({ outcome: 'succeeded', error: undefined });
    expect(await job(tick(0), stage.context())).toMatchObject({ reason: 'tick done' });
  });

  test('in a replay leaves the rest to the next delivery', async () => {
    await stage.job()(tick(0), stage.context());
    await stage.reach(3);
    const options: Options = { periodSeconds: 3_600, catchUp: 'each' };
    const early = stage.job(options, (lease) => lease.release());
    expect(await rejection(early(tick(3), stage.context()))).toMatchObject({
      code: 'lease-stopped',
      reason: 'completed',
    });
    expect(stage.lastTick).toBe(1);
    await stage.job(options)(tick(3), stage.context());
    expect(stage.ran).toEqual([0, 1, 2, 3]);
  });
});

test('work that was told to stop leaves its tick open, and the retry runs', async () => {
  const work = gate();
  const job = stage.job({ maxHoldSeconds: 10 }, () => work.opened.then(() => 'done'));
  const handled = job(tick(0), stage.context());
  await stage.clock.advance(12_000);
  work.open();
  expect(await handled).toBe('done');
  expect(stage.record('job')).toMatchObject({ vacant: true, lastTickMs: undefined });
  expect(stage.run).toMatchObject({ outcome: 'stopped', failures: 1 });
  expect(stage.counted).toEqual(['TickFailed 1']);
  expect(await job(tick(0), stage.context())).toBe('done');
  expect(stage.lastTick).toBe(0);
});

test('a lease that is kept from an earlier run is over, and completes nothing', async () => {
  let kept: ScheduledLease | undefined;
  const job = stage.job({}, (lease) => (kept ??= lease));
  await job(tick(0), stage.context());
  await stage.reach(1);
  const work = gate();
  const handled = stage.job({}, () => work.opened)(tick(1), stage.context());
  await stage.clock.advance(100);
  expect(kept?.isHeld()).toBe(false);
  expect(kept?.signal.aborted).toBe(true);
  await kept?.release();
  expect(stage.record('job')).toMatchObject({ vacant: false, leaseTransitions: 2 });
  const { Update } = kept!.completeTick();
  expect(Object.values(Update.ExpressionAttributeValues)).toContain(kept?.holderIdentity);
  work.open();
  await handled;
});

describe('nextTick', () => {
  const hourly = (time: Date) => new Date(time.getTime() + HOUR);
  const faults: [string, (time: Date) => Date, RegExp][] = [
    [
      'throws',
      () => {
        throw new Error('bad cron');
      },
      /^nextTick\(.*\) threw \(Error: bad cron\)\.$/,
    ],
    ['returns the same tick', (time) => time, /must be a Date after that tick/],
    ['returns nonsense', () => 'tomorrow' as never, /returned "tomorrow"/],
  ];

  test.each(faults)('that %s is an error before anything is sent', async (_, nextTick, message) => {
    expect(await rejection(stage.job({ nextTick })(tick(0), stage.context()))).toMatchObject({
      code: 'invalid-configuration',
      message: expect.stringMatching(message) as string,
    });
    expect(stage.store.sent).toEqual([]);
  });

  test.each(faults)(
    'that %s for an earlier tick only is one after the lease has been released',
    async (_, fault, message) => {
      await stage.job()(tick(0), stage.context());
      await stage.reach(5);
      const nextTick = (time: Date) => (hourOf(time) < 3 ? fault(time) : hourly(time));
      const handled = stage.job({ nextTick, catchUp: 'each' })(tick(5), stage.context());
      expect(await rejection(handled)).toMatchObject({
        code: 'invalid-configuration',
        message: expect.stringMatching(message) as string,
      });
      expect(stage.record('job')).toMatchObject({ vacant: true });
      expect(stage.run).toMatchObject({ outcome: 'failed' });
      expect(stage.lastTick).toBe(0);
      expect(stage.ran).toEqual([0]);
      expect(stage.clock.timers).toBe(0);
    },
  );
});

describe('metrics and logs that fail', () => {
  const broken = () => {
    throw new Error('no metrics today');
  };

  test('fail no run, and no skip', async () => {
    const options: Options = {
      metrics: { addMetric: broken },
      logger: { debug: broken, info: broken, warn: broken, error: broken },
      periodSeconds: 3_600,
      catchUp: 'each',
    };
    await stage.job(options)(tick(0), stage.context());
    await stage.reach(3);
    expect(await stage.job(options)(tick(3), stage.context())).toBe('done');
    expect(await stage.job(options)(tick(3), stage.context())).toMatchObject({ skipped: true });
    expect(stage.ran).toEqual([0, 1, 2, 3]);
    expect(stage.lastTick).toBe(3);
  });

  test('are told to the logger', async () => {
    await stage.job({ metrics: { addMetric: broken } })(tick(0), stage.context());
    expect(stage.errors()).toMatchObject([
      { details: { name: 'TickCompleted', error: 'Error: no metrics today' } },
    ]);
  });
});

test('an error that cannot be told keeps no lease', async () => {
  const hostile = Object.defineProperty(new Error('x'), 'message', { get: () => hostile.stack });
  Object.defineProperty(hostile, 'stack', {
    get: () => {
      throw new Error('nor this');
    },
  });
  const job = stage.job({}, () => {
    throw hostile;
  });
  expect(await rejection(job(tick(0), stage.context()))).toBe(hostile);
  expect(stage.record('job').vacant).toBe(true);
});

describe('LEASE_DISABLED', () => {
  beforeEach(() => vi.stubEnv('LEASE_DISABLED', 'true'));

  test('runs each delivery, with a lease to look at, and sends nothing', async () => {
    const job = stage.job({ periodSeconds: 3_600, catchUp: 'each' }, (lease) => {
      lease.completeTick();
      lease.completeTick({ marshalled: true });
      return [hourOf(lease.tick.time), lease.tick.missed, lease.isHeld()];
    });
    for (let i = 0; i < 2; i++) {
      expect(await job(tick(0), stage.context())).toEqual([0, [], true]);
    }
    expect(stage.store.sent).toEqual([]);
    expect(stage.counted).toEqual(['TickCompleted 1', 'TickCompleted 1']);
  });

  test('lets errors through, and still needs a tick', async () => {
    const error = new Error('broken');
    const job = stage.job({}, () => Promise.reject(error));
    expect(await rejection(job(tick(0), stage.context()))).toBe(error);
    expect(await rejection(job({} as never, stage.context()))).toMatchObject({
      code: 'invalid-tick',
    });
    expect(stage.counted).toEqual(['TickFailed 1']);
  });
});

describe('when the next completion is overdue', () => {
  const due = () => {
    const { dueTime } = stage.record('job').raw;
    return dueTime && 'N' in dueTime ? hourOf(Number(dueTime.N)) : dueTime;
  };

  test('is written with each completion, and removed when the option is gone', async () => {
    await stage.job({ periodSeconds: 3_600 })(tick(0), stage.context());
    expect(due()).toBe(2);
    await stage.reach(1);
    await stage.job({ periodSeconds: 3_600, overdueAfterSeconds: 900 })(tick(1), stage.context());
    expect(due()).toBe(2.25);
    await stage.reach(2);
    await stage.job()(tick(2), stage.context());
    expect(due()).toBeUndefined();
  });

  test('is written with the completion in a transaction too: a killed run says no more', async () => {
    await stage.job({ periodSeconds: 3_600 }, (lease) => {
      const { Update } = lease.completeTick();
      const written = Object.values(Update.ExpressionAttributeValues);
      expect(written).toEqual(expect.arrayContaining([START, START + 2 * HOUR]));
      return 'done';
    })(tick(0), stage.context());
  });
});

describe('the lifecycle monitor', () => {
  const PERIOD = 600_000;

  /** A job on the monitor's table, every ten minutes; its monitor looks every minute. */
  async function watched(until: number, completes: (tick: number) => boolean, suspendAt?: number) {
    const table = new Table();
    await seenBefore(table);
    const firstMs = table.clock.read().wallMs;
    const job = stage.job({
      store: table.memory,
      clock: table.clock,
      periodSeconds: PERIOD / 1_000,
    });
    for (let count = 0; count < until; count += 0.1) {
      const tickMs = firstMs + Math.round(count * 10) * 60_000;
      await table.clock.advance(tickMs - table.clock.read().wallMs);
      const index = (tickMs - firstMs) / PERIOD;
      if (index === suspendAt) {
        const item = table.memory.peek('default/job') ?? {};
        table.memory.poke('default/job', { ...item, suspended: { M: { by: { S: 'ops' } } } });
      }
      if (Number.isInteger(index) && completes(index)) {
        await job({ scheduledTime: new Date(tickMs).toISOString() }, stage.context());
      }
      await new Process(table).whole();
    }
    return table.published
      .filter(({ detailType }) => detailType === 'Schedule Missed')
      .map(({ timeMs, detail }) => [detail.data.name, (timeMs - firstMs) / PERIOD]);
  }

  test('reports once that a job has stopped completing, when it is overdue', async () => {
    // Completed last at 2; 3 is overdue at 4, and the pass a minute later sees it.
    expect(await watched(8, (index) => index < 3)).toEqual([['job', 4.1]]);
  });

  test('reports nothing of a job that completes, or skips a single tick', async () => {
    expect(await watched(6, () => true)).toEqual([]);
    expect(await watched(6, (index) => index !== 3)).toEqual([]);
  });

  test('reports nothing while a job is suspended', async () => {
    expect(await watched(8, (index) => index < 3, 3)).toEqual([]);
  });
});
