// How long ago, as kubectl says it: `45s`, `2m5s`, `12m`, `3h20m`, `3d4h`. No imports.

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const YEAR_MS = 365 * DAY_MS;

/**
 * The two largest units that still tell something, the second only while the first is small and
 * not when it is 0. Two machines' clocks differ a little: what lies less than 2 s ahead is `0s`;
 * beyond that it is `<invalid>`, as is what is no number.
 */
export function humanDuration(ms: number): string {
  if (Number.isNaN(ms) || ms <= -2 * SECOND_MS) return '<invalid>';
  if (ms < SECOND_MS) return '0s';
  if (ms < 2 * MINUTE_MS) return `${count(ms, SECOND_MS)}s`;
  if (ms < 10 * MINUTE_MS) return two(ms, MINUTE_MS, 'm', SECOND_MS, 's');
  if (ms < 3 * HOUR_MS) return `${count(ms, MINUTE_MS)}m`;
  if (ms < 8 * HOUR_MS) return two(ms, HOUR_MS, 'h', MINUTE_MS, 'm');
  if (ms < 2 * DAY_MS) return `${count(ms, HOUR_MS)}h`;
  if (ms < 8 * DAY_MS) return two(ms, DAY_MS, 'd', HOUR_MS, 'h');
  if (ms < 2 * YEAR_MS) return `${count(ms, DAY_MS)}d`;
  if (ms < 8 * YEAR_MS) return two(ms, YEAR_MS, 'y', DAY_MS, 'd');
  return `${count(ms, YEAR_MS)}y`;
}

function two(ms: number, largeMs: number, large: string, smallMs: number, small: string): string {
  const rest = count(ms % largeMs, smallMs);
  return `${count(ms, largeMs)}${large}${rest === 0 ? '' : `${rest}${small}`}`;
}

function count(ms: number, unitMs: number): number {
  return Math.floor(ms / unitMs);
}
