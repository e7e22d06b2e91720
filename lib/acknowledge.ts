// What a policy checker such as cdk-nag would find here, and why it is as it should be.

import { Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** Acknowledges rules by their ids, for `construct` and what is in it. */
export function acknowledge(construct: IConstruct, reason: string, ...ids: string[]): void {
  Validations.of(construct).acknowledge(...ids.map((id) => ({ id, reason })));
}
