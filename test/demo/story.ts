// What happens in the demo, in order: a crash, a release, a freeze, a time-out. Each scene waits
// for what the witness hears, and says in plain words what came to pass and why it took so long.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Timing } from '../../src/options.ts';
import { type Fleet, isLost, type Member, type Work } from './fleet.ts';
import type { LeaseTable } from './lease-table.ts';
import type { Report } from './sections.ts';
import { seconds, secondsOrMs } from './text.ts';
import type { View } from './view.ts';
import type { Witness } from './witness.ts';

export interface Scene {
  readonly fleet: Fleet;
  readonly witness: Witness;
  readonly table: LeaseTable;
  readonly timing: Timing;
  readonly view: View;
  /** Aborts when the demo is to end, whatever the story is up to. */
  readonly signal: AbortSignal;
}

export type Loss = 'crash' | 'release' | 'freeze' | 'timeOut';

/** What the story has seen so far; the witness keeps a record of its own. */
export interface Seen {
  /** From the loss of the leader to the first sign of the next. */
  readonly takeovers: { readonly after: Loss; readonly ms: number }[];
  /** Who was frozen in mid-work, and thawed when others had long begun. */
  thawed?: { readonly holderIdentity: string; readonly atMs: number };
  /** That one said itself that its lease was lost. */
  lossTold?: boolean;
}

const WORDS: Record<Loss, string> = {
  crash: 'crash',
  release: 'release',
  freeze: 'freeze',
  timeOut: 'time-out',
};

/** Something that was promised did not come to pass. */
export class BrokenPromise extends Error {
  override readonly name = 'BrokenPromise';
}

/** The work of a usual invocation: 8 steps in two seconds. */
export const USUAL: Work = { steps: 8, stepMs: 250, timeoutMs: 30_000 };
/** More work than the function's time-out allows. */
const TOO_MUCH: Work = { steps: 1_000, stepMs: 250, timeoutMs: 4_000 };
/** Longer than any lease of the demo: then nobody is going to take over. */
const PATIENCE_MS = 20_000;

export async function play(scene: Scene, seen: Seen): Promise<void> {
  const { fleet, view } = scene;
  const first = await begun(scene, 0);
  view.say(`${nameOf(fleet, first)} gets the lease and works, with fencing token 1.`);
  const second = await crash(scene, seen, first);
  const third = await release(scene, seen, second);
  const fourth = await freeze(scene, seen, third);
  // Whoever is invoked from now on gets too little time.
  fleet.work = TOO_MUCH;
  const fifth = await release(scene, seen, fourth);
  const last = await timeOut(scene, seen, fifth);
  fleet.stop();
  await done(scene, last);
}

async function crash(scene: Scene, seen: Seen, leader: Report): Promise<Report> {
  const { fleet, table, timing, view } = scene;
  await inMidWork(scene, leader, 5);
  const member = memberOf(fleet, leader);
  const atMs = Date.now();
  await member.environment.kill();
  const { expireTimeMs = atMs } = await table.look();
  const leftMs = expireTimeMs - atMs;
  view.say(
    `CRASH: ${member.name} is killed in mid-work (SIGKILL). It can release nothing: its lease of ` +
      `${seconds(timing.leaseDurationMs)}, renewed ${seconds(timing.leaseDurationMs - leftMs)} ` +
      `ago, has ${seconds(leftMs)} left to run.`,
  );
  const next = await begun(scene, leader.fencingToken);
  const ranOutMs = next.atMs - expireTimeMs;
  takenOver(scene, seen, 'crash', atMs, next, `, ${secondsOrMs(ranOutMs)} after the lease ran out`);
  return next;
}

async function release(scene: Scene, seen: Seen, leader: Report): Promise<Report> {
  const end = await done(scene, leader);
  const next = await begun(scene, leader.fencingToken);
  takenOver(scene, seen, 'release', end.atMs, next);
  return next;
}

async function freeze(scene: Scene, seen: Seen, leader: Report): Promise<Report> {
  const { fleet, table, view } = scene;
  await inMidWork(scene, leader, 3);
  const member = memberOf(fleet, leader);
  const atMs = Date.now();
  member.environment.freeze();
  member.doing = { mood: 'hurt', text: 'frozen in mid-work, and does not know it' };
  const { expireTimeMs = atMs } = await table.look();
  view.say(
    `FREEZE: ${member.name} is stopped in mid-work (SIGSTOP). It cannot renew its lease, which ` +
      `has ${seconds(expireTimeMs - atMs)} left to run.`,
  );
  const next = await begun(scene, leader.fencingToken);
  const ranOutMs = next.atMs - expireTimeMs;
  takenOver(
    scene,
    seen,
    'freeze',
    atMs,
    next,
    `, ${secondsOrMs(ranOutMs)} after the lease ran out`,
  );
  await inMidWork(scene, next, 2);

  const ended = fleet.ended(member);
  seen.thawed = { holderIdentity: leader.holderIdentity, atMs: Date.now() };
  view.say(`THAW: ${member.name} goes on, while ${nameOf(fleet, next)} works.`);
  member.environment.thaw();
  seen.lossTold = isLost(await soon(scene, ended, `${member.name} did not go on.`));
  view.say(
    seen.lossTold
      ? `${member.name} looks at its lease, sees that it was lost, and makes no further step.`
      : `${member.name} does not notice that its lease was lost.`,
  );
  return next;
}

async function timeOut(scene: Scene, seen: Seen, leader: Report): Promise<Report> {
  const { fleet, timing, view } = scene;
  const member = memberOf(fleet, leader);
  const ended = fleet.ended(member).then(() => Date.now());
  // Those that are invoked after it have the usual time again.
  fleet.work = USUAL;
  view.say(
    `${member.name} has more work to do than its time-out of ${seconds(TOO_MUCH.timeoutMs)} allows.`,
  );
  const atMs = await soon(scene, ended, `${member.name} met no time-out.`);
  view.say(
    `TIME-OUT: ${member.name} is killed in mid-work, at its deadline. No renewal reached past ` +
      `the deadline + ${seconds(timing.toleranceMs)}, the tolerance.`,
  );
  const next = await begun(scene, leader.fencingToken);
  takenOver(scene, seen, 'timeOut', atMs, next);
  return next;
}

/** The first to begin with a token above `token`. */
async function begun({ witness, signal }: Scene, token: number): Promise<Report> {
  return witness.until(
    (report) => report.do === 'begin' && report.fencingToken > token,
    patience(signal, 'Nobody took the lease, although nobody held it.'),
  );
}

async function done(scene: Scene, leader: Report): Promise<Report> {
  const { fleet, witness, view, signal } = scene;
  const name = nameOf(fleet, leader);
  const end = await witness.until(
    ({ do: what, holderIdentity }) => what === 'end' && holderIdentity === leader.holderIdentity,
    patience(signal, `${name} did not finish its work.`),
  );
  view.say(`RELEASE: ${name} has done its work and gives the lease back.`);
  return end;
}

/** Returns in the pause after that step. */
async function inMidWork({ witness, signal }: Scene, of: Report, step: number): Promise<void> {
  await witness.until(
    (report) => report.holderIdentity === of.holderIdentity && (report.step ?? 0) >= step,
    patience(signal, 'The leader does not work.'),
  );
  await sleep(100, undefined, { signal });
}

async function soon<T>({ signal }: Scene, promise: Promise<T>, failure: string): Promise<T> {
  const over = patience(signal, failure);
  return new Promise((resolve, reject) => {
    over.addEventListener('abort', () => reject(over.reason as Error));
    promise.then(resolve, reject);
  });
}

/** Aborts with `signal`, or when what is waited for would have come long ago. */
function patience(signal: AbortSignal, failure: string): AbortSignal {
  const late = new AbortController();
  setTimeout(() => late.abort(new BrokenPromise(failure)), PATIENCE_MS).unref();
  return AbortSignal.any([signal, late.signal]);
}

function takenOver(
  { fleet, view }: Scene,
  seen: Seen,
  after: Loss,
  lostAtMs: number,
  next: Report,
  also = '',
): void {
  const ms = next.atMs - lostAtMs;
  seen.takeovers.push({ after, ms });
  view.say(
    `${nameOf(fleet, next)} takes over ${secondsOrMs(ms)} after the ${WORDS[after]}${also}, with ` +
      `fencing token ${next.fencingToken}.`,
  );
}

function memberOf(fleet: Fleet, { holderIdentity }: Report): Member {
  const member = fleet.whoIs(holderIdentity);
  if (member === undefined) throw new Error(`Nobody here is ${holderIdentity}.`);
  return member;
}

function nameOf(fleet: Fleet, report: Report): string {
  return fleet.whoIs(report.holderIdentity)?.name ?? report.holderIdentity;
}
