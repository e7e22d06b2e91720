// Who believes, and when: one at a time, never for longer than a write in the record covers, and
// never again.

import { slackMs } from '../watch.ts';
import type { Applied, History } from '../history.ts';
import type { Plan } from '../plan.ts';
import type { Found, Oracle } from './violation.ts';

/** Tampering that takes a lease from its holder: what follows is nobody's promise. */
function takesAway({ operation, before, after }: Applied): boolean {
  if (operation !== 'delete' && operation !== 'tamper') return false;
  return before.holder !== after.holder || operation === 'delete';
}

/** In a wild world clocks do what nobody promises to survive. */
function isPromised({ regime }: Plan): boolean {
  return regime !== 'wild';
}

export const oneHolder: Oracle = {
  holds: 'no two holders believe at once: who believes is named by the record (L4)',
  check: (history, plan) => {
    if (!isPromised(plan)) return [];
    const found: Found[] = [];
    const named = new Map<string, { holder: string | undefined; token: number }>();
    const robbed = new Set<string>();
    for (const it of history) {
      if (it.kind === 'applied') {
        named.set(it.lease, { holder: it.after.holder, token: it.after.token });
        if (takesAway(it) && it.before.holder !== undefined) robbed.add(it.before.holder);
      } else if (it.kind === 'looked' && it.held && !robbed.has(it.holder)) {
        const record = named.get(it.lease);
        if (record?.holder === it.holder && record.token === it.token) continue;
        found.push({
          atMs: it.atMs,
          message:
            `${it.holder} (token ${it.token}) believes that it holds ${it.lease}, looked at ` +
            `because of ${it.why}; the record names ${record?.holder ?? 'nobody'} ` +
            `(token ${record?.token ?? 0}).`,
        });
      }
    }
    return found;
  },
};

export const coveredBelief: Oracle = {
  holds: 'belief lasts until the renew deadline, from before the send of a write that was applied',
  check: (history, plan) => {
    if (!isPromised(plan)) return [];
    const found: Found[] = [];
    const covers = new Map<string, { sentAtMs: number; durationMs: number }>();
    const tolerances = new Map<number, number>();
    for (const it of history) {
      if (it.kind === 'started') tolerances.set(it.tenure, it.toleranceMs);
      if (it.kind === 'applied' && ['acquire', 'renew'].includes(it.operation)) {
        const { holder, durationMs } = it.after;
        if (holder !== undefined) covers.set(holder, { sentAtMs: it.sentAtMs, durationMs });
      }
      if (it.kind !== 'looked' || !it.held) continue;
      const cover = covers.get(it.holder);
      const toleranceMs = tolerances.get(it.tenure) ?? 0;
      const beliefMs = (cover?.durationMs ?? 0) - toleranceMs;
      const endMs = (cover?.sentAtMs ?? 0) + beliefMs + slackMs(beliefMs);
      if (cover !== undefined && it.atMs + it.remainingMs <= endMs + 1) continue;
      found.push({
        atMs: it.atMs,
        message:
          `${it.holder} believes in ${it.lease} for another ${it.remainingMs} ms, ` +
          `${Math.round(it.atMs + it.remainingMs - endMs)} ms longer than its last write allows.`,
      });
    }
    return found;
  },
};

export const endsOnce: Oracle = {
  holds: 'belief ends once: nothing revives a tenure, and its signal agrees with it (L4)',
  check: (history) => {
    const found: Found[] = [];
    const over = new Set<number>();
    for (const it of history) {
      if (it.kind !== 'looked') continue;
      if (!it.held) over.add(it.tenure);
      else if (over.has(it.tenure)) {
        found.push({ atMs: it.atMs, message: `${it.holder} believes again in ${it.lease}.` });
      }
      if (!it.held && (!it.aborted || it.remainingMs > 0)) {
        found.push({
          atMs: it.atMs,
          message: `${it.holder} is over, but its signal or its remaining time do not say so.`,
        });
      }
    }
    return found;
  },
};

export const nothingAfterTheEnd: Oracle = {
  holds: 'nothing is held or renewed once a tenure was told to end and its drain bound has passed',
  check: (history) => {
    const found: Found[] = [];
    const bounds = new Map<number, { readonly untilMs: number; readonly holder: string }>();
    const frozen = frozenProcesses(history);
    const stopped = new Set<string>();
    for (const it of history) {
      if (it.kind === 'signalled') {
        const { holder, drainMs } = it;
        // Its bound is a timer: on a machine that stood still meanwhile it fires late.
        const late = frozen.some(({ by, atMs }) => by === it.by && atMs >= it.atMs);
        const untilMs = late ? Infinity : it.atMs + drainMs + slackMs(drainMs) + 1;
        bounds.set(it.tenure, { untilMs, holder });
      }
      if (it.kind === 'stopped' && it.holder !== undefined) stopped.add(it.holder);
      if (it.kind === 'looked' && it.held && it.why === 'its bound') {
        const bound = bounds.get(it.tenure);
        if (bound !== undefined && it.atMs > bound.untilMs) {
          found.push({
            atMs: it.atMs,
            message: `${it.holder} still holds ${it.lease}, after its drain bound has passed.`,
          });
        }
      }
      if (it.kind !== 'sent' || it.operation !== 'renew' || it.holder === undefined) continue;
      if (stopped.has(it.holder)) {
        found.push({ atMs: it.atMs, message: `${it.holder} was renewed after its tenure ended.` });
      }
    }
    return found;
  },
};

function frozenProcesses(history: History): { readonly by: string; readonly atMs: number }[] {
  return history.flatMap((it) =>
    it.kind === 'machine' && it.what === 'thaws' ? [{ by: it.by, atMs: it.atMs }] : [],
  );
}
