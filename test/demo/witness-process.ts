// The witness, as a process of its own: the other system that the workers act upon. It hears what
// they do by HTTP, keeps the record, and is asked for its verdict in the end.
//
//   POST /   a report, as JSON; answered when it has been recorded
//   GET /    the verdict so far
//
// It prints its address first, then each report as it was heard. It lives as long as its standard
// input is open: whoever started it may end in any way.

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { type Report, Sections } from './sections.ts';

const sections = new Sections();

// Idle connections stay open: a worker may be frozen for longer than any time-out.
const server = createServer({ keepAliveTimeout: 0 }, (request, response) => {
  response.setHeader('content-type', 'application/json');
  if (request.method === 'GET') {
    response.end(JSON.stringify(sections.verdict()));
    return;
  }
  json(request).then(
    (body) => {
      const report: Report = { ...(body as Report), atMs: Date.now() };
      sections.add(report);
      print({ ...report, overlaps: sections.verdict().overlaps });
      response.end('{}');
    },
    // A worker was killed in the middle of a report: nothing was said.
    () => response.destroy(),
  );
});

server.listen(0, '127.0.0.1', () => {
  print({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/` });
});

// A Ctrl-C is for whoever started this.
process.on('SIGINT', () => undefined);
process.stdin.resume().on('close', () => process.exit());

function print(line: object): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
