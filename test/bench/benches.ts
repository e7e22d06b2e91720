// All measurements by name, and how long each is to take.

import { coldStart } from './cold-start.ts';
import { contention } from './contention.ts';
import type { Measured } from './figures.ts';
import { growth } from './growth.ts';
import { handOver } from './hand-over.ts';
import { handler } from './handler.ts';
import { lostAnswers } from './lost-answers.ts';
import { monthlyCost } from './monthly-cost.ts';
import { refused } from './refused.ts';
import { releaseRace } from './release-race.ts';
import { takeover } from './takeover.ts';
import { thaw } from './thaw.ts';
import { uncontended } from './uncontended.ts';

export interface Size {
  readonly cycles: number;
  readonly refusals: number;
  readonly contestSeconds: number;
  readonly handOvers: number;
  readonly handOversOfPeers: number;
  readonly takeovers: number;
  readonly releases: number;
  readonly releasesOfPeers: number;
  readonly lostAnswers: number;
  readonly thaws: number;
  readonly invocations: number;
  readonly imports: number;
  readonly costSeconds: number;
  readonly growthSeconds: number;
  readonly crowds: readonly number[];
}

export const FULL: Size = {
  cycles: 200,
  refusals: 50,
  contestSeconds: 30,
  handOvers: 1_000,
  handOversOfPeers: 8,
  takeovers: 8,
  releases: 1_000,
  releasesOfPeers: 50,
  lostAnswers: 5,
  thaws: 4,
  invocations: 150,
  imports: 11,
  costSeconds: 8,
  growthSeconds: 15,
  crowds: [1, 10, 100, 500],
};

export const QUICK: Size = {
  cycles: 10,
  refusals: 3,
  contestSeconds: 8,
  handOvers: 8,
  handOversOfPeers: 4,
  takeovers: 1,
  releases: 20,
  releasesOfPeers: 10,
  lostAnswers: 1,
  thaws: 1,
  invocations: 5,
  imports: 1,
  costSeconds: 2,
  growthSeconds: 3,
  crowds: [10],
};

export const BENCHES = {
  uncontended: ({ cycles }) => uncontended(cycles),
  refused: ({ refusals }) => refused(refusals),
  contention: ({ contestSeconds }) => contention(contestSeconds),
  'hand-over': ({ handOvers, handOversOfPeers }) => handOver(handOvers, handOversOfPeers),
  takeover: ({ takeovers }) => takeover(takeovers),
  'release-race': ({ releases, releasesOfPeers }) => releaseRace(releases, releasesOfPeers),
  'lost-answers': ({ lostAnswers: times }) => lostAnswers(times),
  thaw: ({ thaws }) => thaw(thaws),
  handler: ({ invocations }) => handler(invocations),
  'cold-start': ({ imports }) => coldStart(imports),
  'monthly-cost': ({ costSeconds }) => monthlyCost(costSeconds),
  growth: ({ growthSeconds, crowds }) => growth(growthSeconds, crowds),
} as const satisfies Readonly<Record<string, (size: Size) => Promise<Measured>>>;

export type BenchName = keyof typeof BENCHES;
