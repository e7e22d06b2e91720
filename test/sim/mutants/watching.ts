// Mutants of the lifecycle monitor: whom it evicts, and what becomes of its events.

import type { Mutant } from './mutant.ts';

export const WATCHING_MUTANTS: readonly Mutant[] = [
  {
    name: 'eviction by stamps, not by observation',
    patches: [
      {
        file: 'src/verdict.ts',
        search: "  if (verdict.status === 'NotReady' && !unready && unchanged) {",
        replace: "  if (verdict.status === 'NotReady' && !unready) {",
      },
    ],
  },
  {
    name: 'eviction without the version that was judged',
    patches: [
      {
        file: 'src/monitor-writes.ts',
        search: 'condition: { all: [exists, unchanged(judged), verdictAsRead(judged)] },',
        replace: 'condition: { all: [exists, verdictAsRead(judged)] },',
      },
    ],
  },
  {
    name: "toleration only, though the record's duration is longer",
    patches: [
      {
        file: 'src/verdict.ts',
        search: 'Math.max(at.tolerationMs, durationOf(record)) + at.extraTolerationMs',
        replace: '0.5 * Math.min(at.tolerationMs, durationOf(record)) + at.extraTolerationMs',
      },
    ],
  },
  {
    name: 'an unpublished event is overwritten',
    patches: [
      {
        file: 'src/verdict.ts',
        search:
          "  if (stored?.event !== undefined) return { kind: 'publish', event: stored.event };",
        replace: `  if (stored?.event !== undefined && stored.status !== 'NotReady') {
    return { kind: 'publish', event: stored.event };
  }`,
      },
    ],
  },
  {
    name: 'an event is cleared though nobody accepted it',
    patches: [
      {
        file: 'src/lifecycle-monitor.ts',
        search: '      return accepted === true;',
        replace: '      return accepted !== undefined;',
      },
    ],
  },
  {
    name: 'what is silent in the dark is held against nobody, ever',
    patches: [
      {
        file: 'src/pass-memory.ts',
        search: '!blind && absentMs <= LONGEST_ABSENCE_MS',
        replace: '!blind && absentMs <= LONGEST_ABSENCE_MS / 24',
      },
    ],
  },
];
