// What the compiler infers for withLease, and what it refuses. Checked by compiling: nothing runs.

import type {
  APIGatewayProxyEventV2,
  APIGatewayProxyHandlerV2,
  Context,
  Handler,
  ScheduledEvent,
  SQSBatchResponse,
  SQSEvent,
  SQSHandler,
} from 'aws-lambda';
import {
  acquireLease,
  isSkipped,
  withLease,
  type LambdaContext,
  type Lease,
  type Skipped,
  type WithLeaseContext,
  type WithLeaseOptions,
} from '../../src/index.ts';
import { same } from './same.ts';

// --- The event, the context and the result follow from the handler ------------------------------

export const ofEvent = withLease({ name: 'job' }, async (event: SQSEvent, context) => {
  same<typeof context.lease, Lease>(true);
  return event.Records.length + context.getRemainingTimeInMillis();
});
same<Parameters<typeof ofEvent>, [event: SQSEvent, context: LambdaContext]>(true);
same<ReturnType<typeof ofEvent>, Promise<number | Skipped>>(true);

export const notAsync = withLease(
  { name: 'job' },
  (_event: SQSEvent, { lease }) => lease.fencingToken,
);
same<ReturnType<typeof notAsync>, Promise<number | Skipped>>(true);

export const withoutResult: Handler<SQSEvent> = withLease(
  { name: 'job' },
  async (event: SQSEvent) => {
    event.Records.pop();
  },
);

export const annotated = withLease(
  { name: 'job' },
  async (event: SQSEvent, context: WithLeaseContext<Context>) => [
    event.Records.length,
    context.functionName,
    context.lease.fencingToken,
  ],
);
same<Parameters<typeof annotated>, [event: SQSEvent, context: Context]>(true);

// --- Or from the function that gives the name ---------------------------------------------------

export const ofName = withLease(
  { name: (event: { tenant: string }, context: Context) => event.tenant + context.functionName },
  async (event, context) => {
    same<typeof event, { tenant: string }>(true);
    same<typeof context.lease, Lease>(true);
    return context.invokedFunctionArn;
  },
);
same<Parameters<typeof ofName>, [event: { tenant: string }, context: Context]>(true);

// @ts-expect-error The event has no such property.
withLease({ name: ({ user }: { tenant: string }) => String(user) }, async () => 1);

// --- Or from the type of the constant -----------------------------------------------------------

export const scheduled: Handler<ScheduledEvent> = withLease(
  { name: 'job' },
  async (event, context) => {
    same<typeof event, ScheduledEvent>(true);
    return [event.time, context.functionName, context.lease.fencingToken];
  },
);

export const open: Handler<SQSEvent, number | Skipped> = withLease({ name: 'job' }, async () => 1);

export const http: APIGatewayProxyHandlerV2 = withLease(
  { name: 'job', whenHeld: 'throw' },
  async (event: APIGatewayProxyEventV2) => ({ statusCode: 200, body: event.rawPath }),
);

// --- Skipped is a result only where skipping is possible ----------------------------------------

const batch = async (event: SQSEvent): Promise<SQSBatchResponse> => ({
  batchItemFailures: event.Records.map(({ messageId }) => ({ itemIdentifier: messageId })),
});
export const throwing: SQSHandler = withLease({ name: 'job', whenHeld: 'throw' }, batch);
export const waiting: SQSHandler = withLease({ name: 'job', whenHeld: 'wait' }, batch);
// @ts-expect-error A Skipped is no SQSBatchResponse.
export const skipping: Handler<SQSEvent, SQSBatchResponse> = withLease({ name: 'job' }, batch);
// @ts-expect-error Nor where skipping is said.
export const saysSo: Handler<SQSEvent, SQSBatchResponse> = withLease(
  { name: 'job', whenHeld: 'skip' },
  batch,
);

declare const decidedLater: 'skip' | 'throw';
export const either = withLease({ name: 'job', whenHeld: decidedLater }, batch);
same<ReturnType<typeof either>, Promise<SQSBatchResponse | Skipped>>(true);

declare const result: number | Skipped;
if (isSkipped(result)) {
  same<typeof result, Skipped>(true);
  same<typeof result.until, string | undefined>(true);
} else {
  same<typeof result, number>(true);
}

// --- The key of the lease in the context --------------------------------------------------------

export const keyed = withLease(
  { name: 'job', contextKey: 'leader' },
  async (_event: SQSEvent, context) => {
    same<typeof context.leader, Lease>(true);
    // @ts-expect-error It is not there under the usual name.
    return context.lease as unknown;
  },
);
same<Parameters<typeof keyed>[1], LambdaContext>(true);

export const nested = withLease(
  { name: 'outer', contextKey: 'outer' },
  withLease<SQSEvent, number, WithLeaseContext<Context, 'outer'>, 'inner'>(
    { name: 'inner', contextKey: 'inner' },
    async (_event, { outer, inner }) => outer.fencingToken + inner.fencingToken,
  ),
);
same<Parameters<typeof nested>, [event: SQSEvent, context: Context]>(true);

// --- The lease itself ---------------------------------------------------------------------------

export async function block(): Promise<number> {
  await using lease = await acquireLease({ name: 'job' });
  same<typeof lease, Lease>(true);
  same<typeof lease.signal, AbortSignal>(true);
  // @ts-expect-error A lease is not changed by hand.
  lease.fencingToken = 5;
  return lease.fencingToken;
}

// --- What is refused ----------------------------------------------------------------------------

const work = async () => 1;
// @ts-expect-error There is no default name.
withLease({}, work);
// @ts-expect-error A misspelt option.
withLease({ name: 'job', leaseDurationSecond: 15 }, work);
// @ts-expect-error A text where a number should be.
withLease({ name: 'job', leaseDurationSeconds: '15' }, work);
// @ts-expect-error No such way.
withLease({ name: 'job', whenHeld: 'retry' }, work);
// @ts-expect-error The name is no promise.
withLease({ name: async () => 'job' }, work);
declare const three: (event: SQSEvent, context: LambdaContext, callback: object) => Promise<1>;
// @ts-expect-error Three parameters: Lambda's Node 24 runtime refuses them.
withLease({ name: 'job' }, three);
// @ts-expect-error A context of another kind.
withLease({ name: 'job' }, async (_event: SQSEvent, context: { seconds: number }) => context);

// --- Options may be made apart ------------------------------------------------------------------

const options = { name: 'job', leaseDurationSeconds: 15 } satisfies WithLeaseOptions<
  SQSEvent,
  Context
>;
export const apart = withLease(options, async (event: SQSEvent) => event.Records.length);
