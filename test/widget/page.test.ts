// The widget's answers: what is on a page, in which order, what a click asks for, and what is said
// when something is wrong. No browser: the HTML is read as text.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { LeaseError } from '../../src/errors.ts';
import type { Item } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { WIDGET_DOCUMENTATION } from '../../src/widget-params.ts';
import {
  FUNCTION_ARN,
  held,
  judged,
  look,
  NOW_MS,
  storeOf,
  suspended,
  texts,
  vacant,
  type Look,
} from './stage.ts';

const MANY = Array.from({ length: 45 }, (_, i) => held(`default/${String(i).padStart(2, '0')}`, 1));
const MIXED = [
  held('default/ready', 5, { token: 3 }),
  vacant('default/vacant'),
  held('other/expired', 95, { token: 12 }),
  judged(held('default/silent', 300, { token: 4 })),
  suspended(vacant('default/stopped')),
];

/** What is in the cells, row by row. */
function rowsOf(html: string): string[][] {
  const rows = html.split('<tbody>')[1]?.split('</tbody>')[0]?.split('</tr>') ?? [];
  return rows
    .filter((row) => row !== '')
    .map((row) =>
      row
        .split('</td>')
        .slice(0, -1)
        .map((cell) =>
          cell
            .replace(/<[^>]*>/g, ' ')
            .replaceAll('&lt;', '<')
            .replaceAll('&gt;', '>')
            .replace(/\s+/g, ' ')
            .trim(),
        ),
    );
}

const asked = (json: string | undefined): unknown => JSON.parse(json ?? '');

/** What the clicks on a page ask for, by the text to click on. */
function clicksOf(html: string): Record<string, unknown> {
  const found = html.matchAll(/<a [^>]*>([^<]*)<\/a><cwdb-action[^>]*>([^<]*)<\/cwdb-action>/g);
  const clicks: Record<string, unknown> = {};
  for (const [, label = '', json] of found) clicks[label] = asked(json);
  return clicks;
}

const leasesOf = async (items: readonly Item[], how: Look = {}) =>
  rowsOf(await look(items, how)).map(([lease]) => lease);

describe('a page', () => {
  test('tells of each lease what somebody would ask, the worst first', async () => {
    const html = await look(MIXED);
    expect(rowsOf(html)).toEqual([
      [
        'default/silent',
        'report:7/stream/default/silent',
        '5m',
        '4m45s ago',
        'NotReady expired , for 60s',
        '4',
        'logs',
      ],
      ['other/expired', 'report:7/stream/other/expired', '95s', '80s ago', 'Expired', '12', 'logs'],
      [
        'default/stopped',
        '<none>',
        '<none>',
        '<none>',
        'Suspended by alice: migration , for 120m',
        '1',
        'logs',
      ],
      ['default/vacant', '<none>', '<none>', '<none>', 'Vacant', '1', 'logs'],
      ['default/ready', 'report:7/stream/default/ready', '5s', '10s', 'Ready', '3', 'logs'],
    ]);
    for (const count of ['1 NotReady', '1 Expired', '1 Suspended', '1 Vacant', '1 Ready']) {
      expect(html).toContain(`>${count}<`);
    }
    expect(html).toContain('read at 2026-01-01 12:00:00 UTC');
  });

  test.each([
    [
      'lease',
      ['default/ready', 'default/silent', 'default/stopped', 'default/vacant', 'other/expired'],
    ],
    [
      '-lease',
      ['other/expired', 'default/vacant', 'default/stopped', 'default/silent', 'default/ready'],
    ],
    [
      'age',
      ['default/ready', 'other/expired', 'default/silent', 'default/stopped', 'default/vacant'],
    ],
    // What nobody holds has no age: it comes last either way.
    [
      '-age',
      ['default/silent', 'other/expired', 'default/ready', 'default/stopped', 'default/vacant'],
    ],
    [
      'left',
      ['default/silent', 'other/expired', 'default/ready', 'default/stopped', 'default/vacant'],
    ],
    [
      '-token',
      ['other/expired', 'default/silent', 'default/ready', 'default/stopped', 'default/vacant'],
    ],
    [
      'holder',
      ['default/ready', 'default/silent', 'other/expired', 'default/stopped', 'default/vacant'],
    ],
    [
      '-status',
      ['default/ready', 'default/vacant', 'default/stopped', 'other/expired', 'default/silent'],
    ],
  ])('is sorted by %s', async (sort, leases) => {
    expect(await leasesOf(MIXED, { event: { sort } })).toEqual(leases);
  });

  test('is of one namespace where one is named, and of no longer one', async () => {
    const items = [...MIXED, held('other2/x', 1), held('othe/x', 1), held('other', 1)];
    expect(await leasesOf(items, { event: { namespace: 'other' } })).toEqual(['other/expired']);
  });

  test('says that there is nothing, and where that was looked for', async () => {
    expect(await look([])).toContain('No leases. One appears here');
    const html = await look(MIXED, { event: { namespace: 'n<o>ne' } });
    expect(html).toContain('No leases in namespace <bdi>n&lt;o&gt;ne</bdi>.');
    expect(html).not.toContain('<table>');
  });

  test('holds what is asked for, and one beyond the last is the last', async () => {
    const on = (page: number, pageSize: number) =>
      leasesOf(MANY, { event: { page, pageSize, sort: 'lease' } });
    expect(await on(2, 10)).toEqual(MANY.slice(10, 20).map((_, i) => `default/${i + 10}`));
    expect(await on(5, 10)).toHaveLength(5);
    expect(await on(99, 10)).toEqual(await on(5, 10));
    expect(await on(1, 100)).toHaveLength(45);
  });
});

describe('a click', () => {
  test('turns the pages, and keeps everything else', async () => {
    const event = { namespace: 'default', sort: '-lease', page: 2, pageSize: 10 };
    expect(clicksOf(await look(MANY, { event }))).toMatchObject({
      '«': { ...event, page: 1 },
      '‹': { ...event, page: 1 },
      '›': { ...event, page: 3 },
      '»': { ...event, page: 5 },
    });
  });

  test('is not offered where it leads nowhere', async () => {
    const first = clicksOf(await look(MANY, { event: { page: 1 } }));
    expect(Object.keys(first)).not.toContain('‹');
    const last = clicksOf(await look(MANY, { event: { page: 3 } }));
    expect(Object.keys(last)).not.toContain('›');
    expect(Object.keys(clicksOf(await look(MIXED)))).not.toContain('»');
  });

  test('on a heading sorts by it from the first page, and then the other way round', async () => {
    const clicks = clicksOf(await look(MANY, { event: { page: 2, sort: 'age' } }));
    expect(clicks).toMatchObject({
      Lease: { sort: 'lease', page: 1, pageSize: 20 },
      'Age ▲': { sort: '-age', page: 1 },
      Token: { sort: 'token', page: 1 },
    });
  });

  test('calls this function, inside the widget, with what it can read again', async () => {
    const namespace = '"&amp;</cwdb-action>';
    const html = await look([], { event: { namespace } });
    expect(html).not.toContain('cwdb-action action');
    const hostile = await look([held('a"\'&amp;<b>/x', 1)], {
      event: { namespace: 'a"\'&amp;<b>' },
    });
    const actions = [...hostile.matchAll(/<cwdb-action ([^>]*)>([^<]*)<\/cwdb-action>/g)];
    expect(actions).toHaveLength(6);
    for (const [, attributes, json] of actions) {
      expect(attributes).toBe(`action="call" display="widget" endpoint="${FUNCTION_ARN}"`);
      expect(json).not.toMatch(/[<>&]/);
      expect(await look([], { event: asked(json) })).not.toContain('parameter');
    }
  });
});

describe('a text from a record', () => {
  test.each([
    ['markup', '<img src=x onerror=alert(1)>', '&lt;img src=x onerror=alert(1)&gt;'],
    ['quotes', `"x" onclick='y' \`z\``, '&quot;x&quot; onclick=&#39;y&#39; &#96;z&#96;'],
    ['an entity', '&lt;b&gt;', '&amp;lt;b&amp;gt;'],
    ['what turns the text around', 'a\u202ecod', 'a\\u{202e}cod'],
    ['what nobody sees', 'a\u0000\u200b\u2028b', 'a\\u{0}\\u{200b}\\u{2028}b'],
    ['another direction', 'משמרת', 'משמרת'],
    ['an emoji of parts', '👩‍🚀', '👩‍🚀'],
  ])('that is %s is shown as it is', async (_, text, shown) => {
    const item = {
      ...suspended(held(`default/${text}`, 1)),
      holderIdentity: { S: text },
      suspended: texts({ by: text, why: text }),
      annotations: texts({ region: 'eu-central-1', function: text, logStream: text }),
    };
    const html = await look([item]);
    expect(html).toContain(`<bdi>default/${shown}</bdi>`);
    expect(html).toContain(`<td class="ll-holder"><bdi>${shown}</bdi>`);
    expect(html).toContain(`<bdi>by ${shown}: ${shown}</bdi>`);
    expect(html).toContain(`title="${shown}">logs`);
    if (shown !== text) expect(html).not.toContain(text);
  });
});

test('a page of the longest texts that escape to most is small enough for an answer', async () => {
  const long = '\u202e"<漢'.repeat(1_000);
  const items = Array.from({ length: 100 }, (_, i) => ({
    ...held(`default/${i}${long.slice(0, 600)}`, 1),
    holderIdentity: { S: long },
    suspended: texts({ by: long, why: long }),
    annotations: texts({ region: 'eu-central-1', function: '漢'.repeat(600), logStream: long }),
  }));
  const html = await look(items, { event: { pageSize: 100 } });
  expect(html).toContain('1–100 of 100');
  // Lambda's limit, for what is JSON then.
  expect(Buffer.byteLength(JSON.stringify(html))).toBeLessThan(6 * 1_024 * 1_024);
});

describe('a table that is too large', () => {
  const bounded = (bounds: object, event: object = {}) =>
    look(MANY, { event, store: storeOf(MANY, 10), options: { bounds } });

  test('is read up to so many leases, and that is said', async () => {
    const html = await bounded({ mostLeases: 15 });
    expect(html).toContain('Showing the first 15 of at least 20 leases. The table is too large');
    expect(html).toContain('Set the parameter namespace');
    expect(html).toContain('1–15 of 15');
  });

  test('is counted to its end where that was read', async () => {
    const html = await look(MANY, { options: { bounds: { mostLeases: 40 } } });
    expect(html).toContain('Showing the first 40 of 45 leases. Set');
  });

  test('is read up to so many pages, also for a namespace of which nothing is in them', async () => {
    const html = await bounded({ mostPages: 2 }, { namespace: 'other' });
    expect(html).toContain('Showing the first 0 of at least 0 leases.');
    expect(html).toContain('in the part of the table that was read');
    expect(await bounded({ mostPages: 5 })).not.toContain('Showing');
  });

  test('is read for so long', async () => {
    const clock = new FakeClock(NOW_MS);
    const store = storeOf(MANY, 10);
    const scan = store.scan.bind(store);
    store.scan = (call) => {
      clock.freeze(4_000);
      return scan(call);
    };
    const html = await look(MANY, { store, options: { clock, bounds: { withinMs: 8_000 } } });
    expect(html).toContain('Showing the first 20 of at least 20 leases.');
  });
});

describe('a parameter that is wrong', () => {
  test.each([
    [{ sort: 'name' }, 'sort is &quot;name&quot;; it must be one of lease, holder, age, left'],
    [{ sort: 3 }, 'sort is 3; it must be one of'],
    [{ page: 0 }, 'page is 0; it must be a whole number of at least 1.'],
    [{ page: 1.5 }, 'page is 1.5; it must be a whole number of at least 1.'],
    [{ pageSize: '20' }, 'pageSize is &quot;20&quot;; it must be a whole number from 1 to 100.'],
    [{ pageSize: 101 }, 'pageSize is 101; it must be a whole number from 1 to 100.'],
    [{ namespace: 7 }, 'namespace is 7; it must be a text without a slash.'],
    [{ namespace: 'a/b' }, 'namespace is &quot;a/b&quot;; it must be a text without a slash.'],
    [{ namespace: 'é'.repeat(32) }, 'namespace is 64 bytes long; it must be at most 63.'],
    [
      { '<img src=x>': 1 },
      'There is no parameter &quot;&lt;img src=x&gt;&quot;. There are: namespace, sort, page, pageSize.',
    ],
    ['default', 'The parameters are &quot;default&quot;; they must be names with values.'],
  ])('as %j is named, with its value and the rule', async (event, said) => {
    const html = await look(MIXED, { event });
    expect(html).toContain('A parameter of this widget is wrong.');
    expect(html).toContain(said);
    expect(html).not.toContain('<table>');
  });

  test('is not one that is missing or null', async () => {
    const event = { namespace: null, sort: null, page: undefined, pageSize: null };
    expect(await leasesOf(MIXED, { event })).toHaveLength(5);
    expect(await leasesOf(MIXED, { event: null })).toHaveLength(5);
  });
});

describe('a table that cannot be read', () => {
  const failing = (error: Error) => {
    const store = new MemoryStore();
    store.scan = () => Promise.reject(error);
    const logged: unknown[] = [];
    const ignore = () => undefined;
    const error_ = (...entry: unknown[]) => void logged.push(entry);
    const logger = { debug: ignore, info: ignore, warn: ignore, error: error_ };
    return { html: look([], { store, options: { logger } }), logged };
  };

  test.each([
    new LeaseError('access-denied', 'dynamodb:Scan on <it> is denied.'),
    new TypeError('dynamodb:Scan on <it> is denied.'),
  ])('is named, with its Region and what is missing', async (error) => {
    const { html, logged } = failing(error);
    expect(await html).toContain('dynamodb:Scan on &lt;it&gt; is denied.');
    expect(await html).toContain(
      'This function reads table &quot;leases&quot; in eu-central-1, and needs dynamodb:Scan on it',
    );
    expect(logged).toHaveLength(1);
  });

  test('because none is named, is said too', async () => {
    const html = await look([], { options: { tableName: undefined } });
    expect(html).toContain('LEASE_TABLE_NAME is not set');
  });

  test('because it does not answer, is waited for within the time of the invocation', async () => {
    const clock = new FakeClock(NOW_MS);
    const store = new MemoryStore();
    store.scan = () => new Promise(() => undefined);
    const html = look([], { store, options: { clock } });
    await clock.advance(10_000);
    expect(await html).toContain('was not answered within 10000 ms.');
  });
});

test('describes itself in Markdown, with an example of its parameters', async () => {
  const event = { describe: true, sort: 'nonsense' };
  expect(await look([], { event, options: { tableName: undefined } })).toBe(WIDGET_DOCUMENTATION);
  const yaml = /``` yaml\n([^`]*)```/.exec(WIDGET_DOCUMENTATION)?.[1] ?? '';
  const pairs = yaml
    .trim()
    .split('\n')
    .map((line) => line.split(': ') as [string, string]);
  const params = Object.fromEntries(
    pairs.map(([name, value]) => [name, /^\d+$/.test(value) ? Number(value) : value]),
  );
  expect(Object.keys(params)).toEqual(['namespace', 'sort', 'page', 'pageSize']);
  expect(await leasesOf(MIXED, { event: params })).toHaveLength(4);
});

test('is light unless CloudWatch is dark', async () => {
  expect(await look(MIXED)).toContain('class="lambda-lease ll-light ');
  expect(await look(MIXED, { theme: 'dark' })).toContain('class="lambda-lease ll-dark ');
});
