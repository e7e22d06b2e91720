// What the witness makes of the reports it hears: who was inside the critical section, from when
// to when, and whether two ever were at once. Pure, and knows nothing of leases.
//
// Somebody is inside from the first to the last report, in the order in which reports arrive.
// Who has begun last is the one inside: a report of anybody else is an overlap. So one that was
// killed has left with its last report, and so has one that is frozen, unless it goes on.

export interface Report {
  readonly do: 'begin' | 'step' | 'end';
  readonly step?: number;
  readonly fencingToken: number;
  readonly holderIdentity: string;
  /** When it arrived, in epoch ms. */
  readonly atMs: number;
}

export interface Section {
  readonly holderIdentity: string;
  readonly token: number;
  readonly beganAtMs: number;
  readonly lastAtMs: number;
  /** The token that each step carried. */
  readonly stepTokens: readonly number[];
  readonly ended: boolean;
}

export interface Verdict {
  readonly sections: readonly Section[];
  /** Pairs of sections that were inside at once. */
  readonly overlaps: number;
  /** From section to section; within one, every step carried the same. */
  readonly tokensIncreasing: boolean;
}

type OpenSection = { -readonly [Key in keyof Section]: Section[Key] } & { stepTokens: number[] };

export class Sections {
  readonly #sections: OpenSection[] = [];
  readonly #overlaps = new Set<string>();

  add(report: Report): void {
    const { holderIdentity, fencingToken: token, atMs } = report;
    const known = this.#sections.findLastIndex((each) => each.holderIdentity === holderIdentity);
    if (report.do === 'begin' || known === -1) {
      this.#sections.push({
        holderIdentity,
        token,
        beganAtMs: atMs,
        lastAtMs: atMs,
        stepTokens: [],
        ended: false,
      });
    }
    const at = report.do === 'begin' || known === -1 ? this.#sections.length - 1 : known;
    const section = this.#sections[at];
    if (section === undefined) return;
    section.lastAtMs = atMs;
    if (report.do === 'step') section.stepTokens.push(token);
    section.ended = report.do === 'end';
    for (let later = at + 1; later < this.#sections.length; later++) {
      this.#overlaps.add(`${at} and ${later}`);
    }
  }

  verdict(): Verdict {
    const sections = this.#sections;
    return {
      sections,
      overlaps: this.#overlaps.size,
      tokensIncreasing: sections.every(
        ({ token, stepTokens }, at) =>
          token > (sections[at - 1]?.token ?? 0) && stepTokens.every((each) => each === token),
      ),
    };
  }
}
