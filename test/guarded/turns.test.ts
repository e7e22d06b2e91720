// Renewals and transactions of one holder meet on one item: they go in turn, renewals first, and
// none of them waits for ever.

import { beforeEach, describe, expect, test } from 'vitest';
import { sendGuarded } from '../../src/guarded.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { Turns } from '../../src/turns.ts';
import { type Gate, gate } from '../handler/stage.ts';
import { ScriptedServer } from './scripted-client.ts';
import { adding, GuardedStage, outcome } from './stage.ts';

describe('turns', () => {
  let clock: FakeClock;
  let turns: Turns;
  let log: string[];
  beforeEach(() => {
    clock = new FakeClock();
    turns = new Turns(clock);
    log = [];
  });

  const until =
    (name: string, { opened }: Gate) =>
    async () => {
      log.push(`${name} begins`);
      await opened;
      log.push(`${name} ends`);
    };
  const transact = (name: string, end: Gate) => turns.transaction(until(name, end));
  const renew = (name: string, end: Gate, patienceMs = 1_000) =>
    turns.renewal(patienceMs, until(name, end));
  const passed = () => clock.advance(0);

  test('begin at once where nothing is under way', () => {
    void transact('t', gate());
    void new Turns(clock).renewal(1_000, until('r', gate()));
    expect(log).toEqual(['t begins', 'r begins']);
    expect(clock.timers).toBe(0);
  });

  test('a transaction waits for a renewal, however long it takes', async () => {
    const [r, t] = [gate(), gate()];
    const all = [renew('r', r), transact('t', t)];
    await clock.advance(60_000);
    expect(log).toEqual(['r begins']);
    [r, t].forEach((each) => each.open());
    await Promise.all(all);
    expect(log).toEqual(['r begins', 'r ends', 't begins', 't ends']);
  });

  test('a renewal goes before transactions that came earlier, but for the one under way', async () => {
    const [t1, t2, r] = [gate(), gate(), gate()];
    const all = [transact('t1', t1), transact('t2', t2), renew('r', r)];
    await passed();
    expect(log).toEqual(['t1 begins']);
    t1.open();
    await passed();
    expect(log.slice(1)).toEqual(['t1 ends', 'r begins']);
    r.open();
    await passed();
    expect(log.slice(3)).toEqual(['r ends', 't2 begins']);
    t2.open();
    await Promise.all(all);
    expect(clock.timers).toBe(0);
  });

  test('a renewal waits for a transaction no longer than its patience', async () => {
    const [t, r] = [gate(), gate()];
    const all = [transact('t', t), renew('r', r, 500)];
    await clock.advance(499);
    expect(log).toEqual(['t begins']);
    await clock.advance(1);
    expect(log).toEqual(['t begins', 'r begins']);
    expect(clock.timers).toBe(0);
    [r, t].forEach((each) => each.open());
    await Promise.all(all);
  });

  test('transactions go one at a time, in order, also where one fails', async () => {
    const ends = [gate(), gate(), gate()];
    const failing = turns.transaction(async () => {
      await until('0', ends[0]!)();
      throw new Error('Broken.');
    });
    const all = [failing, transact('1', ends[1]!), transact('2', ends[2]!)];
    ends.reverse().forEach((each) => each.open());
    expect((await Promise.allSettled(all)).map(({ status }) => status)).toEqual([
      'rejected',
      'fulfilled',
      'fulfilled',
    ]);
    expect(log.map((line) => line[0]).join('')).toBe('001122');
  });

  test('a renewal that fails lets the next one go', async () => {
    const failing = turns.renewal(1_000, () => Promise.reject(new Error('Broken.')));
    const all = [failing, renew('r', gate()), transact('t', gate())];
    await Promise.allSettled([failing]);
    await passed();
    expect(log).toEqual(['r begins']);
    expect(all).toHaveLength(3);
  });

  test('many of both all come to their turn, one at a time', async () => {
    let active = 0;
    let most = 0;
    const run = async () => {
      most = Math.max(most, ++active);
      await new Promise<void>((resolve) => clock.setTimer(3, resolve));
      active -= 1;
    };
    const all = Array.from({ length: 60 }, (_, n) =>
      n % 4 === 0 ? turns.renewal(1_000, run) : turns.transaction(run),
    );
    let done = 0;
    for (const each of all) void each.then(() => (done += 1));
    await clock.advance(200);
    expect([done, most]).toEqual([60, 1]);
    expect(clock.timers).toBe(0);
  });
});

describe('a held lease', () => {
  let stage: GuardedStage;
  beforeEach(() => (stage = new GuardedStage()));

  test('is renewed through a transaction that is never answered', async () => {
    const lease = await stage.acquire();
    const server = new ScriptedServer(Array.from({ length: 20 }, () => 'silence' as const));
    const sending = outcome(sendGuarded(server.client, adding(), lease));
    await stage.clock.advance(30_000);
    // 15 / 10 / 2 s: without renewals it had been lost long since.
    expect(lease.isHeld()).toBe(true);
    expect(stage.store.count('renew')).toBeGreaterThan(5);
    expect(await stage.until(sending)).toBe('store-unavailable');
    expect(server.sent).toHaveLength(8);
    await lease.release();
    expect(stage.clock.timers).toBe(0);
  });

  test('that is lost meanwhile aborts in time, whatever hangs', async () => {
    const lease = await stage.acquire();
    const server = new ScriptedServer(Array.from({ length: 20 }, () => 'silence' as const));
    const sending = outcome(sendGuarded(server.client, adding(), lease));
    stage.store.before = () => new Promise(() => undefined);
    await stage.clock.advance(10_000);
    expect(lease.signal.reason).toMatchObject({ code: 'lease-lost', reason: 'expired' });
    expect(await stage.until(sending)).toBe('store-unavailable');
    expect(server.sent.length).toBeLessThan(4);
    await stage.until(lease.release());
    expect(stage.clock.timers).toBe(0);
  });

  test('is released though a transaction of its work still hangs', async () => {
    const lease = await stage.acquire();
    const server = new ScriptedServer(Array.from({ length: 20 }, () => 'silence' as const));
    const sending = outcome(sendGuarded(server.client, adding(), lease));
    await stage.clock.advance(100);
    await lease.release();
    expect(stage.record('job').vacant).toBe(true);
    expect(await stage.until(sending)).toBe('store-unavailable');
    expect(server.sent).toHaveLength(1);
    expect(stage.clock.timers).toBe(0);
  });

  test('never has a renewal and a transaction under way at once', async () => {
    const lease = await stage.acquire();
    let busy = false;
    let together = 0;
    const pass = async () => {
      if (busy) together += 1;
      busy = true;
      await new Promise<void>((resolve) => stage.clock.setTimer(300, resolve));
      busy = false;
    };
    stage.store.before = pass;
    const client = { send: async () => pass() };
    const sending = Promise.all(
      Array.from({ length: 60 }, () => sendGuarded(client, adding(), lease)),
    );
    await stage.until(sending);
    expect([together, lease.isHeld()]).toEqual([0, true]);
    expect(stage.store.count('renew')).toBeGreaterThan(5);
    stage.store.before = () => undefined;
    await lease.release();
    expect(stage.clock.timers).toBe(0);
  });

  test('goes on where it has counted one version too many', async () => {
    // The renewal sees a completion in the record before that is answered: it is counted twice.
    const server = new ScriptedServer();
    let answer = gate();
    const client = {
      send: async () => {
        stage.completeTick();
        await answer.opened;
        return server.client.send(adding());
      },
    };
    answer = gate();
    const tickMs = stage.nowMs;
    const options = { leaseDurationSeconds: 15, renewDeadlineSeconds: 10, retryPeriodSeconds: 2 };
    let lost: unknown;
    const run = stage.run(
      async (lease) => {
        const sending = sendGuarded(client, adding(), lease, { completeTick: true });
        await new Promise<void>((resolve) => stage.clock.setTimer(4_500, resolve));
        answer.open();
        await sending;
        await new Promise<void>((resolve) => stage.clock.setTimer(30_000, resolve));
        lost = lease.isHeld() ? undefined : lease.signal.reason;
      },
      tickMs,
      options,
    );
    await stage.until(run);
    expect(lost).toBeUndefined();
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });
});
