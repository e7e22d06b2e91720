// Figures and the tables they are shown in.

export interface Spread {
  readonly min: number;
  readonly median: number;
  readonly p99: number;
  readonly max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return {
    min: sorted[0] ?? NaN,
    median: quantile(sorted, 0.5),
    p99: quantile(sorted, 0.99),
    max: sorted.at(-1) ?? NaN,
  };
}

/** Of sorted values: the smallest that so much of them does not exceed. */
function quantile(sorted: readonly number[], fraction: number): number {
  return sorted[Math.max(0, Math.ceil(fraction * sorted.length) - 1)] ?? NaN;
}

export const ms = (value: number): string => (Number.isFinite(value) ? value.toFixed(1) : '-');

export const ratio = (value: number, to: number): string =>
  Number.isFinite(value / to) ? `${(value / to).toFixed(2)}x` : '-';

export type Row = Readonly<Record<string, string | number>>;

/** One measurement: what was asked for, what was found, and what became of it. */
export interface Measured {
  readonly title: string;
  /** How it was measured, in a sentence or two. */
  readonly how: string;
  readonly rows: readonly Row[];
  readonly goals: readonly Goal[];
  readonly chart?: Chart;
  /** When, and how busy the machine was. */
  readonly conditions?: string;
}

/** Bars in groups, the longest as long as the chart is wide. */
export interface Chart {
  readonly file: string;
  readonly title: string;
  readonly unit: string;
  readonly groups: readonly {
    readonly label: string;
    readonly bars: readonly Bar[];
  }[];
}

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** As it is shown. */
  readonly shown: string;
  readonly own: boolean;
}

export interface Goal {
  readonly what: string;
  readonly found: string;
  readonly met: boolean;
}

export function goal(what: string, found: number | string, met: boolean): Goal {
  const shown = typeof found === 'number' ? Number(found.toFixed(2)).toLocaleString('en') : found;
  return { what, found: shown, met };
}

export function markdownTable(rows: readonly Row[]): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const line = (cells: readonly (string | number)[]) => `| ${cells.join(' | ')} |`;
  return [
    line(columns),
    line(columns.map(() => '---')),
    ...rows.map((row) => line(columns.map((column) => row[column] ?? ''))),
  ].join('\n');
}
