// The state machine of a held lease: properties of the whole table. The type makes it complete.

import { describe, expect, test } from 'vitest';
import { STEPS, type HoldingEvent, type HoldingState, type Step } from '../../src/renewal.ts';

const cells = Object.entries(STEPS).flatMap(([from, events]) =>
  Object.entries(events).map(
    ([event, step]) => [from as HoldingState, event as HoldingEvent, step] as const,
  ),
);
const OVER: readonly HoldingState[] = ['lost', 'abandoned', 'ended', 'releasing'];
const does = (step: Step, action: string) => (step.slice(1) as string[]).includes(action);

describe('a held lease', () => {
  test.each(cells)('%s, on %s: %j', (from, event, step) => {
    const [to] = step;
    // L4: nothing revives a tenure that is over.
    if (OVER.includes(from)) expect(OVER).toContain(to);
    if (from === 'ended') expect(step).toEqual(['ended']);
    // Never release first: only once the work has settled.
    if (does(step, 'release')) {
      expect(to).toBe('releasing');
      const settled =
        ['finishing', 'keeping'].includes(from) || ['workSettled', 'keep'].includes(event);
      expect(settled).toBe(true);
    }
    // A renewal is sent only for a lease that is ours, and never beside another.
    if (does(step, 'renew')) {
      expect(event).toBe('renewalDue');
      expect(['held', 'draining']).toContain(from);
      expect(['renewing', 'drainRenewing']).toContain(to);
    }
    // Whatever ends belief, or asks the work to finish, tells it so.
    const working = ['held', 'renewing'].includes(from);
    if (working && ['gone', 'expired', 'stop'].includes(event)) {
      expect(does(step, 'abortSignal')).toBe(true);
    }
    // Work that has outlasted its bound is never followed by a release.
    if (from === 'abandoned') expect(does(step, 'release')).toBe(false);
  });

  test('concludes or is let go exactly once, on every path to its end', () => {
    for (const [from, event, step] of cells) {
      const concludes = does(step, 'conclude') || does(step, 'letGo');
      const ends = ['ended', 'abandoned'].includes(step[0]);
      const alreadyConcluded = ['ended', 'abandoned'].includes(from);
      expect(concludes, `${from} on ${event}`).toBe(ends && !alreadyConcluded);
    }
  });

  test('reaches an end from every state', () => {
    const reach = (from: HoldingState, seen = new Set<HoldingState>()): Set<HoldingState> => {
      if (seen.has(from)) return seen;
      seen.add(from);
      for (const [to] of Object.values(STEPS[from])) reach(to, seen);
      return seen;
    };
    for (const state of Object.keys(STEPS) as HoldingState[]) {
      expect(reach(state)).toContain('ended');
    }
  });
});
