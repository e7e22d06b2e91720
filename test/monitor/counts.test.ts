// What alarms are made of: how many leases stand without a leader, and what a pass saw change.

import { describe, expect, test } from 'vitest';
import { EmfMetrics } from '../../src/metrics.ts';
import { isLeaderless } from '../../src/verdict.ts';
import { passes, Process, watched, type Table } from './pass-stage.ts';

const SUSPENDED = { suspended: { M: { by: { S: 'operator' } } } };

/** A table in which the leader `dead` has just been evicted. */
async function bereft(): Promise<Table> {
  const table = await watched();
  table.hold('dead');
  await passes(table, 8);
  expect(table.status('dead')).toBe('Evicted');
  return table;
}

describe('a lease without a leader', () => {
  test('is counted by every pass, and costs none of them a request', async () => {
    const table = await bereft();
    for (let n = 0; n < 3; n++) {
      const process = new Process(table);
      expect(await process.whole()).toMatchObject({ leaderless: 1, suspects: 0, evicted: 0 });
      expect(process.calls.filter(({ lease }) => lease === 'default/dead')).toEqual([]);
    }
  });

  test('is counted no more once somebody has taken it', async () => {
    const table = await bereft();
    table.hold('dead', { token: 2, version: 9_000_000 });
    expect(await new Process(table).whole()).toMatchObject({ leaderless: 0 });
  });

  test('is not counted while it is suspended', async () => {
    const table = await bereft();
    table.put('dead', { ...table.memory.peek('default/dead'), ...SUSPENDED });
    expect(isLeaderless(table.record('dead'))).toBe(false);
    expect(await new Process(table).whole()).toMatchObject({ leaderless: 0 });
  });

  test('is still told of the schedule that it misses', async () => {
    const table = await bereft();
    const dueTime = { N: String(table.clock.read().wallMs - 1) };
    table.put('dead', { ...table.memory.peek('default/dead'), dueTime });
    const report = await new Process(table).whole();
    expect(report).toMatchObject({ leaderless: 1, suspects: 1, schedulesMissed: 1 });
    expect(table.events().at(-1)).toContain('Schedule Missed');
    expect(await new Process(table).whole()).toMatchObject({ leaderless: 1, schedulesMissed: 0 });
  });

  test('is no heartbeat, no identity and no lease that was released', async () => {
    const table = await watched();
    table.hold('worker', { kind: 'heartbeat' });
    table.hold('instance', { kind: 'identity' });
    await passes(table, 8);
    table.put('free', { lease: { S: 'default/free' }, kind: { S: 'leader' } });
    expect([table.status('worker'), table.status('instance')]).toEqual(['Evicted', 'Evicted']);
    expect(await new Process(table).whole()).toMatchObject({ leaderless: 0 });
  });
});

describe('a pass counts', () => {
  test('each new leader once', async () => {
    const table = await watched();
    table.hold('a', { token: 1 });
    table.hold('b', { token: 5 });
    expect(await new Process(table).whole()).toMatchObject({ leaderChanges: 2 });
    table.hold('b', { token: 6 });
    expect(await new Process(table).whole()).toMatchObject({ leaderChanges: 1 });
    expect(await new Process(table).whole()).toMatchObject({ leaderChanges: 0 });
  });

  test('no leader that has moved on before it was recorded', async () => {
    const table = await watched();
    table.hold('a', { token: 1 });
    const process = new Process(table);
    process.before = ({ what, lease }) => {
      if (what === 'write' && lease === 'default/a') table.hold('a', { token: 2, version: 1 });
    };
    expect(await process.whole()).toMatchObject({ leaderChanges: 0 });
    expect(await new Process(table).whole()).toMatchObject({ leaderChanges: 1 });
  });

  test('into metrics by the names that alarms are set on', async () => {
    const table = await bereft();
    table.hold('a', { token: 1 });
    const lines: string[] = [];
    const metrics = new EmfMetrics({
      namespace: 'n',
      service: 's',
      nowMs: () => 0,
      write: (line) => lines.push(line),
    });
    await new Process(table, { metrics }).whole();
    expect(JSON.parse(lines[0]!)).toMatchObject({
      LeasesLeaderless: 1,
      LeaderChanges: 1,
      SchedulesMissed: 0,
    });
  });
});
