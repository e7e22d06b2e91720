// The storm itself: what happens to whom, drawn from a seed. What comes of it depends on the
// machine as well, so a seed repeats the plan, not the history.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Arena } from './arena.ts';

export type Draw = () => number;

/** mulberry32: small, and the same everywhere. */
export function drawFrom(seed: number): Draw {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

interface Weather {
  readonly weight: number;
  /** Returns what it does beyond this moment. */
  readonly strike: (arena: Arena, draw: Draw) => Promise<void> | undefined;
}

const between = (draw: Draw, least: number, most: number) => least + draw() * (most - least);
const oneOf = (draw: Draw, all: readonly string[]) => all[Math.floor(draw() * all.length)];

function onOne(who: string | undefined, act: (id: string) => Promise<void> | undefined) {
  return who === undefined ? undefined : act(who);
}

const WEATHER: Readonly<Record<string, Weather>> = {
  'leader killed': {
    weight: 3,
    strike: (arena) => onOne(arena.leader, (id) => arena.kill(id)),
  },
  'leader frozen': {
    weight: 3,
    strike: (arena, draw) =>
      onOne(arena.leader, (id) => arena.freeze(id, between(draw, 500, 12_000))),
  },
  'anyone killed': {
    weight: 1,
    strike: (arena, draw) => onOne(oneOf(draw, arena.awake), (id) => arena.kill(id)),
  },
  'anyone frozen': {
    weight: 1,
    strike: (arena, draw) =>
      onOne(oneOf(draw, arena.awake), (id) => arena.freeze(id, between(draw, 500, 12_000))),
  },
  'clock set': {
    weight: 2,
    strike: (arena, draw) =>
      onOne(oneOf(draw, arena.awake), (id) => {
        const stepMs = (draw() < 0.3 ? 30_000 : 900) * (draw() < 0.5 ? 1 : -1);
        arena.stepClock(id, stepMs);
        return sleep(4_000).then(() => arena.stepClock(id, -stepMs));
      }),
  },
  'answers lost': {
    weight: 3,
    strike: ({ proxy }, draw) => {
      const times = Math.ceil(draw() * 4);
      proxy.inject({ fault: { kind: 'reset', when: 'after' }, operation: 'UpdateItem', times });
      return undefined;
    },
  },
  'transactions lost': {
    weight: 2,
    strike: ({ proxy }, draw) => {
      const when = draw() < 0.5 ? 'before' : 'after';
      const fault = { kind: 'reset', when } as const;
      proxy.inject({ fault, operation: 'TransactWriteItems', times: 3 });
      return undefined;
    },
  },
  'requests delayed': {
    weight: 3,
    strike: ({ proxy }, draw) => {
      const fault = { kind: 'delay', when: 'before', ms: between(draw, 200, 9_000) } as const;
      proxy.inject({ fault, operation: 'UpdateItem', times: 2 });
      return undefined;
    },
  },
  'never answered': {
    weight: 2,
    strike: ({ proxy }, draw) => {
      const when = draw() < 0.5 ? 'before' : 'after';
      proxy.inject({ fault: { kind: 'black-hole', when }, times: 2 });
      return undefined;
    },
  },
  'server errors': {
    weight: 2,
    strike: ({ proxy }, draw) => {
      const error = draw() < 0.5 ? 'InternalServerError' : 'ThrottlingException';
      proxy.inject({ fault: { kind: 'error', error }, times: 10 });
      return undefined;
    },
  },
  'slow network': {
    weight: 1,
    strike: async ({ proxy }, draw) => {
      proxy.latencyMs = between(draw, 50, 300);
      await sleep(between(draw, 500, 3_000));
      proxy.latencyMs = 0;
    },
  },
  'connections mute': {
    weight: 1,
    strike: ({ proxy }) => {
      proxy.muteSockets();
      return undefined;
    },
  },
  'store out of reach': {
    weight: 1,
    strike: async ({ proxy }, draw) => {
      await proxy.refuseConnections();
      await sleep(between(draw, 300, 5_000));
      await proxy.acceptConnections();
    },
  },
  'server restarted': {
    weight: 1,
    strike: (arena) => arena.restartServer(),
  },
};

/** Returns how often each kind struck, when all of them have passed. */
export async function storm(
  arena: Arena,
  draw: Draw,
  forMs: number,
  only?: readonly string[],
): Promise<Readonly<Record<string, number>>> {
  const kinds = Object.entries(WEATHER).filter(([kind]) => only?.includes(kind) ?? true);
  const total = kinds.reduce((sum, [, { weight }]) => sum + weight, 0);
  const struck: Record<string, number> = {};
  const underWay = new Set<Promise<void>>();
  /** Those that take the store away do so one after the other. */
  let busy = false;
  const endsAt = performance.now() + forMs;
  while (performance.now() < endsAt) {
    let left = draw() * total;
    const [kind, { strike }] = kinds.find(([, { weight }]) => (left -= weight) < 0) ?? kinds[0]!;
    const ofStore = ['slow network', 'store out of reach', 'server restarted'].includes(kind);
    if (!ofStore || !busy) {
      struck[kind] = (struck[kind] ?? 0) + 1;
      const going = strike(arena, draw);
      if (going !== undefined) {
        busy ||= ofStore;
        const gone = going.finally(() => {
          underWay.delete(gone);
          if (ofStore) busy = false;
        });
        underWay.add(gone);
      }
    }
    await sleep(between(draw, 200, 1_200));
  }
  await Promise.all(underWay);
  arena.proxy.clearFaults();
  return struck;
}
