// What the environment's variables say, and that explicit options win over them.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { consoleLogger, readEnvironment } from '../../src/environment.ts';
import { isLeaseError } from '../../src/errors.ts';
import { makeWorld } from '../../src/setup.ts';
import { withLease } from '../../src/with-lease.ts';
import { rejection, Stage } from './stage.ts';

let stage: Stage;
beforeEach(() => (stage = new Stage()));
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

describe('LEASE_NAMESPACE', () => {
  const namespaceSeen = async (options: { namespace?: string } = {}) =>
    withLease(
      { ...stage.options, name: 'job', ...options },
      (_event: null, { lease }) => lease.namespace,
    )(null, stage.context());

  test('gives the namespace', async () => {
    vi.stubEnv('LEASE_NAMESPACE', 'staging');
    expect(await namespaceSeen()).toBe('staging');
    expect(stage.record('job', 'staging').leaseTransitions).toBe(1);
  });

  test('gives way to the option', async () => {
    vi.stubEnv('LEASE_NAMESPACE', 'staging');
    expect(await namespaceSeen({ namespace: 'production' })).toBe('production');
  });

  test.each(['', '   '])('counts as not set when it is "%s"', async (value) => {
    vi.stubEnv('LEASE_NAMESPACE', value);
    expect(await namespaceSeen()).toBe('default');
  });

  test('holds for acquireLease too', async () => {
    vi.stubEnv('LEASE_NAMESPACE', 'staging');
    const lease = await acquireLease({ ...stage.options, name: 'job' });
    expect(lease.namespace).toBe('staging');
    await lease.release();
  });

  test('is held to the rules for namespaces: nothing is sent', async () => {
    vi.stubEnv('LEASE_NAMESPACE', 'team/a');
    const error = await rejection(namespaceSeen());

    expect((error as Error).message).toBe('namespace is "team/a"; it must not contain a slash.');
    expect(stage.store.sent).toEqual([]);
  });
});

describe('LEASE_TABLE_NAME', () => {
  const region = { clientConfig: { region: 'eu-central-1' } };

  test('gives the table', () => {
    vi.stubEnv('LEASE_TABLE_NAME', 'leases-of-the-environment');
    const world = makeWorld(region, readEnvironment());
    expect(world.store.description).toContain('leases-of-the-environment');
  });

  test('gives way to the option', () => {
    vi.stubEnv('LEASE_TABLE_NAME', 'leases-of-the-environment');
    const world = makeWorld({ ...region, tableName: 'mine' }, readEnvironment());
    expect(world.store.description).toContain('mine');
    expect(world.store.description).not.toContain('leases-of-the-environment');
  });

  test('is missed by name when there is no table at all', async () => {
    vi.stubEnv('LEASE_TABLE_NAME', '');
    const handler = withLease({ name: 'job' }, () => 1);

    const error = await rejection(handler(null, stage.context()));
    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    expect((error as Error).message).toMatch(/tableName.*LEASE_TABLE_NAME/);
  });
});

describe('LEASE_DISABLED', () => {
  test.each(['true', '1', 'yes', 'on', 'TRUE', ' True '])('is on as "%s"', async (value) => {
    vi.stubEnv('LEASE_DISABLED', value);
    let ran = false;
    const handler = withLease({ ...stage.options, name: 'job' }, () => (ran = true));

    expect(await handler(null, stage.context())).toBe(true);
    expect(ran).toBe(true);
    expect(stage.store.sent).toEqual([]);
    expect(stage.clock.timers).toBe(0);
  });

  test.each(['', 'false', '0', 'no', 'off', 'anything'])('is off as "%s"', async (value) => {
    vi.stubEnv('LEASE_DISABLED', value);
    await withLease({ ...stage.options, name: 'job' }, () => 1)(null, stage.context());

    expect(stage.store.sent).toEqual(['acquire', 'release']);
  });

  test('lets handlers run with no table, no context and no time: unit tests have none', async () => {
    vi.stubEnv('LEASE_DISABLED', 'true');
    vi.stubEnv('LEASE_TABLE_NAME', '');
    const handler = withLease({ name: 'job', namespace: 'space' }, (_event: null, { lease }) => [
      lease.namespace,
      lease.name,
      lease.isHeld(),
      lease.remainingMs(),
      lease.signal.aborted,
      lease.fencingToken,
    ]);

    expect(await handler(null, undefined as never)).toEqual([
      'space',
      'job',
      true,
      Infinity,
      false,
      0,
    ]);
  });

  test('lets every handler have every lease, also one that another holds', async () => {
    vi.stubEnv('LEASE_DISABLED', 'true');
    stage.holds('somebody', 'job', 60_000);

    expect(await withLease({ ...stage.options, name: 'job' }, () => 1)(null, {} as never)).toBe(1);
    expect(stage.record('job').holderIdentity).toBe('somebody');
  });

  test('still throws what the handler throws', async () => {
    vi.stubEnv('LEASE_DISABLED', 'true');
    const error = new Error('broken');
    const handler = withLease({ name: 'job' }, () => Promise.reject(error));

    expect(await rejection(handler(null, {} as never))).toBe(error);
  });

  test('still checks the name, so that unit tests find what is wrong with it', async () => {
    vi.stubEnv('LEASE_DISABLED', 'true');
    const handler = withLease({ name: () => 'bad\nname' }, () => 1);

    expect(isLeaseError(await rejection(handler(null, {} as never)), 'invalid-configuration')).toBe(
      true,
    );
  });

  test('gives acquireLease a lease for the asking too', async () => {
    vi.stubEnv('LEASE_DISABLED', 'true');
    vi.stubEnv('LEASE_TABLE_NAME', '');
    await using lease = await acquireLease({ name: 'job' });

    expect(lease.isHeld()).toBe(true);
    expect(lease.name).toBe('job');
  });
});

describe('LEASE_LOG_LEVEL', () => {
  const lines = (level: string) => {
    const log = vi.spyOn(console, 'log').mockReturnValue();
    const error = vi.spyOn(console, 'error').mockReturnValue();
    vi.stubEnv('LEASE_LOG_LEVEL', level);
    for (const method of ['debug', 'info', 'warn', 'error'] as const) {
      consoleLogger[method](method, { lease: 'default/job' });
    }
    return [...log.mock.calls, ...error.mock.calls].map(
      ([line]) => (JSON.parse(String(line)) as { level: string }).level,
    );
  };

  test.each([
    ['', ['WARN', 'ERROR']],
    ['nonsense', ['WARN', 'ERROR']],
    ['DEBUG', ['DEBUG', 'INFO', 'WARN', 'ERROR']],
    ['info', ['INFO', 'WARN', 'ERROR']],
    [' warn ', ['WARN', 'ERROR']],
    ['ERROR', ['ERROR']],
    ['SILENT', []],
  ])('set to "%s" lets through %j', (level, expected) => {
    expect(lines(level)).toEqual(expected);
  });

  test('lines are one JSON object each, with all details', () => {
    const error = vi.spyOn(console, 'error').mockReturnValue();
    consoleLogger.error('A lease\nwas lost.', { lease: 'default/job', fencingToken: 3 });

    expect(error.mock.calls).toEqual([
      ['{"level":"ERROR","message":"A lease\\nwas lost.","lease":"default/job","fencingToken":3}'],
    ]);
  });
});
