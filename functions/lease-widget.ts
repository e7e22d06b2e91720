// The live table of leases on a CloudWatch dashboard: a custom widget's function. It only reads,
// and is called with the viewer's permission to invoke it.
//
// Environment: `LEASE_TABLE_NAME`, the table. Permission: `dynamodb:Scan` on it. A time-out of 15 s
// is enough for the largest table; it never reads for longer than that allows.
//
// The widget's parameters, all optional: `namespace` (default all), `sort` (`lease`, `holder`,
// `age`, `left`, `status`, `token`, or one of them with a minus; default `status`), `page` (default
// 1) and `pageSize` (default 20, at most 100).

import { systemClock } from '../src/clock.ts';
import { DynamoDBStore } from '../src/dynamodb-store.ts';
import { consoleLogger, readEnvironment } from '../src/environment.ts';
import { renderWidget, type WidgetContext } from '../src/lease-widget.ts';

const { tableName, region } = readEnvironment();

// A page of a scan takes longer than the write of a lease.
const requestHandler = {
  connectionTimeout: 500,
  requestTimeout: 2_500,
  throwOnRequestTimeout: true,
};
let store: DynamoDBStore | undefined;
const openStore = (name: string) =>
  (store ??= new DynamoDBStore({ tableName: name, clientConfig: { requestHandler } }));

export const handler = (event: unknown, context: WidgetContext): Promise<string> =>
  renderWidget(event, context, {
    tableName,
    region,
    openStore,
    clock: systemClock,
    logger: consoleLogger,
  });
