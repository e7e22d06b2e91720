// The middleware of a scheduled job in each version of middy: as the wrapper, but for catching up.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { scheduledSingleton } from '../../src/middleware.ts';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import { gate, rejection } from '../handler/stage.ts';
import { versions, type Middleware, type Plugin } from '../middy/versions.ts';
import { HOUR, hourOf, JobStage, tick, type Context, type TickEvent } from './job-stage.ts';

let stage: JobStage;
beforeEach(() => (stage = new JobStage()));
afterEach(() => vi.unstubAllEnvs());

type Given = Omit<Parameters<typeof scheduledSingleton<TickEvent, Context>>[0], 'name'>;
type Work = (lease: ScheduledLease) => unknown;

describe.each(versions)('scheduledSingleton in %s', (_, middy) => {
  const chain = (work: Work = () => 'done', options: Given = {}, plugin?: Plugin) => {
    const ours = scheduledSingleton<TickEvent, Context>({
      ...stage.options,
      name: 'job',
      metrics: stage.metrics,
      ...options,
    });
    const handled = middy(plugin)
      .use([ours as unknown as Middleware])
      .handler(async (_event: unknown, { lease }: Context & { lease: ScheduledLease }) => {
        stage.ran.push(hourOf(lease.tick.time));
        return work(lease);
      });
    return handled as unknown as (event: TickEvent, context: object) => Promise<unknown>;
  };

  test('runs a tick once, and says of a duplicate that it is done', async () => {
    const handled = chain();
    expect(await handled(tick(0), stage.context())).toBe('done');
    expect(await handled(tick(0), stage.context())).toMatchObject({
      skipped: true,
      reason: 'tick done',
    });
    expect(stage.ran).toEqual([0]);
    expect(stage.store.sent).toEqual(['acquire', 'release', 'acquire']);
    expect(stage.counted).toEqual(['TickCompleted 1', 'TickSkipped 1']);
    expect(stage.clock.timers).toBe(0);
  });

  test('shows missed ticks, and runs for the present one', async () => {
    await chain()(tick(0), stage.context());
    await stage.reach(3);
    const missed = ({ tick: { missed: ticks } }: ScheduledLease) => ticks.map(hourOf);
    expect(await chain(missed, { periodSeconds: 3_600 })(tick(3), stage.context())).toEqual([1, 2]);
    expect(stage.ran).toEqual([0, 3]);
  });

  test('leaves the tick of a handler that throws open, with the message of its error', async () => {
    const error = new Error('broken');
    let broken = true;
    const handled = chain(() => (broken ? Promise.reject(error) : 'done'));
    expect(await rejection(handled(tick(0), stage.context()))).toBe(error);
    expect(stage.run).toMatchObject({ outcome: 'failed', error: 'broken', failures: 1 });
    broken = false;
    expect(await handled(tick(0), stage.context())).toBe('done');
  });

  test('leaves a handler that is still at work its lease, and its tick open', async () => {
    const work = gate();
    const handled = chain(async () => {
      stage.clock.freeze(30);
      await work.opened;
    });
    await handled(tick(0), stage.context(35)).catch(() => undefined);
    expect(stage.record('job')).toMatchObject({ vacant: false, lastTickMs: undefined });
    expect(stage.clock.timers).toBe(0);
    work.open();
  });

  test('releases when nextTick fails after the acquisition', async () => {
    await chain()(tick(0), stage.context());
    await stage.reach(5);
    const nextTick = (time: Date) => {
      if (hourOf(time) < 3) throw new Error('bad cron');
      return new Date(time.getTime() + HOUR);
    };
    const error = await rejection(chain(undefined, { nextTick })(tick(5), stage.context()));
    expect(error).toMatchObject({ code: 'invalid-configuration' });
    expect(stage.record('job')).toMatchObject({ vacant: true });
    expect(stage.lastTick).toBe(0);
    expect(stage.ran).toEqual([0]);
  });

  test('passes on an event that tells no tick as an error', async () => {
    const error = await rejection(chain()({} as TickEvent, stage.context()));
    expect(error).toMatchObject({ code: 'invalid-tick' });
    expect(stage.store.sent).toEqual([]);
  });

  test('runs without a table when LEASE_DISABLED is set', async () => {
    vi.stubEnv('LEASE_DISABLED', '1');
    expect(await chain(({ holderIdentity }) => holderIdentity)(tick(0), stage.context())).toBe(
      'LEASE_DISABLED',
    );
    expect(stage.store.sent).toEqual([]);
  });
});

test.each([
  ['catchUp', { catchUp: 'each', periodSeconds: 60 }, /has no option "catchUp"/],
  ['sticky', { sticky: true, leaseDurationSeconds: 15 }, /sticky is not possible/],
  ['slots', { slots: 2 }, /slots are not possible/],
])('%s is refused', (_, options, message) => {
  expect(() => scheduledSingleton({ name: 'job', ...options })).toThrow(
    expect.objectContaining({
      code: 'invalid-configuration',
      message: expect.stringMatching(message) as string,
    }),
  );
});
