// The demo, `npm run demo`: four execution environments of one Lambda function want to do the same
// work, and a lease lets one of them at a time. The leader is killed, frozen and timed out in
// mid-work, and a witness in a process of its own hears what everybody does. No AWS account.
//
// Ends by itself in about half a minute; with status 1 if a promise was broken. `--json` prints
// the summary as one JSON object on the last line. DEMO_WORKER names another worker's source: a
// demo that no worker could spoil would prove nothing.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { resolveTiming } from '../../src/options.ts';
import { startDynamoDB } from '../support/dynamodb.ts';
import { bundleHandler } from '../support/lambda-runtime/index.ts';
import { boardLines } from './board.ts';
import { Fleet } from './fleet.ts';
import { LeaseTable } from './lease-table.ts';
import { BrokenPromise, play, type Seen, USUAL } from './story.ts';
import { type Summary, summarize } from './summary.ts';
import { introduction, summaryLines } from './text.ts';
import { openView } from './view.ts';
import { type Heard, Witness } from './witness.ts';

const ENVIRONMENTS = 4;
const LEASE_DURATION_SECONDS = 8;
const LEASE_NAME = 'nightly-report';

const worker =
  process.env['DEMO_WORKER'] ??
  fileURLToPath(new URL('../../functions/singleton-worker.ts', import.meta.url));

class Interrupted extends Error {}

async function demo(stop: AbortController): Promise<Summary> {
  const timing = resolveTiming({ leaseDurationSeconds: LEASE_DURATION_SECONDS });
  await using dynamodb = await startDynamoDB();
  await using table = await LeaseTable.create(dynamodb.endpoint, `default/${LEASE_NAME}`);
  await using folder = await mkdtempDisposable(join(tmpdir(), 'lambda-lease-demo-'));
  await bundleHandler(worker, folder.path);
  await using witness = await Witness.start(hear);
  await using fleet = new Fleet(
    {
      taskRoot: folder.path,
      functionName: 'singleton-worker',
      env: {
        AWS_ENDPOINT_URL_DYNAMODB: dynamodb.endpoint,
        LEASE_TABLE_NAME: table.name,
        LEASE_NAME,
        LEASE_DURATION_SECONDS: String(LEASE_DURATION_SECONDS),
        WORK_URL: witness.url,
      },
    },
    USUAL,
    {
      failed: (member, message) => view.say(`${member.name} failed: ${message}`),
      broken: (error) => stop.abort(error),
    },
  );
  using view = openView((columns) => boardLines(fleet, table.record, columns));

  function hear(report: Heard): void {
    const member = fleet.whoIs(report.holderIdentity);
    if (member !== undefined && report.do === 'step') {
      const text = `works: step ${report.step ?? '?'}, fencing token ${report.fencingToken}`;
      member.doing = { mood: 'busy', text };
    }
    if (report.overlaps > 0 && !stop.signal.aborted) {
      view.say(`OVERLAP: ${member?.name ?? '?'} goes on, although another has begun since.`);
      stop.abort(new BrokenPromise('Two worked at once.'));
    }
  }

  introduction(timing, dynamodb.engine, ENVIRONMENTS).forEach((line) => view.print(line));
  await fleet.start(ENVIRONMENTS);
  const seen: Seen = { takeovers: [] };
  let failure: string | undefined;
  try {
    await play({ fleet, witness, table, timing, view, signal: stop.signal }, seen);
  } catch (error) {
    if (!(error instanceof BrokenPromise)) throw error;
    failure = error.message;
  }
  const verdict = await witness.verdict();
  const summary = summarize({ verdict, heard: witness.heard, seen, failure });
  summaryLines(summary, verdict, timing).forEach((line) => view.print(line));
  return summary;
}

const stop = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    // The second time at once: what was started notices, and ends by itself.
    if (stop.signal.aborted) process.exit(130);
    stop.abort(new Interrupted());
  });
}

try {
  const { ok, ...figures } = await demo(stop);
  if (process.argv.includes('--json')) console.log(JSON.stringify({ ...figures, ok }));
  process.exitCode = ok ? 0 : 1;
} catch (error) {
  if (error instanceof Interrupted) console.log('Interrupted. All that was started has ended.');
  else console.error(error);
  process.exitCode = error instanceof Interrupted ? 130 : 1;
}
