// Deliberately broken variants of the core, each by a search and a replacement in its source. What
// the simulation is worth is told by whether it catches them.

export interface Mutant {
  readonly name: string;
  readonly patches: readonly Patch[];
}

export interface Patch {
  /** From the root of the repository. */
  readonly file: string;
  readonly search: string;
  readonly replace: string;
}

export const MUTANTS: readonly Mutant[] = [
  {
    name: 'belief counts from the arrival of the answer',
    patches: [
      {
        file: 'src/tenure.ts',
        search: `    this.#believed = wrote;
    this.attempts.forgetBefore(wrote);`,
        replace: `    this.#believed = { ...wrote, base: this.#timeline.look() };
    this.attempts.forgetBefore(wrote);`,
      },
      {
        file: 'src/tenure.ts',
        search: '    this.#believed = attempts.thatWrote(record);',
        replace: `    const wrote = attempts.thatWrote(record);
    this.#believed = wrote && { ...wrote, base: timeline.look() };`,
      },
      {
        file: 'src/tenure.ts',
        search: '    const since = this.#sent.filter(({ stampMs }) => stampMs >= applied.stampMs);',
        replace: '    const since = this.#sent.filter(({ stampMs }) => stampMs > applied.stampMs);',
      },
    ],
  },
  {
    name: 'elapsed is told by the monotonic clock alone',
    patches: [
      {
        file: 'src/timeline.ts',
        search: 'now.monotonicMs - this.#startMonotonicMs + this.#gainedMs',
        replace: 'now.monotonicMs - this.#startMonotonicMs',
      },
    ],
  },
  {
    name: 'elapsed is told by the wall clock alone',
    patches: [
      {
        file: 'src/timeline.ts',
        search: 'this.#gainedMs += Math.max(0, changeMs);',
        replace: 'this.#gainedMs += changeMs;',
      },
    ],
  },
  {
    name: 'released first, drained later',
    patches: [
      {
        file: 'src/renewal.ts',
        search: "    stop: ['draining', 'boundDrain', 'abortSignal'],",
        replace: "    stop: ['draining', 'boundDrain', 'release', 'abortSignal'],",
      },
      {
        file: 'src/lock.ts',
        search: `    tenure.end(reason);
    return this.#depart('vacate'`,
        replace: `    void reason;
    return this.#depart('vacate'`,
      },
    ],
  },
  {
    name: 'a release ends belief only when it is answered',
    patches: [
      {
        file: 'src/lock.ts',
        search: `    tenure.end(reason);
    return this.#depart('vacate', tenure.holderIdentity, tenure.version, withinMs);`,
        replace: `    const gone = await this.#depart(
      'vacate', tenure.holderIdentity, tenure.version, withinMs,
    );
    tenure.end(reason);
    return gone;`,
      },
    ],
  },
  {
    name: 'release without a condition',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(holderIdentity, version),
    set: { version: { N: String(version + 1) } },`,
        replace: `    condition: { not: { absent: 'holderIdentity' } },
    set: { version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'undo and release by holder alone',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(holderIdentity, version),
    set: { version: { N: String(version + 1) } },`,
        replace: `    condition: { equals: ['holderIdentity', { S: holderIdentity }] },
    set: { version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'renewal without a condition',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(claim.holderIdentity, version),
    set: { ...claimed(claim), version: { N: String(version + 1) } },`,
        replace: `    condition: { not: { absent: 'version' } },
    set: { ...claimed(claim), version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'renewal by holder, without version',
    patches: [
      {
        file: 'src/writes.ts',
        search: `    condition: heldAt(claim.holderIdentity, version),
    set: { ...claimed(claim), version: { N: String(version + 1) } },`,
        replace: `    condition: { equals: ['holderIdentity', { S: claim.holderIdentity }] },
    set: { ...claimed(claim), version: { incrementFrom: version } },`,
      },
    ],
  },
  {
    name: 'a late success revives a tenure',
    patches: [
      {
        file: 'src/tenure.ts',
        search: '    if (!this.isHeld()) return;\n    this.#version',
        replace: '    this.#ended = undefined;\n    this.#version',
      },
      {
        file: 'src/tenure.ts',
        search: "    if (leftMs > 0) return leftMs;\n    this.end('expired');",
        replace: '    if (leftMs > 0) return leftMs;',
      },
      {
        file: 'src/lock.ts',
        search: '        Math.min(this.#options.requestTimeoutMs, leftMs),',
        replace: '        this.#options.requestTimeoutMs,',
      },
    ],
  },
  {
    name: 'its own write is recognised by the version number',
    patches: [
      {
        file: 'src/lock.ts',
        search: '      if (record.holderIdentity === candidacy.holderIdentity) {',
        replace: `      if (
        record.holderIdentity === candidacy.holderIdentity ||
        (round > 0 && record.version === (versionBefore ?? 0) + 1)
      ) {`,
      },
      {
        file: 'src/lock.ts',
        search: `      candidacy.refused(attempt, answer.record);
      const record`,
        replace: `      candidacy.refused(attempt, answer.record);
      const versionBefore = this.#sighting?.record.version;
      const record`,
      },
      {
        file: 'src/tenure.ts',
        search: `    return this.#sent.find(({ stampMs }) => stampMs === renewTimeMs);`,
        replace: `    return this.#sent.find(({ stampMs }) => stampMs === renewTimeMs) ?? this.#sent.at(-1);`,
      },
    ],
  },
  {
    name: 'its own write is taken for the latest attempt',
    patches: [
      {
        file: 'src/tenure.ts',
        search: '    return this.#sent.find(({ stampMs }) => stampMs === renewTimeMs);',
        replace: '    return Number.isNaN(renewTimeMs) ? undefined : this.#sent.at(-1);',
      },
    ],
  },
  {
    name: 'a used identity is recognised as its own',
    patches: [
      {
        file: 'src/lock.ts',
        search: '    const identity = this.#options.newIdentity();',
        replace: '    const identity = this.#identities.at(-1) ?? this.#options.newIdentity();',
      },
    ],
  },
  {
    name: 'a flag that a timer clears says who holds',
    patches: [
      {
        file: 'src/tenure.ts',
        search: '    if (leftMs > 0) return leftMs;',
        replace: `    if (leftMs > 0) {
      // Found late, by whoever looks first after a pause: a timer would be as late.
      if (this.#flagged) return leftMs;
      this.#flagged = true;
      return leftMs;
    }
    if (this.#flagged) {
      this.#flagged = false;
      return 1;
    }`,
      },
      {
        file: 'src/tenure.ts',
        search: '  #ended: EndReason | undefined;',
        replace: '  #ended: EndReason | undefined;\n  #flagged = false;',
      },
    ],
  },
  {
    name: "the contender's own duration counts, not the record's",
    patches: [
      {
        file: 'src/decide.ts',
        search: `    record.leaseDurationMs ?? Math.max(judge.leaseDurationMs, UNREADABLE_DURATION_MS);`,
        replace: `    judge.leaseDurationMs + 0 * UNREADABLE_DURATION_MS;`,
      },
    ],
  },
  {
    name: 'what is observed counts from before it was seen',
    patches: [
      {
        file: 'src/decide.ts',
        search: '    sinceMonotonicMs: unchanged ? before.sinceMonotonicMs : arrivedMonotonicMs,',
        replace: '    sinceMonotonicMs: before?.sinceMonotonicMs ?? arrivedMonotonicMs,',
      },
    ],
  },
  {
    name: 'an unchecked clock takes expired leases',
    patches: [
      {
        file: 'src/decide.ts',
        search:
          "    judge.trustClocks && (judge.clock.kind === 'checked' || judge.clock.kind === 'unverifiable');",
        replace: '    judge.trustClocks;',
      },
      {
        file: 'src/lock.ts',
        search:
          "    const counts = this.#options.trustClocks && (kind === 'checked' || kind === 'unverifiable');",
        replace: "    const counts = this.#options.trustClocks && kind !== 'wrong';",
      },
    ],
  },
  {
    name: 'an acquisition counts though its clock is not proved',
    patches: [
      {
        file: 'src/lock.ts',
        search:
          "      if (wrote !== undefined && (clock?.kind === 'checked' || clock?.kind === 'unverifiable')) {",
        replace: '      if (wrote !== undefined) {',
      },
    ],
  },
  {
    name: 'a wrong clock is corrected, not refused',
    patches: [
      {
        file: 'src/clock-check.ts',
        search: "    if (valid && judge(sample, limitMs) === 'wrong') {",
        replace: "    if (valid && judge(sample, limitMs) === 'wrong' && toleranceMs < 0) {",
      },
      {
        file: 'src/clock-check.ts',
        search: '    return { kind: valid ? ',
        replace: '    return { kind: sample !== undefined ? ',
      },
      {
        file: 'src/tenure.ts',
        search:
          'const attempt = { ...termsAt(base), base, stampMs, nowMs: Math.floor(base.wallMs) };',
        replace:
          'const attempt = { ...termsAt(base), base, stampMs, nowMs: Math.floor(base.wallMs) + 0 };',
      },
    ],
  },
  {
    name: 'a clock that was set since its check still counts as checked',
    patches: [
      {
        file: 'src/clock-check.ts',
        search: '    return this.#timeline.look().driftMs - since.driftMs > limitMs / 8;',
        replace: '    return this.#timeline.look().driftMs - since.driftMs > limitMs * 1e9;',
      },
    ],
  },
  {
    name: 'an acquisition has no new token',
    patches: [
      {
        file: 'src/writes.ts',
        search: '      leaseTransitions: { incrementFrom: claim.knownTransitions },',
        replace: '      leaseTransitions: { N: String(Math.max(1, claim.knownTransitions)) },',
      },
    ],
  },
  {
    name: 'a guarded write without its condition',
    patches: [
      {
        file: 'test/sim/resource.ts',
        search: "        { equals: ['holderIdentity', { S: lease.holderIdentity }] },\n",
        replace: '',
      },
      {
        file: 'test/sim/resource.ts',
        search: "{ equals: ['leaseTransitions', { N: String(lease.fencingToken) }] },",
        replace: "{ not: { absent: 'leaseTransitions' } },",
      },
    ],
  },
  {
    name: 'a fenced write without its condition',
    patches: [
      {
        file: 'test/sim/resource.ts',
        search: 'known === undefined || known <= lease.fencingToken',
        replace: 'known !== lease.fencingToken + 1e9',
      },
    ],
  },
  {
    name: 'an acquisition without its condition',
    patches: [
      {
        file: 'src/writes.ts',
        search: '    condition: { all: [mayTake(takeable, claim.nowMs), gate(claim)] },',
        replace:
          '    condition: { all: [gate(claim), { any: [mayTake(takeable, claim.nowMs), gate(claim)] }] },',
      },
    ],
  },
  {
    name: 'renewTime follows the wall clock back',
    patches: [
      {
        file: 'src/tenure.ts',
        search:
          '      last === undefined ? 0 : this.#nowMs + base.elapsedMs - last.base.elapsedMs,',
        replace: '      0,',
      },
      {
        file: 'src/tenure.ts',
        search: 'Math.max(Math.floor(this.#nowMs), last === undefined ? 0 : last.stampMs + 1)',
        replace: 'Math.floor(this.#nowMs)',
      },
    ],
  },
  {
    name: 'a holder that lost its lease renews it all the same',
    patches: [
      {
        file: 'src/tenure.ts',
        search: "    return record.vacant && untaken ? 'evicted' : 'taken over';",
        replace: '    return record.vacant && untaken ? undefined : undefined;',
      },
    ],
  },
  {
    name: 'work that outlasts its bound is renewed on',
    patches: [
      {
        file: 'src/holding.ts',
        search:
          "if (drainMs !== Infinity) this.#setTimer('bound', drainMs, () => this.#on('boundPassed'));",
        replace:
          "if (drainMs < 0) this.#setTimer('bound', drainMs, () => this.#on('boundPassed'));",
      },
    ],
  },
  {
    name: 'onStoppedLeading is called for what never started',
    patches: [
      {
        file: 'src/elector.ts',
        search: '    if (started) void this.#call(() => this.#options.onStoppedLeading?.(reason));',
        replace: '    void this.#call(() => this.#options.onStoppedLeading?.(reason));',
      },
    ],
  },
  {
    name: 'a contender leaves without its undo',
    patches: [
      {
        file: 'src/lock.ts',
        search: '    if (candidacy?.unresolved !== true) return;',
        replace: '    if (candidacy !== undefined || candidacy === undefined) return;',
      },
      {
        file: 'src/lock.ts',
        search:
          "    await this.#depart('vacate', candidacy.holderIdentity, record.version);\n    return { kind: 'failed', error };",
        replace: "    void record;\n    return { kind: 'failed', error };",
      },
    ],
  },
  {
    name: 'the bound of a call leaves its timer behind',
    patches: [
      {
        file: 'src/bounded.ts',
        search: '    settled.abort();',
        replace: '    if (timeoutMs < 0) settled.abort();',
      },
    ],
  },
  {
    name: 'a standby that fails once gives up',
    patches: [
      {
        file: 'src/contention.ts',
        search:
          '      if (isPermanent(seen.error)) return;\n      waiting = undefined;\n      continue;',
        replace: '      await sleep(clock, Infinity, signal);\n      return;',
      },
    ],
  },
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
        search: '    condition: { all: [unchanged(judged), verdictAsRead(judged)] },',
        replace: '    condition: verdictAsRead(judged),',
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
        search:
          '  const seeing = !blind && absentMs <= LONGEST_ABSENCE_MS && absentMs >= -CLOCK_DIFFERENCE_MS;',
        replace:
          '  const seeing = !blind && absentMs <= 5_000 && absentMs >= -CLOCK_DIFFERENCE_MS;\n  void LONGEST_ABSENCE_MS;',
      },
    ],
  },
];
