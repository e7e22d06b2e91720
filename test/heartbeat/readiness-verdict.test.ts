// A holder that says itself that it is not ready: NotReady while it lives, and never evicted for
// that.

import { describe, expect, test } from 'vitest';
import { holds } from '../../src/condition.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { readLease, type Item } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { suspects } from '../../src/monitor-writes.ts';
import { LifecycleMonitor } from '../../src/lifecycle-monitor.ts';
import { readVerdict } from '../../src/stored-verdict.ts';
import { silent } from '../election/harness.ts';
import { LEASE, other, SECOND, settled, started, type Worker } from './stage.ts';

const UNREADY: Item = { annotations: { M: { ready: { S: 'false' } } } };
const GRACE_MS = 40 * SECOND;
const TOLERATION_MS = 300 * SECOND;

describe('the filter of a pass', () => {
  const clock = new FakeClock();
  const { wallMs } = clock.read();
  test.each([
    ['sees a live heartbeat that is not ready', UNREADY, true],
    ['does not see one that is', {}, false],
    ['does not see one that says so', { annotations: { M: { ready: { S: 'true' } } } }, false],
    ['does not see what a leader was labelled with', { ...UNREADY, kind: { S: 'leader' } }, false],
  ])('%s', (_, attributes, seen) => {
    const token = { condition: { M: { status: { S: 'Ready' }, token: { N: '7' } } } };
    const item = other(clock, 0, { ...token, ...attributes });
    expect(holds(suspects(wallMs, 86_400_000), item)).toBe(seen);
  });
});

describe('the monitor', () => {
  /** A worker, a monitor over the same table, and what was published. */
  async function watched() {
    const clock = new FakeClock();
    const memory = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
    const worker = await started({ clock, memory });
    const events: string[] = [];
    const monitor = new LifecycleMonitor({
      store: memory,
      clock,
      logger: silent,
      graceSeconds: GRACE_MS / SECOND,
      tolerationSeconds: TOLERATION_MS / SECOND,
      events: {
        publish: (published) => {
          events.push(...published.map(({ detailType }) => detailType));
          return Promise.resolve(published.map(() => true));
        },
      },
    });
    const watch = async (seconds: number) => {
      for (let passed = 0; passed < seconds; passed += 10) {
        await monitor.pass();
        await clock.advance(10 * SECOND);
      }
    };
    // The first passes of a monitor hold nothing against anybody.
    await watch(90);
    return { worker, watch, events };
  }

  const verdictOf = (worker: Worker) => {
    const verdict = readVerdict(readLease(LEASE, worker.store.memory.peek(LEASE) ?? {}));
    return `${verdict?.status ?? 'Ready'} ${verdict?.reason ?? ''}`.trim();
  };

  test('flags it, evicts it not, and takes it back with the renewal that says so', async () => {
    const { worker, watch, events } = await watched();
    await settled(worker.clock, worker.heartbeat.setReady(false, 'no database'));
    await watch(20);
    expect(verdictOf(worker)).toBe('NotReady reported');
    await watch(1_000);
    expect(verdictOf(worker)).toBe('NotReady reported');
    expect(events).toEqual(['Lease Not Ready']);
    await settled(worker.clock, worker.heartbeat.setReady(true));
    await watch(20);
    expect(verdictOf(worker)).toBe('Ready renewed');
    expect(events).toEqual(['Lease Not Ready', 'Lease Ready']);
    await worker.heartbeat.stop();
  });

  test('evicts it when it falls silent, counting from then', async () => {
    const { worker, watch, events } = await watched();
    await settled(worker.clock, worker.heartbeat.setReady(false));
    await watch(600);
    worker.store.script = () => ({ fail: 'store-unavailable' });
    await watch(100);
    expect(verdictOf(worker)).toBe('NotReady expired');
    await watch(250);
    expect(verdictOf(worker)).toBe('NotReady expired');
    await watch(100);
    expect(verdictOf(worker)).toContain('Evicted');
    expect(events.at(-1)).toBe('Lease Evicted');
    worker.store.script = () => undefined;
    await watch(30);
    expect(verdictOf(worker)).toBe('NotReady reported');
    await settled(worker.clock, worker.heartbeat.stop());
  });

  test('never takes an idle worker for a dead one within the grace that it carries', async () => {
    const clock = new FakeClock();
    const memory = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
    const worker = await started({ clock, memory, graceSeconds: 900 });
    const monitor = new LifecycleMonitor({
      store: memory,
      clock,
      logger: silent,
      events: { publish: (published) => Promise.resolve(published.map(() => true)) },
    });
    worker.store.script = () => ({ fail: 'store-unavailable' });
    for (let passed = 0; passed < 930; passed += 10) {
      await monitor.pass();
      expect(verdictOf(worker)).not.toContain('NotReady');
      await clock.advance(10 * SECOND);
    }
    for (let passed = 0; passed < 40; passed += 10) {
      await monitor.pass();
      await clock.advance(10 * SECOND);
    }
    expect(verdictOf(worker)).toBe('NotReady expired');
    worker.store.script = () => undefined;
    await settled(clock, worker.heartbeat.stop());
  });
});
