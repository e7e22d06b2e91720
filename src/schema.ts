// The names in the table, and how much room each value has. No behaviour, no imports: the
// infrastructure code reads this file too.

/** The partition key, `<namespace>/<name>`. There is no sort key and no secondary index. */
export const KEY_ATTRIBUTE = 'lease';

/** DynamoDB's Time to Live attribute, in epoch seconds. Never set on a leader's lease. */
export const TIME_TO_LIVE_ATTRIBUTE = 'timeToLive';

/** 366 days. Beyond that a duration is a mistake in its unit. */
export const LONGEST_DURATION_SECONDS = 366 * 86_400;

export const DEFAULT_NAMESPACE = 'default';

/** The lifecycle monitor's own lease, which also remembers its last pass. */
export const MONITOR_LEASE = { namespace: 'lambda-lease', name: 'lifecycle-monitor' } as const;

export const LEASE_KINDS = ['leader', 'heartbeat', 'identity'] as const;
export type LeaseKind = (typeof LEASE_KINDS)[number];

/** Every attribute that this library knows, besides the key. Others survive every write. */
export type AttributeName =
  | 'kind'
  | 'holderIdentity'
  | 'leaseDurationSeconds'
  | 'acquireTime'
  | 'renewTime'
  | 'expireTime'
  | 'leaseTransitions'
  | 'version'
  | 'notBefore'
  | 'lastTick'
  | 'dueTime'
  | 'run'
  | 'suspended'
  | 'stepDownRequested'
  /** What operators note beside what its holder writes: labels and annotations of their own. */
  | 'operator'
  | 'labels'
  | 'annotations'
  | 'condition'
  | 'openVerdict'
  | 'timeToLive'
  | 'pass';

/**
 * Bytes of UTF-8 that a value may take. A write unit is 1 KB; the budgets leave room for all
 * attributes at once, so that every write costs one unit.
 */
export const BYTE_BUDGET = {
  namespace: 63,
  /** Namespace, slash and name together. */
  lease: 128,
  holderIdentity: 128,
  annotation: { function: 64, version: 8, region: 16, logGroup: 64, logStream: 64, host: 64 },
  /** Names and values of the user's own annotations together, and a byte for each; of labels. */
  ownAnnotations: 96,
  labels: 96,
  /** What a heartbeat says of its readiness, and an identity of its function. */
  readyReason: 48,
  /** Of the message of the error that ended a job's run. */
  runError: 64,
  identity: { instance: 64, alias: 32 },
  /** Who intervened and why, each in an intervention of an operator. */
  operator: { by: 64, why: 128, notes: 192 },
  /** Lease, holderIdentity, labels and all annotations together: ours take what is left. */
  together: 448,
} as const;
