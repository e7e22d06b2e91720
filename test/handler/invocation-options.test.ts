// Plain JavaScript has no compiler: each option is checked by the wrapper itself, at once, before
// anything is sent. Every message names the option, the value and the rule.

import { describe, expect, test } from 'vitest';
import { acquireLease } from '../../src/acquire-lease.ts';
import { isLeaseError } from '../../src/errors.ts';
import { leaderElection } from '../../src/middleware.ts';
import { withLease } from '../../src/with-lease.ts';
import { rejection, Stage } from './stage.ts';

type Options = Readonly<Record<string, unknown>>;
type Row = readonly [message: string, options: Options];

const SECONDS = 'it must be a number of seconds greater than 0.';

/** What is wrong whoever is asked. */
const COMMON: readonly Row[] = [
  ['name is undefined; it must be a text of at least one character.', { name: undefined }],
  ['name is ""; it must be a text of at least one character.', { name: '' }],
  ['name is 5; it must be a text of at least one character.', { name: 5 }],
  ['name is an array; it must be a text of at least one character.', { name: ['a'] }],
  ['name is an object; it must be a text of at least one character.', { name: {} }],
  ['name is an object; it must be a text of at least', { name: Object.create(null) as object }],
  ['name is " job"; it must be printable, without blanks at its ends.', { name: ' job' }],
  ['namespace is ""; it must be a text of at least one character.', { namespace: '' }],
  ['namespace is null; it must be a text of at least one character.', { namespace: null }],
  ['namespace is "team/a"; it must not contain a slash.', { namespace: 'team/a' }],
  ['namespace is 64 bytes long; it must be at most 63.', { namespace: 'n'.repeat(64) }],
  ['are 129 bytes of UTF-8; they must be at most 128.', { name: 'n'.repeat(121) }],
  [`leaseDurationSeconds is "15"; ${SECONDS}`, { leaseDurationSeconds: '15' }],
  [`leaseDurationSeconds is 0; ${SECONDS}`, { leaseDurationSeconds: 0 }],
  [`leaseDurationSeconds is -1; ${SECONDS}`, { leaseDurationSeconds: -1 }],
  [`leaseDurationSeconds is NaN; ${SECONDS}`, { leaseDurationSeconds: Number.NaN }],
  [`leaseDurationSeconds is Infinity; ${SECONDS}`, { leaseDurationSeconds: Infinity }],
  [`leaseDurationSeconds is null; ${SECONDS}`, { leaseDurationSeconds: null }],
  [
    'leaseDurationSeconds is 40000000; it must be at most 31622400 (366 days). Is it in milli',
    { leaseDurationSeconds: 40_000_000 },
  ],
  ['retryPeriodSeconds (0.0002) must be at least 0.001', { leaseDurationSeconds: 0.0015 }],
  [
    'leaseDurationSeconds (10) must be greater than renewDeadlineSeconds (10): a holder must stop',
    { leaseDurationSeconds: 10, renewDeadlineSeconds: 10 },
  ],
  [
    'at least retryPeriodSeconds (2) + 2 x requestTimeoutSeconds (5) = 12.',
    { leaseDurationSeconds: 15, requestTimeoutSeconds: 5 },
  ],
  [
    'renewDeadlineSeconds (10) must leave room for two attempts to renew with their time-outs',
    { leaseDurationSeconds: 15, retryPeriodSeconds: 10 },
  ],
  [
    `renewDeadlineSeconds is "x"; ${SECONDS}`,
    { leaseDurationSeconds: 15, renewDeadlineSeconds: 'x' },
  ],
  [`retryPeriodSeconds is -2; ${SECONDS}`, { retryPeriodSeconds: -2 }],
  [
    `requestTimeoutSeconds is 0; ${SECONDS}`,
    { leaseDurationSeconds: 15, requestTimeoutSeconds: 0 },
  ],
  [`maxWaitSeconds is "5"; ${SECONDS}`, { maxWaitSeconds: '5' }],
  [`maxHoldSeconds is 0; ${SECONDS}`, { maxHoldSeconds: 0 }],
  ['trustClocks is "no"; it must be true or false.', { trustClocks: 'no' }],
  ['trustClocks is null; it must be true or false.', { trustClocks: null }],
  ['labels is 5; it must be an object of strings.', { labels: 5 }],
  ['labels is an array; it must be an object of strings.', { labels: [] }],
  ['labels.team is 1; it must be a string.', { labels: { team: 1 } }],
  [
    'labels takes 98 bytes of UTF-8, names and one for each included; it must be',
    { labels: { a: 'é'.repeat(48) } },
  ],
  ['annotations.ticket is undefined; it must be a string.', { annotations: { ticket: undefined } }],
  ['annotations takes 102 bytes of UTF-8', { annotations: { a: 'x'.repeat(100) } }],
  ['tableName is 5; it must be a text of at least one character.', { tableName: 5 }],
  ['tableName is ""; it must be a text of at least one character.', { tableName: '' }],
  ['client is an object; it must have the method send.', { client: {}, store: undefined }],
  ['clientConfig is 5; it must be an object.', { clientConfig: 5, store: undefined }],
  ['store is an object; it must have the methods read, write.', { store: {} }],
  ['store is null; it must have the methods read, write.', { store: null }],
  ['logger is 5; it must have the methods debug, info, warn, error.', { logger: 5 }],
  [
    'logger is an object; it must have the methods debug, info, warn, error.',
    { logger: { info: () => undefined } },
  ],
  ['clock is an object; it must have the methods read, setTimer.', { clock: {} }],
  ['random is "dice"; it must have the methods fraction, uuid.', { random: 'dice' }],
  [
    'client and clientConfig exclude each other',
    { client: {}, clientConfig: {}, store: undefined },
  ],
  ['store and client exclude each other: give one of them.', { client: {} }],
];

/** What is wrong for a wrapped handler and for the middleware. */
const HANDLER: readonly Row[] = [
  ['renewDeadlineSeconds needs leaseDurationSeconds beside it.', { renewDeadlineSeconds: 5 }],
  ['requestTimeoutSeconds needs leaseDurationSeconds beside it.', { requestTimeoutSeconds: 1 }],
  [`toleranceSeconds is 0; ${SECONDS}`, { toleranceSeconds: 0 }],
  [
    'toleranceSeconds and leaseDurationSeconds exclude each other',
    { toleranceSeconds: 5, leaseDurationSeconds: 15 },
  ],
  ['whenHeld is "retry"; it must be "skip", "throw" or "wait".', { whenHeld: 'retry' }],
  ['whenHeld is 5; it must be "skip", "throw" or "wait".', { whenHeld: 5 }],
  ['maxWaitSeconds needs whenHeld to be "wait".', { maxWaitSeconds: 5 }],
  [`maxWaitSeconds is 0; ${SECONDS}`, { maxWaitSeconds: 0, whenHeld: 'wait' }],
  ['sticky is "yes"; it must be true or false.', { sticky: 'yes', leaseDurationSeconds: 15 }],
  ['sticky needs leaseDurationSeconds: how long', { sticky: true }],
  ['contextKey is 5; it must be a text of at least one character.', { contextKey: 5 }],
  ['contextKey is ""; it must be a text of at least one character.', { contextKey: '' }],
  ['namespace is "a/b"; it must not contain a slash.', { namespace: 'a/b', name: () => 'job' }],
];

/** `make` may throw at once, or reject. */
async function problem(make: (options: never) => unknown, options: Options): Promise<unknown> {
  const stage = new Stage();
  const given = { ...stage.options, name: 'job', ...options };
  const error = await rejection((async () => make(given as never))());
  expect(stage.store.sent).toEqual([]);
  expect(stage.clock.timers).toBe(0);
  return error;
}

const makers: Readonly<Record<string, (options: never) => unknown>> = {
  withLease: (options) => withLease(options, () => 1),
  leaderElection: (options) => leaderElection(options),
  acquireLease: (options) => acquireLease(options),
};

describe.each(Object.keys(makers))('%s, told what cannot work,', (who) => {
  const make = makers[who]!;

  test.each(COMMON)('says at once: %s', async (message, options) => {
    const error = await problem(make, options);
    expect(isLeaseError(error, 'invalid-configuration'), String(error)).toBe(true);
    expect((error as Error).message).toContain(message);
  });

  test('knows its own options and no others, and lists them', async () => {
    const error = await problem(make, { leaseDurationSecond: 15 });
    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    expect((error as Error).message).toMatch(
      new RegExp(`^${who} has no option "leaseDurationSecond". It has: .*leaseDurationSeconds`),
    );
  });

  test.each([
    [undefined, 'undefined'],
    [null, 'null'],
    ['job', '"job"'],
    [5, '5'],
  ])('needs an object, not %j', async (options, shown) => {
    const error = await rejection((async () => make(options as never))());
    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    expect((error as Error).message).toBe(`${who} needs an object of options, not ${shown}.`);
  });
});

describe.each(['withLease', 'leaderElection'])('%s, told what no handler can use,', (who) => {
  test.each(HANDLER)('says at once: %s', async (message, options) => {
    const error = await problem(makers[who]!, options);
    expect(isLeaseError(error, 'invalid-configuration'), String(error)).toBe(true);
    expect((error as Error).message).toContain(message);
  });
});

describe('what only one of them knows', () => {
  test.each([
    ['timeoutEarlyInMillis is "x"; it must be a number of milliseconds', 'x'],
    ['timeoutEarlyInMillis is -1; it must be a number of milliseconds', -1],
    ['timeoutEarlyInMillis is NaN; it must be a number of milliseconds', Number.NaN],
  ])('leaderElection says: %s', async (message, timeoutEarlyInMillis) => {
    const error = await problem(makers['leaderElection']!, { timeoutEarlyInMillis });
    expect((error as Error).message).toContain(message);
  });

  test.each([5, 'stop', {}, null])('acquireLease says that %j is no signal', async (signal) => {
    const error = await problem(makers['acquireLease']!, { signal });
    expect(isLeaseError(error, 'invalid-configuration'), String(error)).toBe(true);
    expect((error as Error).message).toMatch(/^signal is .*; it must be an AbortSignal\.$/);
  });

  test.each([undefined, 5, {}])('withLease says that %j is no handler', (handler) => {
    expect(() => withLease({ name: 'job' }, handler as never)).toThrow(
      /withLease needs the handler as its second argument/,
    );
  });

  test('withLease is not disturbed by options that change after it was made', async () => {
    const stage = new Stage();
    const options = { ...stage.options, name: 'job' };
    const handler = withLease(options, () => 1);
    options.name = 'another';

    await handler(null, stage.context());
    expect(stage.record('job').leaseTransitions).toBe(1);
  });
});
