// The runtime harness itself, with the real runtime and with the stand-in: both must keep
// the rules E1 to E4 of `environment.ts`, or tests that run on either prove nothing.
//
// No test asserts that something was quick; waits are for events, and pauses are long
// against what they are compared with.

import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  bundleHandler,
  type EnvironmentOptions,
  expectRealRuntime,
  type Invocation,
  LambdaEnvironment,
  LambdaInitError,
} from '../support/lambda-runtime/index.ts';

let folder = '';
let handlers = '';

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lambda-runtime-'));
  handlers = await bundleHandler(fixture('handlers.ts'), join(folder, 'handlers'));
});

afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

const realRuntime = expectRealRuntime();

describe.each(['ric', 'stand-in'] as const)('an environment on the %s runtime', (runtime) => {
  // A missing real runtime was said aloud above, and has failed this file in CI.
  const it = test.skipIf(runtime === 'ric' && !realRuntime);

  async function start(
    handler: string,
    options: Partial<EnvironmentOptions> = {},
  ): Promise<LambdaEnvironment> {
    return LambdaEnvironment.start({
      taskRoot: handlers,
      handler: `index.${handler}`,
      runtime,
      ...options,
    });
  }

  it('keeps the state of its module from a cold to a warm invocation', async () => {
    await using environment = await start('counts');
    const cold = returned<Counted>(await environment.invoke({ n: 1 }));
    const warm = returned<Counted>(await environment.invoke({ n: 2 }));
    expect([cold.invocations, warm.invocations]).toEqual([1, 2]);
    expect(warm.instance).toBe(cold.instance);
    expect([cold.event, warm.event]).toEqual([{ n: 1 }, { n: 2 }]);
  });

  it('builds the context from the function and the invocation', async () => {
    await using environment = await start('counts', { functionName: 'f', functionVersion: '7' });
    const { context } = returned<Counted>(
      await environment.invoke({}, { requestId: 'request-1', timeoutMs: 5_000 }),
    );
    expect(context).toMatchObject({
      awsRequestId: 'request-1',
      functionName: 'f',
      functionVersion: '7',
      invokedFunctionArn: 'arn:aws:lambda:us-east-1:000000000000:function:f',
      memoryLimitInMB: '512',
      logGroupName: '/aws/lambda/f',
      logStreamName: environment.logStreamName,
    });
    expect(environment.logStreamName).toMatch(/^\d{4}\/\d\d\/\d\d\/\[7\][0-9a-f]{32}$/);
    expect(context['remainingMs']).toBeLessThanOrEqual(5_000);
    expect(context['remainingMs']).toBeGreaterThan(0);
  });

  it('passes on only what Lambda sets and what the test adds', async () => {
    await using environment = await start('showsEnvironment', { env: { TABLE_NAME: 'leases' } });
    const { env, cwd, offset } = returned<Shown>(await environment.invoke({}));
    expect(env).toMatchObject({
      TABLE_NAME: 'leases',
      AWS_REGION: 'us-east-1',
      AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
      AWS_LAMBDA_FUNCTION_NAME: 'test-function',
      LAMBDA_TASK_ROOT: handlers,
    });
    expect(env).not.toHaveProperty('HOME');
    expect(env).not.toHaveProperty('VITEST');
    expect(env).not.toHaveProperty('AWS_LAMBDA_MAX_CONCURRENCY');
    expect({ cwd, offset }).toEqual({ cwd: handlers, offset: 0 });
  });

  it('loads a CommonJS bundle too', async () => {
    const taskRoot = await bundleHandler(fixture('handlers.ts'), join(folder, `cjs-${runtime}`), {
      format: 'cjs',
    });
    await using environment = await start('counts', { taskRoot });
    expect(returned<Counted>(await environment.invoke({})).invocations).toBe(1);
  });

  it('runs a bundle with the SDK inside', async () => {
    const taskRoot = await bundleHandler(fixture('with-sdk.ts'), join(folder, `sdk-${runtime}`));
    await using environment = await start('handler', { taskRoot });
    expect(returned(await environment.invoke({}))).toBe('us-east-1');
  });

  it('has read all that an invocation printed when the invocation is over', async () => {
    await using environment = await start('prints');
    await environment.invoke({ lines: 100 });
    expect(environment.output.map((line) => line.text)).toEqual(
      Array.from({ length: 100 }, (_, at) => `line ${at + 1}`),
    );
  });

  it('shares nothing with another environment of the same function', async () => {
    await using a = await start('counts');
    await using b = await start('counts');
    const [first, second] = await Promise.all([a.invoke({}), b.invoke({})]);
    expect(returned<Counted>(first).instance).not.toBe(returned<Counted>(second).instance);
    expect(returned<Counted>(second).invocations).toBe(1);
    expect(a.pid).not.toBe(b.pid);
    expect(a.logStreamName).not.toBe(b.logStreamName);
  });

  it('survives an error that the handler throws', async () => {
    await using environment = await start('throwsOnDemand');
    expect(await environment.invoke({ message: 'no' })).toMatchObject({
      kind: 'failed',
      error: { errorType: 'RangeError', errorMessage: 'no' },
    });
    expect(returned(await environment.invoke({}))).toBe(2);
  });

  it.each([
    ['process.exit', 'exits', 3],
    ['an unhandled rejection', 'leavesARejection', 1],
  ])('is lost by %s', async (_, handler, code) => {
    await using environment = await start(handler);
    expect(await environment.invoke({})).toEqual({ kind: 'crashed', code, signal: null });
    expect(environment.alive).toBe(false);
    await expect(environment.invoke({})).rejects.toThrow('is gone');
  });

  it('refuses at init a handler that takes a callback', async () => {
    await expect(start('takesACallback')).rejects.toMatchObject({
      name: 'LambdaInitError',
      error: { errorType: 'Runtime.CallbackHandlerDeprecated' },
      exit: { code: 1 },
    });
  });

  it('says what the module threw while it was loaded', async () => {
    const taskRoot = await bundleHandler(fixture('broken.ts'), join(folder, `broken-${runtime}`));
    const error: unknown = await start('handler', { taskRoot }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LambdaInitError);
    expect(error).toMatchObject({
      error: { errorType: 'TypeError', errorMessage: 'broken at init' },
    });
  });

  it.each([
    ['a handler that waits', 'waits'],
    ['a busy loop', 'spins'],
  ])('is killed at the deadline of %s (E3)', async (_, handler) => {
    await using environment = await start(handler);
    expect(await environment.invoke({ forMs: 60_000 }, { timeoutMs: 300 })).toEqual({
      kind: 'timed-out',
    });
    expect(environment.alive).toBe(false);
    expect(groupExists(environment.pid)).toBe(false);
  });

  it('runs overdue timers after a freeze in mid-work, with the pause off the time left', async () => {
    await using environment = await start('sleeps', { timeoutMs: 60_000 });
    const invocation = environment.invoke({ forMs: 1_000 });
    await environment.printed('sleeping');
    environment.freeze();
    expect(environment.frozen).toBe(true);
    await sleep(1_200);
    const thawedAtMs = Date.now();
    environment.thaw();
    const { wokeAtMs, remainingMs } = returned<Woken>(await invocation);
    expect(wokeAtMs).toBeGreaterThanOrEqual(thawedAtMs);
    // A timer that had stood still would have had nearly all of its second to go.
    expect(wokeAtMs).toBeLessThan(thawedAtMs + 900);
    expect(remainingMs).toBeLessThanOrEqual(58_800);
  });

  it('is killed at the deadline while frozen (E3)', async () => {
    await using environment = await start('waits');
    const invocation = environment.invoke({ forMs: 60_000 }, { timeoutMs: 1_000 });
    await environment.printed('waiting');
    environment.freeze();
    expect(await invocation).toEqual({ kind: 'timed-out' });
    expect(groupExists(environment.pid)).toBe(false);
  });

  it('fires no timer between invocations, only in the next one (E2)', async () => {
    await using environment = await start('leavesATimer');
    await environment.invoke({ forMs: 200 });
    expect(environment.frozen).toBe(true);
    await sleep(600);
    const thawedAtMs = Date.now();
    const [firedAtMs] = returned<number[]>(await environment.invoke({}));
    expect(firedAtMs).toBeGreaterThanOrEqual(thawedAtMs);
  });

  it('fires timers between invocations when the test turns freezing off', async () => {
    await using environment = await start('leavesATimer', { freezeBetween: false });
    await environment.invoke({ forMs: 200 });
    expect(environment.frozen).toBe(false);
    await environment.printed('fired');
  });

  it('delivers the same request id again, as a retry does', async () => {
    await using environment = await start('counts');
    await using other = await start('counts');
    const ids = [];
    for (const each of [environment, environment, other]) {
      const { context } = returned<Counted>(await each.invoke({}, { requestId: 'same' }));
      ids.push(context['awsRequestId']);
    }
    expect(ids).toEqual(['same', 'same', 'same']);
    expect(returned<Counted>(await environment.invoke({})).invocations).toBe(3);
  });

  it('takes one event at a time', async () => {
    await using environment = await start('waits');
    const invocation = environment.invoke({ forMs: 100 });
    await expect(environment.invoke({})).rejects.toThrow('is busy');
    expect((await invocation).kind).toBe('returned');
  });

  it.each([
    ['in mid-work', false],
    ['while frozen', true],
  ])('can be killed %s', async (_, frozen) => {
    await using environment = await start('waits');
    const invocation = environment.invoke({ forMs: 60_000 });
    await environment.printed('waiting');
    if (frozen) environment.freeze();
    await environment.kill();
    expect(await invocation).toEqual({ kind: 'crashed', code: null, signal: 'SIGKILL' });
    expect(groupExists(environment.pid)).toBe(false);
  });

  it('hears SIGTERM when it is shut down', async () => {
    await using environment = await start('saysGoodbye');
    await environment.invoke({});
    await environment.shutdown();
    expect(environment.output.map((line) => line.text)).toContain('goodbye');
    expect(environment.alive).toBe(false);
  });

  describe('with Managed Instances (E4)', () => {
    const managed = (workers: number): Partial<EnvironmentOptions> => ({
      managedInstances: { maxConcurrency: 4, workers },
    });

    it('interleaves invocations in one worker', async () => {
      await using environment = await start('meets', managed(1));
      const invocations = [0, 1, 2].map(() => environment.invoke({ others: 2 }));
      const threads = (await Promise.all(invocations)).map((each) => returned<number>(each));
      expect(new Set(threads).size).toBe(1);
      expect(environment.frozen).toBe(false);
    });

    it('spreads invocations over workers that share no module', async () => {
      await using environment = await start('tellsItsThread', managed(2));
      const threads = new Set<number>();
      // One worker may still be loading; Lambda sends events as soon as the first is ready.
      while (threads.size < 2) {
        const both = [environment.invoke({}), environment.invoke({})];
        for (const each of await Promise.all(both)) threads.add(returned<number>(each));
      }
      expect(threads).not.toContain(0);
    });

    it('goes on past a deadline, and so does the code', async () => {
      await using environment = await start('outlivesItsDeadline', managed(1));
      expect(await environment.invoke({}, { timeoutMs: 200 })).toEqual({ kind: 'timed-out' });
      expect(environment.alive).toBe(true);
      await environment.printed('went on');
    });

    it('leaves an invocation without an answer when its worker is lost', async () => {
      await using environment = await start('leavesARejection', managed(2));
      const lost = await environment.invoke({}, { timeoutMs: 300 });
      expect(lost).toEqual({ kind: 'timed-out' });
      expect(environment.alive).toBe(true);
    });

    it('tells the handler how it was started', async () => {
      await using environment = await start('showsEnvironment', managed(1));
      const { env } = returned<Shown>(await environment.invoke({}));
      expect(env).toMatchObject({
        AWS_LAMBDA_INITIALIZATION_TYPE: 'lambda-managed-instances',
        AWS_LAMBDA_MAX_CONCURRENCY: '4',
        AWS_LAMBDA_NODEJS_WORKER_COUNT: '1',
      });
    });

    it('leaves threads for file access, although every poll takes one', async () => {
      await using environment = await start('readsAFile', managed(4));
      await sleep(300);
      expect(returned(await environment.invoke({}))).toBe(true);
    });

    it('ends all its invocations when it is killed', async () => {
      await using environment = await start('waits', managed(1));
      const invocations = [1, 2].map(() => environment.invoke({ forMs: 60_000 }));
      await environment.kill();
      const crashed = { kind: 'crashed', code: null, signal: 'SIGKILL' };
      expect(await Promise.all(invocations)).toEqual([crashed, crashed]);
      expect(environment.alive).toBe(false);
    });
  });
});

describe('the harness', () => {
  test.each(['thrown', 'killed'])(
    'leaves no process behind when the test process is %s',
    async (how) => {
      const script = fixture('leaves-environments.ts');
      const printed = await new Promise<string>((resolve) => {
        execFile(process.execPath, [script, how, handlers], (_error, stdout) => {
          resolve(stdout);
        });
      });
      const pids = printed.trim().split(' ').map(Number);
      expect(pids).toHaveLength(2);
      await expect.poll(() => pids.some(isRunning), { timeout: 5_000 }).toBe(false);
    },
  );

  test('says so when there is no code to run', async () => {
    const started = LambdaEnvironment.start({ taskRoot: '/nowhere', runtime: 'stand-in' });
    await expect(started).rejects.toThrow('in /nowhere');
  });
});

interface Counted {
  readonly instance: string;
  readonly invocations: number;
  readonly event: unknown;
  readonly context: Readonly<Record<string, unknown>>;
}

interface Shown {
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
  readonly offset: number;
}

interface Woken {
  readonly wokeAtMs: number;
  readonly remainingMs: number;
}

/** The response as the handler under test is known to give it. */
// eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
function returned<T = unknown>(invocation: Invocation): T {
  if (invocation.kind !== 'returned') throw new Error(JSON.stringify(invocation));
  return invocation.response as T;
}

function groupExists(pid: number): boolean {
  try {
    return process.kill(-pid, 0);
  } catch {
    return false;
  }
}

/** Not true of a process that has ended and that nobody has waited for, as in some containers. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    const [, state] = /\) (\w) /.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? [];
    return state !== 'Z';
  } catch {
    return false;
  }
}

function fixture(name: string): string {
  return fileURLToPath(new URL(`../support/lambda-runtime/fixtures/${name}`, import.meta.url));
}
