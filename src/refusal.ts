// What a contender that did not get the lease is told: who holds it, with which token, until when.

import { isFinal } from './decide.ts';
import { LeaseError, type LeaseErrorCode } from './errors.ts';
import { isCalendarTime, isoTime, splitLeaseKey, type LeaseRecord } from './lease.ts';
import type { Waiting } from './answers.ts';

/** What a handler returns that did not run. */
export interface Skipped {
  /** Always true. */
  readonly skipped: true;
  /** Why it did not run. */
  readonly reason: 'held' | 'suspended' | 'not before' | 'tick done' | 'newer tick done';
  /** The lease's namespace. */
  readonly namespace: string;
  /** The lease's name. */
  readonly name: string;
  /** Who holds it, where somebody does and the record says who. */
  readonly holderIdentity?: string;
  /** The token of who holds it, or held it last; 0 when nobody ever has. */
  readonly fencingToken: number;
  /** ISO 8601: the last completed tick, where one as late as this one is done. */
  readonly lastTick?: string;
  /** ISO 8601: when the lease expires unless it is renewed, or may be taken. */
  readonly until?: string;
  /** The same in one sentence. */
  readonly message: string;
}

/** True for what a wrapped handler returned without having run. */
export function isSkipped(result: unknown): result is Skipped {
  return (
    typeof result === 'object' &&
    result !== null &&
    'skipped' in result &&
    result.skipped === true &&
    'fencingToken' in result
  );
}

export function skipped(record: LeaseRecord, waiting: Waiting): Skipped {
  const until = freeAt(record);
  const lastTick = isFinal(waiting) ? isoOf(record.lastTickMs) : undefined;
  return {
    skipped: true,
    reason: reasonOf(waiting),
    ...splitLeaseKey(record.lease),
    ...(record.holderIdentity === undefined ? {} : { holderIdentity: record.holderIdentity }),
    fencingToken: record.leaseTransitions,
    ...(lastTick === undefined ? {} : { lastTick }),
    ...(until === undefined ? {} : { until }),
    message: describe(record, waiting),
  };
}

const CODES: Record<Skipped['reason'], LeaseErrorCode> = {
  held: 'lease-held',
  suspended: 'lease-suspended',
  'not before': 'lease-not-before',
  'tick done': 'tick-done',
  'newer tick done': 'tick-done',
};

export function refusalError(record: LeaseRecord, waiting: Waiting, addition = ''): LeaseError {
  return new LeaseError(CODES[reasonOf(waiting)], describe(record, waiting) + addition, { record });
}

function describe(record: LeaseRecord, waiting: Waiting): string {
  const lease = `Lease "${record.lease}"`;
  const until = freeAt(record);
  switch (reasonOf(waiting)) {
    case 'suspended': {
      const { since, by, why } = record.suspended ?? {};
      return (
        `${lease} is suspended` +
        (since === undefined ? '' : ` since ${since}`) +
        (by === undefined ? '' : ` by ${by}`) +
        (why === undefined ? '.' : `: ${why}`)
      );
    }
    case 'not before':
      return `${lease} is not to be taken before ${until ?? 'its notBefore'}.`;
    case 'tick done':
      return `${lease}: this tick is done already.`;
    case 'newer tick done': {
      const last = isoOf(record.lastTickMs) ?? String(record.lastTickMs);
      return `${lease}: a newer tick, ${last}, is done already.`;
    }
    case 'held': {
      const expiry = until === undefined ? '' : `, until ${until}`;
      return (
        `${lease} is held by ${record.holderIdentity ?? 'somebody'} ` +
        `(fencing token ${record.leaseTransitions}${expiry}).`
      );
    }
  }
}

/** An expired lease that a clock may not judge is still held, as far as we can tell. */
function reasonOf(waiting: Waiting): Skipped['reason'] {
  return waiting.because === 'clock unchecked' ? 'held' : waiting.because;
}

/** When the record says that it may be taken. */
function freeAt(record: LeaseRecord): string | undefined {
  return isoOf(record.vacant ? record.notBeforeMs : record.expireTimeMs);
}

/** A time out of any calendar is none. */
function isoOf(ms: number | undefined): string | undefined {
  return ms === undefined || !isCalendarTime(ms) ? undefined : isoTime(ms);
}
