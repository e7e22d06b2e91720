// A call that is over after a time, whether or not it settles. A store may never answer; what it
// answers later is nobody's.

import { sleep, type Clock } from './clock.ts';
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
  const settled = new AbortController();
  const late = new LeaseError(
    'store-unavailable',
    `${what} was not answered within ${Math.ceil(timeoutMs)} ms.`,
  );
  const expiry = sleep(clock, timeoutMs, settled.signal).then(() => {
    if (!settled.signal.aborted) timeout.abort(late);
    throw late;
  });
  expiry.catch(() => undefined);
  try {
    return await Promise.race([call(timeout.signal), expiry]);
  } catch (error) {
    if (isLeaseError(error)) throw timeout.signal.aborted ? late : error;
    throw new LeaseError('store-unavailable', `${what} failed (${describeError(error)}).`, {
      cause: error,
    });
  } finally {
    settled.abort();
  }
}
