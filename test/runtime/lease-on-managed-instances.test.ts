// Leases on Lambda Managed Instances: many invocations run at once in one process, nothing is
// frozen, and a deadline ends nothing.

import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Skipped } from '../../src/refusal.ts';
import { expectRealRuntime } from '../support/lambda-runtime/index.ts';
import { startWitness } from '../support/witness.ts';
import type { Done } from './fixtures/leased.ts';
import {
  atStep,
  invoke,
  kindsAt,
  type LeaseStage,
  lines,
  openStage,
  ran,
  type StartOptions,
  writesAt,
} from './lease-stage.ts';

/** Renewed every 0.4 s; believed for 2 s; taken over after 5 s. */
const SHORT = { leaseDurationSeconds: 5, renewDeadlineSeconds: 2 };

let stage: LeaseStage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const realRuntime = expectRealRuntime();

describe.each(['ric', 'stand-in'] as const)('on Managed Instances (%s), a lease', (runtime) => {
  const it = test.skipIf(runtime === 'ric' && !realRuntime).concurrent;
  const named = (name: string) => `managed-${name}-${runtime}`;
  const start = (options: StartOptions = {}) =>
    stage.start('works', {
      runtime,
      managedInstances: { maxConcurrency: 4, workers: 1 },
      ...options,
    });

  it('lets one of the invocations of a process run at a time', async ({ expect }) => {
    await using witness = await startWitness();
    await using environment = await start();
    const task = { lease: named('interleaved'), steps: 3, stepMs: 20, witness: witness.port };
    const four = [0, 1, 2, 3].map(async () => {
      const results = [];
      for (let round = 0; round < 10; round++) results.push(await invoke(environment, task));
      return results;
    });
    const results = (await Promise.all(four)).flat();
    const runs = results.filter(({ skipped }) => skipped === undefined).map(ran);
    expect(witness.overlaps).toEqual([]);
    expect(witness.tokensIncreasing).toBe(true);
    expect(witness.sections).toHaveLength(runs.length);
    expect(new Set(runs.map(({ holderIdentity }) => holderIdentity)).size).toBe(runs.length);
    expect(runs.length).toBeLessThan(results.length);
    expect(runs.length).toBeGreaterThan(1);
  });

  it('lets one run at a time over worker threads, each under a name of its own', async ({
    expect,
  }) => {
    await using witness = await startWitness();
    const managedInstances = { maxConcurrency: 4, workers: 2 };
    await using environment = await start({ managedInstances });
    const task = { lease: named('threads'), steps: 2, stepMs: 10, witness: witness.port };
    const all: (Done | Skipped)[] = [];
    const threads = () =>
      new Set(all.flatMap((each) => (each.skipped === true ? [] : [each.thread])));
    // One worker may still be loading; events are sent as soon as the first is ready.
    for (let round = 0; round < 10 || threads().size < 2; round++) {
      const four = [0, 1, 2, 3].map(() => invoke(environment, task));
      all.push(...(await Promise.all(four)));
    }
    const runs = all.filter(({ skipped }) => skipped === undefined).map(ran);
    expect(witness.overlaps).toEqual([]);
    expect(witness.tokensIncreasing).toBe(true);
    expect(witness.sections).toHaveLength(runs.length);
    expect(new Set(runs.map(({ holderIdentity }) => holderIdentity)).size).toBe(runs.length);
  });

  it('lets invocations with other leases run beside it', async ({ expect }) => {
    await using environment = await start();
    const a = invoke(environment, { lease: named('a'), steps: 10, stepMs: 100 });
    await atStep(environment, 1);
    const b = ran(await invoke(environment, { lease: named('b') }));
    const all = ran(await a);
    expect(all).toMatchObject({ steps: 10, aborted: null });
    const ends = lines(environment).filter((line) => line.do === 'end');
    expect(ends.map(({ holderIdentity }) => holderIdentity)).toEqual([
      b.holderIdentity,
      all.holderIdentity,
    ]);
  });

  it('aborts at the deadline, and is renewed until the work has settled', async ({ expect }) => {
    await using proxy = await stage.proxy();
    await using environment = await start({ lease: SHORT, through: proxy });
    const task = { lease: named('deadline'), steps: 30, stepMs: 100, deaf: true };
    const running = environment.invoke(task, { timeoutMs: 1_000 });
    const { deadlineMs, holderIdentity, fencingToken } = await atStep(environment, 1);
    expect(await running).toEqual({ kind: 'timed-out' });

    // Longer than the lease would last by itself: nobody may take it while the work goes on.
    await environment.printed('"do":"step","step":25,');
    expect(await invoke(environment, { lease: task.lease })).toMatchObject({
      skipped: true,
      holderIdentity,
      fencingToken,
    });
    await environment.printed('"do":"end"');
    for (const { nowMs, aborted } of lines(environment)) {
      if (nowMs > deadlineMs + 100) expect(aborted).toBe(true);
      if (nowMs < deadlineMs - 100) expect(aborted).toBe(false);
    }
    const late = writesAt(proxy, holderIdentity).filter(({ at }) => at > deadlineMs + 100);
    expect(late.filter(({ kind }) => kind === 'renewal').length).toBeGreaterThanOrEqual(2);
    const last = () => kindsAt(proxy, holderIdentity).at(-1);
    await expect.poll(last, { timeout: 5_000 }).toBe('release');
    expect(ran(await invoke(environment, { lease: task.lease })).fencingToken).toBe(
      fencingToken + 1,
    );
  });

  it('ends by itself through an outage, and the process goes on', async ({ expect }) => {
    await using proxy = await stage.proxy();
    await using environment = await start({ lease: SHORT, through: proxy });
    const running = invoke(environment, { lease: named('outage'), steps: 60, stepMs: 100 });
    await atStep(environment, 3);
    await proxy.refuseConnections();
    expect(ran(await running)).toMatchObject({ aborted: 'expired' });
    await proxy.acceptConnections();
    expect(ran(await invoke(environment, { lease: named('after-it') })).steps).toBe(1);
    expect(environment.alive).toBe(true);
  });

  it('cannot be kept between invocations', async ({ expect }) => {
    await using environment = await start({ lease: { ...SHORT, sticky: true } });
    const refused = await environment.invoke({ lease: named('sticky') });
    expect(refused).toMatchObject({ kind: 'failed', error: { errorType: 'LeaseError' } });
    expect(JSON.stringify(refused)).toContain('sticky is not possible on Managed Instances');
  });
});
