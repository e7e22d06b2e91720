// Ticks that were missed: shown, replayed once or one by one, and what becomes of them when a
// replay fails, the lease is lost, or time runs out.

import { beforeEach, describe, expect, test } from 'vitest';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import { gate, rejection } from '../handler/stage.ts';
import { hourOf, JobStage, tick, type Options, type Work } from './job-stage.ts';

let stage: JobStage;
beforeEach(async () => {
  stage = new JobStage();
  await stage.job()(tick(0), stage.context());
  stage.ran.length = 0;
  stage.counted.length = 0;
  stage.store.sent.length = 0;
});

/** Hour 4 comes, and 1 to 3 never did. */
async function atFour(options: Options, work?: Work): Promise<unknown> {
  await stage.reach(4);
  return delivered(options, work);
}
const delivered = (options: Options, work?: Work) =>
  stage.job({ periodSeconds: 3_600, ...options }, work)(tick(4), stage.context());
const missedOf = ({ tick: { missed } }: ScheduledLease) => missed.map(hourOf);

describe.each([undefined, 'none'] as const)('catchUp %s', (catchUp) => {
  test('runs for the present tick only, and shows the missed ones', async () => {
    const answer = await atFour(catchUp === undefined ? {} : { catchUp }, missedOf);
    expect(answer).toEqual([1, 2, 3]);
    expect(stage.ran).toEqual([4]);
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.counted).toEqual(['TicksMissed 3', 'TickCompleted 1']);
    expect(stage.lastTick).toBe(4);
  });
});

test('catchUp once runs for the newest missed tick first', async () => {
  const seen: unknown[] = [];
  const answer = await atFour({ catchUp: 'once' }, (lease) => {
    seen.push([hourOf(lease.tick.lastTick!), missedOf(lease), lease.fencingToken]);
    return hourOf(lease.tick.time);
  });
  expect(answer).toBe(4);
  expect(stage.ran).toEqual([3, 4]);
  // The second run is told by the last tick that the first one was completed.
  expect(seen).toEqual([
    [0, [1, 2], 2],
    [3, [1, 2], 2],
  ]);
  expect(stage.store.sent).toEqual(['acquire', 'renew', 'release']);
  expect(stage.counted).toEqual(['TicksMissed 3', 'TickCompleted 1', 'TickCompleted 1']);
});

describe('catchUp each', () => {
  test('runs for every missed tick, oldest first, each recorded when it is done', async () => {
    const before: unknown[] = [];
    const answer = await atFour({ catchUp: 'each' }, (lease) => {
      before.push([stage.lastTick, hourOf(lease.tick.lastTick!), missedOf(lease)]);
      return hourOf(lease.tick.time);
    });
    expect(answer).toBe(4);
    expect(stage.ran).toEqual([1, 2, 3, 4]);
    expect(before).toEqual([0, 1, 2, 3].map((last) => [last, last, []]));
    expect(stage.store.sent).toEqual(['acquire', 'renew', 'renew', 'renew', 'release']);
    expect(stage.lastTick).toBe(4);
    expect(stage.counted.filter((name) => name === 'TickCompleted 1')).toHaveLength(4);
  });

  test('says when the next completion is overdue after each of them', async () => {
    const dues: unknown[] = [];
    await atFour({ catchUp: 'each' }, () => {
      const { dueTime } = stage.record('job').raw;
      dues.push(dueTime && 'N' in dueTime && hourOf(Number(dueTime.N)));
    });
    expect(dues).toEqual([undefined, 3, 4, 5]);
  });

  test('stops at one that fails: the next delivery goes on from there', async () => {
    const broken = new Error('broken');
    const work: Work = (lease) => {
      if (hourOf(lease.tick.time) === 3 && stage.ran.length < 4) throw broken;
      return 'done';
    };
    expect(await rejection(atFour({ catchUp: 'each' }, work))).toBe(broken);
    expect(stage.record('job')).toMatchObject({ vacant: true });
    expect(stage.lastTick).toBe(2);
    // One failure: those before it have succeeded. What is due is due since the last success.
    expect(stage.run).toMatchObject({ outcome: 'failed', failures: 1, error: 'broken' });
    expect(stage.record('job').raw['dueTime']).toEqual({ N: String(Date.UTC(2026, 0, 1, 4)) });

    expect(await atFour({ catchUp: 'each' }, work)).toBe('done');
    expect(stage.ran).toEqual([1, 2, 3, 3, 4]);
    expect(stage.lastTick).toBe(4);
  });

  test('counts no failure twice in one tenure', async () => {
    await rejection(atFour({}, () => Promise.reject(new Error('first'))));
    const work: Work = (lease) => {
      if (hourOf(lease.tick.time) === 2) throw new Error('second');
    };
    await rejection(atFour({ catchUp: 'each', failureBackoffSeconds: 60 }, work));
    expect(stage.run).toMatchObject({ failures: 1, error: 'second' });
    expect(stage.record('job').notBeforeMs).toBe(stage.nowMs + 60_000);
  });

  test('ends when the lease is lost in mid-replay: nothing more runs', async () => {
    const handled = atFour({ catchUp: 'each', leaseDurationSeconds: 15 }, (lease) => {
      if (hourOf(lease.tick.time) === 2) stage.holds('other', 'job', 60_000, 9);
    });
    expect(await rejection(handled)).toMatchObject({ code: 'lease-lost', reason: 'taken over' });
    expect(stage.ran).toEqual([1, 2]);
    expect(stage.record('job')).toMatchObject({ holderIdentity: 'other', leaseTransitions: 9 });
    expect(stage.counted).toEqual(['TicksMissed 3', 'TickCompleted 1', 'TickFailed 1']);
    expect(stage.clock.timers).toBe(0);
  });

  test('ends when it freezes past its lease between two of them', async () => {
    const handled = atFour({ catchUp: 'each', leaseDurationSeconds: 15 }, (lease) => {
      if (hourOf(lease.tick.time) === 1) stage.clock.freeze(20_000);
    });
    expect(await rejection(handled)).toMatchObject({ code: 'lease-lost', reason: 'expired' });
    expect(stage.ran).toEqual([1]);
    expect(stage.lastTick).toBe(0);
  });

  test('waits until a replay is recorded, also when that is not answered at first', async () => {
    let unanswered = 2;
    stage.store.before = (what) => {
      if (what === 'renew' && unanswered-- > 0) throw new Error('connection reset');
    };
    const handled = atFour({ catchUp: 'once' }, () => stage.lastTick);
    expect(await stage.until(handled)).toBe(3);
    expect(stage.ran).toEqual([3, 4]);
    expect(stage.lastTick).toBe(4);
  });

  test('waits until a replay is recorded, also when other writes of its own come first', async () => {
    let others = 3;
    stage.store.before = (what) => {
      if (what !== 'renew' || others-- <= 0) return;
      const { version = 0 } = stage.record('job');
      stage.mark('job', { version: { N: String(version + 1) } });
    };
    expect(await stage.until(atFour({ catchUp: 'once' }, () => stage.lastTick))).toBe(3);
    expect(stage.lastTick).toBe(4);
  });

  test('leaves what it has no time for, says so, and the next delivery finds it', async () => {
    const slow: Work = () => stage.clock.freeze(20_000);
    await atFour({ catchUp: 'each' }, slow);
    // 60 s: after the second one 20 are left, less than two more would need.
    expect(stage.ran).toEqual([1, 2]);
    expect(stage.lastTick).toBe(2);
    expect(stage.logged.find(({ level }) => level === 'warn')).toMatchObject({
      message: expect.stringMatching(/left to the next invocation/) as string,
      details: {
        lease: 'default/job',
        ticks: ['2026-01-01T03:00:00.000Z', '2026-01-01T04:00:00.000Z'],
      },
    });

    await stage.reach(5);
    await stage.job({ periodSeconds: 3_600, catchUp: 'each' })(tick(5), stage.context());
    expect(stage.ran).toEqual([1, 2, 3, 4, 5]);
  });

  test('leaves open the tick of a run that was told to stop, and runs no other', async () => {
    const work = gate();
    await stage.reach(4);
    const handled = delivered({ catchUp: 'each', maxHoldSeconds: 10 }, ({ tick: { time } }) =>
      hourOf(time) === 2 ? work.opened : 'done',
    );
    await stage.clock.advance(11_000);
    work.open();
    expect(await rejection(handled)).toMatchObject({ code: 'lease-stopped', reason: 'hold limit' });
    expect(stage.ran).toEqual([1, 2]);
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.run).toMatchObject({ outcome: 'stopped', failures: 1 });
    expect(stage.lastTick).toBe(1);
  });

  test('keeps what was recorded when it is told to stop at that very moment', async () => {
    const answer = gate();
    await stage.reach(4);
    stage.store.after = (what) => (what === 'renew' ? answer.opened : undefined);
    const handled = delivered({ catchUp: 'each', maxHoldSeconds: 2 }, () => 'done');
    await stage.clock.advance(2_500);
    answer.open();
    expect(await rejection(handled)).toMatchObject({ code: 'lease-stopped', reason: 'hold limit' });
    expect(stage.ran).toEqual([1]);
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.run).toMatchObject({ outcome: 'succeeded', failures: 0 });
    expect(stage.lastTick).toBe(1);
    expect(stage.counted).toEqual(['TicksMissed 3', 'TickCompleted 1']);
  });

  test('goes through many ticks, at most the newest 100', async () => {
    await stage.reach(200);
    const job = stage.job({ periodSeconds: 3_600, catchUp: 'each' });
    await job(tick(200), stage.context());
    expect(stage.ran).toEqual(Array.from({ length: 101 }, (_, index) => 100 + index));
  });
});

test('each run has a lease of its own: that of an earlier one completes its own tick only', async () => {
  const leases: ScheduledLease[] = [];
  await atFour({ catchUp: 'each' }, (lease) => leases.push(lease));
  const completed = leases.map((lease) => {
    const { UpdateExpression, ...part } = lease.completeTick({ marshalled: true }).Update;
    expect(UpdateExpression).toMatch(/^SET /);
    const numbers = Object.values(part.ExpressionAttributeValues).flatMap((value) =>
      'N' in value ? [hourOf(Number(value.N))] : [],
    );
    return numbers.filter((hour) => hour >= 0);
  });
  // The tick in condition and effect, and when the next completion is overdue.
  expect(completed.map((hours) => [...new Set(hours)].toSorted())).toEqual([
    [1, 3],
    [2, 4],
    [3, 5],
    [4, 6],
  ]);
  expect(leases.some((lease) => lease.isHeld())).toBe(false);
});
