// A DynamoDB on this machine (`local`) with the table in it, for trying things out. The engines are
// no dependencies of this package: what is installed is used, or it is said what to install.

import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import { dirname, join } from 'node:path';
import type { Host, Started } from './cli-process.ts';
import { CliError } from './cli-table.ts';
import { sleep, systemClock } from './clock.ts';
import { describeError } from './errors.ts';
import { invalid, show } from './options.ts';

export interface LocalOptions {
  readonly table?: string;
  readonly port?: string;
}

const DEFAULT_PORT = 8_000;
const START_WITHIN_MS = 15_000;
const CREATION_MS = 10_000;

const INSTALL = `No embedded DynamoDB is installed here. Any of these will do:
  npm install --save-dev @dynoxide/linux-x64     (Linux x64; quick to start)
  npm install --save-dev dynalite                (JavaScript, anywhere; no transactions)
  docker run -p 8000:8000 amazon/dynamodb-local  (Amazon's own)
With the last, make the table by:
  AWS_REGION=us-east-1 AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local \\
    lambda-lease table create --endpoint-url http://127.0.0.1:8000 --table leases`;

export async function runLocal(host: Host, options: LocalOptions): Promise<number> {
  const { table = 'leases' } = options;
  const wanted = parsePort(options.port);
  const stopped = new AbortController();
  const forget = host.onSignal((signal) => stopped.abort(signal));
  let engine: Engine | undefined;
  try {
    const port = await freePort(wanted);
    engine = await startEngine(host, port);
    if (engine === undefined) throw new CliError(INSTALL);
    const endpoint = `http://127.0.0.1:${port}`;
    const { tableAdmin } = await import('./table-doctor.ts');
    const credentials = { accessKeyId: 'local', secretAccessKey: 'local' };
    await tableAdmin(table, { endpoint, region: 'us-east-1', credentials }).create({
      deletionProtection: false,
      clock: systemClock,
      withinMs: CREATION_MS,
    });
    host.out(
      `${engine.name} listens on ${endpoint}, with the table "${table}"; it keeps nothing.\n\n` +
        `  export AWS_ENDPOINT_URL_DYNAMODB=${endpoint} AWS_REGION=us-east-1\n` +
        '  export AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local\n' +
        `  export LEASE_TABLE_NAME=${table}\n\nCtrl-C ends it.\n`,
    );
    const died = await Promise.race([
      engine.died,
      sleep(systemClock, Infinity, stopped.signal).then(() => false),
    ]);
    if (died) throw new CliError(`error: ${engine.name} has ended by itself`);
    return 0;
  } finally {
    // A timer would keep a process that nobody waits for.
    stopped.abort();
    forget();
    engine?.stop();
  }
}

interface Engine {
  readonly name: string;
  /** Resolves to true if it ends by itself. */
  readonly died: Promise<boolean>;
  stop(): void;
}

async function startEngine(host: Host, port: number): Promise<Engine | undefined> {
  const dynoxide = host.resolve('@dynoxide/linux-x64/package.json');
  if (dynoxide !== undefined) {
    const args = ['--host', '127.0.0.1', '--port', String(port)];
    const started = host.start(join(dirname(dynoxide), 'dynoxide'), args, { quiet: true });
    const died = started.ended.then(
      () => true,
      () => true,
    );
    await untilAnswers(port, died, started);
    return { name: 'dynoxide', died, stop: () => void started.kill('SIGKILL') };
  }
  const dynalite = host.resolve('dynalite');
  if (dynalite === undefined) return undefined;
  const make = host.load(dynalite) as (options: object) => Server;
  const server = make({ createTableMs: 0, deleteTableMs: 0 });
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return {
    name: 'dynalite',
    died: new Promise(() => undefined),
    stop: () => {
      server.close();
      (server as { closeAllConnections?: () => void }).closeAllConnections?.();
    },
  };
}

async function untilAnswers(port: number, died: Promise<boolean>, started: Started): Promise<void> {
  const deadlineMs = systemClock.read().monotonicMs + START_WITHIN_MS;
  const answers = async () => {
    try {
      await (await fetch(`http://127.0.0.1:${port}`)).text();
      return true;
    } catch {
      return false;
    }
  };
  while (!(await answers())) {
    const ended = await Promise.race([died, sleep(systemClock, 20).then(() => false)]);
    if (ended) throw new CliError('error: dynoxide did not start');
    if (systemClock.read().monotonicMs > deadlineMs) {
      started.kill('SIGKILL');
      throw new CliError('error: dynoxide does not answer');
    }
  }
}

/** That one, if it can be had; of 0, any. */
async function freePort(wanted: number): Promise<number> {
  const server = createServer();
  try {
    server.listen(wanted, '127.0.0.1');
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
      throw new CliError(
        `error: port ${wanted} is taken; give another by --port, or 0 for one that is free`,
      );
    }
    throw new CliError(`error: port ${wanted} cannot be used (${describeError(error)})`);
  }
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

function parsePort(text: string | undefined): number {
  if (text === undefined) return DEFAULT_PORT;
  const port = /^\d+$/.test(text) ? Number(text) : NaN;
  if (!(port <= 65_535)) {
    throw invalid(`--port is ${show(text)}; it must be a whole number from 1 to 65535, or 0.`);
  }
  return port;
}
