// The constructs, for apps of your own.

export {
  LeaseTable,
  type HolderGrantOptions,
  type ILeaseTable,
  type LeaseTableImport,
  type LeaseTableProps,
} from './lease-table.ts';
export { LifecycleMonitor, type LifecycleMonitorProps } from './lifecycle-monitor.ts';
export {
  Singleton,
  singleton,
  SingletonFunction,
  type SingletonFunctionProps,
  type SingletonProps,
} from './singleton-function.ts';
export { LeaseAlarms, type LeaseAlarmsProps } from './lease-alarms.ts';
export { LeaseDashboard, type LeaseDashboardProps } from './lease-dashboard.ts';
export { LeaderElectionStack, type LeaderElectionStackProps } from './leader-election-stack.ts';
