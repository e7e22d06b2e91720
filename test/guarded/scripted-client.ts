// The real clients of the SDK before a server that answers what a test says, with no network in
// between: what is sent is real, and so are the errors that the SDK makes of answers.

import { DynamoDBClient, type TransactWriteItem } from '@aws-sdk/client-dynamodb';
import { DynamoDBDocumentClient } from '@aws-sdk/lib-dynamodb';

export interface Reason {
  readonly Code: string;
  readonly Item?: object;
  readonly Message?: string;
}

/** How the server answers one request. */
export type Reply =
  | 'committed'
  /** The connection breaks; nobody can tell whether it was before or after. */
  | 'reset'
  /** Never answered, nor does it end when it is aborted. */
  | 'silence'
  /** What it is by then. */
  | { readonly get: () => Reply }
  /** Cancelled, with a code for each item, the lease's last. */
  | readonly (string | Reason)[]
  | { readonly status?: number; readonly type: string; readonly message?: string };

export interface SentTransaction {
  readonly TransactItems: readonly TransactWriteItem[];
  readonly ClientRequestToken: string;
}

export class ScriptedServer {
  /** The transactions that arrived, in order. */
  readonly sent: SentTransaction[] = [];
  readonly client: DynamoDBClient;
  readonly documents: DynamoDBDocumentClient;
  /** Called with each transaction as it arrives. */
  onArrival: () => void = () => undefined;
  readonly #replies: Reply[];

  /** After the last reply everything is committed. */
  constructor(replies: readonly Reply[] = [], maxAttempts = 1) {
    this.#replies = [...replies];
    this.client = new DynamoDBClient({
      region: 'us-east-1',
      endpoint: 'http://127.0.0.1:1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      maxAttempts,
      requestHandler: {
        handle: async (request: { readonly body: string | Uint8Array }) => {
          const { body } = request;
          const text = typeof body === 'string' ? body : new TextDecoder().decode(body);
          this.sent.push(JSON.parse(text) as SentTransaction);
          this.onArrival();
          const told = this.#replies.shift() ?? 'committed';
          const reply = typeof told === 'object' && 'get' in told ? told.get() : told;
          if (reply === 'silence') return new Promise<never>(() => undefined);
          if (reply === 'reset') {
            throw Object.assign(new Error('socket hang up'), { code: 'ECONNRESET' });
          }
          await Promise.resolve();
          return { response: answerOf(reply) };
        },
      },
    });
    this.documents = DynamoDBDocumentClient.from(this.client);
  }

  /** The tokens under which each request was sent, each once. */
  get tokens(): readonly string[] {
    return [...new Set(this.sent.map(({ ClientRequestToken }) => ClientRequestToken))];
  }
}

function answerOf(reply: Exclude<Reply, 'reset' | 'silence'>): ReturnType<typeof answer> {
  if (reply === 'committed') return answer(200, {});
  if ('get' in reply) return answer(500, {});
  if ('type' in reply) {
    const { status = 400, type, message = 'As the test says.' } = reply;
    return answer(status, { __type: `com.amazonaws.dynamodb.v20120810#${type}`, message });
  }
  const reasons = reply.map((reason) => (typeof reason === 'string' ? { Code: reason } : reason));
  return answer(400, {
    __type: 'com.amazonaws.dynamodb.v20120810#TransactionCanceledException',
    Message: `Transaction cancelled [${reasons.map(({ Code }) => Code).join(', ')}]`,
    CancellationReasons: reasons,
  });
}

function answer(statusCode: number, body: object) {
  return {
    statusCode,
    headers: { 'content-type': 'application/x-amz-json-1.0' },
    body: Buffer.from(JSON.stringify(body)),
  };
}
