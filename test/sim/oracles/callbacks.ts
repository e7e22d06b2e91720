// What users are told, and what is left when everything has ended.

import type { Found, Oracle } from './violation.ts';

export const orderedCallbacks: Oracle = {
  holds: 'callbacks come in order and once: started, then stopped, for each tenure',
  check: (history) => {
    const found: Found[] = [];
    const leading = new Map<string, string>();
    const seen = new Set<string>();
    const leaders = new Map<string, string>();
    for (const it of history) {
      if (it.kind === 'started' && it.elector) {
        if (leading.has(it.by)) {
          found.push({ atMs: it.atMs, message: `${it.by} started before it was told to stop.` });
        }
        if (seen.has(it.holder)) {
          found.push({ atMs: it.atMs, message: `${it.holder} started twice.` });
        }
        seen.add(it.holder);
        leading.set(it.by, it.holder);
      }
      if (it.kind === 'stopped') {
        if (leading.get(it.by) !== it.holder || it.holder === undefined) {
          found.push({ atMs: it.atMs, message: `${it.by} stopped without having started.` });
        }
        leading.delete(it.by);
      }
      if (it.kind === 'new leader') {
        if (leaders.get(it.by) === it.holder) {
          found.push({ atMs: it.atMs, message: `${it.by} was told of ${it.holder} twice.` });
        }
        leaders.set(it.by, it.holder);
      }
      if (it.kind === 'ended' && leading.has(it.by)) {
        found.push({ atMs: it.atMs, message: `${it.by} ended, and was never told so.` });
      }
    }
    return found;
  },
};

export const baseline: Oracle = {
  holds: 'timers, listeners and calls return to the baseline; everybody stops who is told to',
  check: (history) =>
    history.flatMap((it): Found[] => {
      if (it.kind === 'over' && it.unfinished.length > 0) {
        return [{ atMs: it.atMs, message: `${it.unfinished.join(', ')} did not stop.` }];
      }
      if (it.kind === 'run over' && it.listeners > 0) {
        const message = `${it.by}: a run that is over has ${it.listeners} listeners left.`;
        return [{ atMs: it.atMs, message }];
      }
      if (it.kind !== 'ended' || it.timers + it.calls + it.listeners === 0) return [];
      const { by, timers, calls, listeners } = it;
      const left = `${timers} timers, ${calls} calls and ${listeners} listeners`;
      return [{ atMs: it.atMs, message: `${by} left ${left} behind.` }];
    }),
};

export const noFailures: Oracle = {
  holds: 'nothing throws what it does not promise to throw, and no rejection is left unhandled',
  check: (history) =>
    history.flatMap((it): Found[] =>
      it.kind === 'failure' ? [{ atMs: it.atMs, message: `${it.by}: ${it.message}` }] : [],
    ),
};
