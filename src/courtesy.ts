// Taking turns at a lease that many want. Whoever has just had it would win it again and again: it
// knows of the release first, and those that stand by look only now and then. And when all of them
// look often, most of what they see is others, and what they write is refused.
//
// Tokens count the turns. Who had to let so many others go first since its last turn expects as
// many the next time, less a few, so that it is there in time: this draws all towards the same
// share. Until then it looks seldom, and leaves what is free to those before it.
//
// Who never had to wait cannot know whether others do, for they only read. So who takes a lease
// right after its own release, several times in a row, stands back once for a retry period; in
// vain, and it does so half as often.
//
// A matter of fairness and price, never of safety: at worst somebody waits a few periods more.

const MOST_REMEMBERED = 100;
const FIRST_IN_A_ROW = 4;
const MOST_IN_A_ROW = 64;
const EXPECTED = 0.85;
/** Turns that last longer than so many periods are no queue to be clever about: a pause does. */
const SHORT_TURN_PERIODS = 4;
/** So often one that is next writes without a look; then whoever holds it holds it for longer. */
const MOST_WRITES = 4;
/** Between two looks, however long the queue: it may have gone home. */
const MOST_PERIODS = 8;

interface Turn {
  readonly fencingToken: number;
  /** How many others had it since we had asked for it, or had had it. */
  readonly others: number;
  readonly waitedMs: number;
  /** How often it was taken with nobody between. */
  readonly inARow: number;
  /** How often it may be before we stand back. */
  readonly limit: number;
  /** On the timeline; undefined while it is ours. */
  readonly leftAtMs: number | undefined;
}

/** Where one stands in a queue that nobody keeps. */
export class Place {
  readonly #turn: Turn;
  readonly #leftAtMs: number;
  #writes = 0;

  constructor(turn: Turn, leftAtMs: number) {
    this.#turn = turn;
    this.#leftAtMs = leftAtMs;
  }

  get token(): number {
    return this.#turn.fencingToken;
  }

  /** Nobody is known to wait, or all take their time: a pause is all that is owed. */
  get alone(): boolean {
    return this.#turn.others === 0;
  }

  /** So many have gone first that the next turn is ours: worth a write, without a look. */
  isNext(token: number): boolean {
    return this.#writes < MOST_WRITES && token > this.token && this.ahead(token) <= 0;
  }

  /** To be called when such a write was refused. */
  refused(): void {
    this.#writes += 1;
  }

  /** How many are still to go first when the lease is at `token`. */
  ahead(token: number): number {
    return EXPECTED * this.#turn.others - (token - this.#turn.fencingToken);
  }

  /** How long not to look, at `nowMs` of the timeline and with the lease at `token`. */
  patienceMs(token: number, nowMs: number, periodMs: number): number {
    if (this.isNext(token)) return periodMs / 2;
    const ahead = this.ahead(token);
    if (token > this.token && ahead <= 1) return periodMs;
    const gone = token - this.#turn.fencingToken;
    const eachMs =
      gone > 0 ? (nowMs - this.#leftAtMs) / gone : this.#turn.waitedMs / (this.#turn.others + 1);
    return Math.min(MOST_PERIODS * periodMs, Math.max(periodMs, (ahead * eachMs) / 2));
  }
}

export class Courtesy {
  readonly #turns = new Map<string, Turn>();

  /** `seenToken`: that of the holder that stood in the way first; undefined if nobody did. */
  acquired(
    lease: string,
    fencingToken: number,
    seenToken: number | undefined,
    waitedMs: number,
  ): void {
    const { inARow, limit, ...before } = this.#turns.get(lease) ?? NEVER;
    const since = before.leftAtMs === undefined ? undefined : before.fencingToken;
    const others = Math.max(
      seenToken === undefined ? 0 : 1,
      since === undefined ? 0 : fencingToken - since - 1,
      seenToken === undefined ? 0 : fencingToken - seenToken,
    );
    const inVain = others === 0 && inARow >= limit;
    // Deleted first: a map remembers in the order of insertion.
    this.#turns.delete(lease);
    this.#turns.set(lease, {
      fencingToken,
      others,
      waitedMs,
      inARow: others === 0 && !inVain ? inARow + 1 : 0,
      limit: inVain ? Math.min(MOST_IN_A_ROW, 2 * limit) : others > 0 ? FIRST_IN_A_ROW : limit,
      leftAtMs: undefined,
    });
    for (const [oldest] of this.#turns) {
      if (this.#turns.size <= MOST_REMEMBERED) break;
      this.#turns.delete(oldest);
    }
  }

  /** Given back, at `nowMs` of the timeline. */
  left(lease: string, nowMs: number): void {
    const turn = this.#turns.get(lease);
    if (turn !== undefined) this.#turns.set(lease, { ...turn, leftAtMs: nowMs });
  }

  /** Undefined where nobody is to go first, as far as is known at `nowMs` of the timeline. */
  place(lease: string, nowMs: number, periodMs: number): Place | undefined {
    const turn = this.#turns.get(lease);
    if (turn?.leftAtMs === undefined) return undefined;
    if (turn.others === 0 && turn.inARow < turn.limit) return undefined;
    // Who was away for long has let others go first.
    const longestMs = Math.max(periodMs, Math.min(turn.waitedMs, MOST_PERIODS * periodMs));
    if (nowMs - turn.leftAtMs > longestMs) return undefined;
    const long = turn.waitedMs > SHORT_TURN_PERIODS * periodMs * (turn.others + 1);
    return new Place(long ? { ...turn, others: 0 } : turn, turn.leftAtMs);
  }
}

const NEVER = {
  fencingToken: 0,
  inARow: 0,
  limit: FIRST_IN_A_ROW,
  leftAtMs: undefined,
} as const;
