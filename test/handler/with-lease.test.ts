// What a wrapped handler does, as its author sees it.

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { withLease } from '../../src/with-lease.ts';
import { gate, rejection, Stage } from './stage.ts';

type Context = ReturnType<Stage['context']>;

let stage: Stage;
beforeEach(() => (stage = new Stage()));
afterEach(() => vi.unstubAllEnvs());

describe('a wrapped handler', () => {
  test('runs while it holds the lease and gives it back: two writes, and nothing else', async () => {
    const handler = withLease({ ...stage.options, name: 'job' }, (_event: string, { lease }) => {
      expect(stage.record('job').holderIdentity).toBe(lease.holderIdentity);
      expect(lease.isHeld()).toBe(true);
      return 'done';
    });

    expect(await handler('event', stage.context())).toBe('done');

    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.record('job')).toMatchObject({ vacant: true, leaseTransitions: 1 });
    expect(stage.clock.timers).toBe(0);
  });

  test('is given its event, the very context it was called with, and the lease in it', async () => {
    const event = { detail: 1 };
    const context = stage.context();
    const handler = withLease({ ...stage.options, name: 'job' }, (seenEvent: object, seen) => {
      expect(seenEvent).toBe(event);
      expect(seen).toBe(context);
      return { ...seen.lease };
    });

    expect(await handler(event, context)).toMatchObject({
      name: 'job',
      namespace: 'default',
      fencingToken: 1,
    });
  });

  test('gets a higher token in each invocation (L2)', async () => {
    const handler = withLease(
      { ...stage.options, name: 'job' },
      (_event: null, { lease }) => lease.fencingToken,
    );

    const tokens = [];
    for (let i = 0; i < 4; i++) tokens.push(await handler(null, stage.context()));

    expect(tokens).toEqual([1, 2, 3, 4]);
  });

  test('may be slow: the lease goes back when its promise has settled, not before', async () => {
    const work = gate();
    const handler = withLease({ ...stage.options, name: 'job' }, async () => work.opened);

    const running = handler(null, stage.context());
    await stage.clock.advance(30_000);
    expect(stage.record('job').vacant).toBe(false);

    work.open();
    await stage.until(running);
    expect(stage.record('job').vacant).toBe(true);
  });

  test('that throws gives the lease back, and throws that very error', async () => {
    const error = new TypeError('broken');
    const handler = withLease({ ...stage.options, name: 'job' }, async () => {
      throw error;
    });

    expect(await rejection(handler(null, stage.context()))).toBe(error);
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.record('job').vacant).toBe(true);
  });

  test('that is not async may throw too', async () => {
    const error = new Error('broken at once');
    const handler = withLease({ ...stage.options, name: 'job' }, () => {
      throw error;
    });

    expect(await rejection(handler(null, stage.context()))).toBe(error);
    expect(stage.record('job').vacant).toBe(true);
  });

  test('may throw what is no error, and it comes through as it is', async () => {
    const handler = withLease({ ...stage.options, name: 'job' }, () =>
      // eslint-disable-next-line @typescript-eslint/prefer-promise-reject-errors
      Promise.reject('only a text'),
    );

    expect(await rejection(handler(null, stage.context()))).toBe('only a text');
    expect(stage.record('job').vacant).toBe(true);
  });

  test('keeps its own outcome when the release is not answered (L6)', async () => {
    stage.store.before = (what) => {
      if (what === 'release') throw new Error('socket hang up');
    };
    const handler = withLease({ ...stage.options, name: 'job' }, () => 'done');

    expect(await stage.until(handler(null, stage.context()))).toBe('done');
    expect(stage.record('job').vacant).toBe(false);
    expect(stage.logged.find(({ level }) => level === 'warn')?.message).toContain('expires');
    expect(stage.clock.timers).toBe(0);
  });

  test('keeps its own error when the release is not answered', async () => {
    stage.store.before = (what) => {
      if (what === 'release') throw new Error('socket hang up');
    };
    const error = new Error('broken');
    const handler = withLease({ ...stage.options, name: 'job' }, () => {
      throw error;
    });

    expect(await stage.until(rejection(handler(null, stage.context())))).toBe(error);
  });

  test('answers in time although the release is never answered', async () => {
    stage.store.before = (what) => (what === 'release' ? gate().opened : undefined);
    const handler = withLease({ ...stage.options, name: 'job' }, () => 'done');

    expect(await stage.until(handler(null, stage.context(2_000)), 2_000)).toBe('done');
    expect(stage.clock.timers).toBe(0);
  });

  test('declares two parameters: the Node 24 runtime refuses three', () => {
    // eslint-disable-next-line @typescript-eslint/no-unused-vars
    const handler = withLease({ ...stage.options, name: 'job' }, (_event: null, _context) => 1);

    expect(handler.length).toBeLessThanOrEqual(2);
  });

  test('does not run, and nothing is taken, when the context cannot carry the lease', async () => {
    let ran = false;
    const handler = withLease(
      { ...stage.options, name: 'job', leaseDurationSeconds: 15 },
      () => (ran = true),
    );
    const error = await rejection(handler(null, Object.freeze(stage.context())));

    expect(error).toBeInstanceOf(TypeError);
    expect(ran).toBe(false);
    expect(stage.record('job').vacant).toBe(true);
    expect(stage.clock.timers).toBe(0);
  });

  test('may release early, by itself', async () => {
    const handler = withLease({ ...stage.options, name: 'job' }, async (_: null, { lease }) => {
      await lease.release();
      expect(stage.record('job').vacant).toBe(true);
      return lease.isHeld();
    });

    expect(await handler(null, stage.context())).toBe(false);
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.errors()).toEqual([]);
  });
});

describe('the name of the lease', () => {
  test('may follow from the event and the context', async () => {
    const handler = withLease(
      {
        ...stage.options,
        namespace: 'tenants',
        name: (event: { tenant: string }, context: Context & { functionName: string }) =>
          `${context.functionName}/${event.tenant}`,
      },
      (_event, { lease }) => lease.name,
    );
    const context = { ...stage.context(), functionName: 'sync' };

    expect(await handler({ tenant: 'a' }, context)).toBe('sync/a');
    expect(stage.record('sync/a', 'tenants').leaseTransitions).toBe(1);
  });

  test.each([
    ['is no text', undefined],
    ['is empty', ''],
  ])('is checked before anything is sent, when what the function gives %s', async (_, name) => {
    const handler = withLease({ ...stage.options, name: () => name! }, () => 1);

    const error = await rejection(handler(null, stage.context()));

    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    expect((error as Error).message).toContain(`name is ${JSON.stringify(name)}`);
    expect(stage.store.sent).toEqual([]);
  });

  test('comes from a function that may throw: then nothing is sent', async () => {
    const error = new Error('no tenant in the event');
    const name = () => {
      throw error;
    };
    const handler = withLease({ ...stage.options, name }, () => 1);

    expect(await rejection(handler(null, stage.context()))).toBe(error);
    expect(stage.store.sent).toEqual([]);
  });
});

describe('two wrappers around one handler', () => {
  test('hold two leases under two keys of one context, and give back both', async () => {
    const inner = withLease<null, string[], Context & { outerLease: Lease }, 'innerLease'>(
      { ...stage.options, name: 'inner', contextKey: 'innerLease' },
      (_event, context) => {
        expect(stage.record('outer').vacant).toBe(false);
        expect(stage.record('inner').vacant).toBe(false);
        return [context.outerLease.name, context.innerLease.name];
      },
    );
    const outer = withLease<null, unknown, Context, 'outerLease'>(
      { ...stage.options, name: 'outer', contextKey: 'outerLease' },
      inner,
    );

    expect(await outer(null, stage.context())).toEqual(['outer', 'inner']);
    expect(stage.store.sent).toEqual(['acquire', 'acquire', 'release', 'release']);
  });
});

describe('the identity of an invocation', () => {
  test('is new each time, also when Lambda delivers one event twice with one request id', async () => {
    vi.stubEnv('AWS_LAMBDA_FUNCTION_NAME', 'sync');
    vi.stubEnv('AWS_LAMBDA_FUNCTION_VERSION', '12');
    vi.stubEnv('AWS_LAMBDA_LOG_STREAM_NAME', '2026/01/01/[12]0123456789abcdef');
    const handler = withLease({ ...stage.options, name: 'job' }, (_event: null, { lease }) => [
      lease.holderIdentity,
      stage.record('job').annotations['requestId'],
    ]);

    const [first, second] = [
      await handler(null, stage.context(60_000, 'same-request')),
      await handler(null, stage.context(60_000, 'same-request')),
    ] as [string, string][];

    expect(first?.[1]).toBe('same-request');
    expect(second?.[1]).toBe('same-request');
    expect(first?.[0]).not.toBe(second?.[0]);
    expect(first?.[0]).toMatch(/^sync:12\/2026\/01\/01\/\[12\]0123456789abcdef\/[0-9a-f-]{36}$/);
  });

  test('stands in the record with the labels and annotations of the options', async () => {
    const handler = withLease(
      { ...stage.options, name: 'job', labels: { team: 'a' }, annotations: { ticket: 'T-1' } },
      () => stage.record('job'),
    );

    const record = await handler(null, stage.context(60_000, 'request-7'));
    expect(record).toMatchObject({
      annotations: { ticket: 'T-1' },
      raw: { labels: { M: { team: { S: 'a' } } }, kind: { S: 'leader' } },
    });
  });

  test('never lets the second delivery in while the first is at work', async () => {
    const work = gate();
    let running = 0;
    const handler = withLease({ ...stage.options, name: 'job' }, async () => {
      running += 1;
      await work.opened;
    });

    const first = handler(null, stage.context(60_000, 'same-request'));
    const second = await stage.until(handler(null, stage.context(60_000, 'same-request')));

    expect(running).toBe(1);
    expect(second).toMatchObject({ skipped: true });
    work.open();
    await stage.until(first);
  });
});
