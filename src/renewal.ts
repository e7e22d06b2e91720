// What keeping a held lease consists of: a state machine, as data. Every state meets every event;
// the type lets none be left out. Nothing here acts: holding.ts carries out the actions.
//
//   held ⇄ renewing ──── work settled ────▶ (finishing ▶) releasing ▶ ended
//     │        │
//     │ stop   │          signal aborted, still renewing until the work has settled
//     ▼        ▼
//   draining ⇄ drainRenewing ── bound ──▶ abandoned      never released: it expires by itself
//     │        │
//     ▼        ▼          also from held and renewing, when belief has ended
//     lost ──── work settled, or bound ──▶ ended, abandoned
//
// The order at the end of a tenure is the point of it: abort the signal, let the work settle while
// still renewing, then release. Never release first.

export type HoldingState =
  /** Ours; the next renewal is due later. */
  | 'held'
  /** Ours; a renewal is under way. */
  | 'renewing'
  /** Ours; told to stop, and the work has not settled yet. */
  | 'draining'
  | 'drainRenewing'
  /** The work has settled while a renewal was under way. */
  | 'finishing'
  /** The work has settled while a renewal was under way, and the lease is to be kept. */
  | 'keeping'
  | 'releasing'
  /** Belief has ended; the work has not settled yet. */
  | 'lost'
  /** The work outlasted its bound. No renewal and no release: the lease expires by itself. */
  | 'abandoned'
  | 'ended';

export type HoldingEvent =
  | 'renewalDue'
  | 'renewed'
  /** A renewal gave no answer that tells what happened. */
  | 'cannotTell'
  /** The record shows that the lease is no longer ours. */
  | 'gone'
  /** Belief has run out by the clocks. */
  | 'expired'
  /** Told to stop: by the caller, an operator, a hold limit. */
  | 'stop'
  | 'workSettled'
  /** The work has settled, and the lease is to be kept for the next. */
  | 'keep'
  /** The work has not settled in the time it was given. */
  | 'boundPassed'
  /** The release was answered, or given up. */
  | 'released';

export type HoldingAction =
  | 'renew'
  /** Plan the next renewal, a period after the last one was sent. */
  | 'schedule'
  /** Plan the next attempt after one that cannot tell: sooner. */
  | 'scheduleRetry'
  /** Comes last: whoever listens may end the tenure at once. */
  | 'abortSignal'
  /** Give the work a bound to settle in. */
  | 'boundDrain'
  | 'boundLoss'
  | 'release'
  /** The tenure is over. */
  | 'conclude'
  /** The tenure goes on, in other hands. */
  | 'letGo';

export type Step = readonly [HoldingState, ...HoldingAction[]];

export const STEPS: Readonly<Record<HoldingState, Readonly<Record<HoldingEvent, Step>>>> = {
  held: {
    renewalDue: ['renewing', 'renew'],
    renewed: ['held'],
    cannotTell: ['held'],
    gone: ['lost', 'boundLoss', 'abortSignal'],
    expired: ['lost', 'boundLoss', 'abortSignal'],
    stop: ['draining', 'boundDrain', 'abortSignal'],
    workSettled: ['releasing', 'release'],
    keep: ['ended', 'letGo'],
    boundPassed: ['held'],
    released: ['held'],
  },
  renewing: {
    renewalDue: ['renewing'],
    renewed: ['held', 'schedule'],
    cannotTell: ['held', 'scheduleRetry'],
    gone: ['lost', 'boundLoss', 'abortSignal'],
    expired: ['lost', 'boundLoss', 'abortSignal'],
    stop: ['drainRenewing', 'boundDrain', 'abortSignal'],
    workSettled: ['finishing'],
    keep: ['keeping'],
    boundPassed: ['renewing'],
    released: ['renewing'],
  },
  draining: {
    renewalDue: ['drainRenewing', 'renew'],
    renewed: ['draining'],
    cannotTell: ['draining'],
    gone: ['lost', 'boundLoss'],
    expired: ['lost', 'boundLoss'],
    stop: ['draining'],
    workSettled: ['releasing', 'release'],
    keep: ['releasing', 'release'],
    boundPassed: ['abandoned', 'conclude'],
    released: ['draining'],
  },
  drainRenewing: {
    renewalDue: ['drainRenewing'],
    renewed: ['draining', 'schedule'],
    cannotTell: ['draining', 'scheduleRetry'],
    gone: ['lost', 'boundLoss'],
    expired: ['lost', 'boundLoss'],
    stop: ['drainRenewing'],
    workSettled: ['finishing'],
    keep: ['finishing'],
    boundPassed: ['abandoned', 'conclude'],
    released: ['drainRenewing'],
  },
  finishing: {
    renewalDue: ['finishing'],
    // Whatever became of the renewal: a release is conditional, and empties our own lease only.
    renewed: ['releasing', 'release'],
    cannotTell: ['releasing', 'release'],
    expired: ['releasing', 'release'],
    gone: ['ended', 'conclude'],
    stop: ['finishing'],
    workSettled: ['finishing'],
    keep: ['finishing'],
    boundPassed: ['finishing'],
    released: ['finishing'],
  },
  keeping: {
    renewalDue: ['keeping'],
    renewed: ['ended', 'letGo'],
    cannotTell: ['ended', 'letGo'],
    gone: ['ended', 'conclude'],
    expired: ['ended', 'conclude'],
    stop: ['finishing'],
    workSettled: ['finishing'],
    keep: ['keeping'],
    boundPassed: ['keeping'],
    released: ['keeping'],
  },
  releasing: {
    renewalDue: ['releasing'],
    renewed: ['releasing'],
    cannotTell: ['releasing'],
    gone: ['releasing'],
    expired: ['releasing'],
    stop: ['releasing'],
    workSettled: ['releasing'],
    keep: ['releasing'],
    boundPassed: ['releasing'],
    released: ['ended', 'conclude'],
  },
  lost: {
    renewalDue: ['lost'],
    renewed: ['lost'],
    cannotTell: ['lost'],
    gone: ['lost'],
    expired: ['lost'],
    stop: ['lost'],
    workSettled: ['ended', 'conclude'],
    keep: ['ended', 'conclude'],
    boundPassed: ['abandoned', 'conclude'],
    released: ['lost'],
  },
  abandoned: {
    renewalDue: ['abandoned'],
    renewed: ['abandoned'],
    cannotTell: ['abandoned'],
    gone: ['abandoned'],
    expired: ['abandoned'],
    stop: ['abandoned'],
    workSettled: ['ended'],
    keep: ['ended'],
    boundPassed: ['abandoned'],
    released: ['abandoned'],
  },
  ended: {
    renewalDue: ['ended'],
    renewed: ['ended'],
    cannotTell: ['ended'],
    gone: ['ended'],
    expired: ['ended'],
    stop: ['ended'],
    workSettled: ['ended'],
    keep: ['ended'],
    boundPassed: ['ended'],
    released: ['ended'],
  },
};
