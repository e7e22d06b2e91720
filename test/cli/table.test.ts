// The table by the command line: how it is made, tried out locally, and examined; and completion.

import { spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import {
  type DynamoDBClient,
  ListTablesCommand,
  UpdateTimeToLiveCommand,
  CreateTableCommand,
} from '@aws-sdk/client-dynamodb';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { completionScript } from '../../src/cli-completion.ts';
import {
  judgeOffset,
  judgeProbe,
  judgeRecords,
  judgeTable,
  judgeTimeToLive,
} from '../../src/cli-findings.ts';
import { runLocal } from '../../src/cli-local.ts';
import { processHost, type Host, type Signal } from '../../src/cli-process.ts';
import { explain } from '../../src/cli-table.ts';
import { LeaseError } from '../../src/errors.ts';
import { readLease, type Item } from '../../src/lease.ts';
import type { TableFacts } from '../../src/table-doctor.ts';
import { testClient } from '../support/dynamodb.ts';
import { held, Stage, startProcess } from './stage.ts';

vi.setConfig({ testTimeout: 90_000 });

let stage: Stage;
let client: DynamoDBClient;

beforeAll(async () => {
  stage = await Stage.open();
  client = testClient(stage.server.endpoint);
});

afterAll(async () => {
  client.destroy();
  await stage[Symbol.asyncDispose]();
});

describe('table create', () => {
  test('makes a table that the doctor finds well, and touches none that exists', async () => {
    const table = ['--table', 'made-by-hand'];
    expect(await stage.run(['table', 'create', ...table])).toEqual({
      code: 0,
      out: 'table/made-by-hand created\n',
      err: '',
    });
    const doctor = await stage.run(['doctor', ...table]);
    expect(doctor.code).toBe(0);
    expect(doctor.out).toMatch(/^ok +Its key is "lease" of type String$/m);
    expect(doctor.out).toMatch(/^ok +Time to Live clears away/m);
    expect(doctor.out).toMatch(/^ok +dynamodb:UpdateItem is allowed/m);
    expect(doctor.out).toMatch(/^ok +This machine's clock is right to within/m);
    expect(doctor.out).not.toMatch(/^error/m);

    const again = await stage.run(['table', 'create', ...table]);
    expect(again.code).toBe(1);
    expect(again.err).toMatch(/\(AlreadyExists\): table "made-by-hand" in Region us-east-1/);
    expect((await client.send(new ListTablesCommand({}))).TableNames).toContain('made-by-hand');
  });
});

describe('the doctor', () => {
  test('finds a wrong key and a Time to Live that deletes tokens, and leaves no trace', async () => {
    await client.send(
      new CreateTableCommand({
        TableName: 'wrong',
        AttributeDefinitions: [
          { AttributeName: 'lease', AttributeType: 'S' },
          { AttributeName: 'sort', AttributeType: 'N' },
        ],
        KeySchema: [
          { AttributeName: 'lease', KeyType: 'HASH' },
          { AttributeName: 'sort', KeyType: 'RANGE' },
        ],
        BillingMode: 'PAY_PER_REQUEST',
      }),
    );
    const ran = await stage.run(['doctor', '--table', 'wrong']);
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/^error/m);

    await client.send(
      new UpdateTimeToLiveCommand({
        TableName: stage.tableName,
        TimeToLiveSpecification: { AttributeName: 'expireTime', Enabled: true },
      }),
    );
    await stage.put('default/fading', { ...held(), timeToLive: { N: '1' } });
    await stage.put('default/broken', { ...held(), version: { S: 'x' } });
    const second = await stage.run(['doctor']);
    expect(second.code).toBe(1);
    expect(second.out).toMatch(/^error +Time to Live is on attribute "expireTime"/m);
    expect(second.out).toMatch(/^error +1 of them cannot be used: default\/broken$/m);
    expect(second.out).toMatch(/^error +1 leader leases will be deleted .*: default\/fading$/m);
    expect(await stage.record('lambda-lease/doctor')).toBeUndefined();
  });

  const FACTS: TableFacts = {
    arn: undefined,
    status: 'ACTIVE',
    keys: [{ name: 'lease', type: 'S' }],
    billing: 'PAY_PER_REQUEST',
    deletionProtection: true,
    replicas: [],
    consistency: undefined,
  };
  const levels = (facts: Partial<TableFacts>) =>
    judgeTable('t', { ...FACTS, ...facts })
      .map(({ level }) => level)
      .filter((level) => level !== 'ok');

  test.each<[string, Partial<TableFacts>, string[]]>([
    ['as it should be', {}, []],
    ['being created', { status: 'CREATING' }, ['error']],
    ['with another key', { keys: [{ name: 'id', type: 'S' }] }, ['error']],
    ['with a key of numbers', { keys: [{ name: 'lease', type: 'N' }] }, ['error']],
    ['with a sort key', { keys: [...FACTS.keys, { name: 's', type: 'S' }] }, ['error']],
    ['eventually consistent over Regions', { consistency: 'EVENTUAL', replicas: ['a'] }, ['error']],
    ['strongly consistent over Regions', { consistency: 'STRONG', replicas: ['a'] }, []],
    ['that can be deleted', { deletionProtection: false }, ['warning']],
    ['of provisioned capacity', { billing: 'PROVISIONED' }, ['note']],
  ])('judges a table %s', (_, facts, expected) => {
    expect(levels(facts)).toEqual(expected);
    for (const { level, fix } of judgeTable('t', { ...FACTS, ...facts })) {
      expect(fix === undefined).toBe(level === 'ok');
    }
  });

  test.each([
    ['ENABLED', 'timeToLive', undefined, 'ok'],
    ['ENABLED', 'expireTime', undefined, 'error'],
    ['DISABLED', undefined, undefined, 'warning'],
    ['DISABLED', undefined, 'STRONG', 'ok'],
    ['UNSUPPORTED', undefined, undefined, 'ok'],
  ] as const)('judges Time to Live %s on %s', (status, attribute, consistency, level) => {
    expect(judgeTimeToLive('t', { status, attribute }, consistency).level).toBe(level);
  });

  test.each([
    ['no sample', [], 'note', /cannot be checked/],
    ['a right one', [{ lowerMs: -900, upperMs: 200 }], 'ok', /to within 0.9 s/],
    ['one behind', [{ lowerMs: 5_100, upperMs: 6_100 }], 'error', /behind by 5.1 s at least/],
    ['one ahead', [{ lowerMs: -8_000, upperMs: -7_000 }], 'error', /ahead by 7.0 s at least/],
    ['slow answers', [{ lowerMs: -3_000, upperMs: 1_000 }], 'warning', /proves nothing/],
    [
      'several that narrow it down',
      [
        { lowerMs: -3_000, upperMs: 500 },
        { lowerMs: -200, upperMs: 4_000 },
      ],
      'ok',
      /to within 0.5 s/,
    ],
  ] as const)('judges a clock by %s', (_, bounds, level, what) => {
    expect(judgeOffset(bounds)).toMatchObject({
      level,
      what: expect.stringMatching(what) as string,
    });
  });

  test('names the permission that is missing', () => {
    const probe = { action: 'dynamodb:Scan', who: 'top', error: 'denied', denied: true };
    expect(judgeProbe(probe)).toMatchObject({
      level: 'warning',
      fix: expect.stringContaining('Allow dynamodb:Scan') as string,
    });
    expect(judgeProbe({ ...probe, denied: false }).level).toBe('error');
    expect(judgeProbe({ ...probe, error: undefined }).level).toBe('ok');
  });

  test.each<[string, Item | undefined, string, RegExp]>([
    ['none', undefined, 'note', /No lifecycle monitor/],
    ['a recent pass', pass(30_000), 'ok', /last pass was 30s ago/],
    ['an old pass', pass(600_000), 'warning', /last pass was 10m ago/],
  ])('judges the monitor by %s', (_, item, level, what) => {
    const key = 'lambda-lease/lifecycle-monitor';
    const records = item === undefined ? [] : [readLease(key, item)];
    expect(judgeRecords(records, 1e12).at(-1)).toMatchObject({
      level,
      what: expect.stringMatching(what) as string,
    });
  });
});

function pass(agoMs: number): Item {
  const at = { N: String(1e12 - agoMs) };
  return { pass: { M: { at, frozenUntil: at, tolerationsFrom: at } } };
}

describe('local', () => {
  test('starts a server with the table, says how to use it, and takes it along', async () => {
    const port = String(randomInt(20_000, 32_768));
    const local = startProcess(['local', '--port', port, '--table', 'mine'], {});
    await local.says(/Ctrl-C ends it/);
    const taken = await startProcess(['local', '--port', port], {}).ended;
    expect([taken.code, taken.err]).toEqual([
      1,
      `error: port ${port} is taken; give another by --port\n`,
    ]);

    local.kill('SIGINT');
    const { code, out } = await local.ended;
    expect(code).toBe(0);
    expect(out).toContain(`export AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:${port}`);
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow();
  });

  test('serves what it has said to set', async () => {
    const port = String(randomInt(20_000, 32_768));
    const local = startProcess(['local', '--port', port], {});
    await local.says(/Ctrl-C ends it/);
    const variables = {
      AWS_ENDPOINT_URL_DYNAMODB: `http://127.0.0.1:${port}`,
      AWS_REGION: 'us-east-1',
      AWS_ACCESS_KEY_ID: 'local',
      AWS_SECRET_ACCESS_KEY: 'local',
      LEASE_TABLE_NAME: 'leases',
    };
    const ran = await startProcess(['run', 'x', '--', 'true'], variables).ended;
    expect(ran).toEqual({ code: 0, out: '', err: '' });
    // However it ends, its server ends with it.
    local.kill('SIGKILL');
    await local.ended;
    for (let attempt = 0; attempt < 100; attempt++) {
      const answers = await fetch(`http://127.0.0.1:${port}`).then(
        () => true,
        () => false,
      );
      if (!answers) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error('The server has outlived the command line.');
  });
});

describe('local, where other engines are installed', () => {
  const host = (installed: readonly string[]): Host & { said: string } => {
    const own = processHost();
    const fake = {
      ...own,
      said: '',
      out: (text: string) => void (fake.said += text),
      resolve: (specifier: string) =>
        installed.includes(specifier) ? own.resolve(specifier) : undefined,
      onSignal: (listener: (signal: Signal) => void) => {
        stop = () => listener('SIGTERM');
        return () => undefined;
      },
    };
    return fake;
  };
  let stop: () => void;

  test('takes dynalite where there is no dynoxide', async () => {
    const port = String(randomInt(20_000, 32_768));
    const on = host(['dynalite']);
    const running = runLocal(on, { port });
    const ready = async () => {
      while (!on.said.includes('Ctrl-C')) await new Promise((resolve) => setTimeout(resolve, 20));
    };
    await Promise.race([ready(), running.then((code) => expect(code).toBeUndefined())]);
    expect(on.said).toMatch(/^dynalite listens on/);
    stop();
    expect(await running).toBe(0);
    await expect(fetch(`http://127.0.0.1:${port}`)).rejects.toThrow();
  });

  test('says what to install where there is none', async () => {
    const running = runLocal(host([]), { port: String(randomInt(20_000, 32_768)) });
    await expect(running).rejects.toThrow(/npm install --save-dev dynalite/);
  });
});

describe('an error', () => {
  const hint = (cause: Error, variables: Record<string, string> = {}) =>
    explain(new LeaseError('store-unavailable', 'it failed', { cause }), {
      variable: (name) => variables[name],
    }).split('\n')[1];
  const named = (name: string, message: string) => Object.assign(new Error(message), { name });

  test.each([
    [
      'TokenProviderError',
      'Token is expired. To refresh this SSO session run …',
      /aws sso login --profile ops/,
    ],
    [
      'CredentialsProviderError',
      'The SSO session associated with this profile has expired.',
      /aws sso login/,
    ],
    ['ExpiredTokenException', 'The security token included in the request is expired', /expired/],
    [
      'CredentialsProviderError',
      'Could not load credentials from any providers',
      /no AWS credentials/,
    ],
    [
      'UnrecognizedClientException',
      'The security token is invalid',
      /does not know these credentials/,
    ],
    ['Error', 'Region is missing', /set AWS_REGION/],
    ['Error', 'getaddrinfo ENOTFOUND dynamodb.nowhere-1.amazonaws.com', /cannot be reached/],
  ])('%s: %s comes with what to do', (name, message, expected) => {
    expect(hint(named(name, message), { AWS_PROFILE: 'ops' })).toMatch(expected);
  });

  test('of no known cause comes alone', () => {
    expect(hint(new Error('odd'))).toBeUndefined();
    expect(explain('thrown', { variable: () => undefined })).toBe('error: thrown');
  });
});

describe('completion', () => {
  test.each(['bash', 'zsh', 'fish'])(
    'for %s names every command and its options',
    async (shell) => {
      const { code, out, err } = await stage.run(['completion', shell]);
      expect([code, err]).toEqual([0, '']);
      for (const word of [
        'get',
        'describe',
        'release',
        'step-down',
        'doctor',
        'all-namespaces',
        'create',
      ]) {
        expect(out).toContain(word);
      }
    },
  );

  test('for bash completes commands, options, and the names of leases', async () => {
    await stage.put('default/completed', held());
    const { out } = await stage.run(['completion', 'bash']);
    const complete = (...words: string[]) => {
      const script = `
        lambda-lease() { echo lease/completed; }
        ${out}
        COMP_WORDS=(lambda-lease ${words.map((word) => `'${word}'`).join(' ')})
        COMP_CWORD=${words.length}
        _lambda_lease; echo "\${COMPREPLY[*]}"`;
      const ran = spawnSync('bash', ['--noprofile', '--norc', '-c', script], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      expect(ran.stderr.toString()).toBe('');
      return ran.stdout.toString().trim().split(' ');
    };
    expect(complete('des')).toEqual(['describe']);
    expect(complete('get', '--sort')).toEqual(['--sort-by']);
    expect(complete('table', 'c')).toEqual(['create']);
    expect(complete('-n', 'x', 'release', 'com')).toEqual(['completed']);
    expect(complete('run', 'x', '--', '')).toEqual(['']);
  });

  test('is declared for the commands that there are', () => {
    const page = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
    const script = completionScript('bash', [
      { name: 'get', description: '', options: ['-A'], subcommands: [], takesNames: true },
    ]);
    expect(script).toContain("get) words='-A'; names=1 ;;");
    expect(page).toContain('lambda-lease completion bash');
  });
});
