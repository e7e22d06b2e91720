// One run for each tick, however often, late and wherever its event is delivered.

import { beforeEach, describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { isSkipped } from '../../src/refusal.ts';
import { gate, rejection, WatchedStore } from '../handler/stage.ts';
import { hourOf, JobStage, SCHEDULE_ARN, START, tick } from './job-stage.ts';

let stage: JobStage;
beforeEach(() => (stage = new JobStage()));

describe('a tick that is delivered once', () => {
  test('runs, with the lease and the tick: two writes', async () => {
    const work = gate();
    const handled = stage.job({}, async (lease) => {
      expect(lease.tick).toEqual({ time: new Date(START), scheduleArn: SCHEDULE_ARN, missed: [] });
      expect(stage.record('job').holderIdentity).toBe(lease.holderIdentity);
      await work.opened;
      return { rows: 3 };
    })(tick(0), stage.context());
    await stage.clock.advance(4_000);
    work.open();

    expect(await handled).toEqual({ rows: 3 });
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.lastTick).toBe(0);
    expect(stage.run).toEqual({
      start: new Date(START),
      end: new Date(START + 4_000),
      durationMs: 4_000,
      outcome: 'succeeded',
      error: undefined,
      failures: 0,
      fencingToken: 1,
    });
    expect(stage.counted).toEqual(['TickCompleted 1']);
    expect(stage.clock.timers).toBe(0);
  });

  test('is told the last one that was completed', async () => {
    const seen: unknown[] = [];
    const job = stage.job({}, ({ tick: { lastTick } }) => seen.push(lastTick && hourOf(lastTick)));
    for (const hour of [0, 1, 4]) {
      await stage.reach(hour);
      await job(tick(hour), stage.context());
    }
    expect(seen).toEqual([undefined, 0, 1]);
    expect(stage.ran).toEqual([0, 1, 4]);
  });

  test('runs late, when nothing newer has been completed', async () => {
    await stage.reach(30);
    expect(await stage.job()(tick(1), stage.context())).toBe('done');
  });
});

describe('the same tick delivered three times', () => {
  test('one after another runs once: each duplicate costs one write', async () => {
    const job = stage.job();
    const answers = [];
    for (let i = 0; i < 3; i++) {
      answers.push(await job(tick(0), stage.context(60_000, `request-${i}`)));
      await stage.clock.advance(60_000);
    }

    expect(stage.ran).toEqual([0]);
    expect(answers[0]).toBe('done');
    expect(answers[1]).toEqual({
      skipped: true,
      reason: 'tick done',
      namespace: 'default',
      name: 'job',
      fencingToken: 1,
      lastTick: '2026-01-01T00:00:00.000Z',
      message: 'Lease "default/job": this tick is done already.',
    });
    expect(answers[2]).toEqual(answers[1]);
    expect(stage.store.sent).toEqual(['acquire', 'release', 'acquire', 'acquire']);
    expect(stage.counted).toEqual(['TickCompleted 1', 'TickSkipped 1', 'TickSkipped 1']);
    expect(stage.record('job').leaseTransitions).toBe(1);
  });

  test('overlapping runs once: the others find it held', async () => {
    const work = gate();
    const job = stage.job({}, () => work.opened.then(() => 'done'));
    const running = job(tick(0), stage.context(60_000, 'first'));
    await stage.clock.advance(100);
    const others = await Promise.all([
      job(tick(0), stage.context(60_000, 'second')),
      job(tick(0), stage.context(60_000, 'third')),
    ]);
    work.open();

    expect(await running).toBe('done');
    for (const other of others) expect(other).toMatchObject({ skipped: true, reason: 'held' });
    expect(stage.ran).toEqual([0]);
  });

  test('at the very same moment, in separate environments, runs once', async () => {
    const jobs = [stage.job(), stage.job(), stage.job()];
    const answers = await Promise.all(jobs.map((job) => job(tick(0), stage.context())));
    expect(stage.ran).toEqual([0]);
    expect(answers.filter((answer) => isSkipped(answer))).toHaveLength(2);
  });

  test('whose lost answers are sent again runs once', async () => {
    let lost = 2;
    stage.store.after = (what) => {
      if (what === 'acquire' && lost-- > 0) throw new Error('connection reset');
    };
    const job = stage.job();
    expect(await stage.until(job(tick(0), stage.context()))).toBe('done');
    expect(await job(tick(0), stage.context())).toMatchObject({ reason: 'tick done' });
    expect(stage.ran).toEqual([0]);
  });
});

test.each(['skip', 'throw', 'wait'] as const)(
  'a tick that is done is no error with whenHeld %s',
  async (whenHeld) => {
    const job = stage.job({ whenHeld });
    await job(tick(0), stage.context());
    expect(await job(tick(0), stage.context())).toMatchObject({ reason: 'tick done' });
    expect(stage.clock.timers).toBe(0);
  },
);

test('an older tick after a newer one is skipped, and says which', async () => {
  const job = stage.job();
  await stage.reach(2);
  await job(tick(2), stage.context());
  expect(await job(tick(1), stage.context())).toMatchObject({
    skipped: true,
    reason: 'newer tick done',
    lastTick: '2026-01-01T02:00:00.000Z',
    message: 'Lease "default/job": a newer tick, 2026-01-01T02:00:00.000Z, is done already.',
  });
  expect(stage.ran).toEqual([2]);
  expect(stage.lastTick).toBe(2);
});

describe('a run that does not complete its tick', () => {
  test('because it throws lets that very error through, and the retry runs', async () => {
    const error = new Error('database is down');
    let broken = true;
    const job = stage.job({}, () => {
      if (broken) throw error;
      return 'done';
    });

    expect(await rejection(job(tick(0), stage.context()))).toBe(error);
    expect(stage.record('job')).toMatchObject({ vacant: true, lastTickMs: undefined });
    expect(stage.run).toMatchObject({ outcome: 'failed', error: error.message, failures: 1 });

    broken = false;
    expect(await job(tick(0), stage.context())).toBe('done');
    expect(stage.lastTick).toBe(0);
    expect(stage.run).toMatchObject({ outcome: 'succeeded', error: undefined, failures: 0 });
    expect(stage.counted).toEqual(['TickFailed 1', 'TickCompleted 1']);
  });

  test('because it throws undefined likewise', async () => {
    const nothing = undefined as unknown as Error;
    const job = stage.job({}, () => {
      throw nothing;
    });
    expect(await rejection(job(tick(0), stage.context()))).toBeUndefined();
    expect(stage.run).toMatchObject({ outcome: 'failed', failures: 1 });
    expect(stage.lastTick).toBeUndefined();
  });

  test('because it is killed is replaced at its deadline, and the retry runs', async () => {
    let killed = true;
    const job = stage.job({}, () => (killed ? new Promise(() => undefined) : 'done'));
    void job(tick(0), stage.context(30_000));
    await stage.clock.advance(34_000);
    expect(await stage.job()(tick(0), stage.context())).toMatchObject({ reason: 'held' });

    // Its deadline and the tolerance.
    await stage.clock.advance(1_100);
    killed = false;
    const other = stage.job({}, ({ fencingToken }) => fencingToken);
    expect(await other(tick(0), stage.context())).toBe(2);
    expect(stage.lastTick).toBe(0);
  });

  test('because it is killed, tick after tick, keeps none of the next ones from running', async () => {
    const job = stage.job({}, () => new Promise(() => undefined));
    for (const hour of [0, 1, 2, 3, 4]) {
      await stage.reach(hour);
      void job(tick(hour), stage.context(3_590_000));
      await stage.clock.advance(0);
      expect(stage.record('job')).toMatchObject({ vacant: false, leaseTransitions: hour + 1 });
    }
    expect(stage.ran).toEqual([0, 1, 2, 3, 4]);
    await stage.reach(5);
    expect(await stage.job()(tick(5), stage.context())).toBe('done');
    expect(stage.lastTick).toBe(5);
  });

  test('because it is killed counts as a failure of the next one that fails', async () => {
    const fails = () => Promise.reject(new Error('broken'));
    await rejection(stage.job({}, fails)(tick(0), stage.context()));
    void stage.job({}, () => new Promise(() => undefined))(tick(0), stage.context(30_000));
    await stage.clock.advance(36_000);
    await rejection(stage.job({}, fails)(tick(0), stage.context()));
    expect(stage.run).toMatchObject({ failures: 3, fencingToken: 3 });
  });

  test('and wakes after it was replaced completes nothing', async () => {
    const work = gate();
    const frozen = stage.job({}, async (lease) => {
      await work.opened;
      return lease.isHeld();
    })(tick(0), stage.context(30_000));
    await stage.clock.advance(36_000);
    await stage
      .job({}, () => Promise.reject(new Error('broken')))(tick(0), stage.context())
      .catch(() => undefined);
    work.open();
    expect(await frozen).toBe(false);
    expect(stage.lastTick).toBeUndefined();
    expect(stage.run).toMatchObject({ outcome: 'failed', fencingToken: 2 });
    expect(stage.counted).toEqual(['TickFailed 1', 'TickFailed 1']);
  });

  test('and whose retry comes after the next tick is skipped', async () => {
    let broken = true;
    const job = stage.job({}, () => (broken ? Promise.reject(new Error('broken')) : 'done'));
    await rejection(job(tick(0), stage.context()));
    broken = false;
    await stage.reach(1);
    await job(tick(1), stage.context());
    expect(await job(tick(0), stage.context())).toMatchObject({ reason: 'newer tick done' });
  });
});

describe('hosts whose clocks differ by 30 s', () => {
  /** One table, whose server tells its own time or none; hosts before and behind it. */
  function hosts(tellsTime: boolean) {
    const server = new FakeClock(START + 5_000);
    const table = new MemoryStore(
      tellsTime ? { serverTimeMs: () => server.read().wallMs } : undefined,
    );
    return [30_000, 0, -30_000].map((offMs) => {
      const host = new JobStage();
      host.clock.stepWall(5_000 + offMs);
      const store = new WatchedStore(table);
      return { host, store, job: host.job({ store }) };
    });
  }

  test('run a tick once: it is compared with ticks, not with a clock', async () => {
    for (const order of [
      [0, 1, 2],
      [2, 1, 0],
      [1, 0, 2],
      [2, 0, 1],
    ]) {
      const all = hosts(false);
      const answers = [];
      for (const index of order) {
        const { job, host } = all[index]!;
        answers.push(await job(tick(0), host.context()));
      }
      expect(answers[0]).toBe('done');
      expect(answers.slice(1)).toMatchObject([{ reason: 'tick done' }, { reason: 'tick done' }]);
    }
  });

  test('and are proven wrong run nothing: the tick stays open for a host that is right', async () => {
    const [ahead, right, behind] = hosts(true);
    for (const wrong of [ahead!, behind!]) {
      const error = await rejection(wrong.host.until(wrong.job(tick(0), wrong.host.context())));
      expect(error).toMatchObject({ code: 'clock-wrong' });
      expect(wrong.host.ran).toEqual([]);
    }
    expect(await right!.job(tick(0), right!.host.context())).toBe('done');
  });
});

describe('an event whose tick cannot be used', () => {
  test.each([
    ['tells none', {} as never, /neither scheduledTime/],
    ['tells one to come', tick(2), /7200 s ahead of this machine's clock/],
    ['tells garbage', { scheduledTime: '2026-02-30T00:00:00Z' }, /it must be a time/],
  ])('because it %s is an error, before anything is sent', async (_, event, message) => {
    expect(await rejection(stage.job()(event, stage.context()))).toMatchObject({
      code: 'invalid-tick',
      message: expect.stringMatching(message) as string,
    });
    expect(stage.store.sent).toEqual([]);
    expect(stage.ran).toEqual([]);
  });

  test('is told by a function of the event and the context', async () => {
    const job = stage.job({
      tick: (event, context) => {
        expect(context.awsRequestId).toBe('request-1');
        return new Date(event.scheduledTime.replace('01-01', '01-02'));
      },
    });
    await stage.reach(48);
    await job(tick(0), stage.context());
    expect(stage.lastTick).toBe(24);
  });
});

test.each<[string, object, number | undefined]>([
  ['a text', { S: 'yesterday' }, undefined],
  ['a list', { L: [] }, undefined],
  ['a number of 1970', { N: '5' }, undefined],
])('a lastTick that is %s is none: the job runs', async (_, lastTick, told) => {
  stage.mark('job', { lastTick: lastTick as { S: string } });
  const job = stage.job({ periodSeconds: 3_600 }, ({ tick: { lastTick: last, missed } }) => {
    expect(missed).toEqual([]);
    expect(last).toBe(told);
    return 'done';
  });
  expect(await job(tick(0), stage.context())).toBe('done');
  expect(stage.lastTick).toBe(0);
});
