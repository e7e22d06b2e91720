// Who a holder says it is: within budgets whatever the environment is called, and never twice the
// same.

import { describe, expect, test } from 'vitest';
import type { Environment } from '../../src/environment.ts';
import { byteLength, mapBytes, clip, holderAnnotations, holderIdentity } from '../../src/holder.ts';
import { systemRandom } from '../../src/random.ts';
import { BYTE_BUDGET } from '../../src/schema.ts';

const UUID = '01234567-89ab-4def-8123-456789abcdef';
const EMOJI = '\u{1F9FE}';
const LONE_SURROGATE = /\p{Cs}/u;

const outside: Environment = {
  tableName: undefined,
  namespace: undefined,
  disabled: false,
  managedInstances: false,
  lambda: undefined,
  region: 'eu-central-1',
  host: 'worker-7',
  pid: 4711,
};
const onLambda = (
  lambda: Partial<Environment['lambda'] & object> = {},
  more: Partial<Environment> = {},
): Environment => ({
  ...outside,
  ...more,
  lambda: {
    functionName: 'sync',
    functionVersion: '12',
    logGroupName: '/aws/lambda/sync',
    logStreamName: '2026/01/01/[12]0123456789abcdef0123456789abcdef',
    ...lambda,
  },
});

/** Names that no service gives, and any environment variable could. */
const ABSURD: readonly [string, string][] = [
  ['nothing', ''],
  ['one character', 'x'],
  ['64 characters', 'f'.repeat(64)],
  ['140 characters', 'f'.repeat(140)],
  ['10 000 characters', 'f'.repeat(10_000)],
  ['4-byte characters', EMOJI.repeat(500)],
  ['3-byte characters', 'ह'.repeat(500)],
  ['2-byte characters', 'é'.repeat(500)],
  ['4-byte characters that do not divide the budget', `x${EMOJI.repeat(500)}`],
  ['slashes', '/'.repeat(300)],
];

describe('an identity', () => {
  test('on Lambda is function:version/log-stream/uuid', () => {
    expect(holderIdentity(onLambda({ logStreamName: '2026/01/01/[12]abc' }), UUID)).toBe(
      `sync:12/2026/01/01/[12]abc/${UUID}`,
    );
  });

  test('elsewhere is host/pid/uuid', () => {
    expect(holderIdentity(outside, UUID)).toBe(`worker-7/4711/${UUID}`);
  });

  test('does without a log stream', () => {
    expect(holderIdentity(onLambda({ logStreamName: undefined }), UUID)).toBe(`sync:12/${UUID}`);
  });

  test.each(ABSURD)('fits its budget and keeps the uuid whole: %s everywhere', (_, text) => {
    for (const environment of [
      onLambda({ functionName: text, functionVersion: text, logStreamName: text }),
      onLambda({ functionName: text }),
      onLambda({ logStreamName: text }),
      { ...outside, host: text },
    ]) {
      const identity = holderIdentity(environment, UUID);
      expect(byteLength(identity)).toBeLessThanOrEqual(BYTE_BUDGET.holderIdentity);
      expect(identity.endsWith(UUID)).toBe(true);
      expect(identity).not.toMatch(LONE_SURROGATE);
    }
  });

  test('of a function with the longest name still shows name, version and where to look', () => {
    const name = 'f'.repeat(64);
    const identity = holderIdentity(onLambda({ functionName: name }), UUID);

    expect(identity.startsWith(`${name}:12/`)).toBe(true);
    expect(identity).toContain('89abcdef/');
  });

  test('is never the same twice in one environment', () => {
    const environment = onLambda();
    const identities = Array.from({ length: 5_000 }, () =>
      holderIdentity(environment, systemRandom.uuid()),
    );
    expect(new Set(identities).size).toBe(5_000);
  });
});

describe('the annotations of a holder', () => {
  test('on Lambda say where its logs are', () => {
    expect(holderAnnotations(onLambda(), 'c6af9ac6-7b61-11e6-9a41-93e8deadbeef')).toEqual({
      requestId: 'c6af9ac6-7b61-11e6-9a41-93e8deadbeef',
      logStream: '2026/01/01/[12]0123456789abcdef0123456789abcdef',
      region: 'eu-central-1',
      version: '12',
      function: 'sync',
    });
  });

  test('name a log group that does not follow from the function', () => {
    const annotations = holderAnnotations(onLambda({ logGroupName: '/jobs' }), undefined);
    expect(annotations).toMatchObject({ logGroup: '/jobs' });
    expect(annotations).not.toHaveProperty('requestId');
  });

  test('elsewhere say which process it is', () => {
    expect(holderAnnotations(outside, undefined)).toEqual({ host: 'worker-7', pid: '4711' });
  });

  test.each(ABSURD)('fit their budget, with all of the user’s own in it: %s', (_, text) => {
    const own = { ticket: 'X'.repeat(BYTE_BUDGET.ownAnnotations - 'ticket'.length - 1) };
    const room = BYTE_BUDGET.together - 2 * 128;
    for (const environment of [
      onLambda(
        { functionName: text, functionVersion: text, logGroupName: text, logStreamName: text },
        { region: text },
      ),
      { ...outside, host: text },
    ]) {
      const annotations = holderAnnotations(environment, text, own, room);
      expect(mapBytes(annotations)).toBeLessThanOrEqual(room);
      expect(annotations['ticket']).toBe(own.ticket);
      expect(Object.values(annotations).join('')).not.toMatch(LONE_SURROGATE);
    }
  });

  test.each(Object.entries(BYTE_BUDGET.annotation))('give %s at most %d bytes', (name, room) => {
    const text = EMOJI.repeat(100);
    for (const environment of [
      onLambda(
        { functionName: text, functionVersion: text, logGroupName: text, logStreamName: text },
        { region: text },
      ),
      { ...outside, host: text },
    ]) {
      expect(byteLength(holderAnnotations(environment, '')[name] ?? '')).toBeLessThanOrEqual(room);
    }
  });

  test('keep the end of a long log stream: that tells one from another', () => {
    const stream = `2026/01/01/[12]${'0'.repeat(100)}end`;
    expect(holderAnnotations(onLambda({ logStreamName: stream }), 'r')['logStream']).toMatch(
      /0end$/,
    );
  });

  test('may be overridden by the user’s own', () => {
    const own = { region: 'mars-1', function: 'mine' };
    expect(holderAnnotations(onLambda(), 'r', own)).toMatchObject(own);
  });
});

describe('clip', () => {
  test.each([
    ['cuts between characters, not within', `a${EMOJI}b`, 4, 'a'],
    ['keeps a character that just fits', `a${EMOJI}b`, 5, `a${EMOJI}`],
    ['keeps what is short enough', 'abc', 3, 'abc'],
    ['may keep nothing', EMOJI, 3, ''],
    ['may have no room', 'abc', 0, ''],
  ])('%s', (_, text, bytes, expected) => {
    expect(clip(text, bytes)).toBe(expected);
  });
});
