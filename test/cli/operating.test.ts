// What operators do to leases by the command line, and what races do to them.

import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { startFaultProxy } from '../support/fault-proxy.ts';
import { held, Stage, vacant } from './stage.ts';

let stage: Stage;
let count = 0;

vi.setConfig({ testTimeout: 90_000 });

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

async function lease(item = held()): Promise<string> {
  const name = `lease-${++count}`;
  await stage.put(`default/${name}`, item);
  return name;
}
const record = (name: string) => stage.record(`default/${name}`);

describe('release', () => {
  test('vacates a lease, keeps its token, and says what that means', async () => {
    const name = await lease();
    const ran = await stage.run(['release', name, '--yes']);
    expect(ran).toMatchObject({ code: 0, out: `lease/${name} released\n` });
    expect(ran.err).toMatch(/held by api:7\/stream\/uuid \(token 5\)\. Anybody may take it/);
    expect(ran.err).toMatch(/goes on until its next renewal is refused, for 5\ds at most/);
    expect(await record(name)).toMatchObject({
      leaseTransitions: { N: '5' },
      version: { N: '1767000000043' },
    });
    expect(await record(name)).not.toHaveProperty('holderIdentity');
  });

  test('asks first, and does nothing where there is nobody to ask', async () => {
    const name = await lease();
    const before = await record(name);
    const ran = await stage.run(['release', name]);
    expect([ran.code, ran.out]).toEqual([1, '']);
    expect(ran.err).toContain('give --yes');
    expect(await record(name)).toEqual(before);
  });

  test.each([
    ['a vacant lease', vacant(), /is vacant already/],
    [
      'a record of garbage version',
      { ...held(), version: { S: 'x' } },
      /nothing was written\. The record of lease .* its version is/,
    ],
    [
      'a record of garbage token',
      { ...held(), leaseTransitions: { S: 'x' } },
      /nothing was written/,
    ],
    ['a heartbeat', { ...held(), kind: { S: 'heartbeat' } }, /its worker would take it again/],
  ])('of %s is refused', async (_, item, message) => {
    const name = await lease(item);
    const before = await record(name);
    const ran = await stage.run(['release', name, '--yes']);
    expect(ran.code).toBe(1);
    expect(ran.err).toMatch(message);
    expect(await record(name)).toEqual(before);
  });

  test('ends the tenure of a holder that renews all the time', async () => {
    const name = `lease-${++count}`;
    const holder = await acquireLease({
      name,
      tableName: stage.tableName,
      clientConfig: {
        endpoint: stage.server.endpoint,
        region: 'us-east-1',
        credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      },
      // Renews many times while the command looks and writes.
      leaseDurationSeconds: 15,
      retryPeriodSeconds: 0.01,
    });
    const lost = new Promise((resolve) => holder.signal.addEventListener('abort', resolve));
    const ran = await stage.run(['release', name, '--yes']);
    // It may also say that the record moved on at each attempt: never that it was written then.
    if (ran.code === 0) {
      await lost;
      expect(holder.signal.reason).toMatchObject({ code: 'lease-lost' });
    } else {
      expect(ran.err).toMatch(/changed at each of 5 attempts/);
    }
    await holder.release();
  });

  test('of two at once succeeds once', async () => {
    const name = await lease();
    const both = await Promise.all([
      stage.run(['release', name, '--yes']),
      stage.run(['evict', name, '--yes']),
    ]);
    expect(both.map(({ code }) => code).sort()).toEqual([0, 1]);
    expect(both.map(({ err }) => err).join('')).toMatch(/vacant/);
    expect(await record(name)).toMatchObject({ version: { N: '1767000000043' } });
  });
});

describe('evict', () => {
  test('leaves a verdict with its event for the monitor', async () => {
    const name = await lease();
    const ran = await stage.run(['evict', name, '-y', '--reason', 'stuck', '--by', 'ada']);
    expect(ran).toMatchObject({ code: 0, out: `lease/${name} evicted\n` });
    expect(await record(name)).toMatchObject({
      condition: { M: { status: { S: 'Evicted' }, reason: { S: 'by ada: stuck' }, event: {} } },
      version: { N: '1767000000043' },
    });
    expect((await stage.run(['get', name])).out).toMatch(/<none> +Evicted/);
  });
});

describe('suspend and resume', () => {
  test('keep a lease from being taken, and say who and why', async () => {
    const name = await lease(vacant());
    const by = ['--by', 'ada@desk', '--reason', 'bad deploy'];
    expect(await stage.run(['suspend', name, ...by])).toEqual({
      code: 0,
      out: `lease/${name} suspended\n`,
      err: '',
    });
    expect(await record(name)).toMatchObject({
      version: { N: '1767000000042' },
      suspended: { M: { by: { S: 'ada@desk' }, why: { S: 'bad deploy' } } },
    });
    const again = await stage.run(['suspend', name]);
    expect(again.code).toBe(0);
    expect(again.out).toMatch(/already suspended since .* by ada@desk: bad deploy/);
    const refused = await stage.run(['run', name, '--', 'true']);
    expect(refused.code).toBe(75);
    expect(refused.err).toMatch(/is suspended since .* by ada@desk: bad deploy/);

    expect((await stage.run(['resume', name])).out).toBe(`lease/${name} resumed\n`);
    expect((await stage.run(['resume', name])).out).toBe(`lease/${name} not suspended\n`);
    expect(await record(name)).not.toHaveProperty('suspended');
    expect((await stage.run(['run', name, '--', 'true'])).code).toBe(0);
  });

  test('suspend all slots of a lease, whose own record nobody has made', async () => {
    const name = `lease-${++count}`;
    await stage.put(`default/${name}/0`, held());
    expect((await stage.run(['suspend', name])).code).toBe(0);
    expect(await record(name)).toHaveProperty('suspended');
  });

  test('never create the record of a mistyped name', async () => {
    const ran = await stage.run(['suspend', 'mistyped']);
    expect(ran.code).toBe(1);
    expect(ran.err).toContain('(NotFound)');
    expect(await record('mistyped')).toBeUndefined();
  });

  test('say so where the record is corrupt, or grows beyond a write unit', async () => {
    const corrupt = await lease({ ...held(), version: { S: 'x' } });
    const ran = await stage.run(['suspend', corrupt]);
    expect(ran.code).toBe(0);
    expect(ran.err).toMatch(/Warning: The record of lease .* cannot be used/);
    const large = await lease({ ...held(), pad: { S: 'x'.repeat(1_000) } });
    const grown = await stage.run(['suspend', large]);
    expect(grown.err).toMatch(/each renewal costs 2 write units/);
  });

  test.each([
    [['--reason', 'x'.repeat(129)], /--reason is 129 bytes long; it must be at most 128/],
    [['--by', 'x'.repeat(65)], /--by is 65 bytes long/],
    [['--by', ''], /--by and --reason must have at least one character/],
  ])('refuse %j', async (args, message) => {
    const name = await lease();
    const ran = await stage.run(['suspend', name, ...args]);
    expect(ran.code).toBe(2);
    expect(ran.err).toMatch(message);
    expect(await record(name)).not.toHaveProperty('suspended');
  });
});

test.each([['release', '-y'], ['evict', '-y'], ['suspend'], ['resume'], ['step-down']])(
  '%s of a name with its namespace in front is told how to say it, and writes nothing',
  async (...args) => {
    const name = await lease();
    const before = await record(name);
    const ran = await stage.run([...args, `default/${name}`]);
    expect([ran.code, ran.out]).toEqual([1, '']);
    expect(ran.err).toMatch(new RegExp(`^Did you mean -n default ${name}\\?$`, 'm'));
    expect(await record(name)).toEqual(before);
  },
);

describe('step-down', () => {
  test('asks a holder, without touching its version', async () => {
    const name = await lease();
    const ran = await stage.run(['step-down', name, '--reason', 'please']);
    expect(ran).toMatchObject({ code: 0, out: `lease/${name} asked to step down\n` });
    expect(await record(name)).toMatchObject({
      version: { N: '1767000000042' },
      stepDownRequested: { M: { why: { S: 'please' } } },
    });
  });
});

describe('annotate and label', () => {
  test('set and remove what operators note, and never what holders write', async () => {
    const name = await lease();
    const note = (...args: string[]) => stage.run(['annotate', name, ...args]);
    expect(await note('ticket=OPS-7', 'owner=')).toMatchObject({
      code: 0,
      out: `lease/${name} annotated\n`,
    });
    expect((await stage.run(['label', name, 'stage=blue'])).out).toBe(`lease/${name} labeled\n`);
    const refused = await note('ticket=OPS-8');
    expect(refused.code).toBe(1);
    expect(refused.err).toContain('"ticket" is "OPS-7" already');
    expect((await note('ticket=OPS-8', 'owner-', '--overwrite')).code).toBe(0);
    const own = await note('logStream=x');
    expect(own.code).toBe(1);
    expect(own.err).toContain('is written by the holder');

    const { out } = await stage.run(['get', '-l', 'stage=blue,tier=gold', '-o', 'json']);
    const [found] = (JSON.parse(out) as { items: { metadata: object }[] }).items;
    expect(found?.metadata).toMatchObject({
      name,
      labels: { stage: 'blue', tier: 'gold' },
      annotations: { ticket: 'OPS-8', logStream: '2026/01/01/[7]abc' },
    });
    expect(found?.metadata).not.toHaveProperty('annotations.owner');
    expect(await record(name)).toMatchObject({ version: { N: '1767000000042' } });
  });

  test('by several at once lose nothing', async () => {
    const name = await lease();
    const all = await Promise.all(
      ['a', 'b', 'c'].map((key) => stage.run(['annotate', name, `${key}=1`])),
    );
    expect(all.map(({ code }) => code)).toEqual([0, 0, 0]);
    expect(await record(name)).toMatchObject({
      operator: { M: { annotations: { M: { a: { S: '1' }, b: { S: '1' }, c: { S: '1' } } } } },
    });
  });

  test.each([
    ['nonsense', /is neither key=value/],
    ['=x', /is neither key=value/],
    ['a b=c', /is neither key=value/],
    [`a=${'x'.repeat(200)}`, /would take 202 bytes of the record/],
  ])('refuse %j', async (change, message) => {
    const name = await lease();
    const ran = await stage.run(['annotate', name, change]);
    expect(ran.code).toBe(2);
    expect(ran.err).toMatch(message);
    expect(await record(name)).not.toHaveProperty('operator');
  });
});

describe('an answer that is lost', () => {
  test.each([
    ['release', /released/],
    ['evict', /evicted/],
    ['suspend', /suspended/],
  ])('of %s is no failure: the SDK repeats a write that is done (L7)', async (verb, out) => {
    const name = await lease();
    await using proxy = await startFaultProxy(stage.server.endpoint);
    proxy.inject({ fault: { kind: 'reset', when: 'after' }, operation: 'UpdateItem', times: 1 });
    const yes = verb === 'suspend' ? [] : ['--yes'];
    const ran = await stage.run([verb, name, ...yes], {
      AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
    });
    expect(ran.out).toMatch(out);
    expect(ran.out).not.toMatch(/already/);
    expect(ran.code).toBe(0);
    expect(proxy.counts('UpdateItem').requests).toBe(2);
  });

  test('again and again is said to tell nothing', async () => {
    const name = await lease();
    await using proxy = await startFaultProxy(stage.server.endpoint);
    proxy.inject({
      fault: { kind: 'reset', when: 'after' },
      operation: 'UpdateItem',
      times: Infinity,
    });
    const ran = await stage.run(['release', name, '--yes'], {
      AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint,
    });
    expect([ran.code, ran.out]).toEqual([1, '']);
    expect(ran.err).toMatch(/\(ServiceUnavailable\): .*gave no answer that tells what happened/);
  });

  test('for want of a permission names it, the table and the Region', async () => {
    const name = await lease();
    await using proxy = await startFaultProxy(stage.server.endpoint);
    proxy.inject({ fault: { kind: 'error', error: 'AccessDeniedException' }, times: Infinity });
    const variables = { AWS_ENDPOINT_URL_DYNAMODB: proxy.endpoint };
    const ran = await stage.run(['get'], variables);
    expect(ran.code).toBe(1);
    expect(ran.err).toContain(
      `(Forbidden): dynamodb:Scan on table "${stage.tableName}" in Region us-east-1 is denied`,
    );
    expect((await stage.run(['suspend', name], variables)).err).toContain('dynamodb:GetItem on');
  });
});
