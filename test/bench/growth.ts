// More and more that stand by for one lease, before a server that throttles: what they ask for, and
// whether the holder's renewals get through.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { LeaderElector } from '../../src/index.ts';
import type { CrowdSettings } from './crowd.ts';
import { Crew } from './crew.ts';
import { goal, type Measured, ms, spread } from './figures.ts';
import { testClient } from '../support/dynamodb.ts';
import type { Exchange } from '../support/fault-proxy.ts';

const CROWD = fileURLToPath(new URL('crowd.ts', import.meta.url));
const SIZES = [1, 10, 100, 500] as const;
/** What the server takes in a second, whatever it is; the rest is throttled. */
const CAPACITY = 40;

interface Growth {
  readonly standbys: number;
  readonly perSecond: number;
  readonly throttledPerSecond: number;
  readonly renewalMs: readonly number[];
  readonly renewalsThrottled: number;
  readonly renewals: number;
  readonly lost: number;
}

export async function growth(seconds: number, sizes: readonly number[] = SIZES): Promise<Measured> {
  const found: Growth[] = [];
  for (const standbys of sizes) found.push(await grown(standbys, seconds));
  const lost = found.reduce((sum, each) => sum + each.lost, 0);
  const largest = found.at(-1)!;
  // Every elector looks once in 2 s: so much would be asked for if nobody were throttled.
  const unthrottled = largest.standbys / 2;
  return {
    title: 'Growth',
    how:
      `Default times (15/10/2 s) before a server that takes ${CAPACITY} requests a second and ` +
      `throttles the rest, for ${seconds} s each. Electors share a process, each with a client of ` +
      'its own; the holder is in another.',
    rows: found.map((each) => {
      const renewal = spread(each.renewalMs);
      return {
        'standing by': each.standbys,
        'requests per second': each.perSecond.toFixed(1),
        'of them throttled': each.throttledPerSecond.toFixed(1),
        renewals: each.renewals,
        'throttled of them': each.renewalsThrottled,
        'renewal, ms: median': ms(renewal.median),
        max: ms(renewal.max),
        'leases lost': each.lost,
      };
    }),
    goals: [
      goal('the holder loses nothing', lost, lost === 0),
      goal(
        `${largest.standbys} throttled ones ask for less than unthrottled ones would (` +
          `${unthrottled} a second)`,
        largest.perSecond,
        largest.perSecond < unthrottled || largest.throttledPerSecond === 0,
      ),
    ],
  };
}

async function grown(standbys: number, seconds: number): Promise<Growth> {
  await using crew = await Crew.open();
  const name = `growth-${standbys}`;
  const stop = new AbortController();
  let lost = 0;
  const renewalMs: number[] = [];
  const client = testClient(crew.proxy.endpoint);
  client.middlewareStack.add(
    (next) => async (args) => {
      const from = performance.now();
      try {
        return await next(args);
      } finally {
        renewalMs.push(performance.now() - from);
      }
    },
    { step: 'initialize' },
  );
  const led = new EventTarget();
  const leads = once(led, 'led');
  const quiet = (): void => undefined;
  const elector = new LeaderElector({
    name,
    tableName: crew.tableName,
    client,
    logger: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    onStartedLeading: async ({ signal }) => {
      led.dispatchEvent(new Event('led'));
      await once(signal, 'abort');
    },
    onStoppedLeading: (reason) => {
      if (reason !== 'stopped') lost += 1;
    },
  });
  const running = elector.run({ signal: stop.signal });
  await leads;
  const settings: CrowdSettings = {
    endpoint: crew.proxy.endpoint,
    tableName: crew.tableName,
    name,
    standbys,
  };
  const crowd = spawn(process.execPath, ['--no-warnings', CROWD, JSON.stringify(settings)]);
  const gone = once(crowd, 'exit');
  try {
    // They come at once; then each has its rhythm.
    await sleep(standbys * 10 + 2_000);
    const bucket = new Bucket(CAPACITY);
    const error = 'ThrottlingException';
    crew.proxy.inject({
      fault: { kind: 'error', error },
      match: () => !bucket.take(),
      times: Infinity,
    });
    await sleep(1_000);
    crew.proxy.reset();
    renewalMs.length = 0;
    await sleep(1_000 * seconds);
    const requests = [...crew.proxy.requests];
    const throttled = (one: Exchange) => one.errorType?.includes(error) === true;
    const renewals = requests.filter(({ operation }) => operation === 'UpdateItem');
    return {
      standbys,
      perSecond: requests.length / seconds,
      throttledPerSecond: requests.filter(throttled).length / seconds,
      renewalMs: [...renewalMs],
      renewals: renewals.length,
      renewalsThrottled: renewals.filter(throttled).length,
      lost,
    };
  } finally {
    crew.proxy.clearFaults();
    crowd.kill();
    await gone;
    stop.abort();
    await running;
    client.destroy();
  }
}

/** So many a second, and no more. */
class Bucket {
  readonly #perSecond: number;
  #tokens: number;
  #at = performance.now();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
    this.#tokens = perSecond;
  }

  take(): boolean {
    const now = performance.now();
    const more = ((now - this.#at) / 1_000) * this.#perSecond;
    this.#tokens = Math.min(this.#perSecond, this.#tokens + more);
    this.#at = now;
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }
}
