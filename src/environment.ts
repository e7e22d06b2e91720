// The door to the process: its environment variables, its console, and what it says of itself.

import { hostname } from 'node:os';

/** A console, Powertools' Logger, pino: whatever has these. */
export interface Logger {
  /** What is of use only to whoever debugs a lease. */
  debug(message: string, details?: object): void;
  /** What happens as it should: a lease acquired, given back, not free. */
  info(message: string, details?: object): void;
  /** What went wrong and mends itself. */
  warn(message: string, details?: object): void;
  /** What somebody should look at. */
  error(message: string, details?: object): void;
}

/** A logger that fails must not keep a lease from being renewed or released. */
export function unfailing(logger: Logger): Logger {
  const at = (level: keyof Logger) => (message: string, details?: object) => {
    try {
      // Some loggers are asynchronous, whatever their type says.
      const write: (message: string, details?: object) => unknown = logger[level].bind(logger);
      Promise.resolve(write(message, details)).catch(() => undefined);
    } catch {
      // There is nobody left to tell.
    }
  };
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
}

/** What this process knows of where it runs. Read anew at each call: tests set variables late. */
export interface Environment {
  readonly tableName: string | undefined;
  readonly namespace: string | undefined;
  /** True when `LEASE_DISABLED` is set: unit tests of users run their handlers without a table. */
  readonly disabled: boolean;
  /** Many invocations at once in one process, time-outs not enforced: Lambda Managed Instances. */
  readonly managedInstances: boolean;
  readonly lambda: LambdaEnvironment | undefined;
  readonly region: string | undefined;
  readonly host: string;
  readonly pid: number;
}

export interface LambdaEnvironment {
  readonly functionName: string;
  readonly functionVersion: string;
  readonly logGroupName: string | undefined;
  readonly logStreamName: string | undefined;
  /** `on-demand`, `provisioned-concurrency`, `snap-start`, `lambda-managed-instances`. */
  readonly initializationType?: string | undefined;
}

export function readEnvironment(): Environment {
  const get = (name: string) => {
    const value = process.env[name]?.trim();
    return value === '' ? undefined : value;
  };
  const functionName = get('AWS_LAMBDA_FUNCTION_NAME');
  return {
    tableName: get('LEASE_TABLE_NAME'),
    namespace: get('LEASE_NAMESPACE'),
    disabled: ['true', '1', 'yes', 'on'].includes(get('LEASE_DISABLED')?.toLowerCase() ?? ''),
    managedInstances: get('AWS_LAMBDA_MAX_CONCURRENCY') !== undefined,
    lambda:
      functionName === undefined
        ? undefined
        : {
            functionName,
            functionVersion: get('AWS_LAMBDA_FUNCTION_VERSION') ?? '$LATEST',
            logGroupName: get('AWS_LAMBDA_LOG_GROUP_NAME'),
            logStreamName: get('AWS_LAMBDA_LOG_STREAM_NAME'),
            initializationType: get('AWS_LAMBDA_INITIALIZATION_TYPE'),
          },
    region: get('AWS_REGION') ?? get('AWS_DEFAULT_REGION'),
    host: hostname(),
    pid: process.pid,
  };
}

const LEVELS = ['DEBUG', 'INFO', 'WARN', 'ERROR', 'SILENT'] as const;

/** One JSON line per entry, from `LEASE_LOG_LEVEL` (default WARN) upwards. */
export const consoleLogger: Logger = {
  debug: (message, details) => log('DEBUG', message, details),
  info: (message, details) => log('INFO', message, details),
  warn: (message, details) => log('WARN', message, details),
  error: (message, details) => log('ERROR', message, details),
};

function log(level: (typeof LEVELS)[number], message: string, details: object = {}): void {
  const wanted = process.env['LEASE_LOG_LEVEL']?.trim().toUpperCase();
  const least = LEVELS.findIndex((known) => known === wanted);
  if (LEVELS.indexOf(level) < (least === -1 ? LEVELS.indexOf('WARN') : least)) return;
  const line = JSON.stringify({ level, message, ...details });
  if (level === 'ERROR' || level === 'WARN') console.error(line);
  else console.log(line);
}

/** Past the runtime's console, which may wrap lines in a format of its own. */
export function writeLine(line: string): void {
  process.stdout.write(`${line}\n`);
}
