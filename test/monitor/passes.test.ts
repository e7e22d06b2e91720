// Whole passes of the lifecycle monitor over a table in memory.

import { describe, expect, test } from 'vitest';
import { isoTime } from '../../src/lease.ts';
import { release, renew } from '../../src/writes.ts';
import { call } from '../contract/store-under-test.ts';
import { START_MS, vacated, without, heldSince } from './one-lease.ts';
import { OWN_LEASE, passes, Process, watched } from './pass-stage.ts';

describe('a pass', () => {
  test('looks at every record once, page by page', async () => {
    const table = await watched();
    for (let n = 0; n < 50; n++) table.hold(`lease-${n}`, { kind: 'heartbeat' });
    const report = await new Process(table).whole();
    expect(report).toMatchObject({ scanned: 51, suspects: 0, blind: undefined, unusable: 0 });
  });

  test('flags, publishes and clears in one go, and says so in one line', async () => {
    const table = await watched();
    table.hold('worker', { kind: 'heartbeat', token: 3 });
    await table.clock.advance(56_000);
    const process = new Process(table);
    const report = await process.whole();
    expect(report).toMatchObject({ suspects: 1, notReady: 1, published: 1, unpublished: 0 });
    expect(table.events()).toEqual([`worker: Lease Not Ready ${table.nowS}`]);
    expect(process.logged).toEqual([
      {
        message: 'A lease changed its condition.',
        details: {
          lease: 'default/worker',
          event: 'NotReady',
          status: 'NotReady',
          reason: 'expired',
          holderIdentity: 'host/1/worker',
          fencingToken: 3,
          logStream: 'logs of host/1/worker',
        },
      },
    ]);
  });

  test('does not see vacant, live and evicted leases, whatever their number', async () => {
    const table = await watched();
    table.put('vacant', vacated(heldSince(0)));
    table.hold('dead', { token: 0 });
    await passes(table, 8);
    table.hold('live', { kind: 'heartbeat' });
    const process = new Process(table);
    expect(await process.whole()).toMatchObject({ suspects: 0, scanned: 4 });
    expect(table.status('dead')).toBe('Evicted');
    expect(process.calls.filter(({ what }) => what === 'read')).toHaveLength(1);
  });

  test('leaves its own lease alone, which changes hands every minute', async () => {
    const table = await watched();
    const own = table.memory.peek(OWN_LEASE)!;
    table.memory.poke(OWN_LEASE, { ...heldSince(table.nowS, { token: 9 }), ...own });
    await passes(table, 8);
    expect(table.events()).toEqual([]);
  });

  test('keeps what an unusable record says from nobody else', async () => {
    const table = await watched();
    table.put('broken-version', { ...heldSince(0), version: { S: 'x' } });
    table.put('broken-token', { ...heldSince(0), leaseTransitions: { N: '-1' } });
    table.put('bare', { holderIdentity: { S: 'a' } });
    for (let n = 0; n < 20; n++) table.hold(`worker-${n}`, { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    const process = new Process(table);
    expect(await process.whole()).toMatchObject({ unusable: 2, notReady: 20, blind: undefined });
    expect(JSON.stringify(process.logged)).toContain('broken-version');
  });

  test('goes on when single calls are not answered, and is blind when many are not', async () => {
    const table = await watched();
    for (let n = 0; n < 40; n++) table.hold(`worker-${n}`, { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    const some = new Process(table);
    some.fault = { effect: 0, fault: 'fails before' };
    expect(await some.whole()).toMatchObject({ blind: undefined, unusable: 1, notReady: 39 });
    table.hold('worker-1', { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    const many = new Process(table);
    many.before = ({ what, lease }) => {
      if (what === 'read' && lease !== OWN_LEASE) table.out = true;
    };
    expect(await many.whole()).toMatchObject({ blind: 'store' });
  });

  test('waits for no sink that is silent, and minds none that rejects', async () => {
    const table = await watched();
    table.hold('a', { kind: 'heartbeat' });
    table.hold('b', { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    const silent = { publish: () => new Promise<never>(() => undefined) };
    const process = new Process(table, { events: silent });
    const pass = process.monitor.pass();
    await table.clock.advance(30_000);
    expect(await pass).toMatchObject({ unpublished: 2, notReady: 2, blind: undefined });
    const rejecting = new Process(table, {
      events: { publish: () => Promise.reject(new Error()) },
    });
    expect(await rejecting.whole()).toMatchObject({ unpublished: 2, notReady: 2 });
    await new Process(table).whole();
    expect(table.unpublished()).toEqual([]);
    expect(table.ids()).toHaveLength(2);
  });

  test('honours the patience that a lease asks for itself', async () => {
    const table = await watched();
    const annotations = { M: { graceSeconds: { S: '600' }, tolerationSeconds: { S: '60' } } };
    const lease = table.hold('rare', { kind: 'heartbeat' });
    table.put('rare', { ...table.memory.peek(lease), annotations });
    await passes(table, 10);
    expect(table.status('rare')).toBeUndefined();
    await passes(table, 1);
    expect(table.status('rare')).toBe('NotReady');
    await passes(table, 1);
    expect(table.status('rare')).toBe('Evicted');
  });
});

test.each(['1e300', '31622401', '0', '-5', 'soon', ''])(
  'a patience of %j seconds is none: nobody is held for ready for ever',
  async (seconds) => {
    const table = await watched();
    const patience = { graceSeconds: { S: seconds }, tolerationSeconds: { S: seconds } };
    const lease = table.hold('dead', { kind: 'heartbeat' });
    table.put('dead', { ...table.memory.peek(lease), annotations: { M: patience } });
    await passes(table, 8);
    expect(table.status('dead')).toBe('Evicted');
  },
);

describe("a monitor's clock", () => {
  test.each([
    ['a day ahead', -86_400_000],
    ['a day behind', 86_400_000],
    ['three seconds off', 3_000],
  ])('that is %s passes no verdict', async (_, serverAheadMs) => {
    const table = await watched();
    table.hold('dead');
    table.hold('live', { durationS: 3_600 });
    await table.clock.advance(60_000);
    table.serverAheadMs = serverAheadMs;
    const process = new Process(table);
    expect(await process.whole()).toMatchObject({ blind: 'clock' });
    expect(process.effects).toEqual([]);
    expect(table.status('dead')).toBeUndefined();
  });

  test('that is set while a pass is under way ends it', async () => {
    const table = await watched();
    for (let n = 0; n < 10; n++) table.hold(`live-${n}`, { trustsClocks: false, token: 0 });
    const process = new Process(table);
    const midway = 12;
    process.before = () => {
      // The server's clock goes on as before.
      if (process.calls.length !== midway) return;
      table.clock.stepWall(86_400_000);
      table.serverAheadMs = -86_400_000;
    };
    expect(await process.whole()).toMatchObject({ blind: 'clock' });
    for (let n = 0; n < 10; n++) expect(table.status(`live-${n}`)).not.toBe('NotReady');
    expect(table.wrongs).toEqual([]);
  });

  test('that could not be checked, for answers are slow, passes no verdict', async () => {
    const table = await watched();
    table.hold('dead');
    await table.clock.advance(60_000);
    const process = new Process(table);
    process.before = ({ what }) => {
      if (what === 'read') table.clock.freeze(2_900);
    };
    expect(await process.whole()).toMatchObject({ blind: 'clock' });
    expect(process.effects).toEqual([]);
  });

  test('stands still with its process: what is judged after is judged by the time then', async () => {
    const table = await watched();
    table.hold('dead');
    await table.clock.advance(56_000);
    const process = new Process(table);
    process.before = ({ what }) => {
      if (what === 'scan') table.clock.freeze(30_000);
    };
    await process.whole();
    expect(Date.parse(isoTime(table.published[0]!.timeMs))).toBe(START_MS + table.nowS * 1_000);
  });
});

describe('what races with the monitor', () => {
  test('a renewal just before an eviction survives', async () => {
    const table = await watched();
    table.hold('worker', { token: 0 });
    await passes(table, 5);
    await table.clock.advance(60_000);
    const process = new Process(table);
    process.before = ({ what, lease }) => {
      if (what === 'write' && lease === 'default/worker') table.hold('worker', { token: 0 });
    };
    expect(await process.whole()).toMatchObject({ evicted: 0 });
    expect(table.record('worker')).toMatchObject({ vacant: false });
    await new Process(table).whole();
    expect(table.status('worker')).toBe('Ready');
  });

  test('a renewal just before a collection survives', async () => {
    const table = await watched();
    table.hold('worker', { kind: 'heartbeat' });
    await passes(table, 8);
    await table.clock.advance(86_400_000);
    const process = new Process(table);
    process.before = ({ what }) => {
      if (what === 'remove') table.hold('worker', { kind: 'heartbeat' });
    };
    await process.whole();
    expect(table.record('worker').vacant).toBe(false);
  });

  test('an evicted record is collected once nobody returns', async () => {
    const table = await watched();
    table.hold('worker', { kind: 'heartbeat' });
    table.hold('leader', { token: 0 });
    await passes(table, 8);
    await table.clock.advance(86_400_000);
    expect(await new Process(table).whole()).toMatchObject({ collected: 1 });
    expect(table.memory.peek('default/worker')).toBeUndefined();
    expect(table.memory.peek('default/leader')).toBeDefined();
  });

  test('an evicted leader finds out at its next renewal, and its token stays (L2)', async () => {
    const table = await watched();
    const lease = table.hold('leader', { token: 4 });
    const { version } = table.record('leader');
    await passes(table, 7);
    const claim = {
      holderIdentity: 'host/1/leader',
      stampMs: START_MS,
      leaseDurationMs: 15_000,
      writeExpireTime: true,
    };
    for (const write of [renew(claim, version!), release('host/1/leader', version!)]) {
      expect(await table.memory.write(lease, write, call())).toMatchObject({ kind: 'refused' });
    }
    expect(table.record('leader')).toMatchObject({
      vacant: true,
      evicted: true,
      leaseTransitions: 4,
      version: version! + 1,
    });
  });

  test('a record that is deleted under its eyes', async () => {
    const table = await watched();
    table.hold('worker', { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    const process = new Process(table);
    process.before = ({ what, lease }) => {
      if (what === 'write') table.memory.poke(lease, undefined);
    };
    expect(await process.whole()).toMatchObject({ blind: undefined, unusable: 0 });
    expect(table.memory.peek('default/worker')).toBeUndefined();
  });

  test('a record without a version is flagged and freed all the same', async () => {
    const table = await watched();
    table.put('odd', without(heldSince(0), 'version'));
    await passes(table, 7);
    expect(table.record('odd')).toMatchObject({ vacant: true, corrupt: undefined });
  });
});
