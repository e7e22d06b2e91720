// What keeps a monitor from its work: records and events too large for anybody to take, marks that
// do not survive being stored, a sink that makes everybody wait, a logger and metrics that fail.

import { describe, expect, test } from 'vitest';
import type { LeaseEvent } from '../../src/events.ts';
import type { Item } from '../../src/lease.ts';
import { byteLength } from '../../src/holder.ts';
import { heldSince, without } from '../monitor/one-lease.ts';
import { passes, Process, watched } from '../monitor/pass-stage.ts';

const LARGE = 'é'.repeat(150_000);
const LARGEST_EVENT = 256 * 1_024;
const LARGEST_ITEM = 400 * 1_024;

const sizeOf = (value: object) => byteLength(JSON.stringify(value));

/** EventBridge takes no entry above its limit, nor one of a year with five digits. */
function takes(event: LeaseEvent): boolean {
  return sizeOf(event) <= LARGEST_EVENT && new Date(event.timeMs).getUTCFullYear() < 10_000;
}

describe('the record of another client', () => {
  test.each<[string, Item]>([
    ['a label', { labels: { M: { zone: { S: LARGE } } } }],
    ['a name of a label', { labels: { M: { [LARGE]: { S: '' } } } }],
    ['many labels', { labels: { M: many(5_000) } }],
    ['an annotation', { annotations: { M: { logStream: { S: LARGE } } } }],
    ['a renewTime', { renewTime: { S: LARGE } }],
    ['a holderIdentity', { holderIdentity: { S: LARGE } }],
    ['a holderIdentity, and no version', { holderIdentity: { S: LARGE }, version: { NULL: true } }],
    ['a kind', { kind: { S: LARGE } }],
  ])('with %s of 300 KB is told of, flagged and evicted', async (_, item) => {
    const table = await watched();
    const held = { ...heldSince(table.nowS), ...item };
    const versioned = 'N' in (held['version'] ?? {});
    table.put('large', versioned ? held : without(held, 'version'));
    table.hold('neighbour', { token: 0 });
    for (let round = 0; round < 12; round++) {
      await table.clock.advance(60_000);
      const process = new Process(table);
      process.accepts = takes;
      await process.whole();
      expect(sizeOf(table.memory.peek('default/large')!)).toBeLessThan(LARGEST_ITEM);
    }
    expect([table.status('large'), table.status('neighbour')]).toEqual(['Evicted', 'Evicted']);
    expect(table.unpublished()).toEqual([]);
  });

  test('with an event of a year with five digits is judged as one without', async () => {
    const table = await watched();
    const event = { M: { type: { S: 'Ready' }, at: { N: '8000000000000000' } } };
    const condition = { M: { status: { S: 'Ready' }, count: { N: '1' }, event } };
    table.put('far', { ...heldSince(table.nowS, { token: 0 }), condition });
    for (let round = 0; round < 8; round++) {
      await table.clock.advance(60_000);
      const process = new Process(table);
      process.accepts = takes;
      await process.whole();
    }
    expect(table.status('far')).toBe('Evicted');
  });

  test.each(['😀'.repeat(30), `${'😀'.repeat(30)}x`])(
    'without a version is told apart by what can be stored: %s',
    async (by) => {
      const table = await watched();
      table.put('emoji', without(heldSince(table.nowS, { by, token: 0 }), 'version'));
      await passes(table, 1);
      const { condition } = table.memory.peek('default/emoji')!;
      const { seen } = (condition as { M: Record<string, { S: string }> }).M;
      // A lone half of a character is stored as something else.
      expect(seen?.S).toMatch(/^~.*[😀]x?$/u);
      expect(seen?.S).not.toMatch(/\p{Surrogate}/u);
    },
  );

  test('that is deleted under its eyes is not put back', async () => {
    const table = await watched();
    const lease = table.put('ghost', { dueTime: { N: '1' } });
    const process = new Process(table);
    process.before = ({ what }) => {
      if (what !== 'write') return;
      process.before = () => undefined;
      table.memory.poke(lease, undefined);
    };
    await process.whole();
    expect(table.memory.peek(lease)).toBeUndefined();
  });
});

describe('a sink that never answers', () => {
  test('costs a pass a bounded time, however many events wait for it', async () => {
    const table = await watched();
    for (let n = 0; n < 600; n++) table.hold(`worker-${n}`, { kind: 'heartbeat' });
    table.put('leader', { ...heldSince(table.nowS, { token: 0 }) });
    await table.clock.advance(60_000);
    const process = new Process(table, {
      events: { publish: () => new Promise<never>(() => undefined) },
    });
    const startedMs = table.clock.read().monotonicMs;
    let tookMs: number | undefined;
    const pass = process.monitor.pass().then((report) => {
      tookMs = table.clock.read().monotonicMs - startedMs;
      return report;
    });
    await table.clock.advance(600_000);
    expect(await pass).toMatchObject({ unpublished: 601, notReady: 601, blind: undefined });
    expect(tookMs).toBeLessThanOrEqual(60_000);
    await new Process(table).whole();
    expect(table.unpublished()).toEqual([]);
  });

  test('one that refuses some events keeps none of the others back', async () => {
    const table = await watched();
    for (let n = 0; n < 100; n++) table.hold(`worker-${n}`, { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    const process = new Process(table);
    process.accepts = (event) => !event.detail.data.name.endsWith('7');
    expect(await process.whole()).toMatchObject({ published: 90, unpublished: 10 });
  });
});

describe('a pass does not reject', () => {
  const fails = () => {
    throw new Error('broken');
  };

  test.each([
    ['its logger', { logger: { debug: fails, info: fails, warn: fails, error: fails } }],
    ['its metrics', { metrics: { addMetric: fails } }],
  ])('when %s throws', async (_, options) => {
    const table = await watched();
    table.hold('a', { kind: 'heartbeat' });
    await table.clock.advance(60_000);
    expect(await new Process(table, options).whole()).toMatchObject({ notReady: 1 });
    table.out = true;
    expect(await new Process(table, options).whole()).toMatchObject({ blind: 'store' });
  });
});

function many(count: number): Item {
  return Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`label-${n}`, { S: 'x'.repeat(50) }]),
  );
}
