// What the histories of a run add up to: so that nobody takes silence for safety.

import type { History } from './history.ts';

export class Totals {
  readonly #counts = new Map<string, number>();

  add(history: History): void {
    for (const it of history) {
      if (it.kind === 'applied') {
        const { operation, before, after } = it;
        if (operation === 'acquire') this.#count('acquisitions');
        if (operation === 'acquire' && before.holder !== undefined) this.#count('takeovers');
        if (operation === 'renew') this.#count('renewals');
        if (it.by === 'table') this.#count('changes by others');
        else if (before.status !== 'Evicted' && after.status === 'Evicted')
          this.#count('evictions');
      } else if (it.kind === 'effect') {
        this.#count(it.applied ? 'guarded writes done' : 'guarded writes refused');
        if (it.tick !== undefined) this.#count('ticks with their effect');
      } else if (it.kind === 'run') {
        if (it.what === 'began') this.#count('runs of jobs');
        if (it.what === 'threw') this.#count('runs that threw');
      } else if (it.kind === 'looked') {
        this.#count('looks at belief');
      } else if (it.kind === 'published') {
        this.#count('events published');
      } else if (it.kind === 'machine' && it.what === 'crashes') {
        this.#count('crashes');
      }
    }
  }

  toString(): string {
    return [...this.#counts].map(([what, count]) => `${count} ${what}`).join(', ');
  }

  #count(what: string): void {
    this.#counts.set(what, (this.#counts.get(what) ?? 0) + 1);
  }
}
