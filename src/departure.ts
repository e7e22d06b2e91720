// Leaving a lease: vacating its record, or deleting it where a clean stop shall leave nothing.
//
// Conditional on identity and version: arriving late, it empties nobody else's lease (L1). A
// renewal of one's own that nobody answered may have moved the version on: it is adopted (L7).

import type { ReleaseAnswer } from './answers.ts';
import { isPermanent, LeaseError } from './errors.ts';
import type { LeaseAccess, Removed } from './lease-access.ts';
import type { LeaseRecord } from './lease.ts';
import type { Timeline } from './timeline.ts';
import { release, remove, type JobNote } from './writes.ts';

export type Way = 'vacate' | 'remove';

export interface Departure {
  readonly lease: string;
  readonly way: Way;
  readonly holderIdentity: string;
  /** Whether an identity that the record names is one of ours, to be departed with as well. */
  readonly isOwn: (holderIdentity: string | undefined) => boolean;
  /** The version known; 0 where none is. */
  readonly version: number;
  /** What a scheduled job writes when it vacates. */
  readonly note?: JobNote | undefined;
  readonly withinMs: number;
  readonly requestTimeoutMs: number;
  readonly timeline: Timeline;
  /** Called with the record that the last answer showed. */
  readonly onRecord: (record: LeaseRecord) => void;
}

const ROUNDS = 3;

export async function depart(access: LeaseAccess, it: Departure): Promise<ReleaseAnswer> {
  let { version, holderIdentity } = it;
  let error = new LeaseError('store-unavailable', `Lease "${it.lease}" was not released.`);
  const endMs = it.timeline.look().elapsedMs + it.withinMs;
  for (let round = 0; round < ROUNDS; round++) {
    const leftMs = endMs - it.timeline.look().elapsedMs;
    if (leftMs <= 0) break;
    const timeoutMs = Math.min(it.requestTimeoutMs, leftMs);
    const answer: Removed =
      it.way === 'remove'
        ? await access.remove(remove(holderIdentity, version), timeoutMs)
        : await access.write(release(holderIdentity, version, it.note), timeoutMs);
    if (answer.kind === 'failed') {
      error = answer.error;
      if (isPermanent(error)) break;
      continue;
    }
    const record = 'record' in answer ? answer.record : undefined;
    if (answer.kind === 'applied' || record === undefined || !it.isOwn(record.holderIdentity)) {
      if (record !== undefined) it.onRecord(record);
      return { kind: 'released' };
    }
    // A renewal of ours that nobody answered was applied after all.
    holderIdentity = record.holderIdentity ?? holderIdentity;
    version = record.version ?? version;
  }
  return { kind: 'unknown', error };
}
