// Any command as the leader (`run`), as `flock` and `consul lock` do it, but with a lease: the
// command is told its fencing token, and is killed when the lease is lost.

import { signalNumber, type Host, type Signal, type Started } from './cli-process.ts';
import { clientConfigOf, CliError, explain, tableNameOf, type GlobalOptions } from './cli-table.ts';
import { printable } from './cli-text.ts';
import { sleep, systemClock } from './clock.ts';
import { readEnvironment, type Logger } from './environment.ts';
import { describeError, isLeaseError } from './errors.ts';
import type { Lease } from './lease-handle.ts';
import { invalid, leaseKey, resolveTiming, show } from './options.ts';
import { LONGEST_DURATION_SECONDS } from './schema.ts';

/** What `run` ends with when it is not the command that tells. As `timeout` and `env` have them. */
export const EXIT = {
  /** Another holds the lease, or it is suspended, and the wait is over: try again later. */
  notAcquired: 75,
  /** The lease was lost, and the command was stopped. */
  lost: 76,
  /** lambda-lease itself failed before the command began: arguments, table, permissions. */
  failed: 125,
  notExecutable: 126,
  notFound: 127,
} as const;

export interface RunOptions extends GlobalOptions {
  readonly duration?: string;
  /** True for as long as it takes. */
  readonly wait?: string | true;
}

export async function runCommand(
  host: Host,
  name: string,
  command: readonly string[],
  options: RunOptions,
): Promise<number> {
  try {
    return await run(host, name, command, options);
  } catch (error) {
    const message = explain(error, host, options);
    if (message !== '') host.err(`${message}\n`);
    return error instanceof CliError ? error.exitCode : EXIT.failed;
  }
}

async function run(
  host: Host,
  name: string,
  [program, ...args]: readonly string[],
  options: RunOptions,
): Promise<number> {
  if (program === undefined) {
    throw new CliError(
      'error: there is no command to run: lambda-lease run NAME -- COMMAND …',
      EXIT.failed,
    );
  }
  const tableName = tableNameOf(options);
  leaseKey(name, options.namespace, readEnvironment());
  const leaseDurationSeconds =
    options.duration === undefined ? undefined : parseSeconds('--duration', options.duration);
  const timing = resolveTiming({ ...(leaseDurationSeconds && { leaseDurationSeconds }) });
  const { wait } = options;
  const maxWaitSeconds =
    wait === undefined
      ? 0
      : wait === true
        ? LONGEST_DURATION_SECONDS
        : parseSeconds('--wait', wait);
  const { acquireLease } = await import('./acquire-lease.ts');

  const stop = new AbortController();
  let running: Started | undefined;
  let stoppedBy: Signal | undefined;
  const forget = host.onSignal((signal) => {
    stoppedBy = signal;
    if (running === undefined) stop.abort(signal);
    else running.kill(signal);
  });
  try {
    const lease = await acquireLease({
      name,
      ...(options.namespace === undefined ? {} : { namespace: options.namespace }),
      tableName,
      clientConfig: clientConfigOf(options),
      ...(leaseDurationSeconds === undefined ? {} : { leaseDurationSeconds }),
      maxWaitSeconds,
      signal: stop.signal,
      logger: loggerOf(host),
    }).catch((error: unknown) => {
      if (stoppedBy !== undefined) throw new CliError('', codeOfSignal(stoppedBy));
      throw refusalOf(error, host, options);
    });
    // Others may start a tolerance after belief has ended: within half of it the command is gone.
    const graceMs = timing.toleranceMs / 2;
    running = host.start(program, args, { variables: variablesOf(lease, tableName), graceMs });
    return await follow(host, lease, running, program, graceMs);
  } finally {
    forget();
  }
}

async function follow(
  host: Host,
  lease: Lease,
  running: Started,
  program: string,
  graceMs: number,
): Promise<number> {
  const over = new AbortController();
  let lost: unknown;
  const onLost = () => {
    if (over.signal.aborted) return;
    lost = lease.signal.reason;
    const why = isLeaseError(lost) ? lost.message : `Lease "${lease.name}" is lost.`;
    host.err(`lambda-lease: ${printable(why)} Stopping the command.\n`);
    running.kill('SIGTERM');
    void sleep(systemClock, graceMs, over.signal).then(() => {
      if (!over.signal.aborted) running.kill('SIGKILL');
    });
  };
  lease.signal.addEventListener('abort', onLost);
  // It may have been lost while the program was being started.
  if (lease.signal.aborted && lost === undefined) onLost();
  const forgets = [
    // It has no terminal of its own to hear that from.
    host.onResize(() => void running.kill('SIGWINCH')),
    // Nobody renews while we are stopped. If the lease is lost by then, it never goes on.
    host.onStop({
      stop: () => void running.kill('SIGSTOP'),
      go: () => {
        if (lease.isHeld()) running.kill('SIGCONT');
      },
    }),
  ];
  try {
    const { code, signal } = await running.ended;
    over.abort();
    if (lost !== undefined) {
      // What it had started goes with it when the lease does.
      running.kill('SIGKILL');
      return EXIT.lost;
    }
    return code ?? codeOfSignal(signal ?? 'SIGKILL');
  } catch (error) {
    over.abort();
    const { code = describeError(error) } = error as NodeJS.ErrnoException;
    const missing = code === 'ENOENT';
    const why = missing ? 'command not found' : `it cannot be executed (${code})`;
    host.err(`lambda-lease: ${printable(program)}: ${why}\n`);
    return missing ? EXIT.notFound : EXIT.notExecutable;
  } finally {
    for (const forget of forgets) forget();
    lease.signal.removeEventListener('abort', onLost);
    await lease.release();
  }
}

/** What the command sees of the lease that it runs under. */
function variablesOf(lease: Lease, tableName: string): Record<string, string> {
  return {
    LEASE_NAME: lease.name,
    LEASE_NAMESPACE: lease.namespace,
    LEASE_TABLE_NAME: tableName,
    LEASE_HOLDER_IDENTITY: lease.holderIdentity,
    LEASE_FENCING_TOKEN: String(lease.fencingToken),
  };
}

function refusalOf(error: unknown, host: Host, options: GlobalOptions): CliError {
  const held =
    isLeaseError(error) &&
    ['lease-held', 'lease-suspended', 'lease-not-before'].includes(error.code);
  return held
    ? new CliError(`lambda-lease: ${printable(error.message)}`, EXIT.notAcquired)
    : new CliError(explain(error, host, options), EXIT.failed);
}

function codeOfSignal(signal: string): number {
  return 128 + signalNumber(signal);
}

const UNIT_SECONDS: Readonly<Record<string, number>> = { ms: 0.001, s: 1, m: 60, h: 3_600 };

/** `90`, `15s`, `1m30s`, `500ms`. */
export function parseSeconds(option: string, text: string): number {
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  const seconds = /^\d+(?:\.\d+)?$/.test(text)
    ? Number(text)
    : parts.map(([part]) => part).join('') === text && text !== ''
      ? parts.reduce(
          (sum, [, count, unit = '']) => sum + Number(count) * (UNIT_SECONDS[unit] ?? NaN),
          0,
        )
      : NaN;
  if (Number.isNaN(seconds) || seconds <= 0 || seconds > LONGEST_DURATION_SECONDS) {
    throw invalid(
      `${option} is ${show(text)}; it must be a duration such as 30s, 5m or 1h30m, of at most ` +
        '366 days. The name of the lease comes before the options.',
    );
  }
  return seconds;
}

/** One line each, on standard error: standard output is the command's. */
function loggerOf(host: Host): Logger {
  const say = (message: string) => host.err(`lambda-lease: ${printable(message)}\n`);
  const quiet = () => undefined;
  return { debug: quiet, info: quiet, warn: say, error: say };
}
