// What the storm and its contenders say to each other.

import type { TimingOptions } from '../../src/options.ts';

export interface ContenderSettings {
  readonly id: string;
  readonly endpoint: string;
  readonly tableName: string;
  readonly ledgerName: string;
  readonly witnessPort: number;
  readonly timing: TimingOptions;
  /** How far its wall clock is off at first. */
  readonly offsetMs: number;
  readonly manner: Manner;
}

/**
 * `careful` looks at its signal. `stubborn` goes on writing under the guard when that has aborted.
 * `deaf` neither looks nor is guarded: it breaks what the storm is there to see broken.
 */
export type Manner = 'careful' | 'stubborn' | 'deaf';

/** What became of a guarded write. */
export type Told =
  | { readonly did: 'written' }
  /** The lease's guard refused it. */
  | { readonly did: 'refused' }
  /** The guard let it through although a later token had written. */
  | { readonly did: 'violated'; readonly why: string }
  | { readonly did: 'unknown'; readonly why: string };
