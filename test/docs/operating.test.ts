// Whatever an operator may see is on the page that says what it means: statuses, alarms, events,
// metrics, errors, reasons, log lines. Each list is taken from the source.

import { readdirSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { DETAIL_TYPES } from '../../src/events.ts';
import { SUMMARY_STATUSES } from '../../src/lease-summary.ts';
import { firstCellsOf, root, sectionOf, textOf } from './pages.ts';

const page = textOf('docs/operating.md');
const rowsOf = (heading: string) => firstCellsOf(sectionOf(page, heading)).join('\n');

const sources = ['src', 'functions', 'lib'].flatMap((folder) =>
  readdirSync(`${root}${folder}`).map((file) => textOf(`${folder}/${file}`)),
);
const all = sources.join('\n');
const found = (text: string, pattern: RegExp) => [
  ...new Set([...text.matchAll(pattern)].map(([, name = '']) => name)),
];

const alarms = [
  ...found(textOf('lib/lease-alarms.ts'), /\balarm\('(\w+)'/g),
  ...found(textOf('lib/singleton-function.ts'), /makeAlarm\(this, '(\w+)'/g),
  ...found(textOf('lib/lease-alarms.ts'), /new CompositeAlarm\(this, '(\w+)'/g),
];
const metrics = [
  ...found(textOf('src/pass-report.ts'), /\b(?:count|addMetric)\('(\w+)'/g),
  ...found(textOf('src/scheduled-job.ts'), /'(Ticks?[A-Z]\w+)'/g),
];
const codes = found(textOf('src/errors.ts'), /^ {2}\| '([a-z-]+)'/gm);
const reasons = found(
  /readonly reason: ([^;]+);/.exec(textOf('src/refusal.ts'))?.[1] ?? '',
  /'([\w ]+)'/g,
);
const lines = [...all.matchAll(/logger\.(debug|info|warn|error)\(\s*'([^']+)'/g)].map(
  ([, level = '', message = '']) => `${level.toUpperCase()} \`${message}`,
);

describe('the page for operators', () => {
  test.each([
    { what: 'status', heading: '## Statuses', names: [...SUMMARY_STATUSES], least: 7 },
    { what: 'alarm', heading: '## Alarms', names: alarms, least: 12 },
    { what: 'event', heading: '## Events', names: Object.values(DETAIL_TYPES), least: 5 },
    { what: 'metric', heading: '## Metrics', names: metrics, least: 18 },
    { what: 'error', heading: '## Errors', names: codes, least: 17 },
    { what: 'reason', heading: '## Skipped runs', names: reasons, least: 5 },
  ])('says what each $what means and what to do', ({ heading, names, least }) => {
    expect(names.length).toBeGreaterThanOrEqual(least);
    const rows = rowsOf(heading);
    expect(names.filter((name) => !rows.includes(`\`${name}\``))).toEqual([]);
  });

  test('and names no row that nobody can see', () => {
    const known = new Set([...SUMMARY_STATUSES, ...alarms, ...Object.values(DETAIL_TYPES)]);
    for (const name of [...metrics, ...codes, ...reasons]) known.add(name);
    const headings = ['Statuses', 'Alarms', 'Events', 'Metrics', 'Errors', 'Skipped runs'];
    const named = headings.flatMap((heading) => found(rowsOf(`## ${heading}`), /`([^`]+)`/g));
    expect(named.filter((name) => !known.has(name) && name !== 'reason')).toEqual([]);
  });

  test('tells each log line, with its level', () => {
    expect(lines.length).toBeGreaterThan(25);
    const rows = rowsOf('## Log lines').replaceAll(' …', '');
    const said = (line: string) =>
      rows
        .split('\n')
        .some((row) => row !== '' && line.startsWith(row.replace(/`$/, '').trimEnd()));
    expect(lines.filter((line) => !said(line))).toEqual([]);
    const rowsTold = rows.split('\n').filter((row) => /^(?:DEBUG|INFO|WARN|ERROR) /.test(row));
    const real = (row: string) =>
      lines.some((line) => line.startsWith(row.replace(/`$/, '').trimEnd()));
    expect(rowsTold.filter((row) => !real(row))).toEqual([]);
  });
});
