// The widget in a browser: that no text of a record becomes anything else, and that it can be read,
// light and dark, narrow and wide. To look at it: WIDGET_SCREENSHOTS=/tmp npx vitest run ...

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { isoTime, type Item } from '../../src/lease.ts';
import { LeaseError } from '../../src/errors.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { without } from '../monitor/one-lease.ts';
import {
  FUNCTION_ARN,
  FUNCTION_LOGS,
  held,
  judged,
  look,
  NOW_MS,
  suspended,
  texts,
  vacant,
} from './stage.ts';

const CHROMIUM = '/usr/bin/chromium';
const missing = existsSync(CHROMIUM)
  ? undefined
  : `${CHROMIUM} is missing, so the widget is looked at by no browser: apt-get install -y chromium`;
if (missing !== undefined) {
  if (process.env['CI'] === 'true') throw new Error(missing);
  console.warn(`\n!!! ${missing}\n`);
}

const IN_PAGE = fileURLToPath(new URL('in-page.js', import.meta.url));
const { WIDGET_SCREENSHOTS } = process.env;

const HOSTILE = [
  '<img src=x onerror=alert(1)>',
  '<script>alert(2)</script>',
  '"><svg onload=alert(3)>',
  `' onmouseover='alert(4)`,
  '</td></tr></table></div><style>*{display:none}</style>',
  '</cwdb-action><iframe src="https://example.com/"></iframe>',
  '&lt;b&gt;&amp;',
  '${alert(5)} {{alert(6)}} `x`',
  'javascript:alert(7)',
  'משמרת לילה-1',
  'نوبة ليلية 24/7',
  '👩‍🚀👨‍👩‍👧‍👦🏴‍☠️é',
  'x'.repeat(120),
  '漢字'.repeat(20),
];

/** Every part of the record that is shown says the same. */
function saying(text: string, status: (item: Item) => Item): Item {
  const item = {
    ...held(`d/${text}`, 30),
    holderIdentity: { S: text },
    annotations: texts({ ...FUNCTION_LOGS, function: text, logStream: text, readyReason: text }),
  };
  const changed = status(item);
  if (changed['suspended'] === undefined) return changed;
  return { ...changed, suspended: texts({ by: text, why: text, since: isoTime(NOW_MS - 60_000) }) };
}

const asItIs = (item: Item) => item;
const hostile = HOSTILE.map((text, i) =>
  saying(text, [asItIs, suspended, judged][i % 3] ?? asItIs),
);

const NAMES = ['nightly-report', 'sync/tenant-', 'cache-warmer', 'poller/orders-eu-', 'migration-'];
const UUID = '3f2a9c1e-7b4d-4e8f-9a6b-1c2d3e4f5a6b';
const STREAM = '2026/01/01/[$LATEST]0123456789abcdef0123456789abcdef';

/** A table as it may look at 3 a.m. */
function fleet(size: number): Item[] {
  return Array.from({ length: size }, (_, i) => {
    const lease = `${i % 4 === 0 ? 'billing' : 'default'}/${NAMES[i % NAMES.length]!}${i}`;
    const item = {
      ...held(lease, (i * 7) % 14, { token: 1 + ((i * i * 37) % 5_000), durationS: 15 + (i % 45) }),
      holderIdentity: { S: `report-worker:${i % 9}/${STREAM}/${UUID}` },
      acquireTime: { S: isoTime(NOW_MS - 1_000 * (i + 1) ** 2.3) },
    };
    switch (i % 19) {
      case 3:
        return vacant(lease);
      case 5:
        return suspended(without(item, 'holderIdentity', 'expireTime'));
      case 7:
        return { ...item, expireTime: { N: String(NOW_MS - 4_000) } };
      case 11:
        return judged(held(lease, 200));
      case 13:
        return i > 200 ? judged(vacant(lease), { status: 'Evicted' }) : item;
      case 17:
        return without(item, 'expireTime');
      default:
        return item;
    }
  });
}

const unreadable = new MemoryStore();
unreadable.scan = () =>
  Promise.reject(
    new LeaseError(
      'access-denied',
      'dynamodb:Scan on table "leases" in Region eu-central-1 is denied (AccessDeniedException: ' +
        'User: arn:aws:sts::123456789012:assumed-role/LeaderElectionStack-LeaseWidgetServiceRole-' +
        '1ABCDEFGHIJKL/leases is not authorized to perform: dynamodb:Scan).',
    ),
  );

const SCENES: Readonly<Record<string, (theme: 'light' | 'dark') => Promise<string>>> = {
  empty: (theme) => look([], { theme }),
  one: (theme) => look(fleet(1), { theme }),
  many: (theme) => look(fleet(500), { theme }),
  hundred: (theme) => look(fleet(500), { theme, event: { pageSize: 100, page: 2, sort: '-age' } }),
  cut: (theme) => look(fleet(40), { theme, options: { bounds: { mostLeases: 30 } } }),
  hostile: (theme) => look(hostile, { theme }),
  parameter: (theme) => look([], { theme, event: { sort: HOSTILE[0] } }),
  unreadable: (theme) => look([], { theme, store: unreadable }),
};

describe.skipIf(missing !== undefined)('in a browser, the widget', () => {
  let browser: Browser;
  let page: Page;
  /** What nothing in a widget may ever cause. */
  const happened: string[] = [];

  beforeAll(async () => {
    browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
    page = await browser.newPage();
    page.on('dialog', (dialog) => {
      happened.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => happened.push(`request: ${request.url()}`));
    page.on('pageerror', (error) => happened.push(`error: ${error.message}`));
    page.on('popup', () => happened.push('popup'));
  });
  afterAll(() => browser.close());

  /** As part of a page, parsed with it: unlike in CloudWatch, a script in it would run. */
  async function show(html: string): Promise<void> {
    // What the last one left in the window goes with it.
    await page.goto('about:blank');
    happened.length = 0;
    await page.setContent(
      `<!doctype html><body style="margin:0"><div id="widget">${html}</div></body>`,
    );
    await page.addScriptTag({ path: IN_PAGE });
  }

  /** The result of a function of in-page.js. */
  async function ask(script: string): Promise<unknown> {
    return page.evaluate(script);
  }

  const resize = (width: number) => page.setViewportSize({ width, height: 700 });
  const scenes = Object.entries(SCENES);

  test.each(scenes)('is made of harmless elements only: %s', async (_, scene) => {
    await show(await scene('light'));
    const { names, attributes, links } = (await ask('markup()')) as Record<string, string[]>;
    const elements = 'a b bdi cwdb-action div p span style table tbody td th thead tr';
    expect(names!.filter((name) => !elements.split(' ').includes(name))).toEqual([]);
    const known = 'action aria-sort class data-label display endpoint href rel scope target title';
    expect(attributes!.filter((name) => !known.split(' ').includes(name))).toEqual([]);
    const console = 'https://eu-central-1.console.aws.amazon.com/cloudwatch/home?region=';
    expect(links!.filter((link) => !link.startsWith(console))).toEqual([]);
    expect(happened).toEqual([]);
  });

  test('shows names full of markup as they are, and nothing happens', async () => {
    await show(await look(hostile));
    const leases = (await ask(`textsOf('td.ll-lease')`)) as string[];
    expect(leases.sort()).toEqual(HOSTILE.map((text) => `d/${text}`).sort());
    const holders = (await ask(`textsOf('td.ll-holder')`)) as string[];
    expect(holders.sort()).toEqual([...HOSTILE].sort());
    for (const row of await page.locator('#widget tbody tr').all()) await row.hover();
    expect(happened).toEqual([]);
  });

  test('keeps its columns in order where a name is written from right to left', async () => {
    await resize(1_200);
    await show(await look(hostile));
    const orders = (await ask('cellOrder()')) as number[][];
    expect(orders).toHaveLength(HOSTILE.length);
    expect(new Set(orders.map((order) => order.join())).size).toBe(1);
    expect(orders[0]).toEqual([...orders[0]!].sort((a, b) => a - b));
  });

  for (const theme of ['light', 'dark'] as const) {
    test.each(scenes)(`fits into any width and can be read, ${theme}: %s`, async (name, scene) => {
      await show(await scene(theme));
      for (const width of [400, 640, 800, 1_200]) {
        await resize(width);
        expect(await ask('overflowing()'), String(width)).toEqual({ outside: [], pageBy: 0 });
        expect(await ask('overlapping()'), String(width)).toEqual([]);
        const contrasts = (await ask('contrasts()')) as Record<string, number>;
        expect(Object.keys(contrasts).length).toBeGreaterThan(1);
        const low = Object.entries(contrasts).filter(([, ratio]) => ratio < 4.5);
        expect(low, String(width)).toEqual([]);
        if (WIDGET_SCREENSHOTS === undefined) continue;
        const path = join(WIDGET_SCREENSHOTS, `widget-${name}-${theme}-${width}.png`);
        await page.screenshot({ path, fullPage: name !== 'hundred' });
      }
    });
  }

  test('is paged through and sorted by clicks, also with a namespace full of markup', async () => {
    const namespace = '"><img src=x onerror=alert(1)>&amp;';
    const items = Array.from({ length: 45 }, (_, i) =>
      held(`${namespace}/${String(i).padStart(2, '0')}`, 1),
    );
    const called: string[] = [];
    await page.exposeFunction('callFunction', (endpoint: string, event: object) => {
      called.push(endpoint);
      return look(items, { event });
    });
    await show(await look(items, { event: { namespace, sort: 'lease' } }));
    const first = () => page.locator('td.ll-lease').first().textContent();
    const becomes = (lease: string) => expect.poll(first).toBe(`${namespace}/${lease}`);
    await becomes('00');
    await page.getByTitle('Next page').click();
    await becomes('20');
    await page.getByTitle('Last page').click();
    await becomes('40');
    await page.getByTitle('Sort by lease').click();
    await becomes('44');
    await page.getByTitle('Next page').click();
    await becomes('24');
    expect(called).toEqual([FUNCTION_ARN, FUNCTION_ARN, FUNCTION_ARN, FUNCTION_ARN]);
    expect(happened).toEqual([]);
  });
});
