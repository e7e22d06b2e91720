// Plays the Node runtime of Lambda where the real one is not installed.
//
// The same Runtime API, variables, handler rules and context as AWS's own client, for the
// process model that the tests need: one event at a time, or several over worker threads.
// It never streams, and leaves `console` as it is. One more difference: it survives the
// loss of a worker thread, while the real one aborts at the next event that it polled for
// that thread.

import { existsSync } from 'node:fs';
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http';
import { createRequire } from 'node:module';
import { basename, dirname, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { isMainThread, Worker } from 'node:worker_threads';

type Handler = (event: unknown, context: object) => unknown;

const api = `http://${variable('AWS_LAMBDA_RUNTIME_API')}/2018-06-01/runtime`;
const concurrent = process.env['AWS_LAMBDA_MAX_CONCURRENCY'] !== undefined;

if (concurrent && isMainThread) startWorkers();
else await runLoop();

function startWorkers(): void {
  for (let left = Number(variable('AWS_LAMBDA_NODEJS_WORKER_COUNT')); left > 0; left--) {
    const worker = new Worker(new URL(import.meta.url), { env: process.env });
    // The other workers go on without it; the process ends with the last of them.
    worker.on('error', (error) => console.error('Worker error', error));
  }
}

async function runLoop(): Promise<void> {
  const handler = await initialize();
  for (;;) {
    const next = await call('GET', '/invocation/next');
    const event = JSON.parse(next.body) as unknown;
    if (concurrent) setImmediate(() => void processEvent(handler, event, next.headers));
    else await processEvent(handler, event, next.headers);
  }
}

async function initialize(): Promise<Handler> {
  try {
    return await loadHandler(variable('_HANDLER'), variable('LAMBDA_TASK_ROOT'));
  } catch (error) {
    console.error('Init Error', error);
    await call('POST', '/init/error', formatError(error));
    throw error;
  }
}

async function processEvent(
  handler: Handler,
  event: unknown,
  headers: IncomingHttpHeaders,
): Promise<void> {
  const context = buildContext(headers);
  const path = `/invocation/${encodeURIComponent(context.awsRequestId)}`;
  try {
    const response = await handler(event, context);
    const body = JSON.stringify(response === undefined ? null : response);
    await call('POST', `${path}/response`, body);
  } catch (error) {
    console.error('Invoke Error', error);
    await call('POST', `${path}/error`, formatError(error));
  }
}

async function loadHandler(handlerString: string, taskRoot: string): Promise<Handler> {
  const [, moduleName, exportName] = /^([^.]*)\.(.*)$/.exec(basename(handlerString)) ?? [];
  if (moduleName === undefined || exportName === undefined) {
    throw named('Runtime.MalformedHandlerName', 'Bad handler');
  }
  const base = resolve(taskRoot, dirname(handlerString), moduleName);
  const file = ['', '.js', '.mjs', '.cjs']
    .map((end) => base + end)
    .find((path) => existsSync(path));
  const module: unknown =
    file === undefined
      ? createRequire(`${taskRoot}/`)(moduleName)
      : await import(pathToFileURL(file).href);
  const handler = find(module, exportName) ?? find(find(module, 'default'), exportName);
  if (typeof handler !== 'function') {
    throw named('Runtime.HandlerNotFound', `${handlerString} is undefined or not exported`);
  }
  if (handler.length >= 3) {
    throw named(
      'Runtime.CallbackHandlerDeprecated',
      'ERROR: AWS Lambda has removed support for callback-based function handlers.',
    );
  }
  return handler as Handler;
}

function find(module: unknown, path: string): unknown {
  return path
    .split('.')
    .reduce<unknown>(
      (nested, key) =>
        typeof nested === 'object' && nested !== null
          ? (nested as Record<string, unknown>)[key]
          : undefined,
      module,
    );
}

function buildContext(headers: IncomingHttpHeaders): { awsRequestId: string } {
  const deadline = Number(headers['lambda-runtime-deadline-ms']);
  return Object.assign(
    {
      awsRequestId: String(headers['lambda-runtime-aws-request-id']),
      invokedFunctionArn: headers['lambda-runtime-invoked-function-arn'],
      getRemainingTimeInMillis: () => deadline - Date.now(),
    },
    {
      functionName: variable('AWS_LAMBDA_FUNCTION_NAME'),
      functionVersion: variable('AWS_LAMBDA_FUNCTION_VERSION'),
      memoryLimitInMB: variable('AWS_LAMBDA_FUNCTION_MEMORY_SIZE'),
      logGroupName: variable('AWS_LAMBDA_LOG_GROUP_NAME'),
      logStreamName: variable('AWS_LAMBDA_LOG_STREAM_NAME'),
    },
  );
}

function formatError(error: unknown): string {
  return JSON.stringify(
    error instanceof Error
      ? {
          errorType: error.name,
          errorMessage: error.message,
          trace: error.stack?.split('\n') ?? [],
        }
      : { errorType: typeof error, errorMessage: String(error), trace: [] },
  );
}

/** Not `fetch`: that gives up on a poll after five minutes. */
async function call(
  method: 'GET' | 'POST',
  path: string,
  body = '',
): Promise<{ headers: IncomingHttpHeaders; body: string }> {
  return new Promise((resolveCall, reject) => {
    httpRequest(api + path, { method, agent: false }, (response) => {
      text(response).then((received) => {
        resolveCall({ headers: response.headers, body: received });
      }, reject);
    })
      .on('error', reject)
      .end(body);
  });
}

function named(name: string, message: string): Error {
  return Object.assign(new Error(message), { name });
}

function variable(name: string): string {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} environment variable is not set`);
  return value;
}
