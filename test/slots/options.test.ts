// What slots cannot be, and what they do not go with: refused at once, before anything is sent.

import { PutCommand } from '@aws-sdk/lib-dynamodb';
import { beforeEach, describe, expect, test } from 'vitest';
import { LeaderElector, type LeaderElectorOptions } from '../../src/elector.ts';
import { fenced } from '../../src/fence.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { scheduledSingleton } from '../../src/scheduled-singleton.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import { rejection, Stage } from '../handler/stage.ts';

let stage: Stage;
beforeEach(() => {
  stage = new Stage();
});

type Context = ReturnType<Stage['context']>;
type Options = Partial<WithLeaseOptions<string, Context>>;

const handler = (options: Options, work: (lease: Lease) => unknown = () => 'done') =>
  withLease<string, unknown, Context>(
    { ...stage.options, name: 'job', ...options },
    (_event, { lease }) => work(lease),
  );
const elector = (options: Partial<LeaderElectorOptions>) =>
  new LeaderElector({
    ...stage.options,
    name: 'job',
    onStartedLeading: () => Promise.resolve(),
    ...options,
  });

function refusal(make: () => unknown): unknown {
  try {
    make();
  } catch (error) {
    return error;
  }
  return 'nothing was thrown';
}

const refused = (message: string) => ({ code: 'invalid-configuration', message });

test.each([
  [0, '0'],
  [-1, '-1'],
  [1.5, '1.5'],
  [101, '101'],
  [NaN, 'NaN'],
  [Infinity, 'Infinity'],
  ['2', '"2"'],
  [null, 'null'],
  [true, 'true'],
])('slots: %s is refused', (value, shown) => {
  const slots = value as number;
  const why = refused(`slots is ${shown}; it must be a whole number from 1 to 100.`);
  expect(refusal(() => handler({ slots }))).toMatchObject(why);
  expect(refusal(() => elector({ slots }))).toMatchObject(why);
});

test.each([1, 2, 100])('slots: %i is possible', (slots) => {
  expect(() => handler({ slots })).not.toThrow();
  expect(() => elector({ slots })).not.toThrow();
});

describe('slots do not go with', () => {
  test('sticky', () => {
    const options = { slots: 2, sticky: true, leaseDurationSeconds: 30 };
    expect(refusal(() => handler(options))).toMatchObject(
      refused('slots and sticky exclude each other.'),
    );
  });

  test('a minimum hold: the second delivery of an event would find another slot', () => {
    expect(refusal(() => handler({ slots: 2, minimumHoldSeconds: 5 }))).toMatchObject(
      refused(
        'minimumHoldSeconds and slots exclude each other: an event that is delivered twice would ' +
          'find another slot free.',
      ),
    );
  });

  test('ticks', () => {
    const options = { ...stage.options, name: 'job', tick: () => new Date(0), slots: 2 };
    expect(refusal(() => scheduledSingleton(options as never, () => 'done'))).toMatchObject(
      refused('slots are not possible for a scheduled job: one run completes a tick.'),
    );
  });

  test('onNewLeader, or following the one leader', async () => {
    const why = refused('With slots there is no one leader: leave out onNewLeader and observe().');
    const options = { slots: 2, onNewLeader: () => undefined };
    expect(refusal(() => elector(options))).toMatchObject(why);
    expect(await rejection(elector({ slots: 2 }).observe())).toMatchObject(why);
    expect(stage.store.sent).toEqual([]);
  });
});

describe('a name leaves room for the number of the last slot', () => {
  // With its namespace, "default", and a slash.
  const longest = (slots: number) => 'x'.repeat(128 - 8 - `/${slots - 1}`.length);

  test.each([1, 10, 11, 100])('of %i', (slots) => {
    const name = longest(slots);
    expect(() => handler({ name, slots })).not.toThrow();
    expect(() => elector({ name, slots })).not.toThrow();
    const why = {
      code: 'invalid-configuration',
      message: expect.stringMatching(
        /^name is too long: .* are 129 bytes of UTF-8; .*128\.$/,
      ) as string,
    };
    expect(refusal(() => handler({ name: `${name}x`, slots }))).toMatchObject(why);
    expect(refusal(() => elector({ name: `${name}x`, slots }))).toMatchObject(why);
  });

  test('also one that a function tells, and nothing is sent', async () => {
    const run = handler({ name: (event) => event, slots: 11 });
    expect(await run(longest(11), stage.context())).toBe('done');
    const sent = stage.store.sent.length;
    expect(await rejection(run(`${longest(11)}x`, stage.context()))).toMatchObject({
      code: 'invalid-configuration',
      message: expect.stringContaining('/10", are 129 bytes') as string,
    });
    expect(stage.store.sent).toHaveLength(sent);
  });
});

test('a fence needs an attribute for each slot: their tokens do not compare', async () => {
  const command = new PutCommand({ TableName: 'mine', Item: { id: 1 } });
  const run = handler({ slots: 1 }, (lease) => {
    const named = fenced(command, lease, { attribute: `token${lease.slot}` });
    return [refusal(() => fenced(command, lease)), named.input.Item];
  });
  const [without, item] = (await run('', stage.context())) as unknown[];
  expect(without).toMatchObject({
    code: 'invalid-configuration',
    message: expect.stringContaining('Give an attribute per slot, e.g. fencingToken0.') as string,
  });
  expect(item).toEqual({ id: 1, token0: 1 });
});

test('a condition check is on the record of the slot', async () => {
  const run = handler({ slots: 1 }, (lease) => lease.conditionCheck());
  expect(await run('', stage.context())).toMatchObject({
    ConditionCheck: { Key: { lease: 'default/job/0' } },
  });
});

test('with leases disabled everybody has slot 0, and nothing is sent', async () => {
  process.env['LEASE_DISABLED'] = 'true';
  try {
    const run = handler({ slots: 3 }, ({ slot, name }) => [slot, name]);
    expect(await run('', stage.context())).toEqual([0, 'job/0']);
    const one = handler({}, (lease) => ['slot' in lease, lease.name]);
    expect(await one('', stage.context())).toEqual([false, 'job']);
    expect(stage.store.sent).toEqual([]);
  } finally {
    delete process.env['LEASE_DISABLED'];
  }
});
