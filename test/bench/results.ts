// Where results go: the terminal, and the page and the charts beside this file.

import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus, loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { svgOf } from './chart.ts';
import { LATENCY_MS } from './crew.ts';
import { markdownTable, type Measured } from './figures.ts';
import { UNMEASURED } from './peers.ts';

export function print(measured: Measured): void {
  console.log(`\n${measured.title}\n${measured.how}`);
  // The first column has no name in a page; here it would be lost.
  console.table(
    measured.rows.map(({ '': who, ...row }) => (who === undefined ? row : { who, ...row })),
  );
  for (const { what, found, met } of measured.goals) {
    console.log(`${met ? 'met   ' : 'MISSED'} ${what}: ${found}`);
  }
}

/** Sections of measurements that were not made this time stay as they are. */
export function write(all: readonly Measured[]): void {
  const page = here('results.md');
  const before = existsSync(page)
    ? readFileSync(page, 'utf8')
        .split(/^(?=## )/m)
        .slice(1)
    : [];
  const sections = new Map(before.map((section) => [titleOf(section), section.trim()]));
  for (const measured of all) sections.set(measured.title, sectionOf(measured));
  writeFileSync(page, `${[head(), ...sections.values()].join('\n\n')}\n`);
  for (const { chart } of all) {
    if (chart !== undefined) writeFileSync(here(chart.file), svgOf(chart));
  }
}

function titleOf(section: string): string {
  return section.slice(3, section.indexOf('\n')).trim();
}

function sectionOf({ title, how, rows, goals, chart, conditions }: Measured): string {
  return [
    `## ${title}`,
    how,
    markdownTable(rows),
    ...(chart === undefined ? [] : [`![${chart.title}](${chart.file})`]),
    goals
      .map(({ what, found, met }) => `- ${met ? 'met' : '**missed**'}: ${what}: ${found}`)
      .join('\n'),
    `(${conditions ?? conditionsNow()})`,
  ].join('\n\n');
}

/** A busy machine is slower, and its p99 is the machine's. */
export function conditionsNow(): string {
  const load = loadavg().map((each) => each.toFixed(1));
  return `${new Date().toISOString().slice(0, 10)}, commit ${commit()}, load average ${load.join(', ')}`;
}

function head(): string {
  const packages = lockedVersions(here('peers/package-lock.json'), [
    'dynamodb-lock-client',
    'aws-sdk',
    '@deliveryhero/dynamodb-lock',
    '@aws-lambda-powertools/idempotency',
  ]);
  const own = lockedVersions(here('../../package-lock.json'), ['@aws-sdk/client-dynamodb']);
  const [cpu] = cpus();
  return [
    '# Measured',
    'Written by `npm run bench`. ' +
      `Everything passes one proxy that counts and adds ${LATENCY_MS} ms each way, before an ` +
      'embedded DynamoDB; sections are watched by an independent witness. Compare figures within ' +
      'one table only: they were taken in one run, taking turns.',
    [
      `- ${cpus().length} cores (${cpu?.model ?? 'unknown'}), ` +
        `${Math.round(totalmem() / 2 ** 30)} GB, Node ${process.versions.node}`,
      `- ${[...own, ...packages].join(', ')}; where it was measured, the Java client is 1.4.0`,
      `- not measured: ${UNMEASURED}`,
    ].join('\n'),
  ].join('\n\n');
}

function lockedVersions(lockFile: string, names: readonly string[]): string[] {
  const { packages } = JSON.parse(readFileSync(lockFile, 'utf8')) as {
    packages: Record<string, { version?: string }>;
  };
  return names.map((name) => `${name} ${packages[`node_modules/${name}`]?.version ?? '?'}`);
}

function commit(): string {
  try {
    return execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    return 'unknown';
  }
}

function here(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
