// What a policy checker such as cdk-nag would find here, and why it is as it should be.

import { Validations } from 'aws-cdk-lib';
import type { IConstruct } from 'constructs';

/** Of functions whose handlers are of this package. */
export function acknowledgeNoTracing(fn: IConstruct): void {
  const reason =
    'Each change of a lease is a log line that names its holder and log stream; traces would ' +
    'need permissions that cannot be limited to a resource.';
  acknowledge(fn, reason, 'Serverless-LambdaTracing');
}

/** Acknowledges rules by their ids, for `construct` and what is in it. */
export function acknowledge(construct: IConstruct, reason: string, ...ids: string[]): void {
  Validations.of(construct).acknowledge(...ids.map((id) => ({ id, reason })));
}
