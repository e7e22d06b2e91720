// Who a holder says it is, and where to look for it. Identities are compared whole, never by
// prefix, and each acquisition has a new one: async retries of Lambda reuse the request id, and
// log streams are shared on Managed Instances.

import type { Environment } from './environment.ts';
import { BYTE_BUDGET } from './schema.ts';

/** `function:version/log-stream/<uuid>` on Lambda, `host/pid/<uuid>` elsewhere. */
export function holderIdentity(environment: Environment, uuid: string): string {
  const { lambda } = environment;
  const [who, where] =
    lambda === undefined
      ? [environment.host, String(environment.pid)]
      : [`${lambda.functionName}:${lambda.functionVersion}`, lambda.logStreamName ?? ''];
  // The uuid makes it unique and is kept whole; of a log stream, its end tells most.
  const budget = BYTE_BUDGET.holderIdentity - byteLength(uuid) - 2;
  const front = clip(who, Math.min(budget, 80));
  const middle = clipFront(where, budget - byteLength(front));
  return [front, middle, uuid].filter((part) => part !== '').join('/');
}

/** Where to look at 3 a.m. `requestId` is the invocation's, where there is one. */
export function holderAnnotations(
  environment: Environment,
  requestId: string | undefined,
  own: Readonly<Record<string, string>> = {},
  room: number = BYTE_BUDGET.together,
): Record<string, string> {
  const { lambda, region } = environment;
  const most = BYTE_BUDGET.annotation;
  const usualLogGroup = `/aws/lambda/${lambda?.functionName ?? ''}`;
  const wanted: Record<string, string | undefined> =
    lambda === undefined
      ? { host: clip(environment.host, most.host), pid: String(environment.pid) }
      : {
          requestId: clip(requestId ?? '', 36),
          logStream: clipFront(lambda.logStreamName ?? '', most.logStream),
          region: clip(region ?? '', most.region),
          version: clip(lambda.functionVersion, most.version),
          // What follows from the rest comes last, and goes first where room is short.
          function: clip(lambda.functionName, most.function),
          logGroup:
            lambda.logGroupName === usualLogGroup
              ? ''
              : clip(lambda.logGroupName ?? '', most.logGroup),
        };
  return { ...fit(wanted, own, room), ...own };
}

/** Of our own entries as many as fit beside the user's, in their order. */
function fit(
  entries: Readonly<Record<string, string | undefined>>,
  own: Readonly<Record<string, string>>,
  room: number,
): Record<string, string> {
  const kept: Record<string, string> = {};
  let left = room - mapBytes(own);
  for (const [name, value] of Object.entries(entries)) {
    if (value === undefined || value === '' || name in own) continue;
    const size = mapBytes({ [name]: value });
    if (size > left) continue;
    kept[name] = value;
    left -= size;
  }
  return kept;
}

/** Every write shall cost one unit: what says where to look takes the room that is left. */
export function annotationRoom(lease: string, labels: Readonly<Record<string, string>> = {}) {
  return BYTE_BUDGET.together - byteLength(lease) - BYTE_BUDGET.holderIdentity - mapBytes(labels);
}

/** What DynamoDB charges for texts in a map: names, values, and a byte for each entry. */
export function mapBytes(texts: Readonly<Record<string, string>>): number {
  return Object.entries(texts).reduce(
    (sum, [name, value]) => sum + byteLength(name) + byteLength(value) + 1,
    0,
  );
}

export function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

/** The beginning of `text` that fits into `bytes`, cut between characters. */
export function clip(text: string, bytes: number): string {
  // A character takes a byte at least; half of one at the end does not fit.
  return clipped(Array.from(text.slice(0, bytes)), bytes).join('');
}

/** The end of it, likewise. */
export function clipFront(text: string, bytes: number): string {
  if (bytes < 1) return '';
  return clipped(Array.from(text.slice(-bytes)).reverse(), bytes)
    .reverse()
    .join('');
}

function clipped(characters: readonly string[], bytes: number): string[] {
  let left = bytes;
  const end = characters.findIndex((character) => (left -= byteLength(character)) < 0);
  return characters.slice(0, end === -1 ? undefined : end);
}
