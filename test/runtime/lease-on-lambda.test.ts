// Leases where they are used: in handlers that run on the Lambda runtime, in cold, warm and
// parallel environments, against a table, through what a network does.
//
// Freezes and kills are in lease-freezes-and-kills.test.ts. Nothing here asserts that something
// was quick.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { expectRealRuntime } from '../support/lambda-runtime/index.ts';
import { startWitness } from '../support/witness.ts';
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

describe.each(['ric', 'stand-in'] as const)('a leased handler on the %s runtime', (runtime) => {
  const it = test.skipIf(runtime === 'ric' && !realRuntime).concurrent;
  const named = (name: string) => `${name}-${runtime}`;

  it('costs two requests in a cold environment, and two in the warm one', async ({ expect }) => {
    await using proxy = await stage.proxy();
    await using environment = await stage.start('works', { runtime, through: proxy });
    const task = { lease: named('cold-and-warm'), steps: 3 };
    const cold = ran(await invoke(environment, task));
    const warm = ran(await invoke(environment, task));
    expect(kindsAt(proxy)).toEqual(['acquisition', 'release', 'acquisition', 'release']);
    expect([cold.fencingToken, warm.fencingToken]).toEqual([1, 2]);
    expect([cold.steps, warm.steps]).toEqual([3, 3]);
    expect(proxy.requests).toHaveLength(4);
  });

  it('runs in one environment; the others are told who holds it', async ({ expect }) => {
    await using a = await stage.start('works', { runtime });
    await using b = await stage.start('works', { runtime });
    await using c = await stage.start('works', { runtime });
    const task = { lease: named('told'), steps: 20, stepMs: 100 };
    const running = invoke(a, task);
    const { holderIdentity, fencingToken } = await atStep(a, 1);
    for (const result of await Promise.all([invoke(b, task), invoke(c, task)])) {
      expect(result).toMatchObject({ skipped: true, reason: 'held', holderIdentity, fencingToken });
    }
    expect(ran(await running).holderIdentity).toBe(holderIdentity);
    expect([...lines(b), ...lines(c)]).toEqual([]);
    expect(ran(await invoke(b, { ...task, steps: 1 })).fencingToken).toBe(2);
  });

  it('never runs twice at once, whoever is invoked, and tokens increase (L2)', async ({
    expect,
  }) => {
    await using witness = await startWitness();
    const start = () => stage.start('works', { runtime });
    const environments = await Promise.all([start(), start(), start(), start()]);
    const task = { lease: named('race'), steps: 2, stepMs: 20, witness: witness.port };
    const results = await Promise.all(
      environments.map(async (environment) => {
        const all = [];
        for (let round = 0; round < 10; round++) all.push(await invoke(environment, task));
        return all;
      }),
    );
    await Promise.all(environments.map((environment) => environment.kill()));
    const runs = results.flat().filter(({ skipped }) => skipped === undefined);
    expect(witness.overlaps).toEqual([]);
    expect(witness.strays).toEqual([]);
    expect(witness.tokensIncreasing).toBe(true);
    expect(witness.sections).toHaveLength(runs.length);
    expect(runs.length).toBeGreaterThanOrEqual(4);
  });

  it('waits for its turn where it was told to', async ({ expect }) => {
    const lease = { whenHeld: 'wait' };
    await using a = await stage.start('works', { runtime });
    await using b = await stage.start('works', { runtime, lease });
    const task = { lease: named('wait'), steps: 5, stepMs: 100 };
    const first = invoke(a, task);
    await atStep(a, 1);
    const second = ran(await invoke(b, task));
    expect(second.fencingToken).toBe(ran(await first).fencingToken + 1);
    expect(lines(b)[0]?.nowMs).toBeGreaterThanOrEqual(lines(a).at(-1)?.nowMs ?? Infinity);
  });

  it('runs one of two deliveries of an event, under an identity for each', async ({ expect }) => {
    await using a = await stage.start('works', { runtime });
    await using b = await stage.start('works', { runtime });
    const delivery = { requestId: `delivered-twice-${runtime}` };
    // Long enough for the other environment to start on a busy machine.
    const task = { lease: named('delivered-twice'), steps: 5, stepMs: 600 };
    const first = invoke(a, task, delivery);
    const { holderIdentity } = await atStep(a, 1);
    expect((await stage.record(task.lease)).annotations).toMatchObject(delivery);
    expect(await invoke(b, task, delivery)).toMatchObject({ skipped: true, holderIdentity });
    await first;
    const elsewhere = ran(await invoke(b, task, delivery));
    const here = ran(await invoke(a, task, delivery));
    const identities = [holderIdentity, elsewhere.holderIdentity, here.holderIdentity];
    expect(new Set(identities).size).toBe(3);
    expect(lines(b)[0]?.nowMs).toBeGreaterThanOrEqual(lines(a)[6]?.nowMs ?? Infinity);
  });

  it.for([
    ['a lease that covers its invocation', 'works', {}],
    ['a lease that is renewed', 'works', SHORT],
    ['a lease that is kept', 'works', { ...SHORT, sticky: true }],
    ['a lease for a block', 'acquires', SHORT],
  ] as const)(
    'leaves nothing of %s for the next invocation',
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
      const task: Task = { lease: named(JSON.stringify([handler, lease])), steps: 10, stepMs: 100 };
      const left: string[] = [];
      for (let invocation = 0; invocation < 3; invocation++) {
        const { resources, done } = returned<{ resources: string[]; done: Done }>(
          await environment.invoke(task),
        );
        expect(done.steps).toBe(10);
        const ofALease = ['Timeout', 'TCPSocketWrap', 'GetAddrInfoReqWrap'];
        left.push(resources.filter((each) => ofALease.includes(each)).join());
        const { length } = proxy.requests;
        await sleep(500);
        expect(proxy.requests).toHaveLength(length);
      }
      expect(left).toEqual([left[0], left[0], left[0]]);
      const renewals = kindsAt(proxy).filter((kind) => kind === 'renewal').length;
      if (lease === SHORT) expect(renewals).toBeGreaterThanOrEqual(3);
    },
  );

  it.for([
    ['that refuses connections, under a lease that is not renewed', {}, 'refuses'],
    ['that refuses connections, under a lease that is renewed', SHORT, 'refuses'],
    ['that answers nothing, under a lease that is renewed', SHORT, 'is silent'],
  ] as const)('outlives a store %s', async ([what, lease, how], { expect }) => {
    await using proxy = await stage.proxy();
    await using environment = await stage.start('works', { runtime, lease, through: proxy });
    const task = { lease: named(what), steps: 30, stepMs: 100 };
    const running = invoke(environment, task);
    await atStep(environment, 3);
    if (how === 'refuses') await proxy.refuseConnections();
    else proxy.inject({ fault: { kind: 'black-hole', when: 'before' }, times: Infinity });
    const result = ran(await running);
    const finished = { aborted: result.aborted, all: result.steps === task.steps };
    expect(finished).toEqual(
      lease === SHORT ? { aborted: 'expired', all: false } : { aborted: null, all: true },
    );

    // An unhandled rejection would have ended the environment, in this invocation at the latest.
    const refused = await environment.invoke(task);
    expect(refused).toMatchObject({ kind: 'failed', error: { errorType: 'LeaseError' } });
    expect(environment.alive).toBe(true);
    proxy.clearFaults();
    await proxy.acceptConnections();
    if (lease !== SHORT) return;
    const next = await invokeUntilItRuns(environment, { ...task, steps: 1 });
    expect(next.fencingToken).toBe(result.fencingToken + 1);
  });
});
