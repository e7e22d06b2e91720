// A call that is over after a time, whether or not it settles. A store may never answer; what it
// answers later is nobody's.

import type { Clock, Timer } from './clock.ts';
import { describeError, isLeaseError, LeaseError } from './errors.ts';

/**
 * Runs `call` with a signal that aborts after `timeoutMs`. Rejects with `store-unavailable` then,
 * at once, also when the call goes on. Other errors of the call become LeaseErrors.
 */
export async function bounded<T>(
  clock: Clock,
  timeoutMs: number,
  what: string,
  call: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const timeout = new AbortController();
  let timer: Timer | undefined;
  const expiry = new Promise<never>((_, reject) => {
    timer = clock.setTimer(timeoutMs, () => {
      const unanswered = `${what} was not answered within ${Math.ceil(timeoutMs)} ms.`;
      const late = new LeaseError('store-unavailable', unanswered);
      timeout.abort(late);
      reject(late);
    });
  });
  try {
    return await Promise.race([call(timeout.signal), expiry]);
  } catch (error) {
    if (isLeaseError(error)) throw timeout.signal.aborted ? timeout.signal.reason : error;
    throw new LeaseError('store-unavailable', `${what} failed (${describeError(error)}).`, {
      cause: error,
    });
  } finally {
    timer?.cancel();
  }
}
