// What an oracle is: a function of a whole history and the plan behind it. It reads no clock, and
// remembers nothing.

import type { History } from '../history.ts';
import type { Plan } from '../plan.ts';

export interface Violation {
  readonly oracle: string;
  readonly atMs: number;
  readonly message: string;
}

export interface Oracle {
  /** A sentence: what always holds. */
  readonly holds: string;
  /** Where and why it did not; empty when it did. */
  readonly check: (history: History, plan: Plan) => readonly Omit<Violation, 'oracle'>[];
}

export type Found = Omit<Violation, 'oracle'>;
