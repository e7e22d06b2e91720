// What operators write to a lease, as data: writes of the protocol, conditional as all are (L1).
//
// A release and an eviction end a tenure, so they ask for the version that the operator has seen,
// and raise it. The others do not touch the holder: they leave the version alone and can make
// nobody lose a race; they ask for what they replace, as it was read.
//
// Labels and annotations of operators stand in a map of their own. A holder writes its own maps
// whole, at each acquisition, and what an operator had put there would be gone with the next one.

import type { Condition } from './condition.ts';
import { byteLength, clip, mapBytes } from './holder.ts';
import { asMap, asNumber, asText, isoTime, type LeaseRecord, type Value } from './lease.ts';
import { evict as evictAsJudged } from './monitor-writes.ts';
import { BYTE_BUDGET, KEY_ATTRIBUTE } from './schema.ts';
import { readVerdict } from './stored-verdict.ts';
import { evicted, firstVerdict } from './verdict.ts';
import { unchanged, type Write } from './writes.ts';

/** Who intervenes, when and why. */
export interface Statement {
  readonly atMs: number;
  readonly by: string;
  readonly why: string | undefined;
}

const EXISTS: Condition = { not: { absent: KEY_ATTRIBUTE } };
const HELD: Condition = { not: { absent: 'holderIdentity' } };

/** Vacates the lease and keeps the record, with its token (L2). Anyone may take it then (L3). */
export function vacate(seen: LeaseRecord, atMs: number): Write {
  return {
    condition: { all: [EXISTS, HELD, unchanged(seen)] },
    set: { version: { incrementFrom: atMs } },
    remove: ['holderIdentity', 'expireTime'],
  };
}

/**
 * What the lifecycle monitor does to a holder that is silent for too long, by hand: the verdict
 * Evicted with its event, which the monitor publishes; a leader's lease is vacated besides. An
 * event that is not published yet is not overwritten.
 */
export function evict(seen: LeaseRecord, { atMs, by, why }: Statement): Write {
  const reason = clip(why === undefined ? `by ${by}` : `by ${by}: ${why}`, REASON_BYTES);
  const verdict = readVerdict(seen) ?? firstVerdict(atMs);
  const next = { ...evicted(seen, verdict, atMs, reason), count: verdict.count + 1 };
  const write = evictAsJudged(seen, next, atMs);
  return { ...write, condition: { all: [HELD, write.condition] } };
}

const REASON_BYTES = 64;

/**
 * Nobody takes the lease until it is resumed; its holder is not touched. Creates the record only
 * where that is meant: the one that stops all slots of a lease need not exist.
 */
export function suspend(statement: Statement, mayCreate = false): Write {
  return {
    condition: { all: [...(mayCreate ? [] : [EXISTS]), { absent: 'suspended' }] },
    set: { suspended: intervention(statement) },
    remove: [],
  };
}

/** Lifts the suspension that was seen, and not another that came after it. */
export function resume(seen: LeaseRecord): Write {
  return {
    condition: {
      all: [{ not: { absent: 'suspended' } }, entryAsRead(seen, 'suspended.since')],
    },
    set: {},
    remove: ['suspended'],
  };
}

/** Asks the holder that was seen, and no later one, to finish and give the lease back. */
export function requestStepDown(seen: LeaseRecord, statement: Statement): Write {
  const { holderIdentity, leaseTransitions } = seen.raw;
  const same: Condition[] = [];
  if (holderIdentity !== undefined) same.push({ equals: ['holderIdentity', holderIdentity] });
  if (leaseTransitions !== undefined) same.push({ equals: ['leaseTransitions', leaseTransitions] });
  return {
    condition: { all: [HELD, ...same] },
    set: { stepDownRequested: intervention(statement) },
    remove: [],
  };
}

/** What operators noted of a lease, beside what its holder says of itself. */
export interface OperatorNotes {
  readonly labels: Readonly<Record<string, string>>;
  readonly annotations: Readonly<Record<string, string>>;
}

/** No notes where there are none, or none that can be read. */
export function readNotes({ raw }: LeaseRecord): OperatorNotes {
  const notes = asMap(raw['operator']) ?? {};
  return { labels: texts(notes['labels']), annotations: texts(notes['annotations']) };
}

/** Replaces the notes that were read; what another operator noted meanwhile is not lost. */
export function writeNotes(seen: LeaseRecord, notes: OperatorNotes): Write {
  const map = asMap(seen.raw['operator']);
  const count = asNumber(map?.['count']) ?? 0;
  const both = ['labels', 'annotations'] as const;
  const filled = both.filter((kind) => Object.keys(notes[kind]).length > 0);
  return {
    condition: { all: [EXISTS, entryAsRead(seen, 'operator.count')] },
    // The count stays when all notes are gone: it tells one state of them from the next.
    set: {
      operator: {
        M: {
          ...Object.fromEntries(filled.map((kind) => [kind, { M: textMap(notes[kind]) }])),
          count: { N: String(count + 1) },
        },
      },
    },
    remove: [],
  };
}

/** What an operator's texts must keep to, as a sentence; undefined when they do. */
export function complaintAbout(what: { by?: string; why?: string; notes?: OperatorNotes }) {
  const { by, why, notes } = what;
  const { operator: most } = BYTE_BUDGET;
  if (by !== undefined && byteLength(by) > most.by) {
    return `--by is ${byteLength(by)} bytes long; it must be at most ${most.by}.`;
  }
  if (why !== undefined && byteLength(why) > most.why) {
    return `--reason is ${byteLength(why)} bytes long; it must be at most ${most.why}.`;
  }
  const size = notes === undefined ? 0 : mapBytes(notes.labels) + mapBytes(notes.annotations);
  if (size > most.notes) {
    return (
      `Operators' labels and annotations would take ${size} bytes of the record, names and one ` +
      `for each included; they must be at most ${most.notes} together.`
    );
  }
  return undefined;
}

/** By one entry of the map: some servers find no map equal to any. */
function entryAsRead({ raw }: LeaseRecord, path: 'suspended.since' | 'operator.count'): Condition {
  const [attribute = '', entry = ''] = path.split('.');
  const value = asMap(raw[attribute])?.[entry];
  return value === undefined ? { absent: path } : { equals: [path, value] };
}

function intervention({ atMs, by, why }: Statement): Value {
  return { M: textMap({ since: isoTime(atMs), by, ...(why === undefined ? {} : { why }) }) };
}

function texts(value: Value | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(asMap(value) ?? {}).flatMap(([name, entry]) => {
      const text = asText(entry);
      return text === undefined ? [] : [[name, text]];
    }),
  );
}

function textMap(all: Readonly<Record<string, string>>): Record<string, Value> {
  return Object.fromEntries(Object.entries(all).map(([name, text]) => [name, { S: text }]));
}
