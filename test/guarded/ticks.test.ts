// The completion of a tick within a guarded transaction, and what it means that the tick is done
// already: another's completion, or one's own that nobody answered.

import { beforeEach, describe, expect, test } from 'vitest';
import { sendGuarded } from '../../src/guarded.ts';
import type { ScheduledLease } from '../../src/scheduled-job.ts';
import { scheduledSingleton } from '../../src/scheduled-singleton.ts';
import { rejection } from '../handler/stage.ts';
import { type Reply, ScriptedServer } from './scripted-client.ts';
import { adding, addingNatively, GuardedStage, outcome } from './stage.ts';

let stage: GuardedStage;
beforeEach(() => (stage = new GuardedStage()));

const COMPLETING = { completeTick: true };
/** The lease's check fails, and the server shows the record as it is by then. */
const refusedWith = (Item: object): Reply => ['None', { Code: 'ConditionalCheckFailed', Item }];
const refused: Reply = ['None', 'ConditionalCheckFailed'];

/** What the work comes to; the run itself goes on as it would. */
async function inRun(work: (lease: ScheduledLease) => Promise<unknown>): Promise<string> {
  let came = 'not run';
  await stage.until(
    stage.run(async (lease) => {
      came = await outcome(work(lease));
    }),
  );
  expect(stage.clock.timers).toBe(0);
  return came;
}

describe('a completion', () => {
  test.each(['client', 'documents'] as const)('is sent as the last item: %s', async (which) => {
    const server = new ScriptedServer();
    const tickMs = stage.nowMs;
    const sent = await inRun((lease) =>
      which === 'client'
        ? sendGuarded(server.client, adding(), lease, COMPLETING)
        : sendGuarded(server.documents, addingNatively(), lease, COMPLETING),
    );
    expect(sent).toBe('done');
    const { Update } = server.sent[0]!.TransactItems[1]!;
    expect(Update).toMatchObject({
      Key: { lease: { S: 'default/job' } },
      ReturnValuesOnConditionCheckFailure: 'ALL_OLD',
    });
    expect(Object.values(Update!.ExpressionAttributeValues!)).toContainEqual({ N: String(tickMs) });
  });

  test('leaves two requests of ours: the acquisition and the release', async () => {
    const server = new ScriptedServer();
    server.onArrival = () => stage.completeTick();
    expect(await inRun((lease) => sendGuarded(server.client, adding(), lease, COMPLETING))).toBe(
      'done',
    );
    expect(stage.store.sent).toEqual(['acquire', 'release']);
    expect(stage.record('job')).toMatchObject({ vacant: true });
  });

  test('by hand costs the release one more, which adopts it', async () => {
    const by = async (lease: ScheduledLease) => {
      lease.completeTick();
      stage.completeTick();
      return Promise.resolve();
    };
    expect(await inRun(by)).toBe('done');
    expect(stage.store.sent).toEqual(['acquire', 'release', 'release']);
    expect(stage.record('job')).toMatchObject({ vacant: true });
  });

  test('that nobody answered is recognised as its own', async () => {
    const server = new ScriptedServer(['reset', refusedWith({})]);
    server.onArrival = () => {
      if (server.sent.length === 1) stage.completeTick();
    };
    expect(await inRun((lease) => sendGuarded(server.client, adding(), lease, COMPLETING))).toBe(
      'done',
    );
    // The record was not shown: a renewal has found out.
    expect(stage.store.sent).toEqual(['acquire', 'renew', 'renew', 'release']);
  });

  test('is recognised with no further request where the record is shown', async () => {
    let lost: object = {};
    const answers = { get: () => refusedWith(lost) };
    const server = new ScriptedServer(['reset', answers]);
    server.onArrival = () => {
      if (server.sent.length === 1) stage.completeTick();
      lost = stage.item;
    };
    expect(await inRun((lease) => sendGuarded(server.client, adding(), lease, COMPLETING))).toBe(
      'done',
    );
    expect(stage.store.sent).toEqual(['acquire', 'release']);
  });
});

test('a run that catches up goes on only once its tick is in the record', async () => {
  const tickMs = stage.nowMs;
  const [before, missed] = [tickMs - 120_000, tickMs - 60_000];
  stage.mark('job', { lastTick: { N: String(before) } });
  // Twice the version moves on under a renewal, by late writes of its own.
  let races = 2;
  stage.store.before = (what) => {
    if (what === 'renew' && races-- > 0) stage.completeTick(before);
  };
  const seen: unknown[] = [];
  const handler = scheduledSingleton(
    {
      ...stage.options,
      ...{ name: 'job', periodSeconds: 60, catchUp: 'each', tick: () => tickMs },
    },
    (_event: object, { lease }) => {
      seen.push([lease.tick.time.getTime(), stage.item['lastTick']]);
      return Promise.resolve();
    },
  );
  await stage.until(handler({}, stage.context()));
  expect(seen).toEqual([
    [missed, { N: String(before) }],
    [tickMs, { N: String(missed) }],
  ]);
  expect(stage.clock.timers).toBe(0);
});

describe('a tick that is done', () => {
  test('by an earlier transaction of this run refuses the second one', async () => {
    const server = new ScriptedServer(['committed', refused]);
    server.onArrival = () => {
      if (server.sent.length === 1) stage.completeTick();
    };
    const came = await inRun(async (lease) => {
      await sendGuarded(server.client, adding('first'), lease, COMPLETING);
      await sendGuarded(server.client, adding('second'), lease, COMPLETING);
    });
    expect(came).toBe('tick-done');
  });

  test('shows the record, and leaves the lease as it is', async () => {
    await stage.run(async (lease) => {
      stage.completeTick();
      const server = new ScriptedServer([refusedWith(stage.item)]);
      const error = await rejection(sendGuarded(server.client, adding(), lease, COMPLETING));
      expect(error).toMatchObject({
        code: 'tick-done',
        record: { holderIdentity: lease.holderIdentity },
      });
      expect((error as Error).message).toContain('has been completed already');
      expect(lease.isHeld()).toBe(true);
      expect(lease.signal.aborted).toBe(false);
    });
    expect(stage.store.sent).toEqual(['acquire', 'release']);
  });

  test.each<[string, (lease: ScheduledLease, server: ScriptedServer) => Promise<unknown>]>([
    [
      'an earlier transaction',
      (lease, { client }) => sendGuarded(client, adding('first'), lease, COMPLETING),
    ],
    ['one of the caller', (lease) => Promise.resolve(lease.completeTick({ marshalled: true }))],
  ])('is no proof of an attempt that nobody answered, beside %s', async (_what, complete) => {
    const came = await inRun(async (lease) => {
      await complete(lease, new ScriptedServer());
      stage.completeTick();
      // This one never arrives, and the tick is found done by the first.
      const server = new ScriptedServer(['reset', refusedWith(stage.item)]);
      await sendGuarded(server.client, adding('second'), lease, COMPLETING);
    });
    expect(came).toBe('store-unavailable');
  });

  test('is no proof either of one without a completion', async () => {
    const came = await inRun(async (lease) => {
      const server = new ScriptedServer(['reset', refusedWith(stage.item)]);
      await sendGuarded(server.client, adding(), lease);
    });
    expect(came).toBe('store-unavailable');
  });

  test('a run that failed after its completion is not run again', async () => {
    const tickMs = stage.nowMs;
    const failing = stage.run(() => {
      stage.completeTick(tickMs);
      return Promise.reject(new Error('Broken.'));
    }, tickMs);
    expect(await outcome(failing)).toBe('Error');
    const again = await stage.run(() => Promise.resolve('ran'), tickMs);
    expect(again).toMatchObject({ skipped: true, reason: 'tick done' });
  });

  test('does not end a second run in the same tenure', async () => {
    const server = new ScriptedServer();
    let last: ScheduledLease | undefined;
    const first = stage.nowMs;
    await stage.run(async (lease) => {
      last = lease;
      await sendGuarded(server.client, adding(), lease, COMPLETING);
    }, first);
    await stage.clock.advance(60_000);
    expect(await inRun((lease) => sendGuarded(server.client, adding(), lease, COMPLETING))).toBe(
      'done',
    );
    // The lease of a run that is over guards nothing any more.
    expect(await outcome(sendGuarded(server.client, adding(), last!, COMPLETING))).toBe(
      'lease-stopped',
    );
    expect(server.sent).toHaveLength(2);
  });
});
