// The leases (`top`) of a table on a screen that is kept up to date. What is drawn is decided by a
// pure function; what draws it gives the terminal back however it ends.

import { sorted, TOP_COLUMNS, inNamespaces, type Listed } from './cli-columns.ts';
import {
  everyLook,
  look,
  paintOf,
  queryOf,
  refuseForeign,
  type GetOptions,
  type Look,
} from './cli-get.ts';
import type { Host, Size } from './cli-process.ts';
import { CliError, openTable } from './cli-table.ts';
import { cut, printable, renderTable, type Paint } from './cli-text.ts';
import { SUMMARY_STATUSES } from './lease-summary.ts';
import { isoTime } from './lease.ts';

const ENTER = '\u001b[?1049h\u001b[?25l';
const LEAVE = '\u001b[?25h\u001b[?1049l';
const HOME = '\u001b[H';
const CLEAR_LINE = '\u001b[K';
const CLEAR_BELOW = '\u001b[J';

export async function top(host: Host, options: GetOptions): Promise<number> {
  if (host.size() === undefined) {
    throw new CliError('error: top needs a terminal; try: lambda-lease get -w');
  }
  const query = queryOf([], options, options.kind);
  sorted([], options.sortBy);
  const table = await openTable(options);
  let found = await look(table, query);
  await refuseForeign(table, found);
  const style = { title: table.store.description, allNamespaces: query.namespace === undefined };
  let trouble: string | undefined;
  const draw = () => {
    const size = host.size() ?? { columns: 80, rows: 24 };
    const at = { ...style, sortBy: options.sortBy, trouble };
    const lines = renderTop(found, size, paintOf(host), at);
    const text = lines.map((line) => `${line}${CLEAR_LINE}`).join('\r\n');
    host.out(`${HOME}${text}${CLEAR_BELOW}`);
  };
  const quit = new AbortController();
  host.out(ENTER);
  const forgetKeys = host.onKey((key) => {
    if (key === 'q' || key === '\u0003' || key === '\u001b') quit.abort();
  });
  const forgetSize = host.onResize(draw);
  const told = {
    ...host,
    err: (text: string) => {
      trouble = text.split('\n')[0];
      draw();
    },
  };
  const onLook = (next: Look) => {
    found = next;
    trouble = undefined;
    draw();
  };
  try {
    draw();
    await everyLook(told, table, query, onLook, quit.signal);
    return 0;
  } finally {
    forgetSize();
    forgetKeys();
    host.out(LEAVE);
  }
}

interface TopStyle {
  readonly title: string;
  readonly allNamespaces: boolean;
  readonly sortBy?: string | undefined;
  /** Why what is shown may be old. */
  readonly trouble?: string | undefined;
}

/** Never more lines than the screen has, nor wider ones. */
export function renderTop(
  { rows, nowMs, complete }: Pick<Look, 'rows' | 'nowMs' | 'complete'>,
  { columns, rows: height }: Size,
  paint: Paint,
  { title, allNamespaces, sortBy = 'status', trouble }: TopStyle,
): string[] {
  const counts = SUMMARY_STATUSES.flatMap((status) => {
    const count = rows.filter((row: Listed) => row.summary.status === status).length;
    return count === 0 ? [] : [`${count} ${status}`];
  });
  const head = [
    `${printable(title)} · ${isoTime(nowMs).slice(0, 19)}Z · q to quit`,
    rows.length === 0 ? 'No leases' : `${rows.length} leases: ${counts.join(', ')}`,
    trouble === undefined ? '' : printable(trouble),
  ].map((line, index) => {
    const short = cut(line, columns);
    return index === 0 ? paint('bold', short) : short;
  });
  const room = Math.max(0, height - head.length - 2);
  const shown = sorted(rows, sortBy).slice(0, room);
  const all = allNamespaces ? inNamespaces(TOP_COLUMNS) : TOP_COLUMNS;
  // A line that no column can make short enough is cut, without its colours.
  const widest = (painted: Paint) =>
    renderTable(all, shown, { paint: painted, width: columns, headers: true });
  const bare = widest((_, text) => text);
  const painted = widest(paint);
  const table = bare.map((line, index) => {
    const short = cut(line, columns);
    return short === line ? (painted[index] ?? line) : short;
  });
  const hidden = rows.length - shown.length;
  const foot = [
    ...(hidden > 0 ? [`… and ${hidden} more`] : []),
    ...(complete ? [] : ['The table was not read to its end.']),
  ].join(' ');
  return [...head, ...table, ...(foot === '' ? [] : [cut(foot, columns)])].slice(0, height);
}
