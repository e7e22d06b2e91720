// The widget of the leases: from CloudWatch's event to the HTML that it shows. Reads the table, and
// never fails: what is wrong is said where somebody looks, in the widget.

import type { Clock } from './clock.ts';
import type { Logger } from './environment.ts';
import { describeError, isLeaseError } from './errors.ts';
import { summarise } from './lease-summary.ts';
import { listLeases, type ListBounds } from './list-leases.ts';
import { show } from './options.ts';
import type { WatchableStore } from './store.ts';
import { message, type Look } from './widget-html.ts';
import { renderPage } from './widget-page.ts';
import { readParams, WIDGET_DOCUMENTATION, type WidgetParams } from './widget-params.ts';

export interface LeaseWidgetOptions {
  readonly tableName: string | undefined;
  readonly region: string | undefined;
  readonly openStore: (tableName: string) => WatchableStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly bounds?: Partial<ListBounds>;
}

export interface WidgetContext {
  /** What a click on the widget calls: this function, or the alias that was invoked. */
  readonly invokedFunctionArn?: string;
  getRemainingTimeInMillis?(): number;
}

/** 10 MB of a table at most are read for one look: 1280 read units, a sixtieth of a cent. */
const BOUNDS: ListBounds = { mostLeases: 10_000, mostPages: 10, withinMs: 10_000 };
/** For the last page, and for rendering. */
const KEPT_BACK = 3;

/** HTML, or Markdown when the event asks to `describe`. Never rejects. */
export async function renderWidget(
  event: unknown,
  context: WidgetContext,
  options: LeaseWidgetOptions,
): Promise<string> {
  if (isObject(event) && event['describe'] === true) return WIDGET_DOCUMENTATION;
  const look = lookOf(event, context);
  let params: WidgetParams;
  try {
    params = readParams(event);
  } catch (error) {
    return message(look, 'A parameter of this widget is wrong.', [
      textOf(error),
      'Edit the widget to change its parameters; they are described there.',
    ]);
  }
  return showLeases(params, look, context, options);
}

async function showLeases(
  params: WidgetParams,
  look: Look,
  context: WidgetContext,
  options: LeaseWidgetOptions,
): Promise<string> {
  const { tableName, region, clock, logger } = options;
  if (tableName === undefined) {
    return message(look, 'The leases cannot be shown.', [
      'LEASE_TABLE_NAME is not set: name the table in the environment of this function.',
    ]);
  }
  const place = `table ${show(tableName)} in ${region ?? 'no Region'}`;
  try {
    const remainingMs = context.getRemainingTimeInMillis?.() ?? Infinity;
    const bounds = { ...BOUNDS, ...options.bounds };
    const withinMs = Math.min(bounds.withinMs, remainingMs / KEPT_BACK);
    const list = await listLeases(
      options.openStore(tableName),
      clock,
      params.namespace,
      { ...bounds, withinMs },
      (record) => summarise(record, clock.read().wallMs),
    );
    return renderPage({ list, params, look, nowMs: clock.read().wallMs, place });
  } catch (error) {
    logger.error('The leases cannot be shown.', { place, error: describeError(error) });
    return message(look, 'The leases cannot be shown.', [
      textOf(error),
      `This function reads ${place}, and needs dynamodb:Scan on it.`,
    ]);
  }
}

function lookOf(event: unknown, { invokedFunctionArn }: WidgetContext): Look {
  const context = isObject(event) ? event['widgetContext'] : undefined;
  const dark = isObject(context) && context['theme'] === 'dark';
  return { theme: dark ? 'dark' : 'light', endpoint: invokedFunctionArn };
}

function textOf(error: unknown): string {
  return isLeaseError(error) ? error.message : describeError(error);
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null;
}
