// What one pass of the lifecycle monitor saw and did, and the metrics made of it.

import type { Metrics } from './metrics.ts';
import type { ZoneMode } from './zones.ts';

export interface PassReport {
  /** Why the pass passed no verdict. */
  readonly blind: 'store' | 'clock' | undefined;
  readonly scanned: number;
  readonly suspects: number;
  readonly notReady: number;
  readonly evicted: number;
  /** Leases of leaders that stand evicted: nobody has taken them since. */
  readonly leaderless: number;
  /** Leaders that were seen for the first time. */
  readonly leaderChanges: number;
  /** Jobs whose completion was found to be overdue. */
  readonly schedulesMissed: number;
  readonly collected: number;
  readonly published: number;
  readonly unpublished: number;
  /** Records that could not be judged, or written; the log says why. */
  readonly unusable: number;
  readonly zones: Readonly<Record<string, ZoneMode>>;
}

export type Counts = { -readonly [Key in keyof Omit<PassReport, 'blind' | 'zones'>]: number };

export function noCounts(): Counts {
  return {
    scanned: 0,
    suspects: 0,
    notReady: 0,
    evicted: 0,
    leaderless: 0,
    leaderChanges: 0,
    schedulesMissed: 0,
    collected: 0,
    published: 0,
    unpublished: 0,
    unusable: 0,
  };
}

/** Few names and no dimension of their own: each is billed. */
export function measure(report: PassReport, durationMs: number, metrics: Metrics): void {
  const zones = Object.values(report.zones);
  const count = (name: string, value: number) => metrics.addMetric(name, 'Count', value);
  count('MonitorPass', 1);
  metrics.addMetric('MonitorPassDuration', 'Milliseconds', Math.round(durationMs));
  count('MonitorBlind', report.blind === undefined ? 0 : 1);
  count('LeasesScanned', report.scanned);
  count('LeasesNotReady', report.notReady);
  count('LeasesEvicted', report.evicted);
  count('LeasesLeaderless', report.leaderless);
  count('LeasesUnusable', report.unusable);
  count('LeaderChanges', report.leaderChanges);
  count('SchedulesMissed', report.schedulesMissed);
  count('EventsUnpublished', report.unpublished);
  count('ZonesPartiallySilent', zones.filter((mode) => mode === 'Partial').length);
  count('ZonesSilent', zones.filter((mode) => mode === 'Full').length);
  metrics.publishStoredMetrics?.();
}
