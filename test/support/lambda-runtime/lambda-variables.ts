// The environment variables of a function, as Lambda sets them.
//
// A child gets these and what the test adds: nothing of the test's own environment, so
// that a handler cannot lean on what only this machine has.

import { randomBytes } from 'node:crypto';
import { dirname } from 'node:path';

/** How Lambda sends several events at once into one environment. */
export interface ManagedInstances {
  /** The most invocations that run at once in this environment. */
  readonly maxConcurrency: number;
  /** Worker threads; each loads the handler's module for itself. */
  readonly workers: number;
}

export type InitializationType =
  'on-demand' | 'provisioned-concurrency' | 'lambda-managed-instances';

export interface FunctionSetup {
  readonly functionName: string;
  readonly functionVersion: string;
  readonly handler: string;
  readonly taskRoot: string;
  readonly logStreamName: string;
  readonly initializationType: InitializationType;
  readonly managedInstances: ManagedInstances | undefined;
  readonly env: Readonly<Record<string, string>>;
}

export function lambdaVariables(
  setup: FunctionSetup,
  runtimeApi: string,
  runtimeEntry: string,
): Record<string, string> {
  const [major] = process.versions.node.split('.');
  return {
    LANG: 'en_US.UTF-8',
    TZ: ':UTC',
    PATH: '/usr/local/bin:/usr/bin:/bin',
    AWS_REGION: 'us-east-1',
    AWS_DEFAULT_REGION: 'us-east-1',
    AWS_ACCESS_KEY_ID: 'test',
    AWS_SECRET_ACCESS_KEY: 'test',
    AWS_SESSION_TOKEN: 'test',
    AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '512',
    ...(setup.managedInstances && {
      // Each worker of the real runtime polls in a thread of libuv's pool and keeps it. With
      // as many workers as threads no file is read and no name is looked up any more.
      UV_THREADPOOL_SIZE: String(setup.managedInstances.workers + 4),
    }),
    ...setup.env,

    // Lambda turns off what Node would do by itself, and lets the function turn it on.
    NODE_OPTIONS: [
      '--no-experimental-require-module --no-experimental-detect-module',
      setup.env['NODE_OPTIONS'] ?? '',
    ].join(' '),
    AWS_EXECUTION_ENV: `AWS_Lambda_nodejs${major ?? ''}.x`,
    AWS_LAMBDA_RUNTIME_API: runtimeApi,
    AWS_LAMBDA_INITIALIZATION_TYPE: setup.initializationType,
    AWS_LAMBDA_FUNCTION_NAME: setup.functionName,
    AWS_LAMBDA_FUNCTION_VERSION: setup.functionVersion,
    AWS_LAMBDA_LOG_GROUP_NAME: `/aws/lambda/${setup.functionName}`,
    AWS_LAMBDA_LOG_STREAM_NAME: setup.logStreamName,
    LAMBDA_TASK_ROOT: setup.taskRoot,
    LAMBDA_RUNTIME_DIR: dirname(runtimeEntry),
    _HANDLER: setup.handler,
    ...(setup.managedInstances && {
      AWS_LAMBDA_MAX_CONCURRENCY: String(setup.managedInstances.maxConcurrency),
      AWS_LAMBDA_NODEJS_WORKER_COUNT: String(setup.managedInstances.workers),
    }),
  };
}

/** A name in Lambda's form, one for each environment: `2026/11/29/[$LATEST]<32 hex digits>`. */
export function newLogStreamName(functionVersion: string): string {
  const day = new Date().toISOString().slice(0, 10).replaceAll('-', '/');
  return `${day}/[${functionVersion}]${randomBytes(16).toString('hex')}`;
}

export function functionArn(functionName: string): string {
  return `arn:aws:lambda:us-east-1:000000000000:function:${functionName}`;
}
