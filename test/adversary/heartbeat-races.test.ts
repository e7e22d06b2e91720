// What is done to a heartbeat at an awkward moment: it is stopped as it starts, spoken to as it
// stops, told nonsense, given a logger or a source of chance that fails.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { withHeartbeat } from '../../src/heartbeat.ts';
import { silent } from '../election/harness.ts';
import { NEVER_SETTLES, ScriptedStore } from '../support/scripted-store.ts';
import { DOWN, SECOND, settled, started, Worker } from '../heartbeat/stage.ts';

/** Nothing beats any more, and nothing is left. */
async function expectGone(worker: Worker): Promise<void> {
  worker.forget();
  await worker.clock.advance(300 * SECOND);
  expect(worker.store.calls).toEqual([]);
  expect(worker.record).toBeUndefined();
  expect(worker.clock.timers).toBe(0);
  expect(worker.heartbeat.health().state).toBe('stopped');
}

describe('a stop in the same breath as the start', () => {
  test('stops the first start', async () => {
    const worker = new Worker({ clock: new FakeClock() });
    const start = worker.heartbeat.start();
    const refused = expect(settled(worker.clock, start)).rejects.toMatchObject({
      code: 'lease-stopped',
    });
    await settled(worker.clock, worker.heartbeat.stop());
    await refused;
    await expectGone(worker);
  });

  test('stops the second start', async () => {
    const worker = await started();
    await settled(worker.clock, worker.heartbeat.stop());
    const start = worker.heartbeat.start();
    const refused = expect(settled(worker.clock, start)).rejects.toMatchObject({
      code: 'lease-stopped',
    });
    await settled(worker.clock, worker.heartbeat.stop());
    await refused;
    await expectGone(worker);
  });

  test('and a start after it starts', async () => {
    const worker = new Worker({ clock: new FakeClock() });
    worker.heartbeat.start().catch(() => undefined);
    await settled(worker.clock, worker.heartbeat.stop());
    await settled(worker.clock, worker.heartbeat.start());
    expect(worker.heartbeat.isPublished()).toBe(true);
    expect(worker.record?.vacant).toBe(false);
  });
});

describe('a change of readiness', () => {
  test('while it stops keeps nobody waiting', async () => {
    const worker = await started();
    worker.store.script = () => NEVER_SETTLES;
    const stopped = worker.heartbeat.stop();
    await worker.clock.advance(0);
    const told = worker.heartbeat.setReady(false, 'going');
    await settled(worker.clock, Promise.all([stopped, told]));
    expect(worker.heartbeat.health().ready).toBe(false);
  });

  test.each([
    [[false, new Error('x')], 'reason is an object'],
    [['false', ''], 'ready is "false"'],
  ])('that is nonsense is refused, and the heart beats on: %j', async (args, message) => {
    const worker = await started();
    const setReady = worker.heartbeat.setReady.bind(worker.heartbeat) as (
      ...any: unknown[]
    ) => Promise<void>;
    await expect(Promise.resolve().then(() => setReady(...args))).rejects.toThrow(message);
    await worker.clock.advance(60 * SECOND);
    expect(worker.store.of('renew').length).toBeGreaterThanOrEqual(5);
    expect(worker.heartbeat.health()).toMatchObject({ healthy: true, ready: true });
  });
});

test('a source of chance that fails for a while ends no heartbeat', async () => {
  let fails = false;
  const random = {
    fraction: () => {
      if (fails) throw new Error('no entropy');
      return 0.5;
    },
    uuid: () => crypto.randomUUID(),
  };
  const worker = await started({ random });
  fails = true;
  await worker.clock.advance(15 * SECOND);
  fails = false;
  await worker.clock.advance(60 * SECOND);
  expect(worker.heartbeat.isPublished()).toBe(true);
  expect(worker.store.of('renew').length).toBeGreaterThanOrEqual(4);
});

test('a second start knows nothing of the renewals of the first', async () => {
  const worker = await started();
  await worker.clock.advance(15 * SECOND);
  await settled(worker.clock, worker.heartbeat.stop());
  worker.store.script = () => DOWN;
  const start = worker.heartbeat.start();
  start.catch(() => undefined);
  await worker.clock.advance(SECOND);
  expect(worker.heartbeat.health().sinceRenewalSeconds).toBe(Infinity);
  await settled(worker.clock, worker.heartbeat.stop());
});

test.each<[string, unknown]>([
  ['is no function', 30_000],
  ['is none of a number', () => Number.NaN],
  [
    'throws',
    () => {
      throw new Error('no clock');
    },
  ],
])('what is left of an invocation %s: its handler is not failed', async (_, left) => {
  const clock = new FakeClock();
  const store = new ScriptedStore({ clock, script: () => NEVER_SETTLES });
  const handler = withHeartbeat({ name: 'worker', clock, store, logger: silent }, () => 'done');
  const context = { getRemainingTimeInMillis: left } as object;
  expect(await settled(clock, handler({}, context))).toBe('done');
  expect(clock.timers).toBe(0);
});

describe('a logger that fails', () => {
  const levels = ['debug', 'info', 'warn', 'error'];
  const throwing = () => {
    throw new Error('the logger is broken');
  };
  /** Asynchronous, whatever the type says. */
  const rejecting: () => unknown = () => Promise.reject(new Error('the logger is broken'));

  test.each<[string, () => unknown]>([
    ['throws', throwing],
    ['rejects', rejecting],
  ])('and %s fails no handler with a heartbeat', async (_, log) => {
    const clock = new FakeClock();
    const store = new ScriptedStore({ clock });
    const logger = Object.fromEntries(
      levels.map((level) => [level, log]),
    ) as unknown as typeof silent;
    const handler = withHeartbeat({ name: 'worker', clock, store, logger }, () => 'done');
    for (const fault of [DOWN, {}, { fail: 'access-denied' } as const]) {
      store.script = () => fault;
      expect(await settled(clock, handler({}, {}))).toBe('done');
      await clock.advance(60 * SECOND);
    }
  });

  test('fails no handler either when there is no table', async () => {
    const logger = { debug: throwing, info: throwing, warn: throwing, error: throwing };
    const handler = withHeartbeat({ name: 'worker', logger }, () => 'done');
    expect(await handler({}, {})).toBe('done');
  });
});
