// The table of leases as HTML, for a CloudWatch dashboard: one page of it, sorted, with what leads
// to the others. Pure: what has been read, the parameters and a moment in, a string out.

import { humanDuration } from './ages.ts';
import { isoTime } from './lease.ts';
import { SUMMARY_STATUSES, type LeaseSummary } from './lease-summary.ts';
import type { LeaseList } from './list-leases.ts';
import { button, escape, frame, name, type Look } from './widget-html.ts';
import { writeParams, type Column, type WidgetParams } from './widget-params.ts';

export interface Page {
  readonly list: LeaseList<LeaseSummary>;
  readonly params: WidgetParams;
  readonly look: Look;
  readonly nowMs: number;
  /** Which table, where. */
  readonly place: string;
}

const HEADINGS: Readonly<Record<Column, string>> = {
  lease: 'Lease',
  holder: 'Holder',
  age: 'Age',
  left: 'Time left',
  status: 'Status',
  token: 'Token',
};

export function renderPage(page: Page): string {
  const { list, params, look, nowMs, place } = page;
  const { leases } = list;
  const pages = Math.max(1, Math.ceil(leases.length / params.pageSize));
  const current = { ...params, page: Math.min(params.page, pages) };
  const from = (current.page - 1) * current.pageSize;
  const shown = sorted(leases, current.sort).slice(from, from + current.pageSize);
  const body =
    shown.length === 0
      ? `<p class="ll-empty">${emptyText(page)}</p>`
      : `${counts(leases)}<table><thead><tr>${headings(current, look)}<th class="ll-plain">` +
        `<span>Logs</span></th></tr></thead><tbody>${shown
          .map((summary) => row(summary, nowMs))
          .join('')}</tbody></table>`;
  const range = `${from + 1}–${from + shown.length} of ${leases.length}`;
  const foot =
    `<div class="ll-foot"><div class="ll-pages">${
      shown.length === 0 ? '' : pager(current, pages, range, look)
    }</div>` +
    `<div>${escape(place)}, read at ${isoTime(nowMs).slice(0, 19).replace('T', ' ')} UTC</div>` +
    '</div>';
  return frame(look, `${bound(page)}${body}${foot}`);
}

function emptyText({ list, params, place }: Page): string {
  const where = params.namespace === undefined ? '' : ` in namespace ${name(params.namespace)}`;
  return list.complete
    ? `No leases${where}. One appears here when it is first taken in ${escape(place)}.`
    : `No leases${where} in the part of the table that was read.`;
}

/** What is not shown is said. */
function bound({ list, params }: Page): string {
  const { leases, matched, complete } = list;
  if (complete && matched === leases.length) return '';
  const of = complete ? String(matched) : `at least ${matched}`;
  const why = complete ? '' : ' The table is too large to be read whole here.';
  const advice =
    params.namespace === undefined ? ' Set the parameter namespace to look at fewer.' : '';
  const showing = `Showing the first ${leases.length} of ${of} leases.`;
  return `<p class="ll-note">${showing}${why}${advice}</p>`;
}

function counts(leases: readonly LeaseSummary[]): string {
  const parts = SUMMARY_STATUSES.flatMap((status) => {
    const count = leases.filter((summary) => summary.status === status).length;
    return count === 0 ? [] : [`<span class="ll-badge ll-${status}">${count} ${status}</span>`];
  });
  return `<div class="ll-counts">${parts.join('')}</div>`;
}

function headings(params: WidgetParams, look: Look): string {
  return Object.entries(HEADINGS)
    .map(([column, heading]) => {
      const ascending = params.sort === column;
      const is = ascending || params.sort === `-${column}`;
      const arrow = is ? (ascending ? ' ▲' : ' ▼') : '';
      const sort = (ascending ? `-${column}` : column) as WidgetParams['sort'];
      const title = `title="Sort by ${heading.toLowerCase()}" class="btn ll-sort"`;
      const link = button(
        `${heading}${arrow}`,
        writeParams({ ...params, sort, page: 1 }),
        look,
        title,
      );
      const order = ascending ? 'ascending' : 'descending';
      return `<th scope="col"${is ? ` class="ll-sorted" aria-sort="${order}"` : ''}>${link}</th>`;
    })
    .join('');
}

function row(summary: LeaseSummary, nowMs: number): string {
  const { lease, status, token, ageMs, leftMs } = summary;
  const age = ageMs === undefined ? absent(summary) : escape(humanDuration(ageMs));
  const cells = [
    `<td class="ll-lease">${name(lease)}</td>`,
    `<td class="ll-holder">${holder(summary)}</td>`,
    timed('Age', 'Acquired at', age, ageMs === undefined ? undefined : nowMs - ageMs),
    timed('Left', 'Expires at', left(summary), leftMs === undefined ? undefined : nowMs + leftMs),
    `<td class="ll-status"><span class="ll-badge ll-${status}">${status}</span>` +
      `${detail(summary, nowMs)}</td>`,
    `<td class="ll-short" data-label="Token">${token ?? muted('<unknown>')}</td>`,
    `<td class="ll-short">${logs(summary)}</td>`,
  ];
  return `<tr>${cells.join('')}</tr>`;
}

function holder({ vacant, holderIdentity }: LeaseSummary): string {
  if (holderIdentity !== undefined) return name(holderIdentity);
  return muted(vacant ? '<none>' : '<unknown>');
}

function left(summary: LeaseSummary): string {
  const { leftMs } = summary;
  if (leftMs === undefined) return absent(summary);
  if (leftMs >= 0) return humanDuration(leftMs);
  return `<span class="ll-Expired">${humanDuration(-leftMs)} ago</span>`;
}

function absent({ vacant }: LeaseSummary): string {
  return muted(vacant ? '<none>' : '<unknown>');
}

function timed(label: string, what: string, html: string, epochMs: number | undefined): string {
  const known = epochMs !== undefined && Math.abs(epochMs) <= 8.64e15;
  const title = known ? ` title="${what} ${isoTime(epochMs)}"` : '';
  return `<td class="ll-short" data-label="${label}"${title}>${html}</td>`;
}

function detail({ detail: why, sinceMs }: LeaseSummary, nowMs: number): string {
  const since = sinceMs === undefined ? undefined : `for ${humanDuration(nowMs - sinceMs)}`;
  const parts = [
    ...(why === undefined ? [] : [name(why)]),
    ...(since === undefined ? [] : [escape(since)]),
  ];
  return parts.length === 0 ? '' : `<span class="ll-detail">${parts.join(', ')}</span>`;
}

function logs({ logLink, logStream }: LeaseSummary): string {
  if (logLink === undefined) return muted('<none>');
  const title = logStream === undefined ? '' : ` title="${escape(logStream)}"`;
  return `<a href="${escape(logLink)}" target="_blank" rel="noopener noreferrer"${title}>logs</a>`;
}

function muted(text: string): string {
  return `<span class="ll-muted">${escape(text)}</span>`;
}

function pager(params: WidgetParams, pages: number, range: string, look: Look): string {
  const to = (label: string, page: number, title: string) =>
    page < 1 || page > pages || page === params.page
      ? ''
      : button(label, writeParams({ ...params, page }), look, `title="${title}" class="btn"`);
  if (pages === 1 || look.endpoint === undefined) return `<span>${range}</span>`;
  return [
    to('«', 1, 'First page'),
    to('‹', params.page - 1, 'Previous page'),
    `<span>${range}</span>`,
    to('›', params.page + 1, 'Next page'),
    to('»', pages, 'Last page'),
  ].join('');
}

/** By the column, and within equal values by the lease. What is not known comes last either way. */
function sorted(summaries: readonly LeaseSummary[], sort: WidgetParams['sort']): LeaseSummary[] {
  const descending = sort.startsWith('-');
  const valueOf = VALUE_OF[(descending ? sort.slice(1) : sort) as Column];
  const byColumn = (a: LeaseSummary, b: LeaseSummary): number => {
    const [one, other] = [valueOf(a), valueOf(b)];
    if (one === undefined || other === undefined) {
      return Number(one === undefined) - Number(other === undefined);
    }
    return compare(one, other) * (descending ? -1 : 1);
  };
  return summaries.toSorted((a, b) => byColumn(a, b) || compare(a.lease, b.lease));
}

const VALUE_OF: Readonly<Record<Column, (of: LeaseSummary) => string | number | undefined>> = {
  lease: ({ lease }) => lease,
  holder: ({ holderIdentity }) => holderIdentity,
  age: ({ ageMs }) => ageMs,
  left: ({ leftMs }) => leftMs,
  status: ({ status }) => SUMMARY_STATUSES.indexOf(status),
  token: ({ token }) => token,
};

function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
