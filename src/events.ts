// What the lifecycle monitor tells the world. An event is recorded in its lease's item before it
// is published and cleared after: it arrives at least once, with the same id each time.

import { clip, mapBytes } from './holder.ts';
import { splitLeaseKey, type LeaseRecord } from './lease.ts';
import { eventId, type EventType, type PendingEvent, type Verdict } from './stored-verdict.ts';

export const EVENT_SOURCE = 'lambda-lease';

export const DETAIL_TYPES = {
  NotReady: 'Lease Not Ready',
  Ready: 'Lease Ready',
  Evicted: 'Lease Evicted',
  LeaderChanged: 'Leader Changed',
  ScheduleMissed: 'Schedule Missed',
} as const satisfies Record<EventType, string>;

export interface LeaseEvent {
  readonly detailType: (typeof DETAIL_TYPES)[EventType];
  readonly timeMs: number;
  readonly detail: {
    /** The same for every publication of one event; consumers drop what they have seen. */
    readonly metadata: { readonly id: string; readonly version: '1' };
    readonly data: {
      readonly lease: string;
      readonly namespace: string;
      readonly name: string;
      readonly kind: string | undefined;
      readonly holderIdentity: string | undefined;
      readonly fencingToken: number;
      readonly status: Verdict['status'];
      readonly reason: string | undefined;
      readonly renewTime: string | undefined;
      /** Where the holder's logs are, as it said itself. */
      readonly annotations: Readonly<Record<string, string>>;
      readonly labels: Readonly<Record<string, string>>;
    };
  };
}

/** Takes events, and tells for each whether it has been accepted. Does not reject. */
export interface EventSink {
  publish(events: readonly LeaseEvent[]): Promise<readonly boolean[]>;
}

/**
 * Far more than this library writes, and so little that no record of another client, escaped as
 * JSON, makes an event that EventBridge does not take: it would be published again for ever.
 */
const LARGEST = { text: 1_024, texts: 8_192 } as const;

/**
 * The record may have changed hands since: where the holder's logs are is told of its own only.
 */
export function makeEvent(record: LeaseRecord, verdict: Verdict, event: PendingEvent): LeaseEvent {
  const itsOwn = record.leaseTransitions === event.token;
  return {
    detailType: DETAIL_TYPES[event.type],
    timeMs: event.atMs,
    detail: {
      metadata: { id: eventId(record.lease, verdict.count, event), version: '1' },
      data: {
        lease: record.lease,
        ...splitLeaseKey(record.lease),
        kind: short(record.kind),
        holderIdentity: short(event.holderIdentity),
        fencingToken: event.token,
        status: verdict.status,
        reason: short(verdict.reason),
        renewTime: itsOwn ? short(record.renewTime) : undefined,
        annotations: itsOwn ? few(record.annotations) : {},
        labels: few(record.labels),
      },
    },
  };
}

function short(text: string | undefined): string | undefined {
  return text === undefined ? undefined : clip(text, LARGEST.text);
}

/** As many entries as there is room for. */
function few(texts: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  let left = LARGEST.texts;
  return Object.fromEntries(
    Object.entries(texts).filter(([name, value]) => {
      const size = mapBytes({ [name]: value });
      if (size <= left) left -= size;
      else return false;
      return true;
    }),
  );
}
