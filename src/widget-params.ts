// What the widget of the leases can be told on a dashboard, and what it says of itself there.

import { byteLength } from './holder.ts';
import { invalid, show } from './options.ts';
import { BYTE_BUDGET } from './schema.ts';

export const COLUMNS = ['lease', 'holder', 'age', 'left', 'status', 'token'] as const;
export type Column = (typeof COLUMNS)[number];
export type Sort = Column | `-${Column}`;

export interface WidgetParams {
  /** Only the leases of this namespace. Default: of all. */
  readonly namespace: string | undefined;
  /** By this column, the other way round with a minus. Default `status`: the worst first. */
  readonly sort: Sort;
  /** From 1. One beyond the last shows the last. */
  readonly page: number;
  /** Leases on a page, 1 to 100. Default 20. */
  readonly pageSize: number;
}

export const DEFAULT_PARAMS: WidgetParams = {
  namespace: undefined,
  sort: 'status',
  page: 1,
  pageSize: 20,
};

const MOST_ON_A_PAGE = 100;
const KNOWN = ['namespace', 'sort', 'page', 'pageSize'];
/** What CloudWatch adds. */
const NOT_OURS = ['widgetContext', 'describe'];

/** @throws LeaseError `invalid-configuration` that names the parameter, its value and the rule. */
export function readParams(event: unknown): WidgetParams {
  // A widget without parameters may be called with nothing at all.
  if (event === undefined || event === null) return DEFAULT_PARAMS;
  if (typeof event !== 'object' || Array.isArray(event)) {
    throw invalid(`The parameters are ${show(event)}; they must be names with values.`);
  }
  const given = event as Readonly<Record<string, unknown>>;
  const unknown = Object.keys(given).find((name) => ![...KNOWN, ...NOT_OURS].includes(name));
  if (unknown !== undefined) {
    throw invalid(`There is no parameter ${show(unknown)}. There are: ${KNOWN.join(', ')}.`);
  }
  return {
    namespace: readNamespace(given['namespace']),
    sort: readSort(given['sort']),
    page: readCount('page', given['page'], DEFAULT_PARAMS.page, Number.MAX_SAFE_INTEGER),
    pageSize: readCount('pageSize', given['pageSize'], DEFAULT_PARAMS.pageSize, MOST_ON_A_PAGE),
  };
}

function readNamespace(value: unknown): string | undefined {
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string' || value.includes('/')) {
    throw invalid(`namespace is ${show(value)}; it must be a text without a slash.`);
  }
  if (byteLength(value) > BYTE_BUDGET.namespace) {
    throw invalid(
      `namespace is ${byteLength(value)} bytes long; it must be at most ${BYTE_BUDGET.namespace}.`,
    );
  }
  return value;
}

function readSort(value: unknown): Sort {
  if (value === undefined || value === null) return DEFAULT_PARAMS.sort;
  const found = COLUMNS.flatMap((column): Sort[] => [column, `-${column}`]).find(
    (sort) => sort === value,
  );
  if (found !== undefined) return found;
  throw invalid(
    `sort is ${show(value)}; it must be one of ${COLUMNS.join(', ')}, with a minus before it for ` +
      'the other way round.',
  );
}

function readCount(name: string, value: unknown, byDefault: number, most: number): number {
  if (value === undefined || value === null) return byDefault;
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 1 && value <= most) {
    return value;
  }
  const range = most === Number.MAX_SAFE_INTEGER ? 'of at least 1' : `from 1 to ${most}`;
  throw invalid(`${name} is ${show(value)}; it must be a whole number ${range}.`);
}

/** What a click asks for: the same names, so that it is read as it was written. */
export function writeParams({ namespace, ...others }: WidgetParams): Record<string, unknown> {
  return namespace === undefined ? others : { namespace, ...others };
}

/** The answer to `describe`: CloudWatch shows it where the widget is edited. */
export const WIDGET_DOCUMENTATION = `## Leases

The live table of the leases in one table of lambda-lease. It only reads.

- **Lease**: its namespace and name.
- **Holder**: who holds it, or \`<none>\`.
- **Age**: since this holder acquired it.
- **Time left**: until it expires, or how long ago it did.
- **Status**, the worst first:
  - \`Evicted\`: the lifecycle monitor gave the holder up, and nobody has taken the lease since.
  - \`NotReady\`: the monitor has found the holder silent, or the holder says so itself.
  - \`Expired\`: not renewed in time, and not judged yet.
  - \`Unknown\`: the record does not tell.
  - \`Suspended\`: stopped by an operator.
  - \`Vacant\`: free.
  - \`Ready\`: held.
- **Token**: the fencing token, which is how often the lease has been acquired.
- **Logs**: the last holder's log stream.

### Parameters

All are optional.

- \`namespace\`: only the leases of this namespace. Default: of all.
- \`sort\`: \`lease\`, \`holder\`, \`age\`, \`left\`, \`status\` or \`token\`; with a minus, as
  \`-age\`, the other way round. Default: \`status\`.
- \`page\`: which page, from 1. Default: 1.
- \`pageSize\`: leases on a page, 1 to 100. Default: 20.

### Example parameters

\`\`\` yaml
namespace: default
sort: status
page: 1
pageSize: 20
\`\`\`
`;
