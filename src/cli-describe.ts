// Everything about one lease, for somebody who has to decide something. Pure: a record and a moment
// in, lines out.

import { humanDuration } from './ages.ts';
import { holderOf, listed } from './cli-columns.ts';
import { textsOf, timeOf } from './cli-manifest.ts';
import { renderFields, renderTable, type Paint } from './cli-text.ts';
import { lastRunOf } from './job.ts';
import { asNumber, isoTime, splitLeaseKey, type Intervention, type LeaseRecord } from './lease.ts';
import { readVerdict } from './stored-verdict.ts';

type Field = readonly [string, string | readonly string[]];

export function describeLease(record: LeaseRecord, nowMs: number, paint: Paint): string[] {
  const at = listed(record, nowMs);
  const { summary } = at;
  const { namespace, name } = splitLeaseKey(record.lease);
  const { labels, annotations } = textsOf(record);
  const since = ms(summary.sinceMs, nowMs);
  const status = [
    summary.status,
    ...(summary.detail === undefined ? [] : [`(${summary.detail})`]),
    ...(since === undefined ? [] : [`since ${since}`]),
  ].join(' ');
  const fields: Field[] = [
    ['Name', name],
    ['Namespace', namespace],
    ['Kind', record.kind ?? '<unknown>'],
    ['Labels', pairs(labels)],
    ['Annotations', pairs(annotations)],
    ['Status', status],
    ['Holder', holderOf(at)],
    ['Fencing Token', String(summary.token ?? '<unknown>')],
    ['Version', record.version === undefined ? '<none>' : String(record.version)],
    [
      'Duration',
      record.leaseDurationMs === undefined ? '<unknown>' : `${record.leaseDurationMs / 1_000}s`,
    ],
    ['Acquired', text(record.acquireTime, nowMs)],
    ['Renewed', text(record.renewTime, nowMs)],
    ['Expires', record.vacant ? '<none>' : (ms(record.expireTimeMs, nowMs) ?? '<unknown>')],
    ...optional('Not Before', ms(record.notBeforeMs, nowMs)),
    ...optional('Suspended', statement(record.suspended, nowMs)),
    ...optional('Step Down', statement(record.stepDownRequested, nowMs)),
    ...optional('Last Tick', ms(record.lastTickMs, nowMs)),
    ...optional('Due', ms(asNumber(record.raw['dueTime']), nowMs)),
    ...run(record, nowMs),
    ['Logs', summary.logLink ?? logsInWords(annotations)],
    ...(readVerdict(record) === undefined ? optional('Condition', '<none>') : []),
  ];
  return [
    ...(record.corrupt === undefined ? [] : [paint('red', `Warning: ${record.corrupt}`)]),
    ...renderFields(fields),
    ...verdict(record, nowMs),
  ];
}

function run(record: LeaseRecord, nowMs: number): Field[] {
  const last = lastRunOf(record);
  if (last === undefined) return [];
  const took = last.durationMs === undefined ? '' : `, took ${humanDuration(last.durationMs)}`;
  const ended = ms(last.end?.getTime(), nowMs);
  return [
    [
      'Last Run',
      [
        `${last.outcome ?? '<unknown>'}${ended === undefined ? '' : `, ended ${ended}`}${took}`,
        ...(last.error === undefined ? [] : [last.error]),
        ...(last.failures === 0 ? [] : [`failures in a row: ${last.failures}`]),
      ],
    ],
  ];
}

/** What there is to look for where no console can be linked. */
function logsInWords(annotations: Readonly<Record<string, string>>): string {
  const known = ['logGroup', 'function', 'logStream', 'host', 'pid', 'requestId'].flatMap((name) =>
    annotations[name] === undefined ? [] : [`${name} ${annotations[name]}`],
  );
  return known.length === 0 ? '<unknown>' : known.join(', ');
}

/** The monitor's last word, as kubectl has conditions and events. */
function verdict(record: LeaseRecord, nowMs: number): string[] {
  const last = readVerdict(record);
  if (last === undefined) return [];
  const age = humanDuration(nowMs - last.sinceMs);
  const condition = renderTable(
    [
      { title: 'Status', cell: () => last.status },
      { title: 'Reason', cell: () => last.reason ?? '<none>' },
      { title: 'Age', cell: () => age },
      { title: 'Seen Version', cell: () => (last.seen === '' ? '<none>' : last.seen) },
    ],
    [last],
    { paint: (_, text) => text, headers: true },
  );
  const { event } = last;
  const events =
    event === undefined
      ? ['Events:     <none>  (published ones are in EventBridge)']
      : [
          'Events:',
          ...renderTable(
            [
              { title: 'Type', cell: () => event.type },
              { title: 'Age', cell: () => humanDuration(nowMs - event.atMs) },
              { title: 'Holder', cell: () => event.holderIdentity ?? '<none>' },
              { title: 'Token', cell: () => String(event.token) },
              { title: 'Published', cell: () => 'not yet' },
            ],
            [event],
            { paint: (_, text) => text, headers: true },
          ).map((line) => `  ${line}`),
        ];
  return ['Condition:', ...condition.map((line) => `  ${line}`), ...events];
}

function optional(name: string, value: string | undefined): Field[] {
  return value === undefined ? [] : [[name, value]];
}

function pairs(texts: Readonly<Record<string, string>>): string[] {
  return Object.entries(texts)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`);
}

function statement(said: Intervention | undefined, nowMs: number): string | undefined {
  if (said === undefined) return undefined;
  const when = said.since === undefined ? 'yes' : `since ${text(said.since, nowMs)}`;
  return [when, said.by === undefined ? '' : ` by ${said.by}`, said.why && `: ${said.why}`]
    .filter((part) => part !== undefined)
    .join('');
}

function text(iso: string | undefined, nowMs: number): string {
  if (iso === undefined) return '<none>';
  return ms(Date.parse(iso), nowMs) ?? `${iso} <invalid>`;
}

function ms(epochMs: number | undefined, nowMs: number): string | undefined {
  if (epochMs === undefined || timeOf(epochMs) === undefined || Number.isNaN(epochMs)) {
    return undefined;
  }
  const agoMs = nowMs - epochMs;
  const age = agoMs >= 0 ? `${humanDuration(agoMs)} ago` : `in ${humanDuration(-agoMs)}`;
  return `${isoTime(epochMs)} (${age})`;
}
