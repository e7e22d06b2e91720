// Scheduled jobs, slots and crashes on Lambda Managed Instances, where many invocations interleave
// in one process, and a deadline ends nothing. Plain leases there: lease-on-managed-instances.test.ts.

import { afterAll, beforeAll, describe, it } from 'vitest';
import { lastRunOf } from '../../src/job.ts';
import { expectRealRuntime } from '../support/lambda-runtime/index.ts';
import { startWitness } from '../support/witness.ts';
import {
  atStep,
  invoke,
  invokeUntilItRuns,
  type LeaseStage,
  lines,
  openStage,
  ran,
  type StartOptions,
} from './lease-stage.ts';

/** Renewed every 0.4 s; believed for 2 s; taken over after 5 s. */
const SHORT = { leaseDurationSeconds: 5, renewDeadlineSeconds: 2 };
/** For work of 9 s, and what a busy machine adds to it. */
const LONG = { timeout: 60_000 };
const FIRST_MS = Date.parse('2026-01-05T08:00:00Z');
const tickAt = (hour: number) => new Date(FIRST_MS + hour * 3_600_000).toISOString();

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
const managed = (options: StartOptions = {}): StartOptions => ({
  runtime,
  managedInstances: { maxConcurrency: 4, workers: 1 },
  ...options,
});

describe.concurrent(`on Managed Instances (${runtime}), a scheduled job`, () => {
  it('runs once for a tick that is delivered to many at once', async ({ expect }) => {
    await using witness = await startWitness();
    await using a = await jobs.start('ticks', managed());
    await using b = await jobs.start('ticks', managed());
    const task = { lease: 'at-once', steps: 3, stepMs: 30, witness: witness.port };
    const told = [];
    for (let hour = 0; hour < 5; hour++) {
      const event = { ...task, tick: tickAt(hour) };
      const deliveries = [a, b, a, b, a, b].map((each) => invoke(each, event));
      const results = await Promise.all(deliveries);
      told.push(...results.map(({ skipped }) => skipped === undefined));
      expect(results.filter(({ skipped }) => skipped === undefined)).toHaveLength(1);
      for (const late of [a, b]) {
        expect(await invoke(late, event)).toMatchObject({ skipped: true, reason: 'tick done' });
      }
      expect((await jobs.record(task.lease)).lastTickMs).toBe(Date.parse(event.tick));
    }
    expect(witness.sections).toHaveLength(5);
    expect(witness.overlaps).toEqual([]);
    expect(witness.strays).toEqual([]);
    expect(witness.sections.map(({ token }) => token)).toEqual([1, 2, 3, 4, 5]);
  });

  it('that fails beside others leaves its own tick open, and no other', async ({ expect }) => {
    await using environment = await jobs.start('ticks', managed({ lease: SHORT }));
    const tick = tickAt(0);
    const other = invoke(environment, { lease: 'beside', tick, steps: 10, stepMs: 100 });
    const { holderIdentity } = await atStep(environment, 1);
    const failing = { lease: 'fails', tick, steps: 2, stepMs: 20 };
    const thrown = await environment.invoke({ ...failing, ends: 'throw' });
    expect(thrown).toMatchObject({ kind: 'failed', error: { errorMessage: 'its own' } });
    const again = ran(await invoke(environment, failing));
    expect(again).toMatchObject({ steps: 2, fencingToken: 2, aborted: null });
    expect(await invoke(environment, failing)).toMatchObject({ reason: 'tick done' });
    expect(ran(await other)).toMatchObject({ steps: 10, holderIdentity, aborted: null });
    expect((await jobs.record('beside')).lastTickMs).toBe(FIRST_MS);
  });

  it('is kept from its retry past its deadline, until it has settled', LONG, async ({ expect }) => {
    await using environment = await jobs.start('ticks', managed({ lease: SHORT }));
    await using other = await jobs.start('ticks', managed({ lease: SHORT }));
    const retry = { lease: 'overrun', tick: tickAt(0) };
    // On a busy machine the retries need time while it goes on.
    const task = { ...retry, steps: 90, stepMs: 100, deaf: true };
    expect(await environment.invoke(task, { timeoutMs: 1_000 })).toEqual({ kind: 'timed-out' });
    const first = lines(environment).at(-1);
    // Longer than the lease lasts by itself.
    await environment.printed('"do":"step","step":60,');
    for (const each of [environment, other]) {
      const { holderIdentity } = first!;
      expect(await invoke(each, retry)).toMatchObject({ reason: 'held', holderIdentity });
    }
    const next = await invokeUntilItRuns(other, retry);
    expect(next).toMatchObject({ fencingToken: 2, aborted: null });
    const end = lines(environment).at(-1);
    expect(end).toMatchObject({ do: 'end', aborted: true, fencingToken: 1 });
    expect(lines(other)[0]?.nowMs).toBeGreaterThanOrEqual(end?.nowMs ?? Infinity);
    const record = await jobs.record(retry.lease);
    expect(record.lastTickMs).toBe(FIRST_MS);
    expect(lastRunOf(record)).toMatchObject({ outcome: 'succeeded', fencingToken: 2 });
  });
});

describe.concurrent(`on Managed Instances (${runtime}), slots`, () => {
  it('let so many run at once, over all environments, each in its own', async ({ expect }) => {
    await using witness = await startWitness();
    await using a = await stage.start('works', managed({ lease: { slots: 2 } }));
    await using b = await stage.start('works', managed({ lease: { slots: 2 } }));
    const task = { lease: 'slots', steps: 2, stepMs: 20, witness: witness.port };
    const results = await Promise.all(
      [a, b, a, b, a, b].map(async (environment) => {
        const all = [];
        for (let round = 0; round < 8; round++) all.push(await invoke(environment, task));
        return all;
      }),
    );
    const runs = results.flat().filter(({ skipped }) => skipped === undefined);
    expect(witness.overlaps).toEqual([]);
    expect(witness.strays).toEqual([]);
    expect(witness.tokensIncreasing).toBe(true);
    expect(witness.sections).toHaveLength(runs.length);
    expect(runs.length).toBeLessThan(results.flat().length);
    expect(new Set(witness.sections.map(({ key }) => key))).toEqual(
      new Set(['slots/0', 'slots/1']),
    );
    expect((await stage.record('slots/0')).vacant).toBe(true);
    expect((await stage.record('slots/1')).vacant).toBe(true);
  });

  it('are kept past a deadline, one by one', LONG, async ({ expect }) => {
    const lease = { ...SHORT, slots: 2 };
    await using a = await stage.start('works', managed({ lease }));
    await using b = await stage.start('works', managed({ lease }));
    const name = 'overrun-slot';
    // On a busy machine the others need time while it goes on.
    const task = { lease: name, steps: 90, stepMs: 100, deaf: true };
    expect(await a.invoke(task, { timeoutMs: 1_000 })).toEqual({ kind: 'timed-out' });
    await a.printed('"do":"step","step":58,');
    const running = invoke(b, { lease: name, steps: 5, stepMs: 100 });
    await atStep(b, 2);
    for (const each of [a, b]) {
      expect(await invoke(each, { lease: name })).toMatchObject({ skipped: true, reason: 'held' });
    }
    const { slot, aborted } = ran(await running);
    expect(aborted).toBe(null);
    const overdue = `${name}/${slot === 0 ? 1 : 0}`;
    const { holderIdentity } = lines(a)[0]!;
    expect(await stage.record(overdue)).toMatchObject({ holderIdentity, leaseTransitions: 1 });
    await a.printed('"do":"end","step":90,');
    const vacant = async () => (await stage.record(overdue)).vacant;
    await expect.poll(vacant, { timeout: 5_000 }).toBe(true);
  });
});

describe.concurrent(`on Managed Instances (${runtime}), a worker that is lost`, () => {
  it.for(['exit', 'reject'] as const)(
    'takes its neighbours with it; their leases run out (%s)',
    async (ends, { expect }) => {
      const lease = SHORT;
      await using a = await stage.start('works', managed({ lease, timeoutMs: 3_000 }));
      await using b = await stage.start('works', managed({ lease }));
      const neighbour = { lease: `neighbour-${ends}`, steps: 100, stepMs: 100 };
      const beside = a.invoke(neighbour);
      const other = await atStep(a, 2);
      const task = { lease: `lost-${ends}`, steps: 2, stepMs: 20 };
      const lost = await a.invoke({ ...task, ends });
      // The process may go on without its worker: nobody answers any more.
      expect([lost, await beside]).toEqual([{ kind: 'timed-out' }, { kind: 'timed-out' }]);

      const [mine, its] = [await stage.record(task.lease), await stage.record(neighbour.lease)];
      expect(mine).toMatchObject({ vacant: false, leaseTransitions: 1 });
      expect(its).toMatchObject({ holderIdentity: other.holderIdentity, leaseTransitions: 1 });
      for (const { lease: name, expireTimeMs = Infinity } of [
        { lease: task.lease, expireTimeMs: mine.expireTimeMs },
        { lease: neighbour.lease, expireTimeMs: its.expireTimeMs },
      ]) {
        const next = await invokeUntilItRuns(b, { lease: name });
        expect(next.fencingToken).toBe(2);
        const begun = lines(b).find((line) => line.holderIdentity === next.holderIdentity);
        expect(begun?.nowMs).toBeGreaterThan(expireTimeMs);
      }
    },
  );
});
