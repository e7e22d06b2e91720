// What passed through the proxy, and what it would have cost.
//
// A request counts when it has arrived whole. Capacity and failed conditions are
// what the store said, even when its answer was lost on the way back: it is
// charged all the same. Errors and statuses are what the client was told.

import type { RequestBody } from './fault-proxy-faults.ts';

export interface Exchange {
  /** 'UpdateItem', say; method and path of a request that names no operation. */
  readonly operation: string;
  /** As the client sent it. */
  readonly body: RequestBody;
  /** When it arrived, in milliseconds since the epoch by a clock that never steps. */
  readonly at: number;
  /** The faults it was to meet. */
  readonly faults: readonly string[];
  /** It was sent on to the store. */
  readonly forwarded: boolean;
  /** What the client was told; undefined while, or if, it was told nothing. */
  readonly status: number | undefined;
  readonly errorType: string | undefined;
  /** The store refused it because its condition was not met. */
  readonly conditionFailed: boolean;
  /** A strongly consistent read. */
  readonly consistentRead: boolean;
  /** Units it consumed: of reading or of writing, by its operation. */
  readonly capacity: number;
}

export interface Counts {
  readonly requests: number;
  /** Requests per operation. */
  readonly operations: Readonly<Record<string, number>>;
  /** Those that reached the store. */
  readonly forwarded: number;
  /** Writes that the store refused because their condition was not met. */
  readonly failedConditions: number;
  readonly consistentReads: number;
  readonly readUnits: number;
  readonly writeUnits: number;
  /** Error answers to the client, per type. */
  readonly errors: Readonly<Record<string, number>>;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export type MutableExchange = { -readonly [Key in keyof Exchange]: Exchange[Key] };

const reads = new Set(['GetItem', 'Query', 'Scan', 'BatchGetItem', 'TransactGetItems']);
const writes = new Set([
  'PutItem',
  'UpdateItem',
  'DeleteItem',
  'BatchWriteItem',
  'TransactWriteItems',
]);

/** A request that touches items, and can be asked what it consumed. */
export function isDataOperation(operation: string): boolean {
  return reads.has(operation) || writes.has(operation);
}

export class Ledger {
  #exchanges: MutableExchange[] = [];

  get exchanges(): readonly Exchange[] {
    return this.#exchanges;
  }

  open(operation: string, body: RequestBody): MutableExchange {
    const exchange: MutableExchange = {
      operation,
      body,
      at: performance.timeOrigin + performance.now(),
      faults: [],
      forwarded: false,
      status: undefined,
      errorType: undefined,
      conditionFailed: false,
      consistentRead: isConsistentRead(operation, body),
      capacity: 0,
    };
    this.#exchanges.push(exchange);
    return exchange;
  }

  reset(): void {
    // A new array: whoever kept the old one keeps what it said.
    this.#exchanges = [];
  }

  counts(operation?: string): Counts {
    const chosen = this.#exchanges.filter(
      (exchange) => operation === undefined || exchange.operation === operation,
    );
    const units = (kind: ReadonlySet<string>): number =>
      chosen.reduce(
        (sum, exchange) => sum + (kind.has(exchange.operation) ? exchange.capacity : 0),
        0,
      );
    return {
      requests: chosen.length,
      operations: tally(chosen.map((exchange) => exchange.operation)),
      forwarded: chosen.filter((exchange) => exchange.forwarded).length,
      failedConditions: chosen.filter((exchange) => exchange.conditionFailed).length,
      consistentReads: chosen.filter((exchange) => exchange.consistentRead).length,
      readUnits: units(reads),
      writeUnits: units(writes),
      errors: tally(chosen.flatMap(({ errorType }) => errorType ?? [])),
    };
  }
}

/** Enters what the store answered, whether or not the client ever hears of it. */
export function chargeTo(exchange: MutableExchange, { body }: Answer): void {
  const answer = parseObject(body);
  const type = errorTypeOf(answer);
  if (type === 'ConditionalCheckFailedException') {
    exchange.conditionFailed = true;
    // The answer does not say so, but the service charges it, by the item's size:
    // one unit, for an item of up to one kilobyte.
    exchange.capacity = 1;
    return;
  }
  if (type === 'TransactionCanceledException') {
    // What a cancelled transaction consumes is not documented, so it is not entered.
    const reasons = (answer['CancellationReasons'] ?? []) as readonly { Code?: string }[];
    exchange.conditionFailed = reasons.some(({ Code }) => Code === 'ConditionalCheckFailed');
    return;
  }
  const consumed = answer['ConsumedCapacity'];
  for (const each of Array.isArray(consumed) ? (consumed as unknown[]) : [consumed]) {
    exchange.capacity += (each as { CapacityUnits?: number } | undefined)?.CapacityUnits ?? 0;
  }
}

export function errorTypeOf(answer: Record<string, unknown>): string | undefined {
  const type = answer['__type'];
  return typeof type === 'string' ? type.slice(type.indexOf('#') + 1) : undefined;
}

/** The object in a JSON text; an empty one if there is none. */
export function parseObject(text: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text.toString());
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}

function isConsistentRead(operation: string, body: RequestBody): boolean {
  if (operation === 'TransactGetItems') return true;
  if (operation !== 'BatchGetItem') return reads.has(operation) && body.ConsistentRead === true;
  const tables = Object.values((body['RequestItems'] ?? {}) as Record<string, RequestBody>);
  return tables.some((table) => table.ConsistentRead === true);
}

function tally(names: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const name of names) counts[name] = (counts[name] ?? 0) + 1;
  return counts;
}
