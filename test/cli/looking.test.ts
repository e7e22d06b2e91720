// What the command line shows of a table, as a process.

import { spawn } from 'node:child_process';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { CreateTableCommand } from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { parse } from 'yaml';
import { createLeaseTable, testClient, putRawItem } from '../support/dynamodb.ts';
import { expectLease, expectLeaseList } from './kubernetes.ts';
import { BIN, held, type Ran, Stage, vacant } from './stage.ts';

vi.setConfig({ testTimeout: 90_000 });

let stage: Stage;
let empty: string;

beforeAll(async () => {
  stage = await Stage.open();
  await stage.put('default/report', held());
  await stage.put('default/gone', vacant());
  await stage.put('other/夜間バッチ', held('x\u001b[2Jy', -30_000));
  await stage.put('default/web-1', {
    ...held('web/1'),
    kind: { S: 'identity' },
    labels: { M: { function: { S: 'web' }, version: { S: '7' } } },
  });
  await stage.put('default/broken', { ...held(), version: { S: 'x' } });
  empty = 'nothing-here';
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const lines = (ran: Ran) => ran.out.trimEnd().split('\n');

describe('get', () => {
  test('lists the leases of a namespace, in a table without colours', async () => {
    const ran = await stage.run(['get']);
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(lines(ran).map((line) => line.split(/ {3,}/).slice(0, 3))).toEqual([
      ['NAME', 'HOLDER', 'STATUS'],
      ['broken', 'api:7/stream/uuid', 'Unknown'],
      ['gone', '<none>', 'Vacant'],
      ['report', 'api:7/stream/uuid', 'Ready'],
      ['web-1', 'web/1', 'Ready'],
    ]);
    expect(ran.out).not.toContain('\u001b');
  });

  test('lists those of all, what is in them printed so that it can be seen', async () => {
    const ran = await stage.run(['get', '-A', '-o', 'wide', '--sort-by', 'expires']);
    expect(lines(ran)[0]).toMatch(/^NAMESPACE +NAME +HOLDER .* LOG-STREAM$/);
    expect(lines(ran)[1]).toMatch(/^other +夜間バッチ +x\\u\{1b\}\[2Jy +Expired/);
  });

  test.each([
    [
      ['-l', 'tier=gold,!function', '--no-headers', '-o', 'name'],
      'lease/broken\nlease/gone\nlease/report\n',
    ],
    [['--kind', 'identity', '-o', 'name'], 'lease/web-1\n'],
    [['report', 'gone', '-o', 'name', '--sort-by', 'token'], 'lease/gone\nlease/report\n'],
    [['leases/report', '-o', 'name'], 'lease/report\n'],
    [['-n', 'other', '-o', 'name'], 'lease/夜間バッチ\n'],
  ])('%j selects', async (args, out) => {
    expect(await stage.run(['get', ...args])).toEqual({ code: 0, out, err: '' });
  });

  test('prints a valid LeaseList as JSON and as YAML, and one Lease for one name', async () => {
    const [json, yaml, one] = await Promise.all([
      stage.run(['get', '-A', '-o', 'json']),
      stage.run(['get', '-A', '-o', 'yaml']),
      stage.run(['get', 'report', '-o', 'yaml']),
    ]);
    const list = JSON.parse(json.out) as { items: unknown[] };
    expect(list.items).toHaveLength(5);
    expectLeaseList(list);
    // As an older reader reads it, too: no time is a date, no text a truth.
    for (const version of ['1.1', '1.2'] as const) {
      const again = parse(yaml.out, { version }) as { items: unknown[] };
      expectLeaseList(again);
      expect(again.items).toHaveLength(5);
      expectLease(parse(one.out, { version }));
    }
  });

  test('says that there is nothing on standard error, and is content', async () => {
    const place = `table "${stage.tableName}" (us-east-1)`;
    expect(await stage.run(['get', '-n', empty])).toEqual({
      code: 0,
      out: '',
      err:
        `No leases in namespace "${empty}" of ${place}.\n` +
        'Other namespaces have some: get -A.\n',
    });
    expect(await stage.run(['get', '-A', '-l', 'a=b', '--kind', 'heartbeat'])).toEqual({
      code: 0,
      out: '',
      err: `No leases of kind heartbeat with these labels in ${place}.\n`,
    });
    const list = await stage.run(['get', '-n', empty, '-o', 'json']);
    expect((JSON.parse(list.out) as { items: unknown[] }).items).toEqual([]);
  });

  test('shows what it has found, and fails for what it has not', async () => {
    const ran = await stage.run(['get', 'report', 'nope', '-o', 'name']);
    expect(ran.code).toBe(1);
    expect(ran.out).toBe('lease/report\n');
    expect(ran.err).toMatch(
      /^Error from server \(NotFound\): leases "nope" not found in namespace "default"/,
    );
  });

  test('names the table and the Region that have none', async () => {
    const tableName = await createLeaseTable(stage.server.endpoint);
    expect(await stage.run(['get', '-A', '-t', tableName])).toEqual({
      code: 0,
      out: '',
      err: `No leases in table "${tableName}" (us-east-1).\n`,
    });
  });

  test('refuses a table of other things, and says what they look like', async () => {
    await stage.client.send(
      new CreateTableCommand({
        TableName: 'orders',
        KeySchema: [{ AttributeName: 'pk', KeyType: 'HASH' }],
        AttributeDefinitions: [{ AttributeName: 'pk', AttributeType: 'S' }],
        BillingMode: 'PAY_PER_REQUEST',
      }),
    );
    await putRawItem(stage.client, 'orders', { pk: { S: '1' }, total: { N: '5' } });
    for (const args of [['get', '-A'], ['get', '-o', 'json'], ['watch'], ['identities']]) {
      const { code, out, err } = await stage.run([...args, '-t', 'orders']);
      expect(err).toBe(
        'error: table "orders" (us-east-1) is no table of leases: its items have no "lease", but ' +
          'pk, total. Check --table and --region; lambda-lease doctor tells more\n',
      );
      expect([code, out]).toEqual([1, '']);
    }
    const { code, err } = await stage.run(['get', 'report', '-t', 'orders']);
    expect(err).toMatch(
      /\(BadRequest\): .*partition key "lease" of type String, and no sort key\.$/m,
    );
    expect(code).toBe(1);
  });

  test('of thousands ends quietly when nobody reads on', async () => {
    await using many = await Stage.open();
    const client = testClient(many.server.endpoint);
    for (let index = 0; index < 3_000; index += 50) {
      await Promise.all(
        Array.from({ length: 50 }, (_, at) =>
          putRawItem(client, many.tableName, {
            ...(held(`holder-${'x'.repeat(80)}`) as object),
            lease: { S: `default/lease-${String(index + at).padStart(5, '0')}` },
          }),
        ),
      );
    }
    client.destroy();
    const shell = spawn(
      '/bin/bash',
      [
        '-c',
        `set -o pipefail; "$0" "$1" get -o wide | head -n 2; echo "codes: \${PIPESTATUS[*]}"`,
        process.execPath,
        BIN,
      ],
      {
        env: { PATH: process.env['PATH'] ?? '', ...many.variables },
        stdio: ['ignore', 'pipe', 'pipe'],
      },
    );
    let [out, err] = ['', ''];
    shell.stdout.on('data', (data: Buffer) => (out += data.toString()));
    shell.stderr.on('data', (data: Buffer) => (err += data.toString()));
    await new Promise((resolve) => shell.on('close', resolve));
    expect(err).toBe('');
    expect(out.split('\n')[1]).toMatch(/^lease-00000 /);
    expect(out).toMatch(/codes: 0 0\n$/);
    const all = await many.run(['get', '-o', 'name']);
    expect(lines(all)).toHaveLength(3_000);
  });
});

test('what kubectl is told to get is explained', async () => {
  const { code, err } = await stage.run(['get', 'leases']);
  expect(code).toBe(1);
  expect(err).toMatch(/^To list leases, leave that word out/m);
});

test.each<[string, (socket: Socket) => void, RegExp]>([
  ['never answers', () => undefined, /^The endpoint does not answer: check the network/m],
  [
    'is no DynamoDB',
    (socket) => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<ok>'),
    /^What answers is no DynamoDB: check --endpoint-url/m,
  ],
])('an endpoint that %s is told so', async (_, answer, message) => {
  const server = createServer((socket) => socket.once('data', () => answer(socket)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const endpoint = `http://127.0.0.1:${port}`;
  const { code, out, err } = await stage.run(['get', 'report', '--endpoint-url', endpoint]);
  expect(err).toMatch(message);
  expect([code, out]).toEqual([1, '']);
  server.close();
});

describe('describe', () => {
  test('tells all about each lease', async () => {
    const ran = await stage.run(['describe', 'report', 'broken', 'nope']);
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/^Name: +report$/m);
    expect(ran.out).toMatch(/^Logs: +https:\/\/eu-north-1\.console/m);
    expect(ran.out).toMatch(/^Warning: The record of lease "default\/broken" cannot be used/m);
    expect(ran.err).toContain('(NotFound): leases "nope"');
  });
});

describe('a name as logs print it, its namespace in front', () => {
  test.each([
    [['get', 'other/夜間バッチ', '-o', 'name'], /^lease\/夜間バッチ\n$/],
    [['get', 'report', 'default/report', '-o', 'name'], /^lease\/report\n$/],
    [['describe', 'lease/default/report'], /^Name: +report$/m],
  ])('%j is understood', async (args, out) => {
    const ran = await stage.run(args);
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(ran.out).toMatch(out);
  });

  test('is no name where a namespace is given, but a hint', async () => {
    for (const command of ['get', 'describe']) {
      const { code, err } = await stage.run([command, 'default/report', '-n', 'other']);
      expect(err).toMatch(/leases "default\/report" not found in namespace "other" of .*\n/);
      expect(err).toMatch(/^Did you mean -n default report\?$/m);
      expect(code).toBe(1);
    }
    const { err } = await stage.run(['get', 'other/nope']);
    expect(err).toMatch(/leases "other\/nope" not found in namespace "default" of .*\n$/);
  });

  test('comes after the name of a slot', async () => {
    await stage.put('default/batch/0', held('slot'));
    await stage.put('batch/0', held('namespace'));
    const { out } = await stage.run(['get', 'batch/0']);
    expect(out).toMatch(/^batch\/0 +slot /m);
  });
});

describe('identities', () => {
  test('lists who is alive', async () => {
    const ran = await stage.run(['identities', '-l', 'version=7']);
    expect(ran.code).toBe(0);
    expect(lines(ran)[1]).toMatch(/^web-1 +yes +yes +web +7 /);
  });
});

describe('watching', () => {
  test('tells what changes, in words and in rows, until it is ended', async () => {
    await stage.put('watch/a', vacant(1));
    const words = stage.start(['watch', '-n', 'watch']);
    const rows = stage.start(['get', '-w', '-n', 'watch']);
    await Promise.all([words.says(/watch\/a {2}vacant/), rows.says(/a +<none> +Vacant/)]);
    await stage.put('watch/a', held('somebody', 60_000, 2));
    await Promise.all([
      words.says(/watch\/a {2}acquired by somebody \(token 2\)/),
      rows.says(/a +somebody +Ready/),
    ]);
    await stage.put('watch/b', held('killed', 3_000));
    await words.says(/watch\/b {2}expired \d+s ago, not renewed since /);
    words.kill('SIGINT');
    rows.kill('SIGTERM');
    expect((await words.ended).code).toBe(130);
    const { code, out } = await rows.ended;
    expect(code).toBe(143);
    expect(out.match(/NAME/g)).toHaveLength(1);
  });
});

describe('bad input', () => {
  test.each([
    [['bogus'], "unknown command 'bogus'"],
    [['get', '--nope'], "unknown option '--nope'"],
    [['get', '-o', 'xml'], '-o is "xml"'],
    [['get', '--sort-by', 'nope'], '--sort-by is "nope"'],
    [['get', '-l', 'a=b=c'], 'selector is "a=b=c"'],
    [['get', '--kind', 'x'], '--kind is "x"'],
    [['get', 'report', '-A'], 'A name cannot be combined'],
    [['get', '-A', '-n', 'x'], '-A and -n exclude each other'],
    [['get', '-w', '-o', 'json'], '--watch prints tables'],
    [['get', '-n', 'a/b'], 'namespace is "a/b"'],
    [['get', 'a\u0007'], 'name is "a\\u0007"'],
    [['get', '--endpoint-url', 'nope'], '--endpoint-url is "nope"'],
    [['get', '--endpoint-url', 'localhost:8000'], 'must be a URL, with http:// or https://'],
    [['describe'], "missing required argument 'names'"],
    [['release'], "missing required argument 'name'"],
    [['local', '--port', '65536'], '--port is "65536"'],
    [['completion', 'tcsh'], 'The shell is "tcsh"'],
  ])('%j is told, on standard error, with exit code 2', async (args, message) => {
    const { code, out, err } = await stage.run(args);
    expect(err).toContain(message);
    expect([code, out]).toEqual([2, '']);
  });

  test.each<[string, string[], Record<string, string>, RegExp]>([
    ['no table', ['get'], { LEASE_TABLE_NAME: '' }, /No table is named: give --table, or set/],
    [
      'a table that is not there',
      ['get', '-t', 'nope'],
      {},
      /\(NotFound\): .*table "nope" in Region us-east-1/,
    ],
    [
      'no Region',
      ['get'],
      { AWS_REGION: '', AWS_CONFIG_FILE: '/dev/null' },
      /There is no Region: set AWS_REGION/,
    ],
    [
      'no server',
      ['get', '--endpoint-url', 'http://127.0.0.1:1'],
      {},
      /endpoint cannot be reached/,
    ],
    [
      'no credentials',
      ['get'],
      { AWS_ACCESS_KEY_ID: '', AWS_EC2_METADATA_DISABLED: 'true', HOME: '/nonexistent' },
      /There are no AWS credentials/,
    ],
    [
      'a profile that is not there',
      ['get', '--profile', 'nope'],
      { AWS_ACCESS_KEY_ID: '', HOME: '/nonexistent' },
      /Profile "nope" has no AWS credentials: check its name/,
    ],
    ['a Region that is none', ['get', '--region', 'eu west'], {}, /^Check the Region: /m],
    [
      'a column as a field',
      ['get', '--sort-by', '.spec.renewtime'],
      {},
      /none of these leases has/,
    ],
  ])('%s is explained', async (_, args, variables, message) => {
    const { code, err, out } = await stage.run(args, variables);
    expect(err).toMatch(message);
    expect(code).toBeGreaterThan(0);
    expect(out).toBe('');
    expect(err).not.toMatch(/^\s+at /m);
  });
});

test('help and version need no table', async () => {
  const [help, version] = await Promise.all([
    stage.run(['run', '--help'], { LEASE_TABLE_NAME: '' }),
    stage.run(['--version'], { LEASE_TABLE_NAME: '' }),
  ]);
  expect(help.code).toBe(0);
  expect(help.out).toMatch(/75 +another holds the lease/);
  expect(version).toMatchObject({ code: 0, err: '' });
  expect(version.out).toMatch(/^\d+\.\d+\.\d+\n$/);
});
