// What happened, as the oracles see it: by true time, in order. Who is who is told by the end of
// an identity, which is the same in every repetition of a seed.

export type Operation =
  | 'acquire'
  | 'renew'
  | 'release'
  /** Of a tick, with its effect. */
  | 'complete'
  | 'remove'
  | 'flag'
  | 'evict'
  | 'clear event'
  | 'collect'
  | 'note'
  /** Another client of the table, or an operator. */
  | 'tamper'
  | 'delete';

/** One side of a write: the record before it or after it. */
export interface Side {
  readonly holder: string | undefined;
  readonly token: number;
  readonly version: number;
  readonly renewTime: string | undefined;
  readonly durationMs: number;
  /** By which its expiry can be judged, in epoch ms; undefined where no clock can. */
  readonly expireTimeMs: number | undefined;
  readonly kind: string | undefined;
  readonly status: string | undefined;
  /** The id of the event that is recorded in it and not cleared yet. */
  readonly event: string | undefined;
  readonly ready: boolean;
  /** Of a job. */
  readonly lastTick?: number;
}

export interface Applied {
  readonly kind: 'applied';
  readonly atMs: number;
  readonly lease: string;
  readonly operation: Operation;
  /** The process that sent it; `table` for tampering. */
  readonly by: string;
  readonly sentAtMs: number;
  readonly before: Side;
  readonly after: Side;
  /** Whether its condition names the version that was known; and the holder too. */
  readonly atVersion: boolean;
  readonly named: boolean;
  /** Of tampering: what was done. */
  readonly how?: string;
}

export type Happening =
  | Applied
  | {
      readonly kind: 'acknowledged';
      readonly atMs: number;
      readonly by: string;
      readonly lease: string;
      readonly version: number;
    }
  | {
      readonly kind: 'sent';
      readonly atMs: number;
      readonly by: string;
      readonly lease: string;
      readonly operation: Operation;
      readonly holder: string | undefined;
    }
  | {
      readonly kind: 'started';
      readonly atMs: number;
      readonly lease: string;
      readonly by: string;
      readonly holder: string;
      readonly token: number;
      /** Which object the work was handed. */
      readonly tenure: number;
      readonly toleranceMs: number;
      /** By an elector, whose callbacks come in pairs. */
      readonly elector: boolean;
    }
  | {
      readonly kind: 'looked';
      readonly atMs: number;
      readonly lease: string;
      readonly tenure: number;
      readonly holder: string;
      readonly token: number;
      readonly held: boolean;
      readonly remainingMs: number;
      readonly aborted: boolean;
      readonly why: string;
    }
  | {
      readonly kind: 'signalled';
      readonly atMs: number;
      readonly tenure: number;
      readonly holder: string;
      readonly by: string;
      /** How long work may take now, and how long its machine has stood still so far. */
      readonly drainMs: number;
      readonly stoodMs: number;
    }
  | {
      readonly kind: 'stopped';
      readonly atMs: number;
      readonly lease: string;
      readonly by: string;
      readonly holder: string | undefined;
      readonly reason: string;
    }
  | {
      readonly kind: 'given back';
      readonly atMs: number;
      readonly lease: string;
      readonly holder: string;
    }
  | {
      readonly kind: 'new leader';
      readonly atMs: number;
      readonly by: string;
      readonly holder: string;
    }
  | {
      readonly kind: 'effect';
      readonly atMs: number;
      readonly lease: string;
      readonly guard: 'condition check' | 'fencing token' | 'completion';
      readonly holder: string;
      readonly token: number;
      readonly applied: boolean;
      /** Of a job: which of its scheduled times this is the effect of. */
      readonly tick?: number;
    }
  | {
      readonly kind: 'run';
      readonly atMs: number;
      readonly by: string;
      readonly lease: string;
      readonly holder: string;
      readonly tick: number;
      readonly what: 'began' | 'returned' | 'threw' | 'told that it is done';
    }
  | { readonly kind: 'published'; readonly atMs: number; readonly event: string }
  | { readonly kind: 'pass'; readonly atMs: number; readonly blind: boolean }
  | {
      readonly kind: 'machine';
      readonly atMs: number;
      readonly by: string;
      readonly what: 'boots' | 'crashes' | 'freezes' | 'thaws' | 'is set' | 'is told to stop';
    }
  | { readonly kind: 'calm'; readonly atMs: number }
  /** Nothing that was sent before the calm is on its way any more. */
  | { readonly kind: 'settled'; readonly atMs: number }
  | {
      readonly kind: 'ended';
      readonly atMs: number;
      readonly by: string;
      /** What its process still has open: all 0 when it left nothing behind. */
      readonly timers: number;
      readonly calls: number;
      readonly listeners: number;
    }
  /** An elector's run, with what still listens to the signal that it was given. */
  | {
      readonly kind: 'run over';
      readonly atMs: number;
      readonly by: string;
      readonly listeners: number;
    }
  | { readonly kind: 'over'; readonly atMs: number; readonly unfinished: readonly string[] }
  | {
      readonly kind: 'failure';
      readonly atMs: number;
      readonly by: string;
      readonly message: string;
    };

export type History = readonly Happening[];

/** What tells one acquisition from another: the end of its identity. */
export function shortName(identity: string): string {
  return identity.slice(identity.lastIndexOf('/') + 1);
}

/** The process that made up this identity. */
export function ownerOf(holder: string): string {
  return holder.slice(0, holder.lastIndexOf('.'));
}

/** One number for a whole history: two runs of a seed have the same. */
export function fingerprint(history: History): string {
  const text = JSON.stringify(history);
  let low = 7;
  let high = 11;
  for (let place = 0; place < text.length; place++) {
    const code = text.charCodeAt(place);
    low = Math.imul(low ^ code, 16_777_619) >>> 0;
    high = Math.imul(high + code, 2_654_435_761) >>> 0;
  }
  const sum = (BigInt(high) << 32n) | BigInt(low);
  return `${history.length} events, ${sum.toString(16)}`;
}
