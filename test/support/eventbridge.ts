// A stand-in for EventBridge: it takes what the SDK's own client sends, keeps the entries that it
// accepts, and misbehaves as told. It checks what the service checks of an entry.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';

export interface Entry {
  readonly Source: string;
  readonly DetailType: string;
  readonly Detail: string;
  readonly Time?: number;
  readonly EventBusName?: string;
  readonly Resources?: readonly string[];
}

/** What becomes of one call: some entries are refused, or the call itself is not answered. */
export type Answer =
  | { readonly refuse: (entry: Entry, index: number) => boolean }
  | { readonly status: number; readonly error: string }
  | 'nothing';

export interface EventBridge extends AsyncDisposable {
  readonly endpoint: string;
  /** The entries of each call, accepted or not. */
  readonly calls: readonly (readonly Entry[])[];
  readonly accepted: readonly Entry[];
  /** For the next calls, in order; then all entries are accepted. */
  answerWith(...answers: readonly Answer[]): void;
}

export async function startEventBridge(): Promise<EventBridge> {
  const calls: (readonly Entry[])[] = [];
  const accepted: Entry[] = [];
  const answers: Answer[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      const { Entries } = body as { Entries: readonly Entry[] };
      calls.push(Entries);
      const answer = answers.shift() ?? { refuse: () => false };
      if (answer === 'nothing') return;
      const reply = (status: number, value: object) => {
        response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' });
        response.end(JSON.stringify(value));
      };
      if ('status' in answer) {
        reply(answer.status, { __type: answer.error });
        return;
      }
      const wrong = wrongWith(request.headers['x-amz-target'], Entries);
      if (wrong !== undefined) {
        reply(400, { __type: 'ValidationException', message: wrong });
        return;
      }
      const results = Entries.map((entry, index) => {
        if (answer.refuse(entry, index)) {
          return { ErrorCode: 'ThrottlingException', ErrorMessage: 'Slow down.' };
        }
        accepted.push(entry);
        return { EventId: `event-${accepted.length}` };
      });
      const FailedEntryCount = results.filter((result) => 'ErrorCode' in result).length;
      reply(200, { FailedEntryCount, Entries: results });
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    accepted,
    answerWith: (...more) => void answers.push(...more),
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function wrongWith(target: unknown, entries: readonly Entry[]): string | undefined {
  if (target !== 'AWSEvents.PutEvents') return `unknown operation ${String(target)}`;
  if (entries.length < 1 || entries.length > 10) return `${entries.length} entries`;
  for (const { Source, DetailType, Detail } of entries) {
    if (Source.startsWith('aws.')) return 'the source is reserved';
    if (DetailType.length > 128) return 'the detail-type is too long';
    if (Buffer.byteLength(Detail) > 256 * 1_024) return 'the detail is too large';
    if (typeof JSON.parse(Detail) !== 'object') return 'the detail is no object';
  }
  return undefined;
}
