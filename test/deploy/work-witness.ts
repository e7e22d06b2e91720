// An independent witness of the worker's work: the other system that the worker tells of each step.
//
// It knows nothing of leases. It hears who begins, steps and ends, in the order in which that
// arrives here, and judges from that alone.

import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { json } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';

export interface Deed {
  readonly do: 'begin' | 'step' | 'end';
  readonly step?: number;
  readonly fencingToken: number;
  readonly holderIdentity: string;
}

export interface WorkWitness extends AsyncDisposable {
  /** The address for `WORK_URL`. */
  readonly url: string;
  readonly deeds: readonly Deed[];
  /** While true it answers as a system that is out of order, and hears nothing. */
  down: boolean;
  /** Resolves to the first deed from `since` on that is wanted, past or to come. */
  seen(wanted: (deed: Deed) => boolean, options: Waiting): Promise<Deed>;
}

export interface Waiting {
  /** How many deeds to pass over. */
  readonly since: number;
  readonly forMs: number;
}

export async function startWorkWitness(): Promise<WorkWitness> {
  const deeds: Deed[] = [];
  const server = createServer((request, response) => {
    void json(request).then((body) => {
      if (witness.down) response.statusCode = 503;
      else deeds.push(body as Deed);
      response.end();
    });
  });
  server.keepAliveTimeout = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  const witness: WorkWitness = {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    deeds,
    down: false,
    seen: async (wanted, { since, forMs }) => {
      const deadline = performance.now() + forMs;
      for (;;) {
        const deed = deeds.slice(since).find(wanted);
        if (deed !== undefined) return deed;
        if (performance.now() > deadline) {
          throw new Error(
            `Waited ${forMs} ms in vain; seen: ${JSON.stringify(deeds.slice(since))}`,
          );
        }
        await sleep(50);
      }
    },
    [Symbol.asyncDispose]: async () => {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
  return witness;
}

/** What two workers at once would show: work that begins before the work at hand has ended. */
export function overlaps(deeds: readonly Deed[], killed: readonly string[] = []): readonly Deed[] {
  let inside: string | undefined;
  return deeds.filter((deed) => {
    const own = inside === undefined || inside === deed.holderIdentity;
    const after = deed.do === 'begin' && inside !== undefined && killed.includes(inside);
    if (deed.do === 'begin' && (own || after)) inside = deed.holderIdentity;
    else if (deed.do === 'end' && own) inside = undefined;
    return !own && !after;
  });
}
