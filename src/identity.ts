// Identities: each execution environment, container or process publishes a labelled lease, as each
// API server of a Kubernetes cluster does. list-identities.ts tells who is alive, and which
// version runs where.
//
// The name is stable for an instance, so that a restart replaces its own stale record instead of
// leaving one more; the holder is new for each start.

import { systemClock } from './clock.ts';
import { consoleLogger, readEnvironment, type Environment } from './environment.ts';
import { beside } from './heartbeat.ts';
import { byteLength, clip } from './holder.ts';
import { InvocationPulse, type BeatContext } from './invocation-pulse.ts';
import { isoTime } from './lease.ts';
import { checkFilled, invalid } from './options.ts';
import { checkPulseOptions, Pulse, pulseTiming, type PulseOptions } from './pulse.ts';
import { Publisher } from './publisher.ts';
import { BYTE_BUDGET, DEFAULT_NAMESPACE } from './schema.ts';

/** Options of `withIdentity`. */
export interface FunctionIdentityOptions extends PulseOptions {
  /**
   * The instance's name, the same at each start of it. Default: function and log stream on Lambda,
   * the host elsewhere; several processes of one host must be told apart here.
   */
  readonly name?: string;
  /**
   * How long a renewal lasts. Default 300, renewed each quarter. Long, because a Lambda environment
   * is frozen between invocations and in the end vanishes without a word: it beats only when it
   * is invoked, and a shorter one would take each pause for an end, at a price for every beat.
   */
  readonly leaseDurationSeconds?: number;
  /** Beside `function`, `version`, `alias`, `region`, `initializationType`, `started`; they win. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Options of an `Identity`. */
export interface IdentityOptions extends FunctionIdentityOptions {
  /** The alias by which it is known. On Lambda the invoked ARN tells it. */
  readonly alias?: string;
  /** Called with what goes wrong and is tried again. */
  readonly onError?: (error: unknown) => void;
  /** Called when another incarnation took over. This one has fallen silent. */
  readonly onReplaced?: (holderIdentity: string | undefined) => void;
}

const DEFAULT_DURATION_SECONDS = 300;

/** The identity of a process that runs long. A start replaces the stale record of the last one. */
export class Identity extends Publisher {
  /** @throws LeaseError `invalid-configuration` for options that cannot work. Sends nothing. */
  constructor(options: IdentityOptions = {}) {
    const environment = readEnvironment();
    const own = ['alias', 'onError', 'onReplaced'];
    checkPulseOptions('Identity', options, own, environment, true);
    if (options.alias !== undefined) checkFilled('alias', options.alias);
    const given = Object.freeze({ ...options });
    super(() => makePulse(given, environment, given.alias), {
      replace: true,
      disabled: environment.disabled,
      onError: given.onError,
      onReplaced: given.onReplaced,
    });
  }
}

/**
 * Wraps `handler` so that each environment of its function publishes an identity: renewed when it
 * is invoked, at most once for each interval, beside the handler, which it never fails.
 *
 * @throws LeaseError `invalid-configuration`, at once, for options that cannot work.
 */
export function withIdentity<TEvent, TResult, TContext extends BeatContext = BeatContext>(
  options: FunctionIdentityOptions,
  handler: (event: TEvent, context: TContext) => Promise<TResult> | TResult,
): (event: TEvent, context: TContext) => Promise<TResult> {
  if (typeof handler !== 'function') {
    throw invalid('withIdentity needs the handler as its second argument.');
  }
  const environment = readEnvironment();
  checkPulseOptions('withIdentity', options, [], environment, true);
  const given = Object.freeze({ ...options });
  pulseTiming(given, DEFAULT_DURATION_SECONDS);
  const pulse = environment.disabled
    ? undefined
    : new InvocationPulse(
        // Read again: variables may be set between loading and the first invocation.
        (context) => makePulse(given, readEnvironment(), aliasOf(context?.invokedFunctionArn)),
        given.logger ?? consoleLogger,
      );
  return beside(pulse, handler);
}

function makePulse(
  options: FunctionIdentityOptions,
  environment: Environment,
  alias: string | undefined,
): Pulse {
  return new Pulse({
    kind: 'identity',
    name: options.name ?? instanceName(environment, options.namespace ?? environment.namespace),
    options,
    timing: pulseTiming(options, DEFAULT_DURATION_SECONDS),
    environment,
    labels: {
      ...labelsOf(environment, alias),
      started: isoTime((options.clock ?? systemClock).read().wallMs),
      ...options.labels,
    },
    annotations: {},
  });
}

/**
 * The same for each start of one instance; no two instances share one. Beside a long namespace the
 * function's name is cut.
 */
export function instanceName(
  { lambda, host, managedInstances, pid }: Environment,
  namespace = DEFAULT_NAMESPACE,
): string {
  if (lambda === undefined) return clip(host, BYTE_BUDGET.identity.instance);
  // A log stream belongs to one environment, and to all processes of a Managed Instance. Its end
  // is what tells it from others.
  const stream = lambda.logStreamName ?? host;
  const tail = stream.slice(Math.max(stream.lastIndexOf(']'), stream.lastIndexOf('/')) + 1);
  const end = clip(tail, BYTE_BUDGET.identity.instance - 16);
  const instance = `/${end}${managedInstances ? `-${pid}` : ''}`;
  const room = BYTE_BUDGET.lease - byteLength(namespace) - 1 - byteLength(instance);
  return `${clip(lambda.functionName, Math.min(BYTE_BUDGET.annotation.function, room))}${instance}`;
}

function labelsOf(environment: Environment, alias: string | undefined): Record<string, string> {
  const { lambda, region } = environment;
  const labels = {
    function: clip(lambda?.functionName ?? '', BYTE_BUDGET.annotation.function),
    version: clip(lambda?.functionVersion ?? '', BYTE_BUDGET.annotation.version),
    alias: clip(alias ?? '', BYTE_BUDGET.identity.alias),
    region: clip(region ?? '', BYTE_BUDGET.annotation.region),
    initializationType: clip(lambda?.initializationType ?? '', 24),
  };
  return Object.fromEntries(Object.entries(labels).filter(([, value]) => value !== ''));
}

/** `arn:aws:lambda:<region>:<account>:function:<name>:<qualifier>`: an alias, or a version. */
function aliasOf(arn: string | undefined): string | undefined {
  const qualifier = arn?.split(':')[7];
  return qualifier === undefined || /^(?:\d+|\$LATEST)$/.test(qualifier) ? undefined : qualifier;
}
