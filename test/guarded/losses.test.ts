// A fence that refuses a transaction ends the tenure: its signal aborts, once, with why, and what
// keeps the lease concludes in its own order. No clock has told it.

import { beforeEach, describe, expect, test } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { LeaderElector } from '../../src/elector.ts';
import type { LeaseError } from '../../src/errors.ts';
import { sendGuarded } from '../../src/guarded.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { rejection } from '../handler/stage.ts';
import { type Reply, ScriptedServer } from './scripted-client.ts';
import { adding, GuardedStage, LEASE, outcome } from './stage.ts';

let stage: GuardedStage;
beforeEach(() => (stage = new GuardedStage()));

/** Refused by the lease's check, with the record where there is one. */
const refusedBeside = (own: string): Reply => {
  const Item = stage.table.peek(LEASE);
  return [own, { Code: 'ConditionalCheckFailed', ...(Item === undefined ? {} : { Item }) }];
};
const refused = () => refusedBeside('None');
const silently: Reply = ['None', 'ConditionalCheckFailed'];

const evicted = () => {
  const left = { ...stage.item };
  delete left['holderIdentity'];
  delete left['expireTime'];
  stage.table.poke(LEASE, left);
};

const ENDS: readonly (readonly [reason: string, end: () => void])[] = [
  ['taken over', () => stage.takenOver()],
  ['evicted', evicted],
  ['record deleted', () => stage.table.poke(LEASE, undefined)],
];

describe.each(ENDS)('a lease that is %s', (reason, end) => {
  test.each<[string, () => Reply]>([
    ['shown', refused],
    ['not shown', () => silently],
    ['shown as an empty item', () => ['None', { Code: 'ConditionalCheckFailed', Item: {} }]],
    ['shown, and a condition of its own failed too', () => refusedBeside('ConditionalCheckFailed')],
  ])('is lost by the refusal of a transaction: the record is %s', async (_what, reply) => {
    const lease = await stage.acquire();
    const heard: unknown[] = [];
    lease.signal.addEventListener('abort', () => heard.push(lease.signal.reason));
    expect(lease.isHeld()).toBe(true);
    end();

    const server = new ScriptedServer([reply()]);
    const error = await rejection(stage.until(sendGuarded(server.client, adding(), lease)));
    expect(error).toMatchObject({ code: 'lease-lost', reason });
    expect(server.sent).toHaveLength(1);
    expect(lease.isHeld()).toBe(false);
    expect(lease.remainingMs()).toBe(0);
    expect(lease.signal.aborted).toBe(true);
    expect(heard).toEqual([error]);

    // Nothing more is sent under it, nor heard; and nothing of another's is released.
    expect(await outcome(sendGuarded(server.client, adding(), lease))).toBe('lease-lost');
    expect(server.sent).toHaveLength(1);
    const { version } = stage;
    await lease.release();
    expect(stage.version).toBe(version);
    expect(heard).toHaveLength(1);
    expect(stage.clock.timers).toBe(0);
  });

  test('leaves open what became of an attempt that nobody answered', async () => {
    const lease = await stage.acquire();
    const server = new ScriptedServer(['reset', { get: refused }]);
    server.onArrival = () => {
      if (server.sent.length === 2) end();
    };
    const error = await rejection(stage.until(sendGuarded(server.client, adding(), lease)));
    expect(error).toMatchObject({ code: 'store-unavailable' });
    expect(lease.signal.aborted).toBe(true);
    expect(lease.signal.reason).toMatchObject({ code: 'lease-lost', reason });
    await lease.release();
    expect(stage.clock.timers).toBe(0);
  });
});

describe('a check that failed on a record that is not shown', () => {
  test('is no takeover while the store does not answer: it is asked until belief ends', async () => {
    const lease = await stage.acquire();
    stage.takenOver();
    let down = true;
    stage.store.before = () => (down ? Promise.reject(new Error('Down.')) : undefined);
    const sending = sendGuarded(new ScriptedServer([silently]).client, adding(), lease);
    const came = rejection(sending);
    await stage.clock.advance(3_000);
    expect(lease.isHeld()).toBe(true);
    down = false;
    expect(await stage.until(came)).toMatchObject({ code: 'lease-lost', reason: 'taken over' });
    await lease.release();
    expect(stage.clock.timers).toBe(0);
  });

  test('ends as expired where it never answers', async () => {
    const lease = await stage.acquire();
    stage.store.before = () => Promise.reject(new Error('Down.'));
    const sending = sendGuarded(new ScriptedServer([silently]).client, adding(), lease);
    const error = await rejection(stage.until(sending));
    expect(error).toMatchObject({ code: 'lease-lost', reason: 'expired' });
    await stage.until(lease.release());
    expect(stage.clock.timers).toBe(0);
  });

  test('is a tick that is done, where a renewal shows the lease to be held', async () => {
    const run = stage.run((lease) =>
      sendGuarded(new ScriptedServer([silently]).client, adding(), lease, { completeTick: true }),
    );
    expect(await outcome(stage.until(run))).toBe('tick-done');
    expect(stage.store.sent).toEqual(['acquire', 'renew', 'release']);
  });
});

describe('a lease that is over before its transaction is sent', () => {
  test('sends nothing: it has expired', async () => {
    const lease = await stage.acquire();
    stage.clock.freeze(60_000);
    const server = new ScriptedServer();
    const error = await rejection(sendGuarded(server.client, adding(), lease));
    expect(error).toMatchObject({ code: 'lease-lost', reason: 'expired' });
    expect(server.sent).toEqual([]);
    await lease.release();
  });

  test('sends nothing: it has been released', async () => {
    const lease = await stage.acquire();
    await lease.release();
    const server = new ScriptedServer();
    expect(await outcome(sendGuarded(server.client, adding(), lease))).toBe('lease-stopped');
    expect(server.sent).toEqual([]);
  });

  test('sends nothing more: it is lost between two attempts', async () => {
    const lease = await stage.acquire();
    const server = new ScriptedServer([['None', 'TransactionConflict']]);
    server.onArrival = () => stage.clock.freeze(60_000);
    const error = await rejection(stage.until(sendGuarded(server.client, adding(), lease)));
    expect(error).toMatchObject({ code: 'lease-lost', reason: 'expired' });
    expect(server.sent).toHaveLength(1);
    await lease.release();
  });

  test('cannot tell: it is lost after an attempt that nobody answered', async () => {
    const lease = await stage.acquire();
    const server = new ScriptedServer(['reset']);
    server.onArrival = () => stage.clock.freeze(60_000);
    const sending = stage.until(sendGuarded(server.client, adding(), lease));
    expect(await outcome(sending)).toBe('store-unavailable');
    expect(lease.signal.aborted).toBe(true);
    await lease.release();
  });

  test('commits while the work is only asked to finish', async () => {
    const stop = new AbortController();
    const lease = await acquireLease({ ...stage.options, name: 'job', signal: stop.signal });
    stop.abort();
    expect(lease.signal.aborted).toBe(true);
    expect(await outcome(sendGuarded(new ScriptedServer().client, adding(), lease))).toBe('done');
    await lease.release();
  });
});

test('an elector is told in order, and once', async () => {
  const log: string[] = [];
  const server = new ScriptedServer([{ get: refused }]);
  const stop = new AbortController();
  const elector = new LeaderElector({
    ...stage.options,
    name: 'job',
    onStartedLeading: async (lease: Lease) => {
      log.push('started');
      lease.signal.addEventListener('abort', () => {
        log.push(`aborted: ${(lease.signal.reason as LeaseError).reason}`);
      });
      stage.takenOver();
      log.push(await outcome(sendGuarded(server.client, adding(), lease)));
    },
    onStoppedLeading: () => log.push('stopped'),
    onNewLeader: (identity) => log.push(identity === 'other' ? 'new leader' : 'leading'),
  });
  const running = elector.run({ signal: stop.signal });
  await stage.clock.advance(3_000);
  stop.abort();
  await stage.until(running);
  expect(log.filter((line) => line !== 'leading' && line !== 'new leader')).toEqual([
    'started',
    'aborted: taken over',
    'lease-lost',
    'stopped',
  ]);
  expect(stage.record('job').holderIdentity).toBe('other');
  expect(stage.clock.timers).toBe(0);
});
