// The lifecycle monitor: who renews is never evicted, who is dead always is, and what is recorded
// is published.

import { boundsOf } from '../bounds.ts';
import type { Applied } from '../history.ts';
import type { Found, Oracle } from './violation.ts';

/** The monitor's clock may be off by so much, and it looks before it writes. */
const CLOCK_MS = 6_000;

function evicts({ before, after, by }: Applied): boolean {
  return by !== 'table' && before.status !== 'Evicted' && after.status === 'Evicted';
}

export const aliveStays: Oracle = {
  holds: 'a worker that renews is never evicted, and an eviction removes nobody who came since',
  check: (history, plan) => {
    const found: Found[] = [];
    const lastWrite = new Map<string, number>();
    const tolerationMs = 1_000 * Math.min(...plan.monitors.map((it) => it.tolerationSeconds));
    for (const it of history) {
      if (it.kind !== 'applied') continue;
      if (['acquire', 'renew'].includes(it.operation)) lastWrite.set(it.lease, it.atMs);
      if (!evicts(it)) continue;
      const patienceMs = Math.max(tolerationMs, it.before.durationMs);
      const silentMs = it.atMs - (lastWrite.get(it.lease) ?? 0);
      if (silentMs >= patienceMs - CLOCK_MS) continue;
      found.push({
        atMs: it.atMs,
        message:
          `${it.before.holder ?? 'nobody'} was evicted from ${it.lease}, ` +
          `${Math.round(silentMs)} ms after it was written; the toleration is ${patienceMs} ms.`,
      });
    }
    return found;
  },
};

export const deadGoes: Oracle = {
  holds: 'a dead worker is evicted within grace, the larger of toleration and duration, and a pass',
  check: (history, plan) => {
    const { monitors, workers } = plan;
    const settledMs = history.find(({ kind }) => kind === 'settled')?.atMs;
    const overMs = history.find(
      (it) => it.kind === 'machine' && it.what === 'is told to stop',
    )?.atMs;
    if (monitors.length === 0 || settledMs === undefined || overMs === undefined) return [];
    const { evictMs } = boundsOf(plan);
    const monitor = monitors[0]!;
    return workers.flatMap(({ leaseName }): Found[] => {
      const lease = `default/${leaseName}`;
      const changes = history.filter(
        (it): it is Applied => it.kind === 'applied' && it.lease === lease && it.atMs < overMs,
      );
      const last = changes.findLast(({ operation }) => ['acquire', 'renew'].includes(operation));
      const latest = changes.at(-1);
      if (last === undefined || latest?.after.holder === undefined) return [];
      const tampered = changes.some((it) => it.by === 'table' && it.atMs >= last.atMs);
      const { durationMs, expireTimeMs } = last.after;
      // What has no times to judge by is watched for a duration and a grace; after bad times, or
      // where stamps were mistrusted, a grace more.
      const watchedMs = expireTimeMs !== undefined && !tampered ? 0 : durationMs + monitor.everyMs;
      const badTimes = last.atMs + durationMs < settledMs + 2 * durationMs;
      const extraMs = badTimes ? 1_000 * monitor.graceSeconds + monitor.everyMs + durationMs : 0;
      const fromMs = Math.max(last.atMs + durationMs, settledMs) + watchedMs + extraMs;
      const evicted = changes.find((it) => it.atMs > last.atMs && it.after.status === 'Evicted');
      const byMs = fromMs + evictMs;
      if ((evicted?.atMs ?? overMs) <= byMs) return [];
      const message =
        `${latest.after.holder} was silent since ${last.atMs} ms, and ` +
        (evicted === undefined ? 'not evicted' : `evicted at ${evicted.atMs} ms`);
      return [{ atMs: byMs, message: `${lease}: ${message}, due by ${Math.round(byMs)} ms.` }];
    });
  },
};

export const publishedEvents: Oracle = {
  holds: 'every recorded event is published at least once, and none is overwritten before',
  check: (history, plan) => {
    const found: Found[] = [];
    if (plan.monitors.length === 0) return found;
    const published = new Set<string>();
    const pending = new Map<string, { readonly event: string; readonly atMs: number }>();
    for (const it of history) {
      if (it.kind === 'published') published.add(it.event);
      if (it.kind !== 'applied') continue;
      const { before, after, lease } = it;
      if (before.event !== undefined && before.event !== after.event) {
        // What another client or a clean stop deletes, nobody can publish.
        const excused = ['delete', 'tamper', 'remove'].includes(it.operation);
        if (!published.has(before.event) && !excused) {
          found.push({ atMs: it.atMs, message: `${before.event} was lost by ${it.operation}.` });
        }
      }
      if (after.event === undefined) pending.delete(lease);
      else pending.set(lease, { event: after.event, atMs: it.atMs });
    }
    const stopMs = history.find(
      (it) => it.kind === 'machine' && it.what === 'is told to stop',
    )?.atMs;
    const everyMs = Math.max(...plan.monitors.map((monitor) => monitor.everyMs));
    for (const { event, atMs } of pending.values()) {
      if (published.has(event) || atMs > (stopMs ?? 0) - 2 * everyMs) continue;
      found.push({ atMs, message: `${event} was recorded, and never published.` });
    }
    return found;
  },
};
