// The widget before a real table: what the library has written there, tables of several pages, and
// the ways in which a table cannot be read; and its function on the Lambda runtime.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { systemClock } from '../../src/clock.ts';
import { DynamoDBStore } from '../../src/dynamodb-store.ts';
import { asText, type Item } from '../../src/lease.ts';
import { renderWidget, type LeaseWidgetOptions } from '../../src/lease-widget.ts';
import { openTable, Site, type Table } from '../integration/fixture.ts';
import { availableEngines, createLeaseTable, putRawItem, testClient } from '../support/dynamodb.ts';
import { bundleHandler, LambdaEnvironment } from '../support/lambda-runtime/index.ts';
import { FUNCTION_ARN, held } from './stage.ts';

const ignore = () => undefined;
const silent = { debug: ignore, info: ignore, warn: ignore, error: ignore };

function widget(store: DynamoDBStore, event: object = {}, more: Partial<LeaseWidgetOptions> = {}) {
  const context = { invokedFunctionArn: FUNCTION_ARN, getRemainingTimeInMillis: () => 15_000 };
  return renderWidget(event, context, {
    tableName: store.tableName,
    region: 'us-east-1',
    openStore: () => store,
    clock: systemClock,
    logger: silent,
    ...more,
  });
}

async function put(table: Table, tableName: string, item: Item): Promise<void> {
  await putRawItem(table.direct, tableName, item as never);
}

describe.each(availableEngines())('the widget on %s', (engine) => {
  let table: Table;
  beforeAll(async () => {
    table = await openTable(engine);
  });
  afterAll(() => table[Symbol.asyncDispose]());

  async function newStore(): Promise<DynamoDBStore> {
    const tableName = await createLeaseTable(table.endpoint);
    return new DynamoDBStore({ tableName, client: table.direct });
  }

  test('shows what the library wrote, held and released', async () => {
    const store = await newStore();
    expect(await widget(store)).toContain('No leases.');
    const lease = await acquireLease({ name: 'nightly', store, leaseDurationSeconds: 60 });
    const whileHeld = await widget(store);
    expect(whileHeld).toContain(`<bdi>${lease.holderIdentity}</bdi>`);
    expect(whileHeld).toContain('>1 Ready<');
    await lease.release();
    const afterwards = await widget(store);
    expect(afterwards).toContain('>1 Vacant<');
    expect(afterwards).not.toContain(lease.holderIdentity);
  });

  test('is sent nothing of other namespaces', async () => {
    const store = await newStore();
    for (const lease of ['ns/a', 'ns/ÿ😀', 'ns0', 'ns', 'ns./b', 'nr/c', 'ns2/d', 'Ns/e']) {
      await put(table, store.tableName, held(lease, 1));
    }
    const sent: (string | undefined)[] = [];
    const scan = store.scan.bind(store);
    store.scan = async (call) => {
      const answer = await scan(call);
      sent.push(...answer.items.map((item) => asText(item['lease'])));
      return answer;
    };
    const html = await widget(store, { namespace: 'ns' });
    expect(html).toContain('1–2 of 2');
    expect(html).toContain('<bdi>ns/ÿ😀</bdi>');
    // The one key that no lease has, for want of a slash.
    expect(sent.filter((lease) => lease !== 'ns0').sort()).toEqual(['ns/a', 'ns/ÿ😀']);
  });

  test('reads a table of several pages, and says where it has not read all', async () => {
    const store = await newStore();
    const pad = { S: 'x'.repeat(100_000) };
    for (let i = 0; i < 25; i++) {
      await put(table, store.tableName, { ...held(`default/${i}`, 1), pad });
    }
    expect(await widget(store)).toContain('1–20 of 25');
    const one = await widget(store, {}, { bounds: { mostPages: 1 } });
    expect(one).toMatch(/Showing the first (\d+) of at least \1 leases\. The table is too large/);
    expect(one).not.toContain('of 25');
  });

  test('names a table that does not exist, and its Region', async () => {
    const store = new DynamoDBStore({ tableName: 'no-such', client: table.direct });
    const html = await widget(store);
    expect(html).toContain('there is no table &quot;no-such&quot; in Region us-east-1');
    expect(html).toContain('needs dynamodb:Scan on it');
  });

  test('names the permission that it lacks', async () => {
    const { tableName } = await newStore();
    await using site = await Site.open(table);
    site.proxy.inject({ fault: { kind: 'error', error: 'AccessDeniedException' } });
    const html = await widget(new DynamoDBStore({ tableName, clientConfig: site.clientConfig }));
    expect(html).toContain('dynamodb:Scan on table');
    expect(html).toContain(`&quot;${tableName}&quot; in Region us-east-1 is denied`);
    expect(html).not.toContain('<table>');
  });

  test('shows that the table is out of reach', async () => {
    await using site = await Site.open(table);
    site.proxy.inject({ fault: { kind: 'black-hole', when: 'before' } });
    const client = testClient(site.proxy.endpoint, { maxAttempts: 1 });
    const store = new DynamoDBStore({ tableName: 'leases', client });
    const html = await widget(store, {}, { bounds: { withinMs: 300 } });
    client.destroy();
    expect(html).toContain('was not answered within 300 ms.');
    expect(html).toContain('table &quot;leases&quot; in us-east-1');
  });
});

test('the function renders its table on the Lambda runtime', { timeout: 60_000 }, async () => {
  await using table = await openTable(availableEngines()[0]!);
  await using folder = await mkdtempDisposable(join(tmpdir(), 'widget-'));
  const source = fileURLToPath(new URL('../../functions/lease-widget.ts', import.meta.url));
  await put(table, table.tableName, held('default/nightly', 1));
  await using environment = await LambdaEnvironment.start({
    taskRoot: await bundleHandler(source, folder.path),
    functionName: 'leases',
    env: { LEASE_TABLE_NAME: table.tableName, AWS_ENDPOINT_URL_DYNAMODB: table.endpoint },
  });
  const ask = async (event: object) => {
    const invocation = await environment.invoke(event);
    if (invocation.kind !== 'returned') throw new Error(JSON.stringify(invocation));
    return String(invocation.response);
  };
  const html = await ask({ sort: 'lease', widgetContext: { theme: 'dark' } });
  expect(html).toContain('ll-dark');
  expect(html).toContain('<bdi>default/nightly</bdi>');
  expect(html).toMatch(/endpoint="arn:aws:lambda:[^"]*:function:leases"/);
  expect(await ask({ describe: true })).toContain('### Example parameters');
  expect(await ask({ sort: 'nonsense' })).toContain('sort is &quot;nonsense&quot;');
});
