// A widget before a table in memory, at one moment: records in, what a dashboard would get out.

import { FakeClock } from '../../src/fake-clock.ts';
import { isoTime, type Item, type Value } from '../../src/lease.ts';
import { renderWidget, type LeaseWidgetOptions } from '../../src/lease-widget.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { type Verdict, writeVerdict } from '../../src/stored-verdict.ts';
import { heldSince, START_MS, without, type HolderOptions } from '../monitor/one-lease.ts';

/** The moment at which everything is looked at. */
export const NOW_MS = START_MS;
export const FUNCTION_ARN = 'arn:aws:lambda:eu-central-1:123456789012:function:leases';
export const FUNCTION_LOGS = {
  function: 'report',
  region: 'eu-central-1',
  logStream: '2026/01/01/[$LATEST]0123456789abcdef0123456789abcdef',
};

export function texts(of: Readonly<Record<string, string>>): Value {
  return { M: Object.fromEntries(Object.entries(of).map(([name, text]) => [name, { S: text }])) };
}

/** Renewed so many seconds before the moment, by a Lambda function. */
export function held(lease: string, secondsAgo: number, options: HolderOptions = {}): Item {
  return {
    ...heldSince(-secondsAgo, { by: `report:7/stream/${lease}`, ...options }),
    lease: { S: lease },
    annotations: texts(FUNCTION_LOGS),
  };
}

export function vacant(lease: string, more: Item = {}): Item {
  return { ...without(held(lease, 3_600), 'holderIdentity', 'expireTime'), ...more };
}

export function suspended(item: Item): Item {
  const stop = { since: isoTime(NOW_MS - 7_200_000), by: 'alice', why: 'migration' };
  return { ...item, suspended: texts(stop) };
}

/** With the monitor's verdict on this very version, a minute old. */
export function judged(item: Item, verdict: Partial<Verdict> = {}): Item {
  const { version } = item;
  const condition = writeVerdict({
    status: 'NotReady',
    reason: 'expired',
    sinceMs: NOW_MS - 60_000,
    seen: version !== undefined && 'N' in version ? version.N : '',
    token: 1,
    count: 1,
    event: undefined,
    missedDueTimeMs: undefined,
    mistrusted: false,
    ...verdict,
  });
  return { ...item, condition };
}

export interface Look {
  readonly event?: unknown;
  readonly theme?: 'light' | 'dark';
  readonly store?: MemoryStore;
  readonly options?: Partial<LeaseWidgetOptions>;
}

export function storeOf(items: readonly Item[], pageSize?: number): MemoryStore {
  const store = new MemoryStore(pageSize === undefined ? {} : { pageSize });
  for (const item of items) store.poke((item['lease'] as { S: string }).S, item);
  return store;
}

/** What the function answers for these records. */
export function look(items: readonly Item[], { event = {}, theme, store, options }: Look = {}) {
  const asked =
    typeof event === 'object' && event !== null
      ? { ...event, widgetContext: { theme: theme ?? 'light' } }
      : event;
  return renderWidget(
    asked,
    { invokedFunctionArn: FUNCTION_ARN },
    {
      tableName: 'leases',
      region: 'eu-central-1',
      openStore: () => store ?? storeOf(items),
      clock: new FakeClock(NOW_MS),
      logger: { debug: ignore, info: ignore, warn: ignore, error: ignore },
      ...options,
    },
  );
}

function ignore(): void {
  // What the widget shows counts.
}
