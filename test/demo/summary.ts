// What the demo has shown, against what was promised. Pure.

import type { Report, Verdict } from './sections.ts';
import type { Loss, Seen } from './story.ts';

export interface Summary {
  readonly tenures: number;
  readonly overlaps: number;
  readonly tokensIncreasing: boolean;
  readonly stepsAfterThaw: number;
  /** From the loss of a leader (the kill, the end of its work) to the first sign of the next. */
  readonly takeoverMs: Readonly<Record<Loss, readonly number[]>>;
  /** The promises that were broken, each as a sentence. */
  readonly broken: readonly string[];
  readonly ok: boolean;
}

export interface Evidence {
  /** The witness's. */
  readonly verdict: Verdict;
  readonly heard: readonly Report[];
  readonly seen: Seen;
  /** What ended the story before its time, as a sentence. */
  readonly failure: string | undefined;
}

export function summarize({ verdict, heard, seen, failure }: Evidence): Summary {
  const { overlaps, tokensIncreasing, sections } = verdict;
  const { thawed } = seen;
  const stepsAfterThaw = heard.filter(
    ({ do: what, holderIdentity, atMs }) =>
      what === 'step' && holderIdentity === thawed?.holderIdentity && atMs > thawed.atMs,
  ).length;
  const after = (loss: Loss) =>
    seen.takeovers.filter((each) => each.after === loss).map(({ ms }) => Math.round(ms));
  const broken = [
    ...(overlaps > 0 ? [`Two worked at once (overlaps: ${overlaps}).`] : []),
    ...(tokensIncreasing ? [] : ['The fencing tokens did not strictly increase.']),
    ...(stepsAfterThaw > 0
      ? [`A thawed worker went on (steps after the thaw: ${stepsAfterThaw}).`]
      : []),
    ...(seen.lossTold === false ? ['A thawed worker did not tell that its lease was lost.'] : []),
    ...(failure === undefined || overlaps > 0 ? [] : [failure]),
  ];
  return {
    tenures: sections.length,
    overlaps,
    tokensIncreasing,
    stepsAfterThaw,
    takeoverMs: {
      crash: after('crash'),
      release: after('release'),
      freeze: after('freeze'),
      timeOut: after('timeOut'),
    },
    broken,
    ok: broken.length === 0,
  };
}
