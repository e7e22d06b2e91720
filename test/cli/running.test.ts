// `run`: a command as the leader.

import { readdirSync, readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { held, Stage } from './stage.ts';

vi.setConfig({ testTimeout: 90_000 });

let stage: Stage;

beforeAll(async () => {
  stage = await Stage.open();
});

afterAll(async () => {
  await stage[Symbol.asyncDispose]();
});

const sh = (script: string) => ['--', '/bin/sh', '-c', script];
const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
async function gone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 20));
}

const WITHIN = { timeout: 20_000, interval: 50 };

/** Of every process. */
function argumentsOfAll(): string[][] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0').slice(0, -1);
      } catch {
        // It has ended meanwhile.
        return [];
      }
    });
}

describe('run', () => {
  test('gives the command its lease in the environment, and its exit code back', async () => {
    const ran = await stage.run([
      'run',
      'code',
      ...sh('echo "$LEASE_NAMESPACE/$LEASE_NAME $LEASE_FENCING_TOKEN $LEASE_TABLE_NAME"; exit 7'),
    ]);
    expect(ran).toEqual({ code: 7, out: `default/code 1 ${stage.tableName}\n`, err: '' });
    const record = await stage.record('default/code');
    expect(record).toMatchObject({ leaseTransitions: { N: '1' } });
    expect(record).not.toHaveProperty('holderIdentity');
  });

  test.each([
    ['died of a signal', sh('kill -KILL $$'), 137],
    ['does not exist', ['--', '/no/such/program'], 127],
    ['died of another signal', sh('kill -BUS $$'), 135],
    ['cannot be executed', ['--', '/etc/passwd'], 126],
    ['is no path at all', ['--', '/etc/passwd/x'], 126],
    ['has a name too long', ['--', 'x'.repeat(300)], 126],
    ['was not given', [], 125],
  ])('of a command that %s ends with %j → %i', async (_, command, code) => {
    const ran = await stage.run(['run', 'codes', ...command]);
    expect(ran.code).toBe(code);
    expect(await stage.record('default/codes').then((item) => item?.['holderIdentity'])).toBe(
      undefined,
    );
  });

  test.each([
    [['--duration', 'nope'], 125],
    [['--duration', '0.0001s'], 125],
    [['--nope'], 125],
    [['--table', 'nope'], 125],
    [['--table'], 125],
  ])('%j fails before the command begins', async (args, code) => {
    const ran = await stage.run(['run', 'early', ...args, ...sh('echo ran')]);
    expect([ran.code, ran.out]).toEqual([code, '']);
    expect(ran.err).not.toBe('');
  });

  test('runs one at a time: a second is refused, or waits for its turn', async () => {
    const first = stage.start(['run', 'turns', ...sh('echo first; sleep 4')]);
    await first.says(/first/);
    const second = await stage.run(['run', 'turns', ...sh('echo second')]);
    expect([second.code, second.out]).toEqual([75, '']);
    expect(second.err).toMatch(/is held by .* \(fencing token 1, until /);
    const [impatient, third] = await Promise.all([
      stage.run(['run', 'turns', '--wait=300ms', ...sh('echo impatient')]),
      stage.run(['run', 'turns', '--wait', ...sh('echo third $LEASE_FENCING_TOKEN')]),
    ]);
    expect([impatient.code, impatient.out]).toEqual([75, '']);
    expect(third).toMatchObject({ code: 0, out: 'third 2\n' });
    expect((await first.ended).code).toBe(0);
  });

  test('passes signals on to the command, and releases when it has ended', async () => {
    const running = stage.start([
      'run',
      'signals',
      ...sh('trap "echo got TERM; exit 3" TERM; echo up; while :; do sleep 0.1; done'),
    ]);
    await running.says(/up/);
    running.kill('SIGTERM');
    const { code, out } = await running.ended;
    expect([code, out]).toEqual([3, 'up\ngot TERM\n']);
    expect(await stage.record('default/signals')).not.toHaveProperty('holderIdentity');
  });

  test('that waits is ended by a signal, and takes nothing', async () => {
    await stage.put('default/waiting', held());
    const running = stage.start(['run', 'waiting', '--wait', ...sh('echo ran')]);
    await new Promise((resolve) => setTimeout(resolve, 1_500));
    running.kill('SIGTERM');
    expect(await running.ended).toEqual({ code: 143, out: '', err: '' });
    expect(await stage.record('default/waiting')).toMatchObject({
      holderIdentity: held()['holderIdentity'],
    });
  });

  test('stops the command, with all that it has started, when the lease is lost', async () => {
    // Neither heeds SIGTERM; the grandchild is in the same process group.
    const script = 'trap "" TERM; (trap "" TERM; echo child $$; sleep 60) & echo pid $!; sleep 60';
    const running = stage.start(['run', 'lost', '--duration', '6s', ...sh(script)]);
    await running.says(/pid \d+/);
    const evicted = await stage.run(['evict', 'lost', '--yes']);
    expect(evicted.code).toBe(0);
    const evictedAt = performance.now();
    const { code, out, err } = await running.ended;
    expect(code).toBe(76);
    expect(err).toMatch(/^lambda-lease: .*Stopping the command\.$/m);
    // A renewal period until it knows, and a grace of half the tolerance: 0.8 s and 1 s.
    expect(performance.now() - evictedAt).toBeLessThan(10_000);
    await gone(Number(/pid (\d+)/.exec(out)?.[1]));
  });

  test('leaves a command that heeds SIGTERM the time to clean up', async () => {
    const script = 'trap "echo cleaning; exit 0" TERM; echo up; while :; do sleep 0.05; done';
    const running = stage.start(['run', 'tidy', '--duration', '6s', ...sh(script)]);
    await running.says(/up/);
    await stage.run(['release', 'tidy', '--yes']);
    expect(await running.ended).toMatchObject({ code: 76, out: 'up\ncleaning\n' });
  });

  test('that is killed takes the command with it, and the lease expires', async () => {
    const script = 'trap "" TERM; echo pid $$; while :; do sleep 0.1; done';
    const running = stage.start(['run', 'killed', '--duration', '6s', ...sh(script)]);
    const [, pid = ''] = await running.says(/pid (\d+)/);
    // Half of the tolerance from SIGTERM to SIGKILL, so that it is gone before others may start.
    await vi.waitFor(() => {
      const watchdogs = argumentsOfAll().filter((words) => words.at(-2) === pid);
      expect(watchdogs).toMatchObject([{ 0: '/bin/sh', 4: '1' }]);
    }, WITHIN);
    running.kill('SIGKILL');
    const killedAt = performance.now();
    await running.ended;
    await gone(Number(pid));
    // Not by itself.
    expect(performance.now() - killedAt).toBeLessThan(40_000);
    const next = await stage.run([
      'run',
      'killed',
      '--wait=20s',
      ...sh('echo $LEASE_FENCING_TOKEN'),
    ]);
    expect(next).toMatchObject({ code: 0, out: '2\n' });
  });
});
