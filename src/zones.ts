// Whether silence is the workers' fault or ours. When most of a zone falls silent at once, the
// fault is likelier between it and the table: evictions slow down, or wait. As Kubernetes'
// node-lifecycle-controller does with its disruption modes.

/** The label that tells a heartbeat's zone. Heartbeats without one share one. */
export const ZONE_LABEL = 'zone';

export type ZoneMode =
  | 'Normal'
  /** At least 55 % of at least 3 heartbeats are silent: evictions slow down. */
  | 'Partial'
  /** All of at least 3 are silent: evictions wait for one more toleration. */
  | 'Full';

const SMALLEST_ZONE = 3;
const UNHEALTHY_SHARE = 0.55;

/** Those that have been evicted already count for neither number. */
export function zoneMode(heartbeats: number, silent: number): ZoneMode {
  if (heartbeats < SMALLEST_ZONE || silent / heartbeats < UNHEALTHY_SHARE) return 'Normal';
  return silent >= heartbeats ? 'Full' : 'Partial';
}

/** So many heartbeats have been counted that further ones cannot make it less Normal. */
export function isSurelyNormal(heartbeats: number, silent: number): boolean {
  return heartbeats > 0 && silent / heartbeats < UNHEALTHY_SHARE;
}

/** A zone with fewer silent heartbeats than this is Normal, however many it has. */
export function mayBeDisrupted(silent: number): boolean {
  return silent >= SMALLEST_ZONE * UNHEALTHY_SHARE;
}
