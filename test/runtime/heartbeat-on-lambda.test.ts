// A function with a heartbeat on the Lambda runtime: invoked again and again, frozen in between,
// and cut off from its table. Nothing here asserts that something was quick.

import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { expectRealRuntime, type LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import type { FaultProxy } from '../support/fault-proxy.ts';
import type { Beat } from './fixtures/leased.ts';
import { kindsAt, type LeaseStage, openStage, returned } from './lease-stage.ts';

const EVERY_MS = 1_000;
const DURATION_MS = 4_000;
const TIMING = { renewEverySeconds: EVERY_MS / 1_000, leaseDurationSeconds: DURATION_MS / 1_000 };

let stage: LeaseStage;
beforeAll(async () => {
  stage = await openStage();
});
afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const realRuntime = expectRealRuntime();

async function invoke(environment: LambdaEnvironment, beat: Beat = {}): Promise<string> {
  return returned<string>(await environment.invoke(beat));
}

describe.each(['ric', 'stand-in'] as const)('a heartbeat on the %s runtime', (runtime) => {
  const it = test.skipIf(runtime === 'ric' && !realRuntime).concurrent;
  const named = (name: string) => `${name}-${runtime}`;
  const start = (name: string, through: FaultProxy) => {
    const options = { ...TIMING, name, graceSeconds: 60 };
    const env = { HEARTBEAT_OPTIONS: JSON.stringify(options) };
    return stage.start('beats', { runtime, through, env });
  };

  it('is renewed at most once for each interval, frozen in between or not', async ({ expect }) => {
    await using proxy = await stage.proxy();
    const name = named('warm');
    await using environment = await start(name, proxy);
    const startedAtMs = performance.now();
    for (let turn = 0; turn < 30; turn++) {
      expect(await invoke(environment)).toBe('done');
      environment.freeze();
      await sleep(50);
      environment.thaw();
    }
    const tookMs = performance.now() - startedAtMs;
    expect(proxy.requests.length).toBeLessThanOrEqual(1 + Math.floor(tookMs / EVERY_MS));
    expect(proxy.requests.length).toBeGreaterThan(1);
    const [first, ...others] = kindsAt(proxy);
    expect(first).toBe('acquisition');
    expect(new Set(others)).toEqual(new Set(['renewal']));
    expect(await stage.record(name)).toMatchObject({ kind: 'heartbeat', leaseTransitions: 1 });
  });

  it('is taken anew after a freeze beyond its lease, not renewed (L5)', async ({ expect }) => {
    await using proxy = await stage.proxy();
    const name = named('frozen');
    await using environment = await start(name, proxy);
    await invoke(environment);
    environment.freeze();
    await sleep(DURATION_MS);
    environment.thaw();
    expect(await invoke(environment)).toBe('done');
    expect(kindsAt(proxy)).not.toContain('renewal');
    expect(await stage.record(name)).toMatchObject({ leaseTransitions: 2, vacant: false });
  });

  it('fails no handler while the table is out of reach, and comes back', async ({ expect }) => {
    await using proxy = await stage.proxy();
    const name = named('cut-off');
    await using environment = await start(name, proxy);
    await invoke(environment);
    for (const cut of ['refused', 'mute']) {
      if (cut === 'refused') await proxy.refuseConnections();
      else proxy.muteSockets();
      await sleep(EVERY_MS);
      expect(await invoke(environment, { workMs: 200 })).toBe('done');
      const thrown = await environment.invoke({ throws: 'its own' });
      expect(JSON.stringify(thrown)).toContain('its own');
      await proxy.acceptConnections();
      await sleep(EVERY_MS);
      expect(await invoke(environment, { workMs: 1_500 })).toBe('done');
      const { expireTimeMs, vacant } = await stage.record(name);
      expect(vacant).toBe(false);
      expect(expireTimeMs).toBeGreaterThan(Date.now());
    }
    expect(environment.alive).toBe(true);
  });
});
