// Identities: who is alive, under which name, with which labels, and who is told of it.

import { afterEach, describe, expect, test, vi } from 'vitest';
import { readEnvironment } from '../../src/environment.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { Identity, instanceName, withIdentity, type IdentityOptions } from '../../src/identity.ts';
import { readLease, type Item, type LeaseRecord } from '../../src/lease.ts';
import { listIdentities } from '../../src/list-identities.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { collect } from '../../src/monitor-writes.ts';
import { SeededRandom, silent } from '../election/harness.ts';
import { ScriptedStore } from '../support/scripted-store.ts';
import { SECOND, settled } from './stage.ts';

const LAMBDA = {
  AWS_LAMBDA_FUNCTION_NAME: 'api',
  AWS_LAMBDA_FUNCTION_VERSION: '7',
  AWS_LAMBDA_LOG_STREAM_NAME: '2026/01/01/[7]0123456789abcdef0123456789abcdef',
  AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
  AWS_REGION: 'eu-north-1',
};
const INSTANCE = 'api/0123456789abcdef0123456789abcdef';
const ARN = 'arn:aws:lambda:eu-north-1:123456789012:function:api';

afterEach(() => {
  vi.unstubAllEnvs();
});

function onLambda(variables: Readonly<Record<string, string>> = {}): void {
  for (const [name, value] of Object.entries({ ...LAMBDA, ...variables })) vi.stubEnv(name, value);
}

function stage(memory = new MemoryStore(), clock = new FakeClock(), id = 'a') {
  const store = new ScriptedStore({ clock, memory });
  const options: IdentityOptions = {
    clock,
    store,
    logger: silent,
    random: new SeededRandom(1, id),
  };
  const record = (name: string): LeaseRecord =>
    readLease(`default/${name}`, memory.peek(`default/${name}`) ?? {});
  return { clock, memory, store, options, record };
}

describe('an identity', () => {
  test('has the name of its host outside Lambda, and its own holder at each start', async () => {
    const { clock, options, record, store } = stage();
    const { host } = readEnvironment();
    const identity = new Identity(options);
    await settled(clock, identity.start());
    const first = record(host).holderIdentity;
    expect(record(host)).toMatchObject({ kind: 'identity', leaseDurationMs: 300 * SECOND });
    await settled(clock, identity.stop());
    expect(store.memory.peek(`default/${host}`)).toBeUndefined();
    await settled(clock, identity.start());
    expect(record(host).holderIdentity).not.toBe(first);
    await settled(clock, identity.stop());
    expect(clock.timers).toBe(0);
  });

  test('is renewed each quarter of its duration, timeToLive with it', async () => {
    const { clock, options, record, store } = stage();
    const identity = new Identity({ ...options, name: 'box' });
    await settled(clock, identity.start());
    const before = record('box').raw['timeToLive'];
    await clock.advance(300 * SECOND);
    expect(store.of('renew')).toHaveLength(3);
    expect(record('box').raw['timeToLive']).not.toEqual(before);
    await settled(clock, identity.stop());
  });

  test('replaces the stale record of its last start at once: the name does not change', async () => {
    const { clock, memory, options, record } = stage();
    const crashed = new Identity({ ...options, name: 'box' });
    await settled(clock, crashed.start());
    const next = stage(memory, clock, 'b');
    const again = new Identity({ ...next.options, name: 'box' });
    await settled(clock, again.start());
    expect(record('box')).toMatchObject({ leaseTransitions: 2 });
    expect(record('box').holderIdentity).toBe(again.holderIdentity);
    await clock.advance(80 * SECOND);
    expect(crashed.health().state).toBe('replaced');
    await settled(clock, again.stop());
  });

  test('says on Lambda which function, version, alias and Region it is', async () => {
    onLambda();
    const { clock, options, record } = stage();
    const handler = withIdentity({ ...options, labels: { team: 'payments' } }, () => 'done');
    expect(await settled(clock, handler({}, { invokedFunctionArn: `${ARN}:live` }))).toBe('done');
    expect(record(INSTANCE).labels).toEqual({
      function: 'api',
      version: '7',
      alias: 'live',
      region: 'eu-north-1',
      initializationType: 'on-demand',
      started: '2026-01-01T00:00:00.000Z',
      team: 'payments',
    });
    expect(record(INSTANCE).annotations).toEqual({
      logStream: LAMBDA.AWS_LAMBDA_LOG_STREAM_NAME,
    });
  });

  test.each([ARN, `${ARN}:7`, `${ARN}:$LATEST`, undefined])('has no alias from %s', async (arn) => {
    onLambda();
    const { clock, options, record } = stage();
    const context = arn === undefined ? {} : { invokedFunctionArn: arn };
    await settled(clock, withIdentity(options, () => 'done')({}, context));
    expect(record(INSTANCE).labels).not.toHaveProperty('alias');
  });

  test('of an environment beats when invoked, at most once for each quarter', async () => {
    onLambda();
    const { clock, options, store } = stage();
    const handler = withIdentity(options, () => 'done');
    for (let second = 0; second < 300; second += 10) {
      await settled(clock, handler({}, {}));
      await clock.advance(10 * SECOND);
    }
    expect(store.kinds()).toEqual(['acquire', 'renew', 'renew', 'renew']);
    expect(clock.timers).toBe(0);
  });

  test.each([
    [{}, INSTANCE],
    [{ AWS_LAMBDA_LOG_STREAM_NAME: '2026/01/01/api[$LATEST]beef' }, 'api/beef'],
    [{ AWS_LAMBDA_MAX_CONCURRENCY: '4' }, `${INSTANCE}-${process.pid}`],
  ])('is named by the end of the log stream: %o', (variables, name) => {
    onLambda(variables);
    expect(instanceName(readEnvironment())).toBe(name);
  });

  test.each([{}, { AWS_LAMBDA_MAX_CONCURRENCY: '64' }])(
    'has room for the longest function beside the longest namespace, and tells instances apart: %o',
    async (variables) => {
      const namespace = 'n'.repeat(63);
      const names = [];
      for (const stream of ['0123456789abcdef', 'f123456789abcdef']) {
        onLambda({
          AWS_LAMBDA_FUNCTION_NAME: 'f'.repeat(64),
          AWS_LAMBDA_LOG_STREAM_NAME: `2026/01/01/[7]${stream.repeat(2)}`,
          ...variables,
        });
        const { clock, options, store, memory } = stage();
        await settled(clock, withIdentity({ ...options, namespace }, () => 'done')({}, {}));
        const lease = store.calls[0]?.lease ?? '';
        expect(memory.peek(lease)).toBeDefined();
        expect(lease).toMatch(new RegExp(`^${namespace}/f+/${stream.repeat(2)}`));
        names.push(lease);
      }
      expect(new Set(names).size).toBe(2);
    },
  );

  test('that is renewed between the read and the delete of a collector survives', async () => {
    const { clock, memory, options, record } = stage();
    const identity = new Identity({ ...options, name: 'box' });
    await settled(clock, identity.start());
    const judged = record('box');
    await clock.advance(80 * SECOND);
    const call = { signal: new AbortController().signal, attempt: () => () => undefined };
    const late = await memory.remove('default/box', collect(judged), call);
    expect(late.kind).toBe('refused');
    const now = await memory.remove('default/box', collect(record('box')), call);
    expect(now.kind).toBe('applied');
    // And one that was collected all the same comes back by itself.
    await clock.advance(80 * SECOND);
    expect(record('box')).toMatchObject({ vacant: false, leaseTransitions: 2 });
    await settled(clock, identity.stop());
  });
});

describe('listIdentities', () => {
  const clock = new FakeClock();
  const nowMs = clock.read().wallMs;
  const put = (store: MemoryStore, lease: string, labels: Record<string, string>, more: Item) =>
    store.poke(lease, {
      lease: { S: lease },
      kind: { S: 'identity' },
      holderIdentity: { S: `${lease}/holder` },
      leaseTransitions: { N: '1' },
      expireTime: { N: String(nowMs + 1) },
      labels: { M: Object.fromEntries(Object.entries(labels).map(([n, S]) => [n, { S }])) },
      ...more,
    });
  const store = new MemoryStore({ pageSize: 2 });
  put(store, 'default/b', { function: 'api', version: '8' }, {});
  put(store, 'default/a', { function: 'api', version: '7', 'app.kubernetes.io/name': 'x' }, {});
  put(store, 'default/c', { function: 'job' }, { expireTime: { N: String(nowMs - 1) } });
  put(store, 'default/equal', { draining: '' }, { expireTime: { N: String(nowMs) } });
  put(store, 'other/d', { function: 'api' }, { annotations: { M: { ready: { S: 'false' } } } });
  put(store, 'default/leader', { function: 'api' }, { kind: { S: 'leader' } });
  put(store, 'default/timeless', { odd: '1' }, { expireTime: { S: 'soon' } });

  test.each([
    ['', ['a', 'b', 'c', 'equal', 'timeless', 'd']],
    ['function=api', ['a', 'b', 'd']],
    ['function==api,version!=7', ['b', 'd']],
    ['version', ['a', 'b']],
    ['!version, function', ['c', 'd']],
    ['app.kubernetes.io/name=x', ['a']],
    ['draining=', ['equal']],
    ['function=nobody', []],
  ])('with the selector "%s" lists %o', async (selector, names) => {
    const listed = await listIdentities({ store, clock, selector });
    expect(listed.map(({ name }) => name)).toEqual(names);
  });

  test('lists one namespace only when it is told', async () => {
    const listed = await listIdentities({ store, clock, namespace: 'other' });
    expect(listed.map(({ name }) => name)).toEqual(['d']);
    expect(listed[0]).toMatchObject({ alive: true, ready: false, namespace: 'other' });
  });

  test.each([
    ['a', true],
    ['c', false],
    ['equal', true],
    ['timeless', undefined],
  ])('judges by expireTime and the wall clock whether %s is alive: %s', async (name, alive) => {
    const listed = await listIdentities({ store, clock });
    expect(listed.find((identity) => identity.name === name)?.alive).toBe(alive);
  });

  test.each(['a in (b)', '=b', 'a=b,', '!a=b', 'a=b=c'])('refuses %s', async (selector) => {
    await expect(listIdentities({ store, clock, selector })).rejects.toThrow('selector is');
  });

  test('needs a store that can be scanned', async () => {
    const unable = { description: 'x', read: () => 1, write: () => 1 } as never;
    await expect(listIdentities({ store: unable })).rejects.toThrow('scan');
  });
});
