// All that is to hold of every history. A new promise is one line here.

import type { History } from '../history.ts';
import type { Plan } from '../plan.ts';
import { coveredBelief, endsOnce, nothingAfterTheEnd, oneHolder } from './belief.ts';
import { baseline, noFailures, orderedCallbacks } from './callbacks.ts';
import {
  acknowledgedCompletions,
  everyTickDone,
  noRunOfDoneTicks,
  oncePerTick,
  ownCompletions,
  ticksForward,
} from './jobs.ts';
import { somebodyLeads } from './liveness.ts';
import {
  acknowledgedWrites,
  forwardOnly,
  guardedWrites,
  namedWrites,
  ownDepartures,
  ownTokens,
  risingTokens,
} from './record.ts';
import type { Oracle, Violation } from './violation.ts';
import { aliveStays, deadGoes, publishedEvents } from './watching.ts';

export type { Oracle, Violation } from './violation.ts';

export const ORACLES = {
  'one holder': oneHolder,
  'covered belief': coveredBelief,
  'ends once': endsOnce,
  'nothing after the end': nothingAfterTheEnd,
  'rising tokens': risingTokens,
  'own tokens': ownTokens,
  'acknowledged writes': acknowledgedWrites,
  'own departures': ownDepartures,
  'named writes': namedWrites,
  'forward only': forwardOnly,
  'guarded writes': guardedWrites,
  'once per tick': oncePerTick,
  'no run of done ticks': noRunOfDoneTicks,
  'every tick done': everyTickDone,
  'acknowledged completions': acknowledgedCompletions,
  'ticks forward': ticksForward,
  'own completions': ownCompletions,
  'ordered callbacks': orderedCallbacks,
  'the alive stay': aliveStays,
  'the dead go': deadGoes,
  'published events': publishedEvents,
  'somebody leads': somebodyLeads,
  baseline,
  'no failures': noFailures,
} as const satisfies Record<string, Oracle>;

export function judgeHistory(history: History, plan: Plan): Violation[] {
  return Object.entries<Oracle>(ORACLES)
    .flatMap(([oracle, { check }]) => check(history, plan).map((found) => ({ oracle, ...found })))
    .sort((a, b) => a.atMs - b.atMs);
}
