// The lifecycle monitor as a Lambda function: on a schedule of one minute, with a time-out of about
// three, it makes passes inside one invocation until no further one fits into its minute.
//
// It is a singleton through a lease of its own. An invocation that comes while another is at work
// waits for the release instead of leaving, so that there is no minute without passes; the lease is
// short and renewed, so that one that was killed is replaced by the one that waits.

import { sleep, systemClock } from '../src/clock.ts';
import { DynamoDBStore } from '../src/dynamodb-store.ts';
import { consoleLogger, readEnvironment } from '../src/environment.ts';
import { EventBridgeSink } from '../src/eventbridge.ts';
import type { LambdaContext } from '../src/invocation-options.ts';
import { LifecycleMonitor } from '../src/lifecycle-monitor.ts';
import { EmfMetrics } from '../src/metrics.ts';
import type { PassReport } from '../src/pass-report.ts';
import { MONITOR_LEASE } from '../src/schema.ts';
import { withLease } from '../src/with-lease.ts';

export interface MonitorResult {
  readonly passes: number;
  /** What the last of them saw and did. */
  readonly last: PassReport | undefined;
}

const { tableName, lambda } = readEnvironment();
if (tableName === undefined) {
  throw new Error('LEASE_TABLE_NAME is not set: name the table that is to be watched.');
}
// Each change of a lease's condition is a line; those are of level INFO.
process.env['LEASE_LOG_LEVEL'] ??= 'INFO';

/** At most a minute: after two without a pass the monitor counts as blind, and freezes verdicts. */
const passIntervalMs = (secondsFrom('PASS_INTERVAL_SECONDS', 60) ?? 10) * 1_000;
/** From the invocation's start, not from its turn: waiting must not push the next one back. */
const runMs = (secondsFrom('RUN_SECONDS') ?? 60) * 1_000;
const graceSeconds = secondsFrom('GRACE_SECONDS');
const tolerationSeconds = secondsFrom('TOLERATION_SECONDS');
const eventBusName = textFrom('EVENT_BUS_NAME');

/** What is kept back of the invocation's time: for the release, and for a pass that is slow. */
const RESERVE_MS = 5_000;

const store = new DynamoDBStore({
  tableName,
  // A page of a scan takes longer than the write of a lease.
  clientConfig: {
    requestHandler: {
      connectionTimeout: 500,
      requestTimeout: 2_500,
      throwOnRequestTimeout: true,
    },
  },
});

const monitor = new LifecycleMonitor({
  store,
  events: new EventBridgeSink(eventBusName === undefined ? {} : { eventBusName }),
  metrics: new EmfMetrics({
    namespace: textFrom('POWERTOOLS_METRICS_NAMESPACE') ?? 'lambda-lease',
    service: textFrom('POWERTOOLS_SERVICE_NAME') ?? lambda?.functionName ?? MONITOR_LEASE.name,
    nowMs: () => systemClock.read().wallMs,
  }),
  logger: consoleLogger,
  ...(graceSeconds === undefined ? {} : { graceSeconds }),
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

/** Of all passes of this environment: a guess at how long the next one takes. */
let longestPassMs = 0;

interface Turn {
  readonly endsAtMs: number;
}

const takeTurn = withLease(
  {
    ...MONITOR_LEASE,
    store,
    leaseDurationSeconds: 30,
    // For a small table renewals are most of what it costs. Two attempts fit before 20 s are over.
    retryPeriodSeconds: 8,
    whenHeld: 'wait',
  },
  async ({ endsAtMs }: Turn, context): Promise<MonitorResult> => {
    const { signal } = context.lease;
    let passes = 0;
    let last: PassReport | undefined;
    for (;;) {
      const startedAtMs = nowMs();
      last = await monitor.pass();
      passes += 1;
      const tookMs = nowMs() - startedAtMs;
      longestPassMs = Math.max(longestPassMs, tookMs);
      const restMs = Math.max(0, passIntervalMs - tookMs);
      const fits = (inMs: number) => nowMs() + inMs < endsAtMs && hasTimeFor(context, inMs);
      if (!fits(restMs)) break;
      await sleep(systemClock, restMs, signal);
      if (signal.aborted || !fits(0)) break;
    }
    return { passes, last };
  },
);

export const handler = (_event: unknown, context: LambdaContext): Promise<MonitorResult> =>
  takeTurn({ endsAtMs: nowMs() + runMs }, context);

/** No pass is begun that may not come to its end. */
function hasTimeFor(context: LambdaContext, inMs: number): boolean {
  return context.getRemainingTimeInMillis() - inMs > 2 * longestPassMs + RESERVE_MS;
}

function nowMs(): number {
  return systemClock.read().monotonicMs;
}

function textFrom(name: string): string | undefined {
  const text = process.env[name]?.trim();
  return text === '' ? undefined : text;
}

function secondsFrom(name: string, most = Infinity): number | undefined {
  const text = textFrom(name);
  if (text === undefined) return undefined;
  const seconds = Number(text);
  if (Number.isFinite(seconds) && seconds > 0 && seconds <= most) return seconds;
  const limit = most === Infinity ? '' : ` and at most ${most}`;
  throw new Error(`${name} is "${text}"; it must be a number of seconds above 0${limit}.`);
}
