import { describe, expect, test } from 'vitest';
import {
  inNamespaces,
  LEASE_COLUMNS,
  listed,
  sorted,
  stateOf,
  WIDE_COLUMNS,
} from '../../src/cli-columns.ts';
import { coloured, cut, plain, printable, renderTable, widthOf } from '../../src/cli-text.ts';
import { renderTop } from '../../src/cli-top.ts';
import { isoTime, readLease, type Item } from '../../src/lease.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);

function row(lease: string, item: Item = {}) {
  return listed(readLease(lease, { version: { N: '7' }, ...item }), NOW_MS);
}

function heldBy(holder: string, agoMs = 185_000, leftMs = 9_000): Item {
  return {
    kind: { S: 'leader' },
    holderIdentity: { S: holder },
    acquireTime: { S: isoTime(NOW_MS - agoMs) },
    expireTime: { N: String(NOW_MS + leftMs) },
    leaseTransitions: { N: '12' },
    leaseDurationSeconds: { N: '15' },
  };
}

const rows = [
  row('default/report', heldBy('report:7/stream/0f8fad5b-d9cb-469f-a165-70867728950e')),
  row('default/夜間バッチ', heldBy('wörker/1', 90_000_000, -600_000)),
  row('default/gone'),
];

function table(width?: number, columns = LEASE_COLUMNS, of = rows) {
  return renderTable(columns, of, { paint: plain, width, headers: true });
}

describe('a table of leases', () => {
  test('is as wide as it must be where nothing limits it', () => {
    const holder = 'report:7/stream/0f8fad5b-d9cb-469f-a165-70867728950e';
    const blanks = ' '.repeat(holder.length);
    const at = (text: string) => (text + blanks).slice(0, holder.length);
    expect(table()).toEqual([
      `NAME         ${at('HOLDER')}   STATUS    AGE      EXPIRES   TOKEN`,
      `report       ${holder}   Ready     3m5s     in 9s     12`,
      `夜間バッチ   ${at('wörker/1')}   Expired   25h      10m ago   12`,
      `gone         ${at('<none>')}   Vacant    <none>   <none>    0`,
    ]);
  });

  test.each([40, 60, 72, 80, 120, 200])('fits into %i cells, if its columns can', (width) => {
    for (const line of table(width)) {
      // What does not give way: status, times and token.
      expect(widthOf(line)).toBeLessThanOrEqual(Math.max(width, 71));
    }
    expect(table(width)[1]).toContain('Ready');
    expect(table(width).join('\n')).toContain('夜間');
  });

  test('aligns columns by cells, not by characters', () => {
    const starts = table().map((line) =>
      widthOf(line.slice(0, line.search(/STATUS|Ready|Expired|Vacant/))),
    );
    expect(new Set(starts).size).toBe(1);
  });

  test('lets nothing of a record reach the terminal as a control character', () => {
    const nasty = row('default/a\u001b[2Jb', heldBy('x\u0007\u202ey\nz'));
    for (const line of table(undefined, WIDE_COLUMNS as typeof LEASE_COLUMNS, [nasty])) {
      // eslint-disable-next-line no-control-regex
      expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u202e]/);
    }
    expect(printable('a\u001bb')).toBe('a\\u{1b}b');
  });

  test('of none has its titles only; of 5,000, a line for each, quickly', () => {
    expect(table(80, LEASE_COLUMNS, [])).toHaveLength(1);
    const many = Array.from({ length: 5_000 }, (_, index) =>
      row(`default/lease-${index}`, heldBy(`holder-${index}`)),
    );
    const lines = renderTable(inNamespaces(WIDE_COLUMNS), many, {
      paint: coloured,
      width: 100,
      headers: false,
    });
    expect(lines).toHaveLength(5_000);
    expect(lines[4_999]).toContain('lease-4999');
  });

  test('is coloured without moving anything', () => {
    const painted = renderTable(LEASE_COLUMNS, rows, { paint: coloured, headers: true });
    expect(painted[1]).toContain('\u001b[32mReady\u001b[0m');
    // eslint-disable-next-line no-control-regex
    expect(painted.map((line) => line.replace(/\u001b\[\d+m/g, ''))).toEqual(table());
  });
});

describe('the width of a text', () => {
  test.each([
    ['', 0],
    ['report', 6],
    ['évén', 4],
    ['e\u0301', 1],
    ['夜間', 4],
    ['ﾊﾞ', 2],
    ['ﾊﾝｶｸ', 4],
    ['ㄅㄆㄇ', 6],
    ['ꀀ㈱・', 6],
    ['\u{20000}', 2],
    ['नमस्ते', 4],
    ['ที่นี่', 2],
    ['שָׁלוֹם', 4],
    ['Ａ', 2],
    ['👩‍👩‍👧', 2],
    ['🇸🇪', 2],
    ['❤️', 2],
    ['각', 2],
    ['각'.normalize('NFD'), 2],
  ])('%s is %i', (text, width) => {
    expect(widthOf(text)).toBe(width);
  });

  test('is kept by a cut, which splits no character', () => {
    expect(cut('夜間バッチ', 5)).toBe('夜間…');
    expect(cut('夜間バッチ', 4)).toBe('夜…');
    expect(cut('👩‍👩‍👧👩‍👩‍👧', 3)).toBe('👩‍👩‍👧…');
    expect(cut('report', 6)).toBe('report');
    expect(cut('report', 1)).toBe('…');
    expect(cut('report', 0)).toBe('');
  });
});

describe('the order of leases', () => {
  const names = (by?: string) => sorted(rows, by).map(({ record }) => record.lease.slice(8));

  test.each([
    [undefined, ['gone', 'report', '夜間バッチ']],
    ['age', ['report', '夜間バッチ', 'gone']],
    ['expires', ['夜間バッチ', 'report', 'gone']],
    ['status', ['夜間バッチ', 'gone', 'report']],
    ['token', ['gone', 'report', '夜間バッチ']],
    ['.spec.holderIdentity', ['report', '夜間バッチ', 'gone']],
    ['{.metadata.name}', ['gone', 'report', '夜間バッチ']],
    ['.no.such.field', ['gone', 'report', '夜間バッチ']],
  ])('by %s', (by, expected) => {
    expect(names(by)).toEqual(expected);
  });

  test.each(['', 'nope', 'constructor', '.__proto__[0]'])('cannot be by %j', (by) => {
    expect(() => names(by)).toThrow(/--sort-by is/);
  });
});

test('a renewal is no change of state, all else is', () => {
  const state = (item: Item) => stateOf(row('default/x', { ...heldBy('a'), ...item }));
  const was = state({});
  expect(state({ renewTime: { S: isoTime(NOW_MS) }, version: { N: '8' } })).toBe(was);
  expect(state({ holderIdentity: { S: 'b' } })).not.toBe(was);
  expect(state({ leaseTransitions: { N: '13' } })).not.toBe(was);
  expect(state({ suspended: { M: {} } })).not.toBe(was);
  expect(state({ expireTime: { N: '1' } })).not.toBe(was);
});

describe('the live screen', () => {
  const screen = (columns: number, height: number, of = rows) =>
    renderTop({ rows: of, nowMs: NOW_MS, complete: true }, { columns, rows: height }, plain, {
      title: 'table "leases"',
      allNamespaces: true,
    });

  test.each([
    [80, 24],
    [200, 50],
    [40, 10],
    [20, 5],
    [5, 2],
    [1, 1],
  ])('never leaves a terminal of %i x %i', (columns, height) => {
    for (const count of [0, 1, 5_000]) {
      const many = Array.from({ length: count }, (_, index) => row(`夜間/${index}`, heldBy('x')));
      const lines = screen(columns, height, many);
      expect(lines.length).toBeLessThanOrEqual(height);
      for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(columns);
    }
  });

  test('has the worst first, and says how many more there are', () => {
    const lines = screen(120, 24);
    expect(lines[1]).toBe('3 leases: 1 Expired, 1 Vacant, 1 Ready');
    expect(lines[4]).toContain('夜間バッチ');
    expect(screen(120, 6).at(-1)).toBe('… and 2 more');
  });
});
