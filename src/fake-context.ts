// A context such as Lambda gives to a handler, for tests: its remaining time goes by any clock.

import { systemClock, type Clock } from './clock.ts';
import { systemRandom } from './random.ts';

/** Options of `fakeContext`. */
export interface FakeContextOptions {
  /** The function's time-out: how much remains at first. Default 30 s. */
  readonly timeoutSeconds?: number;
  /** What the remaining time goes by, such as a FakeClock. Default: the system's. */
  readonly clock?: Clock;
  /** Default `fake-function`. */
  readonly functionName?: string;
  /** Default: another one for each context. */
  readonly awsRequestId?: string;
}

/** All that Lambda's own types, and middy's, ask of a context. */
export interface FakeContext {
  callbackWaitsForEmptyEventLoop: boolean;
  functionName: string;
  functionVersion: string;
  invokedFunctionArn: string;
  memoryLimitInMB: string;
  awsRequestId: string;
  logGroupName: string;
  logStreamName: string;
  /** What remains of the time-out since this context was made; 0 once it is over. */
  getRemainingTimeInMillis(): number;
  done(): void;
  fail(): void;
  succeed(): void;
}

/** Makes the context of one invocation, which begins now. Nothing ends it when its time is over. */
export function fakeContext(options: FakeContextOptions = {}): FakeContext {
  const { timeoutSeconds = 30, clock = systemClock, functionName = 'fake-function' } = options;
  const beganMs = clock.read().monotonicMs;
  return {
    callbackWaitsForEmptyEventLoop: true,
    functionName,
    functionVersion: '$LATEST',
    invokedFunctionArn: `arn:aws:lambda:us-east-1:123456789012:function:${functionName}`,
    memoryLimitInMB: '128',
    awsRequestId: options.awsRequestId ?? systemRandom.uuid(),
    logGroupName: `/aws/lambda/${functionName}`,
    logStreamName: '2026/01/01/[$LATEST]0123456789abcdef0123456789abcdef',
    getRemainingTimeInMillis: () =>
      Math.max(0, timeoutSeconds * 1_000 - (clock.read().monotonicMs - beganMs)),
    done: () => undefined,
    fail: () => undefined,
    succeed: () => undefined,
  };
}
