// Durations in seconds, also of those that are a parameter of the template: their values are known
// only when it is deployed, and cannot be checked before.

import { Tokenization, type Duration } from 'aws-cdk-lib';

/** Whether its length is known only at deployment. */
export function isUnknown(duration: Duration): boolean {
  return duration.isUnresolved();
}

export function secondsOf(duration: Duration): number {
  return duration.toSeconds({ integral: false });
}

/** For an environment variable. Throws where an unknown one was not given in seconds. */
export function secondsText(duration: Duration): string {
  return Tokenization.stringifyNumber(secondsOf(duration));
}
