// Blind is not dead: after an outage nobody is held to what they could not do. And when a whole
// zone falls silent, the fault is likelier ours.

import { describe, expect, test } from 'vitest';
import { sleep } from '../../src/clock.ts';
import { type Call, passes, Process, type Table, watched } from './pass-stage.ts';

describe('blind is not dead', () => {
  test('an outage of an hour leaves everybody who returns unharmed', async () => {
    const table = await watched();
    const workers = ['a', 'b', 'c', 'd'];
    for (const worker of workers) table.hold(worker, { kind: 'heartbeat', durationS: 40 });
    table.hold('leader', { token: 0 });
    table.out = true;
    const process = new Process(table);
    for (let minute = 0; minute < 60; minute++) {
      await table.clock.advance(60_000);
      expect(await process.whole()).toMatchObject({ blind: 'store' });
    }
    table.out = false;
    // Nobody could renew. The first pass is quicker than all of them.
    expect(await process.whole()).toMatchObject({ blind: undefined, notReady: 0 });
    await table.clock.advance(30_000);
    for (const worker of workers) table.hold(worker, { kind: 'heartbeat', durationS: 40 });
    table.hold('leader', { token: 0 });
    for (let round = 0; round < 3; round++) {
      await table.clock.advance(10_000);
      await process.whole();
    }
    expect(table.events()).toEqual([]);
  });

  test('a pass that takes minutes is no absence', async () => {
    const table = await watched();
    table.hold('dead', { kind: 'heartbeat' });
    for (let index = 0; index < 600; index++) table.put(`done-${index}`, {});
    // Each page takes a while: 200 of them, more than the two minutes of an absence.
    const slow = async ({ what }: Call) => {
      if (what === 'scan') await sleep(table.clock, 800);
    };
    const startS = table.nowS;
    while (table.status('dead') !== 'Evicted' && table.nowS - startS < 3_600) {
      const process = new Process(table, { segments: 1 });
      process.before = slow;
      const pass = { over: false };
      void process.monitor.pass().then(() => (pass.over = true));
      while (!pass.over) await table.clock.advance(800);
    }
    expect(table.status('dead')).toBe('Evicted');
  });

  test('a late returner after an outage is not NotReady and Evicted in one pass', async () => {
    const table = await watched();
    table.hold('late', { kind: 'heartbeat' });
    table.hold('before', { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    table.hold('late', { kind: 'heartbeat' });
    await new Process(table).whole();
    expect(table.status('before')).toBe('NotReady');
    await table.clock.advance(3_600_000);
    const backS = table.nowS;
    const process = new Process(table);
    const seen: string[] = [];
    while (table.status('late') !== 'Evicted') {
      await process.whole();
      const now = `${table.status('before')} ${table.status('late')}`;
      if (seen.at(-1)?.endsWith(now) !== true) seen.push(`${table.nowS - backS} ${now}`);
      await table.clock.advance(10_000);
    }
    expect(seen).toEqual(['0 NotReady undefined', '40 NotReady NotReady', '340 Evicted Evicted']);
  });

  test.each([0, 30, 60, 90, 119, 120])('starts %i s apart freeze nothing', async (apartS) => {
    const table = await watched();
    table.hold('dead', { kind: 'heartbeat' });
    const startS = table.nowS;
    while (table.nowS - startS < 56 + 300 + 240) {
      await table.clock.advance(apartS === 0 ? 10_000 : apartS * 1_000);
      await new Process(table).whole();
      if (apartS === 0) await new Process(table).whole();
    }
    expect(table.status('dead')).toBe('Evicted');
  });

  test('one blind pass is enough to hold nothing against anybody for a grace period', async () => {
    const table = await watched();
    table.hold('worker', { kind: 'heartbeat' });
    const process = new Process(table);
    await process.whole();
    table.out = true;
    await table.clock.advance(60_000);
    expect(await process.whole()).toMatchObject({ blind: 'store' });
    table.out = false;
    await table.clock.advance(10_000);
    await process.whole();
    expect(table.status('worker')).toBeUndefined();
    await table.clock.advance(40_000);
    await process.whole();
    expect(table.status('worker')).toBe('NotReady');
  });

  test('starts further apart hold nothing against anybody for a grace period', async () => {
    const table = await watched();
    table.hold('dead', { kind: 'heartbeat' });
    await table.clock.advance(121_000);
    const process = new Process(table);
    await process.whole();
    expect(table.status('dead')).toBeUndefined();
    await table.clock.advance(40_000);
    await process.whole();
    expect(table.status('dead')).toBe('NotReady');
  });
});

describe('zones', () => {
  const zone = (name: string) => ({ kind: 'heartbeat', labels: { zone: name } }) as const;
  const names = (count: number) => Array.from({ length: count }, (_, n) => `worker-${n}`);
  const evicted = (table: Table, all: string[]) =>
    all.filter((name) => table.status(name) === 'Evicted').length;

  test.each([1, 2])('a fleet of %i is evicted when it is dead', async (count) => {
    const table = await watched();
    for (const name of names(count)) table.hold(name, zone('a'));
    await passes(table, 6);
    expect(evicted(table, names(count))).toBe(count);
  });

  test('where all are silent, they are given one more toleration', async () => {
    const table = await watched();
    for (const name of names(5)) table.hold(name, zone('a'));
    await passes(table, 9);
    const process = new Process(table);
    expect(await process.whole()).toMatchObject({ zones: { a: 'Full' }, notReady: 5, evicted: 0 });
    expect(JSON.stringify(process.logged)).toContain('A zone is in disruption');
    await passes(table, 3);
    expect(evicted(table, names(5))).toBe(5);
  });

  test('where all are silent and one returns, the others are evicted slowly', async () => {
    const table = await watched();
    for (const name of names(6)) table.hold(name, zone('a'));
    await passes(table, 5);
    const alive = () => table.hold('worker-0', zone('a'));
    await passes(table, 1, alive);
    // 5 of 6, 4 of 5 and so on are silent, until less than 55 % are.
    const counts: number[] = [];
    for (let round = 0; round < 5; round++) {
      counts.push(evicted(table, names(6)));
      await passes(table, 1, alive);
    }
    expect(counts).toEqual([1, 2, 3, 4, 5]);
  });

  test('those that were evicted and wait for collection keep no zone in disruption', async () => {
    const table = await watched();
    for (const name of names(9)) table.hold(name, zone('a'));
    await passes(table, 12);
    expect(evicted(table, names(9))).toBe(9);
    const fresh = ['x', 'y', 'z'];
    for (const name of fresh) table.hold(name, zone('a'));
    await passes(table, 5, () => fresh.slice(1).forEach((name) => table.hold(name, zone('a'))));
    table.hold('y', zone('a'));
    const process = new Process(table);
    expect((await process.whole()).zones).toEqual({});
    await passes(table, 1, () => fresh.slice(1).forEach((name) => table.hold(name, zone('a'))));
    expect(table.status('x')).toBe('Evicted');
  });

  test('one that is silent takes no other with it', async () => {
    const table = await watched();
    for (const name of names(4)) table.hold(name, zone('a'));
    table.hold('other', zone('b'));
    table.hold('nowhere', { kind: 'heartbeat' });
    await passes(table, 6);
    expect(evicted(table, names(4))).toBe(0);
    expect([table.status('other'), table.status('nowhere')]).toEqual(['Evicted', 'Evicted']);
  });

  test('are evicted at a limited rate', async () => {
    const table = await watched();
    for (const name of names(30)) table.hold(name, zone('a'));
    const live = Array.from({ length: 40 }, (_, n) => `live-${n}`);
    const alive = () => live.forEach((name) => table.hold(name, zone('a')));
    await passes(table, 5, alive);
    const counts: number[] = [];
    for (let round = 0; round < 4; round++) {
      await passes(table, 1, alive);
      counts.push(evicted(table, names(30)));
    }
    expect(counts).toEqual([10, 20, 30, 30]);
  });

  test('a returner in the queue keeps nobody behind it waiting', async () => {
    const table = await watched();
    for (const name of names(4)) table.hold(name, zone('a'));
    const live = Array.from({ length: 10 }, (_, n) => `live-${n}`);
    const alive = () => live.forEach((name) => table.hold(name, zone('a')));
    await passes(table, 5, alive);
    await table.clock.advance(60_000);
    alive();
    const process = new Process(table, { evictionsPerPass: 1 });
    process.before = ({ what, lease }) => {
      // It renews between the scan and its eviction.
      if (what === 'write' && process.effects.length === 1) table.hold(lease.slice(8), zone('a'));
    };
    expect(await process.whole()).toMatchObject({ evicted: 1 });
  });
});
