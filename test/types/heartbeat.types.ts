// The heartbeat middleware in a chain of middy 5, 6 and 7. Checked by compiling: nothing runs.

import type { Context, SQSEvent } from 'aws-lambda';
import middy7 from '@middy/core';
import middy5 from 'middy5';
import middy6 from 'middy6';
import { withHeartbeat, withIdentity } from '../../src/index.ts';
import { heartbeat, leaderElection } from '../../src/middleware.ts';
import { same } from './same.ts';

export const five = middy5<SQSEvent, number>()
  .use(heartbeat({ name: 'importer' }))
  .handler(async (event, context) => {
    same<typeof context.functionName, string>(true);
    return event.Records.length + context.functionName.length;
  });

export const six = middy6<SQSEvent, number>()
  .use(heartbeat({ name: 'importer' }))
  .handler(async (event, context) => {
    same<typeof context.functionName, string>(true);
    return event.Records.length + context.functionName.length;
  });

export const seven = middy7<SQSEvent, number>()
  .use(heartbeat({ name: 'importer' }))
  .use(leaderElection({ name: 'job' }))
  .handler(async (event, context) => {
    same<typeof context.functionName, string>(true);
    return event.Records.length + context.lease.fencingToken;
  });

export const both = withIdentity(
  {},
  withHeartbeat({ name: 'importer' }, async (event: SQSEvent, context: Context) => {
    return context.functionName + String(event.Records.length);
  }),
);
same<typeof both, (event: SQSEvent, context: Context) => Promise<string>>(true);

// @ts-expect-error A heartbeat has a name.
export const nameless = withHeartbeat({}, () => 1);
