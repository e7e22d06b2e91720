// The proxy's answers: those it fetches from the store, those it makes up, and what
// it changes in either.

import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { buffer } from 'node:stream/consumers';
import { crc32 } from 'node:zlib';
import type { ErrorType, Strike } from './fault-proxy-faults.ts';
import { type Answer, errorTypeOf, isDataOperation, parseObject } from './fault-proxy-ledger.ts';

const dynamo = 'com.amazonaws.dynamodb.v20120810#';

/** The errors as the service words them: status, `__type` up to the name, message. */
const errors: Readonly<Record<ErrorType, readonly [number, string, string]>> = {
  InternalServerError: [500, dynamo, 'Internal server error'],
  ThrottlingException: [400, 'com.amazon.coral.availability#', 'Rate exceeded'],
  ProvisionedThroughputExceededException: [
    400,
    dynamo,
    'The level of configured provisioned throughput for the table was exceeded. ' +
      'Consider increasing your provisioning level with the UpdateTable API.',
  ],
  TransactionConflictException: [400, dynamo, 'Transaction is ongoing for the item'],
  AccessDeniedException: [
    400,
    'com.amazon.coral.service#',
    'User: arn:aws:sts::000000000000:assumed-role/test/test is not authorized to perform this ' +
      'action because no identity-based policy allows it',
  ],
  ResourceNotFoundException: [400, dynamo, 'Requested resource not found'],
};

export function errorAnswer(type: ErrorType): Answer {
  const [status, prefix, message] = errors[type];
  const headers = { 'content-type': 'application/x-amz-json-1.0', date: new Date().toUTCString() };
  return withBody({ status, headers, body: Buffer.of() }, { __type: prefix + type, message });
}

// What holds for one connection only, what follows from a body that is written anew,
// and what would let the store answer with a body that we cannot read.
const notPassedOn = new Set([
  'accept-encoding',
  'connection',
  'content-length',
  'keep-alive',
  'transfer-encoding',
]);

/** The store's answer; undefined if it gave none. Rejects only when `signal` aborts. */
export async function forward(
  target: URL,
  client: IncomingMessage,
  operation: string,
  payload: Buffer,
  signal: AbortSignal,
): Promise<Answer | undefined> {
  const url = new URL(client.url ?? '/', target);
  const body = isDataOperation(operation) ? askingForCapacity(payload) : payload;
  try {
    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
      send(url, {
        method: client.method,
        headers: { ...passedOn(client), host: target.host, 'content-length': body.length },
        agent: false,
        signal,
      })
        .on('response', resolve)
        .on('error', reject)
        .end(body);
    });
    return {
      status: response.statusCode ?? 0,
      headers: passedOn(response),
      body: await buffer(response),
    };
  } catch {
    signal.throwIfAborted();
    return undefined;
  }
}

function askingForCapacity(payload: Buffer): Buffer {
  const body = parseObject(payload);
  // 'INDEXES' includes the total, and whoever asks for it may look at the rest.
  if (body['ReturnConsumedCapacity'] === 'INDEXES') return payload;
  return Buffer.from(JSON.stringify({ ...body, ReturnConsumedCapacity: 'TOTAL' }));
}

/** Applies the faults that only change an answer. */
export function shape(answer: Answer, strikes: readonly Strike[]): Answer {
  let shaped = answer;
  for (const strike of strikes) {
    const { fault } = strike;
    const { date, ...others } = shaped.headers;
    if (fault.kind === 'date-removed') {
      shaped = { ...shaped, headers: others };
    } else if (fault.kind === 'date-shift') {
      const shifted = new Date(Date.parse(date ?? new Date().toUTCString()) + fault.ms);
      shaped = { ...shaped, headers: { ...others, date: shifted.toUTCString() } };
    } else if (fault.kind === 'strip-item') {
      shaped = withoutItem(shaped);
    } else {
      continue;
    }
    strike.struck();
  }
  return shaped;
}

function withoutItem(answer: Answer): Answer {
  const body = parseObject(answer.body);
  const { CancellationReasons: reasons } = body;
  if (Array.isArray(reasons)) {
    for (const reason of reasons as Record<string, unknown>[]) delete reason['Item'];
  } else if (errorTypeOf(body) !== 'ConditionalCheckFailedException') {
    return answer;
  }
  delete body['Item'];
  return withBody(answer, body);
}

function withBody(answer: Answer, value: Record<string, unknown>): Answer {
  const body = Buffer.from(JSON.stringify(value));
  return {
    ...answer,
    headers: { ...answer.headers, 'x-amz-crc32': String(crc32(body)) },
    body,
  };
}

function passedOn({ headers }: IncomingMessage): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) =>
      value === undefined || notPassedOn.has(name) ? [] : [[name, String(value)]],
    ),
  );
}
