// What the compiler infers for scheduledSingleton, wrapper and middleware, and what it refuses.
// Checked by compiling: nothing runs.

import type { Context, Handler, ScheduledEvent, SQSEvent } from 'aws-lambda';
import middy7 from '@middy/core';
import middy5 from 'middy5';
import middy6 from 'middy6';
import {
  scheduledSingleton,
  type LambdaContext,
  type ScheduledLease,
  type Skipped,
  type Tick,
} from '../../src/index.ts';
import { scheduledSingleton as middleware } from '../../src/middleware.ts';
import { same } from './same.ts';

interface Input {
  readonly scheduledTime: string;
}

// --- The wrapper ----------------------------------------------------------------------------------

export const ofEvent = scheduledSingleton({ name: 'job' }, async (event: Input, { lease }) => {
  same<typeof lease, ScheduledLease>(true);
  same<typeof lease.tick, Tick>(true);
  same<typeof lease.tick.missed, readonly Date[]>(true);
  return event.scheduledTime.length + lease.fencingToken;
});
same<Parameters<typeof ofEvent>, [event: Input, context: LambdaContext]>(true);
same<ReturnType<typeof ofEvent>, Promise<number | Skipped>>(true);

/** A tick may be done already, whatever `whenHeld` says. */
export const throwing = scheduledSingleton(
  { name: 'job', whenHeld: 'throw' },
  (event: Input) => event.scheduledTime.length,
);
same<ReturnType<typeof throwing>, Promise<number | Skipped>>(true);

export const ofRule: Handler<ScheduledEvent> = scheduledSingleton(
  { name: 'job', periodSeconds: 60, catchUp: 'each' },
  async (event, context) => {
    same<typeof event, ScheduledEvent>(true);
    return [event.time, context.functionName, context.lease.tick.time.getTime()];
  },
);

export const ofFunction = scheduledSingleton(
  { name: 'job', tick: (event: SQSEvent) => Number(event.Records[0]?.attributes.SentTimestamp) },
  (event) => {
    same<typeof event, SQSEvent>(true);
    return event.Records.length;
  },
);

export const keyed = scheduledSingleton(
  { name: 'job', contextKey: 'run' },
  (_event: Input, context) => {
    same<typeof context.run, ScheduledLease>(true);
    // @ts-expect-error It is not there under the usual name.
    return context.lease as unknown;
  },
);

declare const lease: ScheduledLease;
same<ReturnType<typeof lease.completeTick>['Update']['TableName'], string>(true);
lease.completeTick({ marshalled: true }).Update.Key satisfies Record<
  string,
  { S: string } | object
>;
// @ts-expect-error A tick is not changed by hand.
lease.tick.missed = [];

// --- The middleware -------------------------------------------------------------------------------

export const five = middy5()
  .use(middleware({ name: 'job' }))
  .handler(async (_event: ScheduledEvent, context) => {
    same<typeof context.lease, ScheduledLease>(true);
    return context.functionName;
  });
export const six = middy6<ScheduledEvent, number>()
  .use(middleware({ name: 'job', periodSeconds: 60 }))
  .handler(async (_event, context) => {
    same<typeof context.lease, ScheduledLease>(true);
    return context.lease.tick.missed.length;
  });
export const seven = middy7<ScheduledEvent, number>()
  .use(middleware({ name: 'job', contextKey: 'run' }))
  .handler(async (_event, context) => context.run.fencingToken);
export const fromEvent = middy7<SQSEvent, number>()
  .use(
    middleware({
      name: 'job',
      tick: (event: SQSEvent, context: Context) =>
        Number(context.awsRequestId) + event.Records.length,
    }),
  )
  .handler(async (event, context) => event.Records.length + context.lease.fencingToken);

// --- What is refused ------------------------------------------------------------------------------

const work = async () => 1;
// @ts-expect-error There is no default name.
scheduledSingleton({}, work);
// @ts-expect-error One run completes a tick.
scheduledSingleton({ name: 'job', slots: 2 }, work);
// @ts-expect-error Each tick is a tenure of its own.
scheduledSingleton({ name: 'job', sticky: true }, work);
// @ts-expect-error No such way.
scheduledSingleton({ name: 'job', catchUp: 'all' }, work);
// @ts-expect-error A tick is no promise.
scheduledSingleton({ name: 'job', tick: async () => new Date(0) }, work);
// @ts-expect-error The next tick is a Date.
scheduledSingleton({ name: 'job', nextTick: (time: Date) => time.getTime() }, work);
// @ts-expect-error middy runs the handler once.
middleware({ name: 'job', catchUp: 'each' });
