// What Lambda delivers again on the Lambda runtime: the same event under the same request id, in the
// environment that had it, or in another where that is lost. A run that failed is run again, a tick
// that is done is not.

import { afterAll, beforeAll, describe, it } from 'vitest';
import { lastRunOf } from '../../src/job.ts';
import { expectRealRuntime } from '../support/lambda-runtime/index.ts';
import {
  atStep,
  invoke,
  invokeUntilItRuns,
  kindsAt,
  type LeaseStage,
  lines,
  openStage,
  ran,
} from './lease-stage.ts';

/** Renewed every 0.4 s; believed for 2 s; taken over after 5 s. */
const SHORT = { leaseDurationSeconds: 5, renewDeadlineSeconds: 2 };
const TICK = '2026-01-05T08:00:00Z';
const LATER = '2026-01-05T09:00:00Z';

let stage: LeaseStage;
let jobs: LeaseStage;
beforeAll(async () => {
  stage = await openStage();
  jobs = await openStage('ticking.ts');
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
  await jobs[Symbol.asyncDispose]();
});

const runtime = expectRealRuntime() ? 'ric' : 'stand-in';

describe.concurrent(`a retry on the ${runtime} runtime`, () => {
  const delivery = { requestId: 'retried' };

  it.for([
    ['a lease that covers its invocation', {}],
    ['a lease that is renewed', SHORT],
  ] as const)(
    'of an event that threw runs at once, here or elsewhere, under %s',
    async ([what, lease], { expect }) => {
      await using proxy = await stage.proxy();
      await using a = await stage.start('works', { runtime, lease, through: proxy });
      await using b = await stage.start('works', { runtime, lease });
      const task = { lease: what, steps: 2, stepMs: 20 };
      const failing = { ...task, ends: 'throw' } as const;
      for (const token of [1, 2]) {
        const thrown = await a.invoke(failing, delivery);
        expect(thrown).toMatchObject({ kind: 'failed', error: { errorMessage: 'its own' } });
        const { vacant, leaseTransitions } = await stage.record(task.lease);
        expect({ vacant, leaseTransitions }).toEqual({ vacant: true, leaseTransitions: token });
      }
      const writes = kindsAt(proxy).filter((kind) => kind !== 'renewal');
      expect(writes).toEqual(['acquisition', 'release', 'acquisition', 'release']);
      const elsewhere = ran(await invoke(b, task, delivery));
      const here = ran(await invoke(a, task, delivery));
      expect([elsewhere.fencingToken, here.fencingToken]).toEqual([3, 4]);
      const all = [...lines(a), ...lines(b)].map(({ holderIdentity }) => holderIdentity);
      expect(new Set(all).size).toBe(4);
      expect((await stage.record(task.lease)).annotations).toMatchObject(delivery);
    },
  );

  it('of a tick that threw runs, and one of a tick that is done is skipped', async ({ expect }) => {
    await using a = await jobs.start('ticks', { runtime });
    await using b = await jobs.start('ticks', { runtime });
    const task = { lease: 'tick', tick: TICK, steps: 2, stepMs: 20 };
    expect(await a.invoke({ ...task, ends: 'throw' }, delivery)).toMatchObject({
      kind: 'failed',
      error: { errorMessage: 'its own' },
    });
    const failed = await jobs.record(task.lease);
    expect(failed).toMatchObject({ vacant: true, lastTickMs: undefined });
    expect(lastRunOf(failed)).toMatchObject({ outcome: 'failed', error: 'its own', failures: 1 });

    const retried = ran(await invoke(a, task, delivery));
    expect(retried).toMatchObject({ steps: 2, fencingToken: 2, aborted: null });
    const told = [...lines(a)];
    for (const environment of [a, b]) {
      const again = await invoke(environment, task, delivery);
      expect(again).toMatchObject({ skipped: true, reason: 'tick done' });
    }
    expect([...lines(a), ...lines(b)]).toEqual(told);
    const done = await jobs.record(task.lease);
    expect(done).toMatchObject({ lastTickMs: Date.parse(TICK), leaseTransitions: 2 });
    expect(lastRunOf(done)).toMatchObject({ outcome: 'succeeded', failures: 0, fencingToken: 2 });
    // The next tick is another matter, and nothing of these is left to it.
    expect(ran(await invoke(a, { ...task, tick: LATER })).fencingToken).toBe(3);
    expect(await invoke(b, task, delivery)).toMatchObject({ reason: 'newer tick done' });
  });

  it.for(['exit', 'reject'] as const)(
    'of a tick whose environment was lost in mid-work (%s) runs when its lease has run out',
    async (ends, { expect }) => {
      await using a = await jobs.start('ticks', { runtime, lease: SHORT });
      await using b = await jobs.start('ticks', { runtime, lease: SHORT });
      const task = { lease: `lost-${ends}`, tick: TICK, steps: 2, stepMs: 20 };
      expect((await a.invoke({ ...task, ends }, delivery)).kind).toBe('crashed');
      const { holderIdentity, expireTimeMs = Infinity } = await jobs.record(task.lease);
      const early = await invoke(b, task, delivery);
      expect(early).toMatchObject({ skipped: true, reason: 'held', holderIdentity });
      const next = await invokeUntilItRuns(b, task);
      expect(next).toMatchObject({ steps: 2, fencingToken: 2 });
      expect(lines(b)[0]?.nowMs).toBeGreaterThan(expireTimeMs);
      expect((await jobs.record(task.lease)).lastTickMs).toBe(Date.parse(TICK));
    },
  );

  it('of a tick that is done is skipped though its environment was lost before it said so', async ({
    expect,
  }) => {
    await using a = await jobs.start('ticksAndIsLost', { runtime });
    await using b = await jobs.start('ticks', { runtime });
    const task = { lease: 'answer-lost', tick: TICK };
    expect(await a.invoke(task, delivery)).toMatchObject({ kind: 'crashed', code: 3 });
    expect(lines(a).at(-1)).toMatchObject({ do: 'end' });
    expect(await invoke(b, task, delivery)).toMatchObject({ skipped: true, reason: 'tick done' });
    expect(lines(b)).toEqual([]);
  });

  it('that comes while the first delivery still works does not run', async ({ expect }) => {
    await using a = await jobs.start('ticks', { runtime });
    await using b = await jobs.start('ticks', { runtime });
    const task = { lease: 'meanwhile', tick: TICK, steps: 10, stepMs: 100 };
    const first = invoke(a, task, delivery);
    const { holderIdentity } = await atStep(a, 2);
    const second = await invoke(b, task, delivery);
    expect(second).toMatchObject({ skipped: true, reason: 'held', holderIdentity });
    expect(ran(await first).steps).toBe(10);
    expect(await invoke(b, task, delivery)).toMatchObject({ reason: 'tick done' });
    expect(lines(b)).toEqual([]);
  });
});
