// What Lambda and its machines do to a holder in mid-work: freezes, time-outs, kills. Nothing of it
// runs then; the record and the clocks must do (L4, L6).
//
// Work is witnessed by what an environment prints, requests by the proxy before the table. No test
// asserts that a takeover was quick, only that it came, and not too early.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { expectRealRuntime, type LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import {
  afterARenewal,
  atStep,
  invoke,
  invokeUntilItRuns,
  kindsAt,
  type LeaseStage,
  lines,
  openStage,
  ran,
  writesAt,
} from './lease-stage.ts';

/** Renewed every 0.4 s; believed for 2 s; taken over after 5 s. The tolerance is 3 s. */
const SHORT = { leaseDurationSeconds: 5, renewDeadlineSeconds: 2 };
/** Clocks tick in milliseconds, and more than one is looked at. */
const TICKS_MS = 20;

let stage: LeaseStage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const realRuntime = expectRealRuntime();

describe.each(['ric', 'stand-in'] as const)('a holder on the %s runtime', (runtime) => {
  const it = test.skipIf(runtime === 'ric' && !realRuntime).concurrent;
  const named = (name: string) => `${name}-${runtime}`;

  it.for(['works', 'acquires'])(
    'makes no step and sends nothing after a freeze past its lease (L4): %s',
    async (handler, { expect }) => {
      await using proxy = await stage.proxy();
      await using a = await stage.start(handler, { runtime, lease: SHORT, through: proxy });
      await using b = await stage.start('works', { runtime, lease: SHORT });
      const task = { lease: named(`frozen-${handler}`), steps: 100, stepMs: 250 };
      const running = invoke(a, task, { timeoutMs: 60_000 });
      const { holderIdentity, fencingToken } = await atStep(a, 2);
      await afterARenewal(proxy);
      a.freeze();
      const { expireTimeMs } = await stage.record(task.lease);
      const next = await invokeUntilItRuns(b, { ...task, steps: 1 });
      expect(next.fencingToken).toBe(fencingToken + 1);
      expect(lines(b)[0]?.nowMs).toBeGreaterThan(expireTimeMs ?? Infinity);

      const working = invoke(b, { ...task, steps: 4 });
      await atStep(b, 2);
      const thawedAtMs = Date.now();
      a.thaw();
      expect(await running).toMatchObject({ aborted: 'expired', holderIdentity });
      const late = lines(a).filter(({ nowMs }) => nowMs >= thawedAtMs);
      expect(late).toMatchObject([{ do: 'end', aborted: true }]);
      expect(writesAt(proxy, holderIdentity).filter(({ at }) => at >= thawedAtMs)).toEqual([]);
      if (handler === 'works') {
        expect(logOf(a)).toMatch(/A lease ended before its work did.*"reason":"expired"/);
      }
      expect(ran(await working)).toMatchObject({ steps: 4, aborted: null });
    },
  );

  it('does not come back to a lease that nobody took meanwhile (L4, L5)', async ({ expect }) => {
    await using proxy = await stage.proxy();
    await using a = await stage.start('works', { runtime, lease: SHORT, through: proxy });
    const task = { lease: named('nobody-took-it'), steps: 100, stepMs: 250 };
    const running = invoke(a, task, { timeoutMs: 60_000 });
    const { holderIdentity, fencingToken } = await atStep(a, 2);
    await afterARenewal(proxy);
    a.freeze();
    // Its belief ends after 2 s, its record is good for 5.
    await sleep(2_500);
    const thawedAtMs = Date.now();
    a.thaw();
    expect(await running).toMatchObject({ aborted: 'expired', holderIdentity });
    const late = lines(a).filter(({ nowMs }) => nowMs >= thawedAtMs);
    expect(late).toMatchObject([{ do: 'end', aborted: true }]);
    expect(writesAt(proxy).filter(({ at }) => at >= thawedAtMs)).toEqual([]);
    const again = await invokeUntilItRuns(a, { ...task, steps: 1 });
    expect(again.fencingToken).toBe(fencingToken + 1);
    expect(again.holderIdentity).not.toBe(holderIdentity);
  });

  it('is not helped by a renewal that was under way when it was frozen (L1)', async ({
    expect,
  }) => {
    await using proxy = await stage.proxy();
    await using a = await stage.start('works', { runtime, lease: SHORT, through: proxy });
    await using b = await stage.start('works', { runtime, lease: SHORT });
    const task = { lease: named('under-way'), steps: 100, stepMs: 250 };
    const running = invoke(a, task, { timeoutMs: 60_000 });
    const { holderIdentity } = await atStep(a, 1);
    const renewal = proxy.inject({ fault: { kind: 'hold', when: 'before' } });
    await renewal.reached();
    a.freeze();
    const next = await invokeUntilItRuns(b, { ...task, steps: 1 });

    renewal.release();
    const thawedAtMs = Date.now();
    a.thaw();
    const { aborted, ...result } = ran(await running);
    expect(result).toMatchObject({ holderIdentity });
    // Whichever it reads first after the thaw: the clocks, or the answer that has long arrived.
    expect(['expired', 'taken over']).toContain(aborted);
    expect(writesAt(proxy).filter(({ at }) => at >= thawedAtMs)).toEqual([]);
    expect(kindsAt(proxy).at(-1)).toBe('renewal');
    const { vacant, leaseTransitions } = await stage.record(task.lease);
    expect({ vacant, leaseTransitions }).toEqual({
      vacant: true,
      leaseTransitions: next.fencingToken,
    });
  });

  it.for([
    ['waits', undefined, 2_000, { steps: 100, stepMs: 100 }],
    ['is in a busy loop', undefined, 2_000, { steps: 2, stepMs: 100, spin: true }],
    ['renews its lease', SHORT, 3_700, { steps: 100, stepMs: 100 }],
  ] as const)(
    'is replaced at its deadline plus the tolerance, not before: one that %s',
    async ([, lease, timeoutMs, work], { expect }) => {
      const toleranceMs = 3_000;
      const options = { runtime, lease: lease ?? { toleranceSeconds: toleranceMs / 1_000 } };
      await using a = await stage.start('works', { ...options, timeoutMs });
      await using b = await stage.start('works', options);
      const task = { lease: named(`killed-${JSON.stringify([lease, work])}`), ...work };
      const running = a.invoke(task);
      const { deadlineMs, holderIdentity, fencingToken } = await atStep(a, 2);
      expect(await running).toEqual({ kind: 'timed-out' });
      const { expireTimeMs = 0 } = await stage.record(task.lease);
      expect(expireTimeMs).toBeGreaterThanOrEqual(deadlineMs + toleranceMs - TICKS_MS);
      expect(expireTimeMs).toBeLessThan(deadlineMs + toleranceMs + 200);

      const during = await invoke(b, task);
      expect(during).toMatchObject({ skipped: true, holderIdentity, fencingToken });
      const next = await invokeUntilItRuns(b, { lease: task.lease });
      expect(next.fencingToken).toBe(fencingToken + 1);
      expect(lines(b)[0]?.nowMs).toBeGreaterThan(expireTimeMs);
    },
  );

  it('is replaced when its lease runs out, not before, once it was killed', async ({ expect }) => {
    await using a = await stage.start('works', { runtime, lease: SHORT });
    await using b = await stage.start('works', { runtime, lease: SHORT });
    const task = { lease: named('sigkill'), steps: 100, stepMs: 250 };
    const running = a.invoke(task, { timeoutMs: 60_000 });
    const { fencingToken } = await atStep(a, 3);
    await a.kill();
    expect(await running).toMatchObject({ kind: 'crashed', signal: 'SIGKILL' });
    const { expireTimeMs = Infinity } = await stage.record(task.lease);
    const next = await invokeUntilItRuns(b, { ...task, steps: 1 });
    expect(next.fencingToken).toBe(fencingToken + 1);
    expect(lines(b)[0]?.nowMs).toBeGreaterThan(expireTimeMs);
  });

  it('keeps a sticky lease between warm invocations, until it runs out (L5)', async ({
    expect,
  }) => {
    await using proxy = await stage.proxy();
    const lease = { leaseDurationSeconds: 6, renewDeadlineSeconds: 3, sticky: true };
    await using a = await stage.start('works', { runtime, lease, through: proxy });
    await using b = await stage.start('works', { runtime });
    const task = { lease: named('sticky') };
    const first = ran(await invoke(a, task));
    const second = ran(await invoke(a, task));
    // So long that a renewal is due; belief in it ends after 3 s.
    await sleep(1_200);
    expect(a.frozen).toBe(true);
    const { holderIdentity, fencingToken } = first;
    expect(await invoke(b, task)).toMatchObject({ skipped: true, holderIdentity, fencingToken });
    const third = ran(await invoke(a, task));
    expect([second, third]).toMatchObject([
      { holderIdentity, fencingToken },
      { holderIdentity, fencingToken },
    ]);
    expect(kindsAt(proxy)).toContain('renewal');
    expect(kindsAt(proxy).filter((kind) => kind !== 'renewal')).toEqual(['acquisition']);

    const { expireTimeMs = Infinity } = await stage.record(task.lease);
    await sleep(Math.max(0, expireTimeMs - Date.now()) + 200);
    const fourth = ran(await invoke(a, task));
    expect(fourth.fencingToken).toBe(fencingToken + 1);
    expect(fourth.holderIdentity).not.toBe(holderIdentity);
  });
});

function logOf(environment: LambdaEnvironment): string {
  return environment.output.map(({ text }) => text).join('\n');
}
