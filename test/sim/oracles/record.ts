// What the record shows of all this: tokens that rise, writes that do what they claim, and nobody
// who is removed by another's departure.

import { ownerOf, type Applied, type History } from '../history.ts';
import type { Found, Oracle } from './violation.ts';

export const risingTokens: Oracle = {
  holds: 'tokens strictly increase: at every acquisition, and nowhere else (L2)',
  check: (history) => {
    const found: Found[] = [];
    const highest = new Map<string, number>();
    for (const it of applied(history)) {
      const { lease, operation, before, after } = it;
      const known = highest.get(lease) ?? 0;
      // Deleting a record deletes its tokens: only for that no promise is made.
      if (operation === 'delete' || operation === 'remove' || operation === 'collect') {
        highest.delete(lease);
      } else if (operation === 'acquire') {
        if (after.token <= known) {
          found.push(
            at(
              it,
              `${after.holder ?? ''} took ${lease} with token ${after.token}, after ${known}.`,
            ),
          );
        }
        highest.set(lease, Math.max(known, after.token));
      } else if (after.token !== before.token) {
        found.push(at(it, `${it.by}: ${operation} changed the token of ${lease}.`));
      }
    }
    return found;
  },
};

export const ownTokens: Oracle = {
  holds: 'every lease that work is handed is in the record: by an acquisition of its own',
  check: (history) => {
    const found: Found[] = [];
    const taken = new Map<string, number>();
    const startedTokens = new Map<string, number>();
    for (const it of history) {
      if (it.kind === 'applied' && it.operation === 'acquire' && it.after.holder !== undefined) {
        taken.set(it.after.holder, it.after.token);
      }
      if (it.kind !== 'started') continue;
      if (taken.get(it.holder) !== it.token || ownerOf(it.holder) !== it.by) {
        found.push({
          atMs: it.atMs,
          message:
            `${it.by} was handed ${it.lease} as ${it.holder}, token ${it.token}: ` +
            'nobody took it so.',
        });
      }
      const earlier = startedTokens.get(it.holder);
      if (earlier !== undefined && earlier !== it.token) {
        found.push({ atMs: it.atMs, message: `${it.holder} is the identity of two tenures.` });
      }
      startedTokens.set(it.holder, it.token);
    }
    return found;
  },
};

export const acknowledgedWrites: Oracle = {
  holds: 'every acknowledged change is in the record; what was given back is given back',
  check: (history) => {
    const found: Found[] = [];
    const versions = new Map<string, Set<number>>();
    /** The acquisition or renewal by which a record names its holder. */
    const namedBy = new Map<string, Applied>();
    const released = new Map<string, number>();
    for (const it of history) {
      if (it.kind === 'applied') {
        const known = versions.get(it.lease) ?? new Set<number>();
        versions.set(it.lease, known.add(it.after.version));
        namedBy.set(it.lease, it);
        if (it.operation === 'release' && it.before.holder !== undefined) {
          released.set(it.before.holder, it.atMs);
        }
      }
      if (it.kind === 'acknowledged' && versions.get(it.lease)?.has(it.version) !== true) {
        found.push({
          atMs: it.atMs,
          message: `${it.by} was told of version ${it.version} of ${it.lease}, which never was.`,
        });
      }
      if (it.kind !== 'given back' || namedBy.get(it.lease)?.after.holder !== it.holder) continue;
      // An attempt sent before, and applied after: nobody believes in it, and it expires (L7).
      if (released.has(it.holder)) continue;
      found.push({
        atMs: it.atMs,
        message: `${it.holder} says that it gave ${it.lease} back; the record names it still.`,
      });
    }
    return found;
  },
};

export const ownDepartures: Oracle = {
  holds: 'a release never removes a successor, and a renewal never replaces one',
  check: (history) =>
    applied(history).flatMap((it): Found[] => {
      const { operation, before, after, by, lease } = it;
      const own = before.holder !== undefined && ownerOf(before.holder) === by;
      if (['release', 'remove'].includes(operation) && before.holder !== undefined && !own) {
        return [at(it, `${by} emptied ${lease}, which ${before.holder} held.`)];
      }
      if (operation === 'renew' && before.holder !== after.holder) {
        return [
          at(
            it,
            `${after.holder ?? ''} renewed ${lease}, which ${before.holder ?? 'nobody'} held.`,
          ),
        ];
      }
      return [];
    }),
};

export const namedWrites: Oracle = {
  holds: 'a record is changed only at the version known: by its holder, under its own name (L1)',
  check: (history) =>
    applied(history).flatMap((it): Found[] => {
      const { operation, before, by, lease } = it;
      const holders = ['renew', 'release', 'remove'].includes(operation);
      const verdict = ['flag', 'evict'].includes(operation) && before.version > 0;
      if ((holders && !it.named) || (verdict && !it.atVersion)) {
        return [at(it, `${by}: ${operation} of ${lease} would have hit any version.`)];
      }
      return [];
    }),
};

export const forwardOnly: Oracle = {
  holds: 'within one tenure renewTime never goes back; versions rise at every write of a holder',
  check: (history) =>
    applied(history).flatMap((it): Found[] => {
      const { operation, before, after, lease } = it;
      const holders = ['acquire', 'renew', 'release', 'complete', 'evict'].includes(operation);
      if (holders && after.version <= before.version && before.kind !== 'heartbeat') {
        if (operation !== 'evict' && before.version > 0) {
          return [
            at(it, `${operation} of ${lease}: version ${after.version} after ${before.version}.`),
          ];
        }
      }
      const times = [before.renewTime, after.renewTime].map((time) => Date.parse(time ?? ''));
      const [earlier = 0, later = 0] = times;
      return operation === 'renew' && before.holder === after.holder && later < earlier
        ? [at(it, `${after.holder ?? ''}: renewTime went back by ${earlier - later} ms.`)]
        : [];
    }),
};

export const guardedWrites: Oracle = {
  holds: 'a guarded write with an old token is refused, whatever the clocks say',
  check: (history) => {
    const found: Found[] = [];
    const latest = new Map<string, string | undefined>();
    const order = new Map<string, number>();
    const written = new Map<string, number>();
    const restarted = new Set<string>();
    for (const it of history) {
      if (it.kind === 'applied') {
        if (it.operation === 'delete') restarted.add(it.lease);
        if (it.operation === 'acquire' && it.after.holder !== undefined) {
          latest.set(it.lease, it.after.holder);
          order.set(it.after.holder, order.size);
        }
      }
      if (it.kind !== 'effect' || !it.applied) continue;
      if (it.guard !== 'fencing token' && latest.get(it.lease) !== it.holder) {
        found.push({
          atMs: it.atMs,
          message:
            `${it.holder} (token ${it.token}) wrote under ${it.lease}, which ` +
            `${latest.get(it.lease) ?? 'nobody'} took since.`,
        });
      }
      if (it.guard === 'fencing token' && !restarted.has(it.lease)) {
        const place = order.get(it.holder) ?? -1;
        if (place < (written.get(it.lease) ?? -1)) {
          found.push({
            atMs: it.atMs,
            message:
              `${it.holder} (token ${it.token}) wrote to what a later holder of ` +
              `${it.lease} has written.`,
          });
        }
        written.set(it.lease, Math.max(place, written.get(it.lease) ?? -1));
      }
    }
    return found;
  },
};

function applied(history: History): Applied[] {
  return history.filter((it) => it.kind === 'applied');
}

function at({ atMs }: Applied, message: string): Found {
  return { atMs, message };
}
