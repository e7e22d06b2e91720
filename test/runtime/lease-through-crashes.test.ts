// A holder whose process ends in mid-work, by its own code or by a signal: nothing of the lease runs
// then. Where the code only throws, the environment goes on, and the lease is given back.
//
// What Lambda itself does to a holder is in lease-freezes-and-kills.test.ts.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, type ExpectStatic, it } from 'vitest';
import { expectRealRuntime, type LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import type { Done, Task } from './fixtures/leased.ts';
import {
  atStep,
  invoke,
  invokeUntilItRuns,
  kindsAt,
  type LeaseStage,
  lines,
  openStage,
  ran,
  returned,
} from './lease-stage.ts';

/** Renewed every 0.4 s; believed for 2 s; taken over after 5 s. The tolerance is 3 s. */
const SHORT = { leaseDurationSeconds: 5, renewDeadlineSeconds: 2 };
/** Covers an invocation of 2 s; taken over after 5 s. */
const COVERING = { toleranceSeconds: 3 };

let stage: LeaseStage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const runtime = expectRealRuntime() ? 'ric' : 'stand-in';

/** Of a lease whose holder is gone: who comes is told of it, and takes it when it has run out. */
async function runsOut(
  expect: ExpectStatic,
  next: LambdaEnvironment,
  task: Task,
  { holderIdentity, fencingToken }: Pick<Done, 'holderIdentity' | 'fencingToken'>,
): Promise<void> {
  const { expireTimeMs = Infinity, ...record } = await stage.record(task.lease);
  expect(record).toMatchObject({ holderIdentity, leaseTransitions: fencingToken });
  expect(await invoke(next, task)).toMatchObject({ skipped: true, holderIdentity, fencingToken });
  expect(Date.now()).toBeLessThan(expireTimeMs);
  const successor = await invokeUntilItRuns(next, { lease: task.lease });
  expect(successor).toMatchObject({ fencingToken: fencingToken + 1, aborted: null });
  expect(lines(next)[0]?.nowMs).toBeGreaterThan(expireTimeMs);
}

describe.concurrent(`a holder on the ${runtime} runtime`, () => {
  it.for([
    ['calls process.exit', 'exit', 'works', COVERING, 3],
    ['calls process.exit, and renews its lease', 'exit', 'works', SHORT, 3],
    ['calls process.exit, and keeps its lease', 'exit', 'works', { ...SHORT, sticky: true }, 3],
    ['leaves a rejection to nobody', 'reject', 'works', COVERING, 1],
    ['leaves a rejection to nobody, in a block', 'reject', 'acquires', SHORT, 1],
  ] as const)(
    'is replaced when its lease has run out, not before: one that %s',
    async ([what, ends, handler, lease, code], { expect }) => {
      await using a = await stage.start(handler, { runtime, lease, timeoutMs: 2_000 });
      await using b = await stage.start('works', { runtime, lease });
      const task = { lease: what, steps: 3, stepMs: 100 };
      // In a warm environment, so that what it kept is lost with it.
      ran(await invoke(a, task));
      expect(await a.invoke({ ...task, ends })).toEqual({ kind: 'crashed', code, signal: null });
      expect(a.alive).toBe(false);
      const last = lines(a).at(-1);
      expect(last).toMatchObject({ do: 'step', step: 3, aborted: false });
      await runsOut(expect, b, task, last!);
    },
  );

  it('that is shut down in mid-work is replaced when its lease has run out', async ({ expect }) => {
    await using a = await stage.start('works', { runtime, lease: SHORT });
    await using b = await stage.start('works', { runtime, lease: SHORT });
    const task = { lease: 'shut-down', steps: 100, stepMs: 100 };
    const running = a.invoke(task);
    const holder = await atStep(a, 3);
    await a.shutdown();
    expect((await running).kind).toBe('crashed');
    await runsOut(expect, b, task, holder);
  });

  it('that listens to its shutdown gives its lease back in time', async ({ expect }) => {
    await using proxy = await stage.proxy();
    const lease = { ...SHORT, leaseDurationSeconds: 60 };
    await using a = await stage.start('stopsWhenTold', { runtime, lease, through: proxy });
    await using b = await stage.start('works', { runtime, lease });
    const task = { lease: 'listens', steps: 100, stepMs: 50 };
    const running = invoke(a, task);
    const { holderIdentity, fencingToken } = await atStep(a, 3);
    await a.shutdown();
    expect(await running).toMatchObject({ holderIdentity, aborted: 'stopped' });
    expect(kindsAt(proxy).at(-1)).toBe('release');
    const next = ran(await invoke(b, { lease: task.lease }));
    expect(next.fencingToken).toBe(fencingToken + 1);
    expect(lines(b)[0]?.nowMs).toBeGreaterThanOrEqual(lines(a).at(-1)?.nowMs ?? Infinity);
  });

  it('that keeps its lease between invocations is shut down: the lease runs out', async ({
    expect,
  }) => {
    const lease = { ...SHORT, sticky: true };
    await using a = await stage.start('works', { runtime, lease });
    await using b = await stage.start('works', { runtime, lease });
    const task = { lease: 'idle' };
    const kept = ran(await invoke(a, task));
    expect(a.frozen).toBe(true);
    await a.shutdown();
    await runsOut(expect, b, task, kept);
  });

  it.for([
    ['a lease that covers its invocation', 'works', {}],
    ['a lease that is renewed', 'works', SHORT],
    ['a lease that is kept', 'works', { ...SHORT, sticky: true }],
    ['a lease for a block', 'acquires', SHORT],
  ] as const)(
    'that throws leaves nothing of %s for the next invocation',
    async ([, handler, lease], { expect }) => {
      await using proxy = await stage.proxy();
      await using environment = await stage.start('tellsWhatIsLeft', {
        runtime,
        lease,
        through: proxy,
        env: { LEASE_HANDLER: handler },
        // So that a timer that was left could fire.
        freezeBetween: false,
      });
      const task: Task = { lease: JSON.stringify([handler, lease]), steps: 6, stepMs: 100 };
      const left: string[] = [];
      const runs: Done[] = [];
      for (let round = 0; round < 2; round++) {
        const { resources, done } = returned<{ resources: string[]; done: Done }>(
          await environment.invoke(task),
        );
        const ofALease = ['Timeout', 'TCPSocketWrap', 'GetAddrInfoReqWrap'];
        left.push(resources.filter((each) => ofALease.includes(each)).join());
        runs.push(done);
        const thrown = await environment.invoke({ ...task, ends: 'throw' });
        expect(thrown).toMatchObject({ kind: 'failed', error: { errorMessage: 'its own' } });
        expect((await stage.record(task.lease)).vacant).toBe(true);
        const { length } = proxy.requests;
        await sleep(500);
        expect(proxy.requests).toHaveLength(length);
      }
      expect(left).toEqual([left[0], left[0]]);
      expect(runs.map(({ fencingToken }) => fencingToken)).toEqual([1, 'sticky' in lease ? 2 : 3]);
      expect(runs.map(({ aborted }) => aborted)).toEqual([null, null]);
      expect(environment.alive).toBe(true);
    },
  );
});
