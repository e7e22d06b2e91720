// Mutants of time and belief: who holds, for how long, by which clock, and what it is told.

import type { Mutant } from './mutant.ts';

export const BELIEF_MUTANTS: readonly Mutant[] = [
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
    name: 'a late success revives a tenure',
    patches: [
      {
        file: 'src/tenure.ts',
        search: '    if (!this.isHeld()) return;\n    // Also',
        replace: '    this.#ended = undefined;\n    // Also',
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
        replace: `    const exact = this.#sent.find(({ stampMs }) => stampMs === renewTimeMs);
    return exact ?? this.#sent.at(-1);`,
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
        search:
          'record.leaseDurationMs ?? Math.max(judge.leaseDurationMs, UNREADABLE_DURATION_MS);',
        replace: 'judge.leaseDurationMs + 0 * UNREADABLE_DURATION_MS;',
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
        search: 'judge.trustClocks && clockCounts(judge.clock);',
        replace: 'judge.trustClocks;',
      },
      {
        file: 'src/lock.ts',
        search: 'this.#options.trustClocks && clockCounts(this.clockStatus)',
        replace: "this.#options.trustClocks && this.clockStatus.kind !== 'wrong'",
      },
    ],
  },
  {
    name: 'a wrong clock counts as checked',
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
    ],
  },
  {
    name: 'a clock is corrected by each sample, not checked',
    patches: [
      {
        file: 'src/timeline.ts',
        search: '  #driftMs = 0;',
        replace: '  #driftMs = 0;\n  correctionMs = 0;',
      },
      {
        file: 'src/timeline.ts',
        search: '      ...now,',
        replace: '      ...now,\n      wallMs: now.wallMs + this.correctionMs,',
      },
      {
        file: 'src/clock-check.ts',
        search: '      if (lowerMs > upperMs) return;',
        replace: `      if (lowerMs > upperMs) return;
      this.#timeline.correctionMs += (lowerMs + upperMs) / 2;`,
      },
      {
        file: 'src/clock-check.ts',
        search: "    const status = this.status(toleranceMs);\n    if (status.kind !== 'checked')",
        replace: '    const status = this.status(toleranceMs);\n    if (toleranceMs > 0)',
      },
      {
        file: 'src/clock-check.ts',
        search: "    if (valid && judge(sample, limitMs) === 'wrong') {",
        replace: "    if (valid && judge(sample, limitMs) === 'wrong' && toleranceMs < 0) {",
      },
      {
        file: 'src/clock-check.ts',
        search: "    return { kind: valid ? 'checked' : 'unchecked' };",
        replace: "    return { kind: this.#sawDate ? 'checked' : 'unchecked' };",
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
    name: 'the clock is asked once for all attempts of an acquisition',
    patches: [
      {
        file: 'src/lock.ts',
        search: "      if (takeable === 'vacant or expired') takeable = this.#takeableBlind();\n",
        replace: '',
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
    name: 'work that outlasts its bound is renewed on',
    patches: [
      {
        file: 'src/holding.ts',
        search: "if (drainMs !== Infinity) this.#setTimer('bound', drainMs, ()",
        replace: "if (drainMs < 0) this.#setTimer('bound', drainMs, ()",
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
];
