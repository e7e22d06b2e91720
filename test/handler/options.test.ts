// Names: in any script, of anything printable, within bytes of UTF-8. And the proportions of a
// lease's times, where only some are given.

import { describe, expect, test } from 'vitest';
import type { Environment } from '../../src/environment.ts';
import { isLeaseError } from '../../src/errors.ts';
import { byteLength } from '../../src/holder.ts';
import { splitLeaseKey } from '../../src/lease.ts';
import { leaseKey, resolveTiming } from '../../src/options.ts';

const environment = (namespace?: string): Environment => ({
  tableName: undefined,
  namespace,
  disabled: false,
  managedInstances: false,
  lambda: undefined,
  region: undefined,
  host: 'host',
  pid: 1,
});

function problem(act: () => unknown): Error {
  try {
    act();
  } catch (error) {
    expect(isLeaseError(error, 'invalid-configuration')).toBe(true);
    return error as Error;
  }
  throw new Error('It was accepted.');
}

describe('a name or a namespace', () => {
  test.each([
    ['ASCII', 'nightly-report_v2.1:eu#1'],
    ['inner blanks', 'nightly report'],
    ['an accent', 'créer'],
    ['an accent as a character of its own', 'cre\u0301er'],
    ['Chinese', '每晚报告'],
    ['Japanese', '夜間レポート'],
    ['Korean', '야간 보고'],
    ['Arabic', 'تقرير ليلي'],
    ['Hebrew', 'דוח לילי'],
    ['Hindi', 'रात की रिपोर्ट'],
    ['Persian with a zero-width non-joiner', 'گزارش\u200cها'],
    ['Sinhala with a zero-width joiner', 'ක\u200dෂ'],
    ['an emoji', '\u{1F9FE} report'],
    ['an emoji family, joined by zero-width joiners', '\u{1F469}\u200d\u{1F469}\u200d\u{1F467}'],
    ['an emoji with a variation selector', '\u2764\ufe0f'],
    ['mathematical letters of 4 bytes', '\u{1D4D0}\u{1D4D1}'],
  ])('may be written in %s', (_, text) => {
    expect(leaseKey(text, text, environment())).toBe(`${text}/${text}`);
  });

  test.each([
    ['a NUL', 'a\u0000b', '\\u0000'],
    ['a line feed', 'a\nb', '\\n'],
    ['a tab', 'a\tb', '\\t'],
    ['an escape', 'a\u001b[31mb', '\\u001b'],
    ['a delete character', 'a\u007fb', '\\u{7f}'],
    ['a C1 control character', 'a\u0085b', '\\u{85}'],
    ['a lone high surrogate', 'a\ud83db', '\\ud83d'],
    ['a lone low surrogate', 'a\udc00b', '\\udc00'],
    ['a right-to-left override', 'a\u202eb', '\\u{202e}'],
    ['a right-to-left mark', 'a\u200fb', '\\u{200f}'],
    ['a bidirectional isolate', 'a\u2067b', '\\u{2067}'],
    ['a zero-width space', 'a\u200bb', '\\u{200b}'],
    ['a soft hyphen', 'a\u00adb', '\\u{ad}'],
    ['a byte-order mark', 'a\ufeffb', '\\u{feff}'],
    ['a line separator', 'a\u2028b', '\\u{2028}'],
    ['a paragraph separator', 'a\u2029b', '\\u{2029}'],
    ['a private character', 'a\ue000b', '\\u{e000}'],
    ['a noncharacter', 'a\uffffb', '\\u{ffff}'],
    ['a tag character', 'a\u{e0041}b', '\\u{e0041}'],
    ['a blank at its beginning', ' a', ' a'],
    ['a blank at its end', 'a ', 'a '],
    ['a no-break space at its end', 'a\u00a0', 'a\u00a0'],
    ['an ideographic space at its end', 'a\u3000', 'a\u3000'],
    ['nothing but blanks', '   ', '   '],
    ['nothing but a joiner', '\u200d', '\\u{200d}'],
  ])('must not have %s, and the message shows it', (_, text, shown) => {
    for (const [option, act] of [
      ['name', () => leaseKey(text, 'space', environment())],
      ['namespace', () => leaseKey('job', text, environment())],
      ['namespace', () => leaseKey('job', undefined, environment(text))],
    ] as const) {
      const { message } = problem(act);
      expect(message).toContain(`${option} is "`);
      expect(message).toContain(shown);
      expect(message).toContain('it must be printable');
    }
  });
});

describe('a namespace', () => {
  test('must not have a slash: the key would be read wrongly', () => {
    expect(problem(() => leaseKey('job', 'a/b', environment())).message).toBe(
      'namespace is "a/b"; it must not contain a slash.',
    );
  });

  test('is given by the option, then the environment, then is "default"', () => {
    expect(leaseKey('job', 'mine', environment('staging'))).toBe('mine/job');
    expect(leaseKey('job', undefined, environment('staging'))).toBe('staging/job');
    expect(leaseKey('job', undefined, environment())).toBe('default/job');
  });
});

describe('a name', () => {
  test.each(['a/b', '/', '/a', 'a//b'])('may have slashes: %s', (name) => {
    expect(splitLeaseKey(leaseKey(name, 'space', environment()))).toEqual({
      namespace: 'space',
      name,
    });
  });
});

describe('lengths', () => {
  test.each([
    ['ASCII', 'n', 120],
    ['2-byte characters', 'é', 60],
    ['3-byte characters', '報', 40],
    ['4-byte characters', '\u{1F9FE}', 30],
  ])('of a name in %s are counted in bytes of UTF-8, with the namespace', (_, character, most) => {
    const longest = character.repeat(most);
    const key = leaseKey(longest, 'default', environment());
    expect(byteLength(key)).toBe(128);

    const { message } = problem(() => leaseKey(longest + character, 'default', environment()));
    expect(message).toContain('name is too long');
    expect(message).toContain(`${128 + byteLength(character)} bytes of UTF-8`);
    expect(message).toContain('at most 128');
  });

  test('of a namespace are at most 63 bytes', () => {
    expect(leaseKey('job', 'é'.repeat(31), environment())).toBe(`${'é'.repeat(31)}/job`);
    expect(problem(() => leaseKey('job', 'é'.repeat(32), environment())).message).toBe(
      'namespace is 64 bytes long; it must be at most 63.',
    );
  });

  test('that are absurd make no absurd message', () => {
    const { message } = problem(() => leaseKey('x'.repeat(1_000_000), 'a', environment()));
    expect(message.length).toBeLessThan(500);
  });
});

describe('the times of a lease', () => {
  test.each([
    ['none', {}, [15_000, 10_000, 2_000, 3_000, 5_000]],
    ['the duration', { leaseDurationSeconds: 60 }, [60_000, 40_000, 8_000, 3_000, 20_000]],
    ['a short duration', { leaseDurationSeconds: 1.5 }, [1_500, 1_000, 200, 400, 500]],
    [
      'duration and deadline',
      { leaseDurationSeconds: 30, renewDeadlineSeconds: 25 },
      [30_000, 25_000, 5_000, 3_000, 5_000],
    ],
    [
      'all, with fractions',
      {
        leaseDurationSeconds: 7.777,
        renewDeadlineSeconds: 5.001,
        retryPeriodSeconds: 1.0004,
        requestTimeoutSeconds: 0.5,
      },
      [7_777, 5_001, 1_000, 500, 2_776],
    ],
  ])('keep the proportions 15 / 10 / 2, where %s is given', (_, options, expected) => {
    const timing = resolveTiming(options);
    expect([
      timing.leaseDurationMs,
      timing.renewDeadlineMs,
      timing.retryPeriodMs,
      timing.requestTimeoutMs,
      timing.toleranceMs,
    ]).toEqual(expected);
  });

  test.each([0.1, 0.25, 1, 3.3, 7, 29, 86_400, 366 * 86_400])(
    'of a duration of %d s leave room for two attempts to renew',
    (leaseDurationSeconds) => {
      const timing = resolveTiming({ leaseDurationSeconds });
      expect(timing.retryPeriodMs + 2 * timing.requestTimeoutMs).toBeLessThanOrEqual(
        timing.renewDeadlineMs + 1,
      );
      expect(timing.toleranceMs).toBeGreaterThan(0);
    },
  );
});
