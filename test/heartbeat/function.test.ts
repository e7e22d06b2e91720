// The heartbeat of a Lambda function, on virtual time: beside the handler, at most once for each
// interval, and nothing left when the invocation is over.

import middy from '@middy/core';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { withHeartbeat, type FunctionHeartbeatOptions } from '../../src/heartbeat.ts';
import { readLease, type LeaseRecord } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { heartbeat } from '../../src/middleware.ts';
import { SeededRandom, silent } from '../election/harness.ts';
import { BLACK_HOLE, NEVER_SETTLES, ScriptedStore } from '../support/scripted-store.ts';
import { DOWN, LEASE, other, SECOND, settled } from './stage.ts';

afterEach(() => {
  vi.unstubAllEnvs();
});

/** One execution environment of the function. */
class Environment {
  readonly clock: FakeClock;
  readonly store: ScriptedStore;
  readonly options: FunctionHeartbeatOptions;
  readonly handler: (event: { readonly takesMs?: number }, context: object) => Promise<string>;

  constructor(clock = new FakeClock(), memory = new MemoryStore(), id = 'a') {
    this.clock = clock;
    this.store = new ScriptedStore({ clock, memory });
    this.options = {
      name: 'worker',
      graceSeconds: 3_600,
      clock,
      store: this.store,
      logger: silent,
      random: new SeededRandom(1, id),
    };
    this.handler = withHeartbeat(this.options, async ({ takesMs = 0 }) => {
      if (takesMs > 0) await new Promise<void>((resolve) => clock.setTimer(takesMs, resolve));
      return 'done';
    });
  }

  /** How long an invocation took. */
  async invoke(takesMs = 0, remainingMs = 30_000): Promise<number> {
    const { clock } = this;
    const before = clock.read().monotonicMs;
    const context = { awsRequestId: 'r', getRemainingTimeInMillis: () => remainingMs };
    expect(await settled(clock, this.handler({ takesMs }, context))).toBe('done');
    return clock.read().monotonicMs - before;
  }

  get record(): LeaseRecord {
    return readLease(LEASE, this.store.memory.peek(LEASE) ?? {});
  }
}

describe('the heartbeat of a function', () => {
  test('is taken by the first invocation with one write, and tells its grace', async () => {
    const a = new Environment();
    await a.invoke();
    expect(a.store.kinds()).toEqual(['acquire']);
    expect(a.record).toMatchObject({ kind: 'heartbeat', vacant: false });
    expect(a.record.annotations).toMatchObject({ graceSeconds: '3600' });
  });

  test('beats at most once for each interval, however often it is invoked', async () => {
    const a = new Environment();
    for (let second = 0; second < 60; second++) {
      await a.invoke();
      await a.clock.advance(SECOND);
    }
    expect(a.store.calls.length).toBeGreaterThanOrEqual(5);
    expect(a.store.calls.length).toBeLessThanOrEqual(6);
    expect(a.record.leaseTransitions).toBe(1);
  });

  test('beats in parallel with the handler, and does not delay it', async () => {
    const a = new Environment();
    a.store.plan('acquire', { answerMs: 400 });
    expect(await a.invoke(500)).toBeLessThanOrEqual(500);
    expect(a.record.vacant).toBe(false);
  });

  test.each([
    ['a store that fails', DOWN],
    ['a store that never answers', BLACK_HOLE],
    ['a store that does not even end an aborted call', NEVER_SETTLES],
    ['a missing permission', { fail: 'access-denied' }],
  ] as const)('survives %s: nothing thrown, at most a second lost, no timer', async (_, fault) => {
    const a = new Environment();
    a.store.script = () => fault;
    expect(await a.invoke()).toBeLessThanOrEqual(1_050);
    expect(a.clock.timers).toBe(0);
    // Nor is it tried again before the next interval.
    const calls = a.store.calls.length;
    await a.invoke();
    expect(a.store.calls).toHaveLength(calls);
    a.store.script = () => undefined;
    await a.clock.advance(10 * SECOND);
    await a.invoke();
    expect(a.record.vacant).toBe(false);
  });

  test('takes no more than half of what is left of the invocation', async () => {
    const a = new Environment();
    a.store.script = () => BLACK_HOLE;
    expect(await a.invoke(0, 400)).toBeLessThanOrEqual(250);
    expect(a.clock.timers).toBe(0);
  });

  test('does not hide what the handler throws', async () => {
    const a = new Environment();
    const failing = withHeartbeat(a.options, () => {
      throw new Error('mine');
    });
    await expect(failing({}, {})).rejects.toThrow('mine');
    expect(a.record.vacant).toBe(false);
  });

  test('looks at the clocks first after a thaw: a tenure that is over is not renewed (L5)', async () => {
    const a = new Environment();
    await a.invoke();
    a.clock.freeze(3_600 * SECOND, { monotonicRuns: false });
    await a.invoke();
    expect(a.store.of('renew')).toEqual([]);
    expect(a.record.leaseTransitions).toBe(2);
  });

  test('recognises an acquisition that was interrupted as its own (L7)', async () => {
    const a = new Environment();
    a.store.plan('acquire', { hang: true });
    await a.invoke();
    await a.clock.advance(10 * SECOND);
    await a.invoke();
    expect(a.record).toMatchObject({ leaseTransitions: 1, vacant: false });
  });

  test('is shared by its environments: each replaces the other, and the token counts it', async () => {
    const clock = new FakeClock();
    const a = new Environment(clock);
    const b = new Environment(clock, a.store.memory, 'b');
    const holders: (string | undefined)[] = [];
    for (let turn = 0; turn < 6; turn++) {
      const environment = turn % 2 === 0 ? a : b;
      await environment.invoke();
      holders.push(environment.record.holderIdentity);
      await clock.advance(10 * SECOND);
    }
    expect(new Set(holders).size).toBe(6);
    expect(a.record.leaseTransitions).toBe(6);
    // Once it knows of the other, two requests: refused, and taken over by the version shown.
    expect(a.store.calls.length).toBeLessThanOrEqual(5);
  });

  test('replaces what an earlier environment left behind', async () => {
    const a = new Environment();
    a.store.memory.poke(LEASE, other(a.clock));
    await a.invoke();
    expect(a.record).toMatchObject({ leaseTransitions: 8 });
  });

  test('beats once for many invocations at a time, and leaves none waiting', async () => {
    vi.stubEnv('AWS_LAMBDA_MAX_CONCURRENCY', '8');
    const a = new Environment();
    a.store.plan('acquire', { answerMs: 300 });
    const all = Promise.all([a.invoke(100), a.invoke(200), a.invoke(0)]);
    await settled(a.clock, all);
    expect(a.store.kinds()).toEqual(['acquire']);
  });

  test('is nothing at all with LEASE_DISABLED', async () => {
    vi.stubEnv('LEASE_DISABLED', 'true');
    const a = new Environment();
    await a.invoke();
    expect(a.store.calls).toEqual([]);
  });

  test('without a table never fails the handler, but says so', async () => {
    vi.stubEnv('LEASE_TABLE_NAME', '');
    const errors: string[] = [];
    const logger = { ...silent, error: (message: string) => errors.push(message) };
    const handler = withHeartbeat({ name: 'worker', logger }, () => 'done');
    expect(await handler({}, {})).toBe('done');
    expect(errors).toEqual(['A heartbeat or identity cannot be published.']);
  });

  test('needs a name', () => {
    expect(() => withHeartbeat({} as never, () => 1)).toThrow('name is undefined');
  });
});

describe('as a middy middleware', () => {
  test.each(['returns', 'throws'])('it beats beside a handler that %s', async (how) => {
    const a = new Environment();
    const handler = middy()
      .use(heartbeat(a.options))
      .handler(async () => {
        if (how === 'throws') throw new Error('mine');
        return 'done';
      });
    const context = { getRemainingTimeInMillis: () => 30_000 } as never;
    const result = settled(a.clock, Promise.resolve(handler({}, context)));
    if (how === 'throws') await expect(result).rejects.toThrow('mine');
    else expect(await result).toBe('done');
    expect(a.store.kinds()).toEqual(['acquire']);
    expect(a.clock.timers).toBe(0);
  });

  test('it survives that another middleware ends the request early', async () => {
    const a = new Environment();
    const handler = middy()
      .use(heartbeat(a.options))
      .use({ before: () => 'early' })
      .handler(async () => 'done');
    const context = { getRemainingTimeInMillis: () => 30_000 } as never;
    for (let turn = 0; turn < 3; turn++) {
      expect(await settled(a.clock, Promise.resolve(handler({}, context)))).toBe('early');
      await a.clock.advance(10 * SECOND);
    }
    expect(a.store.calls).toHaveLength(3);
    expect(a.clock.timers).toBe(0);
  });
});
