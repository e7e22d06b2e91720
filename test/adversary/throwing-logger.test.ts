// A logger that throws must not keep a lease from being renewed or released, nor end the process.

import { afterEach, beforeEach, expect, it } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { LeaderElector, withLease } from '../../src/index.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { ScriptedStore } from '../support/scripted-store.ts';

const broken = () => {
  throw new Error('the disk is full');
};
const quiet = () => undefined;
const rejections: unknown[] = [];
const remember = (error: unknown) => void rejections.push(error);
let others: NodeJS.UnhandledRejectionListener[] = [];
beforeEach(() => {
  rejections.length = 0;
  others = process.listeners('unhandledRejection');
  process.removeAllListeners('unhandledRejection');
  process.on('unhandledRejection', remember);
});
afterEach(() => {
  process.off('unhandledRejection', remember);
  for (const other of others) process.on('unhandledRejection', other);
});

const context = { getRemainingTimeInMillis: () => 30_000 };

it('releases the lease of a handler, and leaves no timer, when info throws', async () => {
  const clock = new FakeClock();
  const store = new ScriptedStore({ clock });
  const logger = { debug: quiet, info: broken, warn: quiet, error: quiet };
  const options = { name: 'job', store, clock, logger, leaseDurationSeconds: 15 };
  const handler = withLease(options, () => 'done');
  const result = await handler({}, context).catch((error: unknown) => String(error));
  await clock.advance(100_000);
  expect({
    result,
    held: store.memory.peek('default/job')?.['holderIdentity'] !== undefined,
    timers: clock.timers,
  }).toEqual({ result: 'done', held: false, timers: 0 });
});

it('settles, and rejects nothing unhandled, when warn throws on a failed release', async () => {
  const clock = new FakeClock();
  const store = new ScriptedStore({
    clock,
    script: ({ kind }) => (kind === 'release' ? { fail: 'store-unavailable' } : undefined),
  });
  const logger = { debug: quiet, info: quiet, warn: broken, error: quiet };
  const handler = withLease({ name: 'job', store, clock, logger }, () => 'done');
  let result: unknown = 'never settled';
  void handler({}, context).then(
    (value) => (result = value),
    (error: unknown) => (result = error),
  );
  await clock.advance(100_000);
  expect({ result, rejections }).toEqual({ result: 'done', rejections: [] });
});

it('renews again after a renewal that nobody answered when warn throws', async () => {
  const clock = new FakeClock();
  const store = new ScriptedStore({ clock });
  store.plan('renew', { fail: 'store-unavailable' });
  const logger = { debug: quiet, info: quiet, warn: broken, error: quiet };
  const stop = new AbortController();
  const elector = new LeaderElector({
    name: 'job',
    store,
    clock,
    logger,
    onStartedLeading: (lease) =>
      new Promise<void>((done) => lease.signal.addEventListener('abort', () => done())),
  });
  const run = elector.run({ signal: stop.signal }).catch((error: unknown) => error);
  await clock.advance(60_000);
  const renewals = store.of('renew').length;
  stop.abort();
  await clock.advance(60_000);
  await run;
  expect(rejections).toEqual([]);
  expect(renewals).toBeGreaterThan(20);
});

it('does not go on leading for nobody when warn throws as it begins', async () => {
  const clock = new FakeClock();
  const store = new ScriptedStore({
    clock,
    memory: new MemoryStore(),
    script: () => ({ date: 'none' }),
  });
  const logger = { debug: quiet, info: quiet, warn: broken, error: quiet };
  let started = 0;
  const elector = new LeaderElector({
    name: 'job',
    store,
    clock,
    logger,
    onStartedLeading: () => Promise.resolve(void (started += 1)),
  });
  const run = elector.run({ once: true }).catch((error: unknown) => error);
  await clock.advance(60_000);
  const leads = elector.isLeader();
  void elector.stepDown();
  await clock.advance(60_000);
  await run;
  expect({ leads, started }).toEqual({ leads: false, started: 1 });
});
