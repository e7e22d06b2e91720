// What the compiler infers in a chain of middy 5, 6 and 7. Checked by compiling: nothing runs.

import type { Context, SQSEvent } from 'aws-lambda';
import middy7 from '@middy/core';
import middy5 from 'middy5';
import middy6 from 'middy6';
import type { Lease } from '../../src/index.ts';
import { leaderElection } from '../../src/middleware.ts';
import { same } from './same.ts';

/** As other middlewares type themselves. */
declare const addsUser: middy7.MiddlewareObj<
  unknown,
  unknown,
  Error,
  Context & { user: string },
  { user: string }
>;

// --- middy 5 ------------------------------------------------------------------------------------

export const five = middy5()
  .use(leaderElection({ name: 'job' }))
  .handler(async (event: SQSEvent, context) => {
    same<typeof context.lease, Lease>(true);
    same<typeof context.functionName, string>(true);
    return context.lease.fencingToken + event.Records.length;
  });

export const fiveKeyed = middy5()
  .use(leaderElection({ name: 'job', contextKey: 'leader' }))
  .handler(async (_event: SQSEvent, context) => {
    // @ts-expect-error It is not there under the usual name.
    same<typeof context.lease, Lease>(true);
    return context.leader.fencingToken;
  });

// --- middy 6 ------------------------------------------------------------------------------------

export const six = middy6<SQSEvent, number>()
  .use(leaderElection({ name: 'job' }))
  .handler(async (event: SQSEvent, context) => {
    same<typeof context.lease, Lease>(true);
    same<typeof context.functionName, string>(true);
    return context.lease.fencingToken + event.Records.length;
  });

export const sixKeyed = middy6<SQSEvent>()
  .use(leaderElection({ name: 'job', contextKey: 'leader' }))
  .handler(async (_event: SQSEvent, context) => {
    // @ts-expect-error It is not there under the usual name.
    same<typeof context.lease, Lease>(true);
    return context.leader.fencingToken;
  });

// --- middy 7 ------------------------------------------------------------------------------------

export const seven = middy7<SQSEvent, number>()
  .use(leaderElection({ name: 'job' }))
  .handler(async (event: SQSEvent, context) => {
    same<typeof context.lease, Lease>(true);
    same<typeof context.functionName, string>(true);
    return context.lease.fencingToken + event.Records.length;
  });

export const sevenKeyed = middy7<SQSEvent>()
  .use(leaderElection({ name: 'job', contextKey: 'leader' }))
  .handler(async (_event: SQSEvent, context) => {
    // @ts-expect-error It is not there under the usual name.
    same<typeof context.lease, Lease>(true);
    return context.leader.fencingToken;
  });

export const afterAnother = middy7<SQSEvent>()
  .use(addsUser)
  .use(leaderElection({ name: 'job' }))
  .handler(async (_event: SQSEvent, context) => [
    context.user.toUpperCase(),
    context.lease.fencingToken,
  ]);

// --- The name may follow from event and context -------------------------------------------------

export const fromEvent = middy7<SQSEvent, number>()
  .use(leaderElection({ name: (event: SQSEvent, context: Context) => naming(event, context) }))
  .handler(async (event, context) => event.Records.length + context.lease.fencingToken);

declare function naming(event: SQSEvent, context: Context): string;

// --- What is refused ----------------------------------------------------------------------------

// @ts-expect-error There is no default name.
leaderElection({});
// @ts-expect-error A misspelt option.
leaderElection({ name: 'job', timeoutEarlyMillis: 5 });
// @ts-expect-error A handler's option of another tool.
leaderElection({ name: 'job', fetchData: {} });

export const wrong = middy7<SQSEvent>()
  .use(leaderElection({ name: 'job' }))
  // @ts-expect-error Nothing adds a user.
  .handler(async (_event: SQSEvent, context) => context.user as unknown);
