// Runs a handler's code on the Node runtime of Lambda, without Lambda: real processes,
// real freezes, real kills.
//
// The parts: `bundle` makes a folder of code, `environment` runs it and keeps Lambda's
// rules, over `runtime-api` (HTTP), `runtime-process` (signals) and `lambda-variables`.
// `reaper` sees to it that nothing outlives the test. Nothing here needs AWS or a network
// beyond the loopback interface.

export { bundleHandler, type BundleOptions } from './bundle.ts';
export { LambdaEnvironment } from './environment.ts';
export type { EnvironmentOptions } from './environment-options.ts';
export { LambdaInitError } from './init-error.ts';
export type { Invocation, InvokeOptions } from './invocation.ts';
export type { InitializationType, ManagedInstances } from './lambda-variables.ts';
export type { HandlerError } from './runtime-api.ts';
export type { Exit, OutputLine } from './runtime-process.ts';
export { expectRealRuntime, realRuntimeAvailable, type RuntimeKind } from './runtimes.ts';
