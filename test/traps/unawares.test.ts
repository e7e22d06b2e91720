// What users do to a lease without meaning to: change what its name was read from, take it again at
// once, carry two copies of this package.

import { beforeEach, describe, expect, test } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import type * as errorsOfTheFirst from '../../src/errors.ts';
import { leaderElection } from '../../src/middleware.ts';
import { scheduledSingleton } from '../../src/scheduled-singleton.ts';
import { withLease } from '../../src/with-lease.ts';
import { rejection, Stage } from '../handler/stage.ts';
import { versions, type Middleware } from '../middy/versions.ts';

interface Event {
  job: string;
  at: string;
}
type Context = ReturnType<Stage['context']> & { awsRequestId: string };

const FIRST = '2026-01-01T00:00:00.000Z';
const OTHER = '1999-01-01T00:00:00.000Z';

let stage: Stage;
beforeEach(() => (stage = new Stage()));

describe('a handler that changes its event and its context', () => {
  const named = () => ({ ...stage.options, name: ({ job }: Event) => job });
  const spoil = (event: Event, context: Context) => {
    event.job = 'other';
    event.at = OTHER;
    context.awsRequestId = 'other';
    return 'done';
  };
  const releasedAsAcquired = () => {
    expect(stage.record('job')).toMatchObject({ vacant: true, leaseTransitions: 1 });
    expect(stage.table.peek('default/other')).toBeUndefined();
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.clock.timers).toBe(0);
  };

  test('gives back the lease that was taken', async () => {
    const handler = withLease<Event, string, Context>(named(), spoil);
    await handler({ job: 'job', at: FIRST }, stage.context());
    releasedAsAcquired();
  });

  test('completes the tick that it was run for', async () => {
    const options = { ...named(), tick: ({ at }: Event) => at };
    const handler = scheduledSingleton<Event, string, Context>(options, spoil);
    await handler({ job: 'job', at: FIRST }, stage.context());
    releasedAsAcquired();
    expect(stage.record('job').lastTickMs).toBe(Date.parse(FIRST));
  });

  test.each(versions)('gives back the lease that was taken: %s', async (_, middy) => {
    const ours = leaderElection<Event, Context>(named()) as unknown as Middleware;
    const handler = middy()
      .use([ours])
      .handler(async (event, context) => spoil(event as unknown as Event, context));
    await handler({ job: 'job', at: FIRST } as unknown as string, stage.context());
    releasedAsAcquired();
  });
});

test('a lease that is taken again at once is renewed as the first one was', async () => {
  const options = { ...stage.options, name: 'job' };
  for (let token = 1; token <= 20; token++) {
    const lease = await acquireLease(options);
    expect(lease.fencingToken).toBe(token);
    // Let go at any phase of its renewals, and taken again while one would have been due.
    await stage.clock.advance(15_000 + token * 100);
    expect(lease.isHeld()).toBe(true);
    const renewed = stage.store.count('renew');
    expect(renewed).toBeGreaterThanOrEqual(token * 7);
    await lease.release();
    await stage.clock.advance(token * 100);
    expect(stage.store.count('renew')).toBe(renewed);
  }
  expect(stage.clock.timers).toBe(0);
});

describe('two copies of this package', () => {
  /** Another instance of each module, as an ESM and a CommonJS build of it would be. */
  const second = async () => {
    const url = '../../src/errors.ts?second';
    return (await import(url)) as typeof errorsOfTheFirst;
  };

  test('know the errors of each other', async () => {
    const errors = await second();
    stage.holds('somebody', 'job', 20_000);
    const error = await rejection(acquireLease({ ...stage.options, name: 'job' }));
    expect(error).not.toBeInstanceOf(errors.LeaseError);
    expect(errors.isLeaseError(error, 'lease-held')).toBe(true);
    expect(errors.isLeaseError(error, 'lease-lost')).toBe(false);
    expect(errors.asLeaseError(error)).toBe(error);
  });

  test('retry what a store of the other one cannot tell, and give up what it is sure of', async () => {
    const errors = await second();
    let failures = 0;
    stage.store.before = (what) => {
      if (what === 'acquire' && ++failures <= 2) {
        throw new errors.LeaseError('store-unavailable', 'No answer.');
      }
    };
    const waiting = acquireLease({ ...stage.options, name: 'job', maxWaitSeconds: 60 });
    await stage.clock.advance(30_000);
    await (await waiting).release();
    expect(failures).toBe(3);

    stage.store.before = () => {
      throw new errors.LeaseError('access-denied', 'No permission.');
    };
    const denied = acquireLease({ ...stage.options, name: 'job', maxWaitSeconds: 60 });
    expect(await rejection(denied)).toMatchObject({ code: 'access-denied' });
  });
});
