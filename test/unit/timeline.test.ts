// Elapsed time on a machine that may be frozen and whose clock may be set.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import type { Clock } from '../../src/clock.ts';
import { Timeline } from '../../src/timeline.ts';

function timelineOf() {
  const clock = new FakeClock();
  const timeline = new Timeline(clock);
  const start = timeline.look();
  return { clock, sinceMs: () => timeline.look().elapsedMs - start.elapsedMs, timeline };
}

describe('elapsed time', () => {
  test('is that of both clocks while they agree', async () => {
    const { clock, sinceMs, timeline } = timelineOf();
    await clock.advance(12_345);
    expect(sinceMs()).toBe(12_345);
    expect(timeline.look().driftMs).toBe(0);
  });

  test('counts a sleep that stopped the monotonic clock', () => {
    const { clock, sinceMs } = timelineOf();
    clock.freeze(60_000, { monotonicRuns: false });
    expect(sinceMs()).toBe(60_000);
  });

  test('counts a pause that stopped the wall clock', () => {
    const { clock, sinceMs } = timelineOf();
    clock.freeze(60_000, { wallRuns: false });
    expect(sinceMs()).toBe(60_000);
  });

  test('goes on when the wall clock is set back', async () => {
    const { clock, sinceMs } = timelineOf();
    await clock.advance(1_000);
    sinceMs();
    clock.stepWall(-3_600_000);
    await clock.advance(1_000);
    expect(sinceMs()).toBe(2_000);
  });

  test('counts a wall clock set forward, and does not take it back when it is set right', async () => {
    const { clock, sinceMs } = timelineOf();
    clock.stepWall(30_000);
    sinceMs();
    clock.stepWall(-30_000);
    await clock.advance(1_000);
    expect(sinceMs()).toBe(31_000);
  });

  test('never goes back, though both clocks do', () => {
    let monotonicMs = 10_000;
    const clock: Clock = {
      read: () => ({ wallMs: 1_000_000 + monotonicMs, monotonicMs }),
      setTimer: () => ({ cancel: () => undefined }),
    };
    const timeline = new Timeline(clock);
    monotonicMs = 20_000;
    const before = timeline.look().elapsedMs;
    monotonicMs = 5_000;
    expect(timeline.look().elapsedMs).toBe(before);
  });

  test('sums pauses of one clock and then of the other', () => {
    const { clock, sinceMs } = timelineOf();
    clock.freeze(10_000, { monotonicRuns: false });
    sinceMs();
    clock.freeze(10_000, { wallRuns: false });
    expect(sinceMs()).toBe(20_000);
  });

  test('is not counted twice by a tight loop of looks at clocks that tick apart', () => {
    let microseconds = 0;
    const clock: Clock = {
      read: () => ({
        wallMs: 1_000_000 + Math.floor((microseconds + 500) / 1_000),
        monotonicMs: microseconds / 1_000,
      }),
      setTimer: () => ({ cancel: () => undefined }),
    };
    const timeline = new Timeline(clock);
    for (; microseconds < 10_000_000; microseconds += 97) timeline.look();
    expect(timeline.look().elapsedMs).toBeCloseTo(10_000, -1);
    expect(timeline.look().driftMs).toBe(0);
  });

  test('sees a slow difference in rate', () => {
    let seconds = 0;
    const clock: Clock = {
      read: () => ({ wallMs: seconds * 1_001, monotonicMs: seconds * 1_000 }),
      setTimer: () => ({ cancel: () => undefined }),
    };
    const timeline = new Timeline(clock);
    for (; seconds < 1_000; seconds++) timeline.look();
    expect(timeline.look().driftMs).toBeGreaterThanOrEqual(998);
    expect(timeline.look().elapsedMs).toBeGreaterThanOrEqual(1_000_998);
  });
});

describe('drift', () => {
  test('adds up differences of either sign', () => {
    const { clock, timeline } = timelineOf();
    clock.stepWall(400);
    timeline.look();
    clock.stepWall(-400);
    expect(timeline.look().driftMs).toBe(800);
  });
});
