// What a monitor remembers from one pass to the next, in its own record: a monitor is killed and
// started anywhere. Blind is not dead: after a time in which nobody could look, nothing is held
// against anybody for one grace period, and tolerations start again.

import { asNumber, type Item, type Value } from './lease.ts';

export interface PassMemory {
  /** When the last pass was completed, by the monitor's clock. */
  readonly atMs: number;
  readonly frozenUntilMs: number;
  readonly tolerationsFromMs: number;
}

/** Schedules of one minute start 0 to 120 s apart without anything being wrong. */
const LONGEST_ABSENCE_MS = 120_000;
/** How far back a checked clock may seem to go between two monitors. */
const CLOCK_DIFFERENCE_MS = 5_000;

/** What holds for a pass that begins now, `blind` when the last one of this process was. */
export function nextPass(
  memory: PassMemory | undefined,
  blind: boolean,
  nowMs: number,
  graceMs: number,
): PassMemory {
  const absentMs = memory === undefined ? Infinity : nowMs - memory.atMs;
  const seeing = !blind && absentMs <= LONGEST_ABSENCE_MS && absentMs >= -CLOCK_DIFFERENCE_MS;
  if (seeing && memory !== undefined) return { ...memory, atMs: nowMs };
  const resumeMs = nowMs + graceMs;
  return { atMs: nowMs, frozenUntilMs: resumeMs, tolerationsFromMs: resumeMs };
}

export function readPassMemory(item: Item): PassMemory | undefined {
  const value = item['pass'];
  if (value === undefined || !('M' in value)) return undefined;
  const atMs = asNumber(value.M['at']);
  const frozenUntilMs = asNumber(value.M['frozenUntil']);
  const tolerationsFromMs = asNumber(value.M['tolerationsFrom']);
  return atMs === undefined || frozenUntilMs === undefined || tolerationsFromMs === undefined
    ? undefined
    : { atMs, frozenUntilMs, tolerationsFromMs };
}

export function writePassMemory(memory: PassMemory): Value {
  return {
    M: {
      at: { N: String(memory.atMs) },
      frozenUntil: { N: String(memory.frozenUntilMs) },
      tolerationsFrom: { N: String(memory.tolerationsFromMs) },
    },
  };
}
