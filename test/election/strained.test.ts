// Standing by before a store that answers only when it is asked again: as DynamoDB does where it
// throttles, which the SDK hides by repeating the request.

import { expect, test } from 'vitest';
import { contend } from '../../src/contention.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { vacantLease } from '../../src/lease.ts';
import type { Contender } from '../../src/slots.ts';
import { Timeline } from '../../src/timeline.ts';
import { LEASE, SECOND, SeededRandom } from './harness.ts';

const PERIOD_MS = 2 * SECOND;

/** When one that stands by for a held lease looks; strained while `isStrained`. */
async function looks(isStrained: (look: number) => boolean, forMs: number): Promise<number[]> {
  const clock = new FakeClock();
  const at: number[] = [];
  const over = new AbortController();
  const waiting = { kind: 'wait', because: 'held', forMs: Infinity } as const;
  const record = { ...vacantLease(LEASE), vacant: false, holderIdentity: 'a' };
  const lock: Contender = {
    lease: LEASE,
    seen: record,
    lastAnswerAtMs: undefined,
    clockStatus: { kind: 'checked' },
    look: async () => {
      at.push(clock.read().monotonicMs);
      const strained = isStrained(at.length);
      return { kind: 'seen', record, decision: waiting, strained };
    },
    tryAcquire: async () => ({ kind: 'refused', record, waiting, raced: false }),
    withdraw: async () => undefined,
    release: async () => undefined,
  };
  const from = clock.read().monotonicMs;
  const contending = contend(lock, {
    clock,
    timeline: new Timeline(clock),
    random: new SeededRandom(1),
    retryPeriodMs: PERIOD_MS,
    termsAt: () => ({ leaseDurationMs: 15_000, renewDeadlineMs: 10_000 }),
    signal: over.signal,
  });
  await clock.advance(forMs);
  over.abort();
  await clock.advance(0);
  expect(await contending).toEqual({ kind: 'aborted' });
  return [from, ...at].slice(1).map((time, index) => time - [from, ...at][index]!);
}

test('looks half as often with each strained answer, down to an eighth', async () => {
  const gaps = await looks(() => true, 120 * SECOND);
  const factors = gaps.map((gap) => gap / PERIOD_MS);
  for (const [look, factor] of factors.entries()) {
    const doubled = 2 ** Math.min(3, look);
    expect(factor).toBeGreaterThanOrEqual(0.8 * doubled);
    expect(factor).toBeLessThanOrEqual(1.2 * doubled);
  }
  expect(factors.length).toBeGreaterThan(6);
});

test('is back at its period three clean answers later', async () => {
  const gaps = await looks((look) => look <= 3, 120 * SECOND);
  expect(Math.min(...gaps.slice(6))).toBeGreaterThanOrEqual(0.8 * PERIOD_MS);
  expect(Math.max(...gaps.slice(6))).toBeLessThanOrEqual(1.2 * PERIOD_MS);
  expect(gaps[3]).toBeGreaterThan(6 * PERIOD_MS);
});
