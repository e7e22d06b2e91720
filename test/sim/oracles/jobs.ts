// Scheduled jobs: each tick has its effect once, whoever runs it, and however often.

import type { Applied, Happening, History } from '../history.ts';
import { EPOCH_MS } from '../machine.ts';
import type { JobPlan } from '../plan.ts';
import type { Found, Oracle } from './violation.ts';

type Run = Extract<Happening, { kind: 'run' }>;

/** What the record of a job's lease shows is forgotten with the record. */
function forgets({ operation }: Applied): boolean {
  return operation === 'delete';
}

export const oncePerTick: Oracle = {
  holds: 'each tick of a job takes effect at most once',
  check: (history) => {
    const found: Found[] = [];
    const done = new Map<string, Set<number>>();
    for (const it of history) {
      if (it.kind === 'applied' && forgets(it)) done.delete(it.lease);
      if (it.kind !== 'effect' || !it.applied || it.tick === undefined) continue;
      const ticks = done.get(it.lease) ?? new Set();
      if (ticks.has(it.tick)) {
        found.push({ atMs: it.atMs, message: `${nameOf(it)} took effect twice.` });
      }
      done.set(it.lease, ticks.add(it.tick));
    }
    return found;
  },
};

export const noRunOfDoneTicks: Oracle = {
  holds: 'no run begins for a tick as late as which one was completed when its lease was taken',
  check: (history) => {
    const found: Found[] = [];
    const lastTicks = new Map<string, number | undefined>();
    for (const it of history) {
      if (it.kind === 'applied' && it.operation === 'acquire' && it.after.holder !== undefined) {
        lastTicks.set(it.after.holder, it.before.lastTick);
      }
      if (it.kind !== 'run' || it.what !== 'began') continue;
      const lastTick = lastTicks.get(it.holder);
      if (lastTick === undefined || lastTick < it.tick) continue;
      found.push({ atMs: it.atMs, message: `${it.holder} ran ${nameOf(it)}, which was done.` });
    }
    return found;
  },
};

export const everyTickDone: Oracle = {
  holds: 'in the end each tick is done or superseded; guarded by its completion, with its effect',
  check: (history, { jobs, monitors }) => {
    const over = history.find(({ kind }) => kind === 'over');
    if (over === undefined) return [];
    return jobs.flatMap((job): Found[] => {
      const { leaseName, periodMs, ticks, guarded } = job;
      const lease = `default/${leaseName}`;
      if (isBusy(history, job) || (monitors.length === 0 && isStuck(history, lease))) return [];
      let completed = -Infinity;
      const had = new Set<number>();
      for (const it of history) {
        if (it.kind === 'applied' && it.lease === lease) {
          completed = Math.max(completed, it.after.lastTick ?? -Infinity);
        }
        const effect = it.kind === 'effect' && it.applied ? it : undefined;
        const returned = it.kind === 'run' && it.what === 'returned' ? it : undefined;
        const done = guarded ? effect : returned;
        if (done?.lease === lease && done.tick !== undefined) had.add(done.tick);
      }
      return Array.from({ length: ticks }, (_, place) => EPOCH_MS + (place + 1) * periodMs)
        .filter((tick) => !had.has(tick) && completed <= tick)
        .map((tick) => ({
          atMs: over.atMs,
          message: `${nameOf({ lease, tick })} is neither done nor superseded.`,
        }));
    });
  },
};

/**
 * Whether the record of a job is held to the end, by an expiry that no clock can judge, or that
 * never comes: it is freed by being watched, which an invocation is too short for. The monitor
 * does it.
 */
function isStuck(history: History, lease: string): boolean {
  const last = history.findLast((it) => it.kind === 'applied' && it.lease === lease);
  if (last?.kind !== 'applied' || last.after.holder === undefined) return false;
  const { expireTimeMs = Infinity } = last.after;
  return expireTimeMs > EPOCH_MS + (history.at(-1)?.atMs ?? 0);
}

/** Whether a job still works off what bad times have left, one tick after the other. */
function isBusy(history: History, { leaseName, timing, periodMs }: JobPlan): boolean {
  const toldMs = history.find((it) => it.kind === 'machine' && it.what === 'is told to stop')?.atMs;
  const lease = `default/${leaseName}`;
  const latest = history.findLast(
    (it) => it.kind === 'applied' && it.lease === lease && it.after.lastTick !== it.before.lastTick,
  );
  // An invocation lasts for one and a half durations at most.
  const lastingMs = periodMs + 1_500 * timing.leaseDurationSeconds;
  return latest !== undefined && latest.atMs > (toldMs ?? 0) - lastingMs;
}

export const acknowledgedCompletions: Oracle = {
  holds: 'a completion that a run was told of is in the record',
  check: (history) => {
    const found: Found[] = [];
    const completed = new Set<string>();
    for (const it of history) {
      const tick =
        it.kind === 'applied' && it.operation !== 'tamper' ? it.after.lastTick : undefined;
      if (it.kind === 'applied' && tick !== undefined && tick !== it.before.lastTick) {
        completed.add(`${it.before.holder ?? ''} ${tick}`);
      }
      if (it.kind !== 'run' || it.what !== 'told that it is done') continue;
      if (completed.has(`${it.holder} ${it.tick}`)) continue;
      const message = `${it.holder} was told that ${nameOf(it)} is done, which it did not do.`;
      found.push({ atMs: it.atMs, message });
    }
    return found;
  },
};

export const ticksForward: Oracle = {
  holds: 'lastTick never goes back',
  check: (history) =>
    history.flatMap((it): Found[] => {
      if (it.kind !== 'applied' || forgets(it)) return [];
      const { before, after, lease, operation } = it;
      if (before.lastTick === undefined || (after.lastTick ?? -1) >= before.lastTick) return [];
      const to = after.lastTick ?? 'nothing';
      const message = `${operation} of ${lease}: lastTick went from ${before.lastTick} to ${to}.`;
      return [{ atMs: it.atMs, message }];
    }),
};

export const ownCompletions: Oracle = {
  holds: 'a tick is completed by its effect, or by a run that returned before it was told to stop',
  check: (history) => {
    const found: Found[] = [];
    /** How the last run of a holder for a tick ended. */
    const runs = new Map<string, Run['what']>();
    const toldToStop = new Set<string>();
    for (const it of history) {
      if (it.kind === 'signalled') toldToStop.add(it.holder);
      if (it.kind === 'run') {
        const late = it.what === 'returned' && toldToStop.has(it.holder);
        if (!late) runs.set(`${it.holder} ${it.tick}`, it.what);
      }
      if (it.kind !== 'applied' || it.by === 'table' || it.operation === 'complete') continue;
      const { before, after, lease, operation } = it;
      if (after.lastTick === undefined || after.lastTick === before.lastTick) continue;
      const how = runs.get(`${before.holder ?? ''} ${after.lastTick}`);
      if (how === 'returned') continue;
      found.push({
        atMs: it.atMs,
        message:
          `${operation} by ${before.holder ?? it.by} completed ` +
          `${nameOf({ lease, tick: after.lastTick })}, whose run ${how ?? 'did not begin'}.`,
      });
    }
    return found;
  },
};

function nameOf({ lease, tick }: { lease: string; tick?: number }): string {
  return `tick ${((tick ?? 0) - EPOCH_MS) / 1_000} s of ${lease}`;
}
