// Whether this machine's wall clock may be trusted. It is checked, never corrected.
//
// Every answer of the store carries a `Date` header, so every request is also a measurement, for
// free: the server's clock was read between our send and our receipt. With the header's whole
// seconds, `server - local` lies between `Date - received` and `Date + 1 s - sent`.
//
// Expiry may be judged by the clock when any two clocks differ by at most the tolerance T. With
// C = the smaller of T and 5 s, a clock proven to within 3C/8 that has drifted by at most C/8
// since is within C/2, and two such clocks are within C of each other.

import type { Moment, Timeline } from './timeline.ts';

const LARGEST_LIMIT_MS = 5_000;
/** Below this tolerance a header of whole seconds proves nothing. */
const SMALLEST_PROVABLE_TOLERANCE_MS = 2_500;

/** So many slow answers in a row, and an earlier quick one is forgotten. */
const REMEMBERED_SAMPLES = 16;

export type ClockStatus =
  | { readonly kind: 'checked' }
  /** Not measured yet, or stepped or paused since. It decides nothing. */
  | { readonly kind: 'unchecked' }
  /** Proven to be off. `lowerMs` to `upperMs` is what must be added to it to be right. */
  | { readonly kind: 'wrong'; readonly lowerMs: number; readonly upperMs: number }
  /** It cannot be checked; safety rests on the hosts' clocks. */
  | { readonly kind: 'unverifiable'; readonly because: 'no date' | 'small tolerance' };

/** Whether times may be judged by this clock: it was proved, or cannot be. */
export function clockCounts(
  status: ClockStatus,
): status is Extract<ClockStatus, { kind: 'checked' | 'unverifiable' }> {
  return status.kind === 'checked' || status.kind === 'unverifiable';
}

interface Sample {
  readonly sent: Moment;
  readonly lowerMs: number;
  readonly upperMs: number;
}

type Verdict = 'proven' | 'wrong' | 'unknown';

export class ClockCheck {
  readonly #timeline: Timeline;
  #samples: readonly Sample[] = [];
  #sawAnswerWithoutDate = false;
  #sawDate = false;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /**
   * To be called before one attempt of a request leaves; the function it returns, when its answer
   * has arrived, whatever the answer says.
   */
  readonly attempt = (): ((date: string | undefined) => void) => {
    const sent = this.#timeline.look();
    return (date) => {
      const received = this.#timeline.look();
      const dateMs = date === undefined ? Number.NaN : Date.parse(date);
      if (Number.isNaN(dateMs)) {
        this.#sawAnswerWithoutDate = true;
        return;
      }
      this.#sawDate = true;
      const lowerMs = dateMs - received.wallMs;
      const upperMs = dateMs + 1_000 - sent.wallMs;
      // The clock was set back while the request was under way.
      if (lowerMs > upperMs) return;
      this.#samples = [...this.#samples.slice(1 - REMEMBERED_SAMPLES), { sent, lowerMs, upperMs }];
    };
  };

  /**
   * The attempts of one call, and `told`, to be called when the store has told what happened: only
   * then does a missing `Date` mean that it sends none. A gateway's error page has none either.
   */
  call(): { readonly attempt: ClockCheck['attempt']; readonly told: () => void } {
    const seen = { withoutDate: false };
    return {
      attempt: () => {
        const answered = this.attempt();
        return (date) => {
          if (date === undefined) seen.withoutDate = true;
          else answered(date);
        };
      },
      told: () => {
        if (seen.withoutDate) this.attempt()(undefined);
      },
    };
  }

  status(toleranceMs: number): ClockStatus {
    const limitMs = Math.min(toleranceMs, LARGEST_LIMIT_MS);
    const sample = this.#conclusiveFor(limitMs);
    const valid = sample !== undefined && !this.#hasDrifted(sample.sent, limitMs);
    if (valid && judge(sample, limitMs) === 'wrong') {
      return { kind: 'wrong', lowerMs: sample.lowerMs, upperMs: sample.upperMs };
    }
    if (toleranceMs < SMALLEST_PROVABLE_TOLERANCE_MS) {
      return { kind: 'unverifiable', because: 'small tolerance' };
    }
    if (this.#sawAnswerWithoutDate && !this.#sawDate) {
      return { kind: 'unverifiable', because: 'no date' };
    }
    return { kind: valid ? 'checked' : 'unchecked' };
  }

  /**
   * The status of the clock as it was at `stamp`: checked only by a sample that was sent after it,
   * with no step or pause between.
   */
  statusSince(stamp: Moment, toleranceMs: number): ClockStatus {
    const status = this.status(toleranceMs);
    if (status.kind !== 'checked') return status;
    const limitMs = Math.min(toleranceMs, LARGEST_LIMIT_MS);
    const sample = this.#conclusiveFor(limitMs);
    const after = sample !== undefined && sample.sent.elapsedMs >= stamp.elapsedMs;
    return { kind: after && !this.#hasDrifted(stamp, limitMs) ? 'checked' : 'unchecked' };
  }

  /** Of those that say anything, what was sent last: answers may arrive out of order. */
  #conclusiveFor(limitMs: number): Sample | undefined {
    return this.#samples
      .filter((sample) => judge(sample, limitMs) !== 'unknown')
      .reduce<Sample | undefined>(
        (last, sample) =>
          last === undefined || sample.sent.elapsedMs >= last.sent.elapsedMs ? sample : last,
        undefined,
      );
  }

  #hasDrifted(since: Moment, limitMs: number): boolean {
    return this.#timeline.look().driftMs - since.driftMs > limitMs / 8;
  }
}

function judge({ lowerMs, upperMs }: Sample, limitMs: number): Verdict {
  const boundMs = (3 * limitMs) / 8;
  if (lowerMs > boundMs || upperMs < -boundMs) return 'wrong';
  return lowerMs >= -boundMs && upperMs <= boundMs ? 'proven' : 'unknown';
}
