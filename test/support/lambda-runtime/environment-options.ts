// What a test may choose about an environment, and what holds when it chooses nothing.
//
// Plain data: nothing here starts anything, apart from looking which runtime is installed.

import {
  type FunctionSetup,
  type InitializationType,
  type ManagedInstances,
  newLogStreamName,
} from './lambda-variables.ts';
import type { OutputLine } from './runtime-process.ts';
import { resolveRuntime, type RuntimeKind } from './runtimes.ts';

export interface EnvironmentOptions {
  /** The folder with the code: from `bundleHandler`, or an asset that `cdk synth` made. */
  readonly taskRoot: string;
  /** Default: `index.handler`. */
  readonly handler?: string;
  /** The function's own variables. They win over the region, credentials and memory size. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: `test-function`. */
  readonly functionName?: string;
  /** Default: `$LATEST`. */
  readonly functionVersion?: string;
  /** The function's time-out. Default: ten seconds. */
  readonly timeoutMs?: number;
  /** Default: a new one in Lambda's form. */
  readonly logStreamName?: string;
  /** Default: `auto`, which is `ric` where it is installed. */
  readonly runtime?: RuntimeKind | 'auto';
  /** Default: `on-demand`, or `lambda-managed-instances` with that option. */
  readonly initializationType?: InitializationType;
  /** Rule E2 of `environment.ts`. Default: true, but never with Managed Instances. */
  readonly freezeBetween?: boolean;
  /** Turns on rule E4. */
  readonly managedInstances?: ManagedInstances;
  readonly onOutput?: (line: OutputLine) => void;
}

export interface ResolvedOptions extends FunctionSetup {
  readonly runtime: RuntimeKind;
  readonly timeoutMs: number;
  readonly freezeBetween: boolean;
  /** The most invocations at once. */
  readonly capacity: number;
  readonly onOutput: (line: OutputLine) => void;
}

export function resolveOptions(options: EnvironmentOptions): ResolvedOptions {
  const { managedInstances, functionVersion = '$LATEST' } = options;
  const managed = managedInstances !== undefined;
  return {
    runtime: resolveRuntime(options.runtime ?? 'auto'),
    taskRoot: options.taskRoot,
    handler: options.handler ?? 'index.handler',
    env: options.env ?? {},
    functionName: options.functionName ?? 'test-function',
    functionVersion,
    timeoutMs: options.timeoutMs ?? 10_000,
    logStreamName: options.logStreamName ?? newLogStreamName(functionVersion),
    initializationType:
      options.initializationType ?? (managed ? 'lambda-managed-instances' : 'on-demand'),
    freezeBetween: !managed && (options.freezeBetween ?? true),
    capacity: managedInstances?.maxConcurrency ?? 1,
    managedInstances,
    onOutput: options.onOutput ?? (() => undefined),
  };
}
