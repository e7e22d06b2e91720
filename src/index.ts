// The front page: Kubernetes-style Leases and leader election on one DynamoDB table.
//
//   withLease        one invocation of a Lambda handler at a time
//   scheduledSingleton  one run for each tick of a schedule
//   fenced           a write that no earlier holder can follow
//   sendGuarded      a transaction that commits only while the lease is held
//   LeaderElector    one leader among processes that run long
//   acquireLease     a lease for a block of code
//   Heartbeat        a worker that must be noticed when it dies; withHeartbeat for a function
//   Identity         who is alive, and which version runs where; withIdentity for a function
//   leaderElection   withLease as a middy middleware; exported by `lambda-lease/middy`, as is
//   heartbeat        withHeartbeat as one

export { acquireLease, type AcquireLeaseOptions } from './acquire-lease.ts';
export type { Clock, Reading, Timer } from './clock.ts';
export { DynamoDBStore, type DynamoDBStoreOptions } from './dynamodb-store.ts';
export { LeaderElector, type LeaderElectorOptions, type RunOptions } from './elector.ts';
export type { Logger } from './environment.ts';
export { isLeaseError, LeaseError, type LeaseErrorCode } from './errors.ts';
export {
  fenced,
  tombstone,
  type FencedOptions,
  type FencingLease,
  type TombstoneInput,
  type TombstoneOptions,
} from './fence.ts';
export { sendGuarded, type GuardedOptions } from './guarded.ts';
export type { Health } from './health.ts';
export {
  Heartbeat,
  withHeartbeat,
  type FunctionHeartbeatOptions,
  type HeartbeatOptions,
} from './heartbeat.ts';
export type { Lease } from './lease-handle.ts';
export {
  Identity,
  withIdentity,
  type FunctionIdentityOptions,
  type IdentityOptions,
} from './identity.ts';
export type { LambdaContext, WhenHeld } from './invocation-options.ts';
export type { LeaseRecord } from './lease.ts';
export {
  listIdentities,
  type ListedIdentity,
  type ListIdentitiesOptions,
} from './list-identities.ts';
export type { PulseHealth, PulseState } from './publisher.ts';
export { isSkipped, type Skipped } from './refusal.ts';
export type { Tick } from './schedule.ts';
export type { ScheduledLease } from './scheduled-job.ts';
export {
  scheduledSingleton,
  type ScheduledSingletonContext,
  type ScheduledSingletonOptions,
} from './scheduled-singleton.ts';
export type { LeaseStore, RemovableStore, WatchableStore } from './store.ts';
export type { EndReason } from './tenure.ts';
export {
  withLease,
  type WithLeaseContext,
  type WithLeaseOptions,
  type WithLeaseResult,
} from './with-lease.ts';
