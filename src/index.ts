// The front page: Kubernetes-style Leases and leader election on one DynamoDB table.
//
//   withLease        one invocation of a Lambda handler at a time
//   LeaderElector    one leader among processes that run long
//   acquireLease     a lease for a block of code
//   leaderElection   withLease as a middy middleware; exported by `lambda-lease/middy`

export { acquireLease, type AcquireLeaseOptions } from './acquire-lease.ts';
export type { Clock, Reading, Timer } from './clock.ts';
export { DynamoDBStore, type DynamoDBStoreOptions } from './dynamodb-store.ts';
export { LeaderElector, type LeaderElectorOptions, type RunOptions } from './elector.ts';
export type { Logger } from './environment.ts';
export { isLeaseError, LeaseError, type LeaseErrorCode } from './errors.ts';
export type { Health } from './health.ts';
export type { Lease } from './holding.ts';
export type { LambdaContext, WhenHeld } from './invocation-options.ts';
export type { LeaseRecord } from './lease.ts';
export { isSkipped, type Skipped } from './refusal.ts';
export type { LeaseStore } from './store.ts';
export type { EndReason } from './tenure.ts';
export {
  withLease,
  type WithLeaseContext,
  type WithLeaseOptions,
  type WithLeaseResult,
} from './with-lease.ts';
