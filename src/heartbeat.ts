// Heartbeats: a worker that must be noticed when it dies renews a lease of its own, as a kubelet
// does for its node, and the lifecycle monitor tells when it falls silent.
//
// A heartbeat excludes nobody from any work. It says that its holder is alive, whether it is ready,
// and how much silence of it is nothing unusual: idle is not dead.

import { consoleLogger, readEnvironment, unfailing, type Environment } from './environment.ts';
import { InvocationPulse, type BeatContext } from './invocation-pulse.ts';
import { checkFlag, invalid, seconds, show } from './options.ts';
import { checkPulseOptions, Pulse, pulseTiming, type PulseOptions } from './pulse.ts';
import { Publisher } from './publisher.ts';

export interface HeartbeatPatience {
  /**
   * How long after its expiry the monitor still takes its silence for nothing unusual: of a
   * function, the longest time between two invocations. Default: the monitor's, 40.
   */
  readonly graceSeconds?: number;
  /** How long after that it is evicted, at the earliest. Default: the monitor's, 300. */
  readonly tolerationSeconds?: number;
}

/** Options of `withHeartbeat`, and of the middleware `heartbeat`. */
export interface FunctionHeartbeatOptions extends PulseOptions, HeartbeatPatience {
  /** There is no default: two workers must never share a heartbeat by accident. */
  readonly name: string;
  /** How long a renewal lasts. Default 40, renewed every 10. */
  readonly leaseDurationSeconds?: number;
  /** The label `zone` tells the monitor which workers share their fate. */
  readonly labels?: Readonly<Record<string, string>>;
}

/** Options of a `Heartbeat`. */
export interface HeartbeatOptions extends FunctionHeartbeatOptions {
  /** Take over from another that is alive: it falls silent for good. Default: refuse to start. */
  readonly replace?: boolean;
  /** Called with what goes wrong and is tried again. */
  readonly onError?: (error: unknown) => void;
  /** Called when another incarnation took over. This one has fallen silent. */
  readonly onReplaced?: (holderIdentity: string | undefined) => void;
}

const DEFAULT_DURATION_SECONDS = 40;

const FUNCTION_OPTIONS = ['graceSeconds', 'tolerationSeconds'];

/** The heartbeat of a process that runs long. */
export class Heartbeat extends Publisher {
  /** @throws LeaseError `invalid-configuration` for options that cannot work. Sends nothing. */
  constructor(options: HeartbeatOptions) {
    const environment = readEnvironment();
    const own = ['replace', 'onError', 'onReplaced'];
    checkPulseOptions('Heartbeat', options, [...FUNCTION_OPTIONS, ...own], environment);
    checkFlag('replace', options.replace);
    const given = Object.freeze({ ...options });
    super(pulseMaker(given, environment), {
      replace: given.replace ?? false,
      disabled: environment.disabled,
      onError: given.onError,
      onReplaced: given.onReplaced,
    });
  }
}

/**
 * Wraps `handler` so that its function has a heartbeat: renewed when it is invoked, at most once
 * for each interval, beside the handler, which it never fails. The environments of the function
 * share the name: each replaces the other when its turn comes, and leaseTransitions counts that.
 *
 * @throws LeaseError `invalid-configuration`, at once, for options that cannot work.
 */
export function withHeartbeat<TEvent, TResult, TContext extends BeatContext = BeatContext>(
  options: FunctionHeartbeatOptions,
  handler: (event: TEvent, context: TContext) => Promise<TResult> | TResult,
): (event: TEvent, context: TContext) => Promise<TResult> {
  if (typeof handler !== 'function') {
    throw invalid('withHeartbeat needs the handler as its second argument.');
  }
  return beside(functionPulse('withHeartbeat', options), handler);
}

/** For the wrapper and the middleware: one pulse for all invocations of this environment. */
export function functionPulse(
  who: string,
  options: FunctionHeartbeatOptions,
  environment = readEnvironment(),
): InvocationPulse | undefined {
  checkPulseOptions(who, options, FUNCTION_OPTIONS, environment);
  const given = Object.freeze({ ...options });
  pulseTiming(given, DEFAULT_DURATION_SECONDS);
  patienceOf(given);
  const logger = unfailing(given.logger ?? consoleLogger);
  if (given.graceSeconds === undefined) {
    logger.info('A function that is not invoked for a while looks dead without graceSeconds.', {
      name: given.name,
    });
  }
  if (environment.disabled) return undefined;
  // Read again: variables may be set between loading and the first invocation.
  return new InvocationPulse(() => pulseMaker(given, readEnvironment())(), logger);
}

/** Runs the handler with the pulse beside it. */
export function beside<TEvent, TResult, TContext extends BeatContext>(
  pulse: InvocationPulse | undefined,
  handler: (event: TEvent, context: TContext) => Promise<TResult> | TResult,
): (event: TEvent, context: TContext) => Promise<TResult> {
  return async (event, context) => {
    const open = pulse?.open(context);
    try {
      return await handler(event, context);
    } finally {
      await open?.settle();
    }
  };
}

function pulseMaker(options: FunctionHeartbeatOptions, environment: Environment): () => Pulse {
  const timing = pulseTiming(options, DEFAULT_DURATION_SECONDS);
  const patience = patienceOf(options);
  const annotations = Object.entries(patience).map(([name, value]) => [name, String(value)]);
  return () =>
    new Pulse({
      kind: 'heartbeat',
      name: options.name,
      options,
      timing,
      environment,
      labels: options.labels ?? {},
      annotations: Object.fromEntries(annotations) as Record<string, string>,
      patience,
    });
}

function patienceOf(options: HeartbeatPatience): HeartbeatPatience {
  const reserved = (options as PulseOptions).annotations ?? {};
  for (const name of ['ready', 'readyReason', 'graceSeconds', 'tolerationSeconds']) {
    if (name in reserved)
      throw invalid(
        `annotations.${name} is ${show(reserved[name])}; it is set by the heartbeat itself.`,
      );
  }
  const graceSeconds = seconds(options, 'graceSeconds');
  const tolerationSeconds = seconds(options, 'tolerationSeconds');
  return {
    ...(graceSeconds === undefined ? {} : { graceSeconds }),
    ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
  };
}
