// What the record keeps of a job's runs: when each write of it is due, how failures are counted,
// how long the job rests, and that no error, whatever it is, spoils the record.

import { describe, expect, test } from 'vitest';
import { byteLength } from '../../src/holder.ts';
import { backoffEnd, lastRunOf, noteOf, type EndedRun, type Outcome } from '../../src/job.ts';
import { readLease, vacantLease, type Item, type Value } from '../../src/lease.ts';
import { BYTE_BUDGET } from '../../src/schema.ts';

const TICK = Date.UTC(2026, 0, 31, 12);
const DUE = TICK + 7_200_000;
const TERMS = { dueMs: DUE, maxFailureBackoffMs: 3_600_000 };
const n = (value: number): Value => ({ N: String(value) });
const found = (item: Item) => readLease('default/job', item);

const run = (outcome: Outcome, rest: Partial<EndedRun> = {}): EndedRun => ({
  tickMs: TICK,
  outcome,
  startMs: TICK + 1_000,
  endMs: TICK + 5_000,
  fencingToken: 8,
  found: vacantLease('default/job'),
  ...rest,
});
const before = (failures: unknown, token: unknown, more: Item = {}) =>
  found({
    run: { M: { failures: { N: String(failures) }, token: { N: String(token) } } },
    ...more,
  });
const failuresOf = (ended: EndedRun) => {
  const { set } = noteOf(ended, TERMS);
  return lastRunOf(found(set))?.failures;
};
const errorOf = (error: unknown) => {
  const { set } = noteOf(run('failed', { error }), TERMS);
  return lastRunOf(found(set))?.error;
};

describe('the note of a run', () => {
  test('that succeeded completes its tick, and says when the next is overdue', () => {
    expect(noteOf(run('succeeded'), TERMS)).toEqual({
      set: {
        lastTick: n(TICK),
        dueTime: n(DUE),
        run: {
          M: {
            start: n(TICK + 1_000),
            end: n(TICK + 5_000),
            outcome: { S: 'succeeded' },
            failures: n(0),
            token: n(8),
          },
        },
      },
      remove: [],
    });
  });

  test.each(['failed', 'stopped'] as const)('that %s leaves its tick open', (outcome) => {
    const { set } = noteOf(run(outcome, { error: new Error('broken') }), TERMS);
    expect(set).not.toHaveProperty('lastTick');
    expect(lastRunOf(found(set as Item))).toMatchObject({ outcome, failures: 1 });
  });

  test('reads back as it was', () => {
    const { set } = noteOf(run('failed', { error: new Error('broken') }), TERMS);
    expect(lastRunOf(found(set as Item))).toEqual({
      start: new Date(TICK + 1_000),
      end: new Date(TICK + 5_000),
      durationMs: 4_000,
      outcome: 'failed',
      error: 'broken',
      failures: 1,
      fencingToken: 8,
    });
  });

  test('has whole milliseconds, for clocks have fractions', () => {
    const { set } = noteOf(run('succeeded', { startMs: TICK + 0.25, endMs: TICK + 0.75 }), TERMS);
    expect(set.run).toMatchObject({ M: { start: n(TICK), end: n(TICK + 1) } });
  });
});

describe('dueTime', () => {
  const old = { dueTime: n(DUE - 3_600_000) };
  const garbage = { dueTime: { S: 'soon' } };
  test.each<[string, Outcome, Item, number | undefined, unknown, readonly string[]]>([
    ['moves on with a success', 'succeeded', old, DUE, n(DUE), []],
    ['is left by a failure', 'failed', old, DUE, undefined, []],
    ['is left by a run that was stopped', 'stopped', old, DUE, undefined, []],
    ['begins with a failure where there is none', 'failed', {}, DUE, n(DUE), []],
    ['replaces garbage', 'failed', garbage, DUE, n(DUE), []],
    ['is not there where nothing tells it', 'succeeded', {}, undefined, undefined, []],
    ['goes with the option', 'succeeded', old, undefined, undefined, ['dueTime']],
    ['goes with the option, also by a failure', 'failed', old, undefined, undefined, ['dueTime']],
    ['goes with the option, garbage too', 'failed', garbage, undefined, undefined, ['dueTime']],
  ])('%s', (_, outcome, item, dueMs, set, remove) => {
    const note = noteOf(run(outcome, { found: found(item) }), { ...TERMS, dueMs });
    expect(note.set.dueTime).toEqual(set);
    expect(note.remove).toEqual(remove);
  });
});

describe('failures in a row', () => {
  test.each<[string, Outcome, unknown, unknown, number]>([
    ['begin again after a success', 'succeeded', 5, 7, 0],
    ['are counted on', 'failed', 2, 7, 3],
    ['are counted on for one that was stopped', 'stopped', 2, 7, 3],
    ['count one that was killed since', 'failed', 0, 6, 2],
    ['count all that left no word since as one', 'failed', 3, 2, 5],
    ['ignore a token from the future', 'failed', 1, 99, 2],
    ['ignore a token that is no count', 'failed', 1, -1e100, 2],
    ['ignore a token of a fraction', 'failed', 1, 1.5, 2],
    ['ignore failures that are no count', 'failed', -3, 7, 1],
    ['ignore failures beyond all counting', 'failed', 1e100, 7, 1],
  ])('%s', (_, outcome, failures, token, expected) => {
    expect(failuresOf(run(outcome, { found: before(failures, token) }))).toBe(expected);
  });

  test.each<[string, Item]>([
    ['no run', {}],
    ['a run of garbage', { run: { S: 'succeeded' } }],
    ['an empty run', { run: { M: {} } }],
    ['a run full of garbage', { run: { M: { failures: { S: '3' }, token: { M: {} } } } }],
  ])('are one after a record with %s', (_, item) => {
    expect(failuresOf(run('failed', { found: found(item) }))).toBe(1);
  });
});

test.each<[string, Item, object | undefined]>([
  ['none', {}, undefined],
  ['garbage', { run: { L: [] } }, undefined],
  [
    'times out of any calendar',
    { run: { M: { start: n(0), end: n(1e300), outcome: { N: '1' }, error: { NULL: true } } } },
    { start: new Date(0), end: undefined, outcome: undefined, error: undefined, failures: 0 },
  ],
])('a record with %s for a run is reported as it is', (_, item, expected) => {
  if (expected === undefined) expect(lastRunOf(found(item))).toBeUndefined();
  else expect(lastRunOf(found(item))).toMatchObject(expected);
});

describe('the backoff', () => {
  const terms = { ...TERMS, failureBackoffMs: 60_000 };
  const end = (failures: number, outcome: Outcome = 'failed') => {
    const ended = run(outcome, { found: before(failures - 1, 7) });
    const untilMs = backoffEnd(ended, terms);
    return untilMs === undefined ? undefined : (untilMs - ended.endMs) / 60_000;
  };

  test('doubles with each failure in a row, and ends at its bound', () => {
    const rests = [1, 2, 3, 4, 5, 6, 7, 8, 60, 2_000, 1e15].map((failures) => end(failures));
    expect(rests).toEqual([1, 2, 4, 8, 16, 32, 60, 60, 60, 60, 60]);
  });

  test('counts those that were killed as one, for some of them may never have run', () => {
    const ended = run('failed', { found: before(0, 1) });
    expect(backoffEnd(ended, terms)).toBe(ended.endMs + 2 * 60_000);
  });

  test.each(['succeeded', 'stopped'] as const)('is none for a run that %s', (outcome) => {
    expect(end(3, outcome)).toBeUndefined();
  });

  test('is none unless it is asked for', () => {
    expect(backoffEnd(run('failed'), TERMS)).toBeUndefined();
  });
});

describe('the error of a run', () => {
  const hostile = {
    get message(): string {
      throw new Error('not even this');
    },
  };
  test.each<[string, unknown, string]>([
    ['an Error', new RangeError('out of range'), 'out of range'],
    ['an Error with a cause', new Error('outer', { cause: new Error('secret') }), 'outer'],
    ['a text', 'broken', 'broken'],
    ['an Error of another realm', { name: 'Error', message: 'from afar' }, 'from afar'],
    ['an Error without a message', new Error(), ''],
    ['undefined', undefined, 'No error was thrown but undefined.'],
    ['null', null, 'No error was thrown but object.'],
    ['a number', 7, 'No error was thrown but number.'],
    ['a symbol', Symbol('x'), 'No error was thrown but symbol.'],
    ['an object', { password: 'secret' }, 'No error was thrown but object.'],
    ['a message that is none', Object.assign(new Error(), { message: 7 }), 'No error was thrown'],
    ['a message that throws', hostile, 'No error was thrown'],
    ['half a character', new Error('a\ud83db'), 'a\u{fffd}b'],
  ])('is the message of %s, and nothing else of it', (_, error, message) => {
    expect(errorOf(error)).toContain(message);
    expect(errorOf(error)).not.toContain('secret');
  });

  test.each(['x', 'é', '\u{1f600}', '\ud83d'])('is cut between characters: %s', (unit) => {
    const text = errorOf(new Error(unit.repeat(1_000_000))) ?? '';
    expect(byteLength(text)).toBeLessThanOrEqual(BYTE_BUDGET.runError);
    expect(byteLength(text)).toBeGreaterThan(BYTE_BUDGET.runError - 4);
    expect(text).toMatch(unit === '\ud83d' ? /^\u{fffd}+$/u : new RegExp(`^(?:${unit})+$`, 'u'));
  });

  test('is none of a run that did not throw', () => {
    const { set } = noteOf(run('stopped', { error: new Error('late') }), TERMS);
    expect(lastRunOf(found(set as Item))?.error).toBeUndefined();
  });
});
