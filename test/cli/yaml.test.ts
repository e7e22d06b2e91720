// What the command line prints as YAML, read again by a whole parser of it.

import { describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { yamlOf } from '../../src/cli-yaml.ts';

describe('YAML', () => {
  test('is as a person would write it, where that is safe', async () => {
    const document = {
      kind: 'Lease',
      metadata: { name: 'nightly-report', labels: { tier: 'gold' } },
      times: ['2026-01-01T00:00:00.000Z', 'report:7', 'no'],
      items: [{ a: 1, b: [] }, [[true], null]],
      left: undefined,
      none: {},
    };
    expect(await yamlOf(document)).toBe(
      [
        'kind: Lease',
        'metadata:',
        '  name: nightly-report',
        '  labels:',
        '    tier: gold',
        'times:',
        '  - "2026-01-01T00:00:00.000Z"',
        '  - "report:7"',
        '  - "no"',
        'items:',
        '  - a: 1',
        '    b: []',
        '  - - - true',
        '    - null',
        'none: {}',
        '',
      ].join('\n'),
    );
  });

  const texts = [
    ...[
      '',
      ' ',
      'yes',
      'No',
      'ON',
      'y',
      'N',
      'true',
      'null',
      'Null',
      '~',
      '.inf',
      '.NaN',
      '<<',
      '=',
    ],
    ...[
      '7',
      '-1',
      '0x1f',
      '0o7',
      '1_000',
      '1e3',
      '12:30:45',
      '2026-01-01',
      '1.',
      'e3',
      'inf',
      'nan',
    ],
    ...['- a', '-', '? a', 'a: b', 'a:', ': a', 'a #b', '#a', '!a', '&a', '*a', '@a', '`a', '%a'],
    ...['{a}', '[a]', '|', '>', '"a"', "'a'", 'a\\b', '---', '...', 'a\nb', 'a\r\nb', '\ta', 'a '],
    ...[
      '夜間バッチ',
      'नि',
      '👩‍👩‍👧',
      '\u0000',
      '\u001b[2J',
      '\u007f',
      '\u0085',
      '\u2028',
      '\ufeffa',
      '\ud800',
    ],
    ...[
      '__proto__',
      'constructor',
      'a'.repeat(500),
      'a b '.repeat(100),
      'a/b',
      'a.b',
      'a-',
      '\u{1f600}',
    ],
  ];

  test.each(['1.1', '1.2'] as const)(
    'is read by %s as what it was, as name and as value',
    async (version) => {
      for (const text of texts) {
        const document = JSON.parse(
          JSON.stringify({
            list: [text, [text], { name: text }],
            map: { [`k${text}`]: text, z: { y: text } },
          }),
        ) as object;
        expect(parse(await yamlOf(document), { version }), text).toEqual(document);
        const bare = { [text === '__proto__' ? 'proto' : text]: text };
        expect(parse(await yamlOf(bare), { version }), text).toEqual(bare);
      }
    },
  );
});
