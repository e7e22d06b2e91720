// The real clocks, on a machine that may take the processor away between any two instructions.

import { afterEach, describe, expect, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { Timeline } from '../../src/timeline.ts';

afterEach(() => {
  vi.restoreAllMocks();
});

/** Both clocks of a machine that stops for so long after each of the next readings of either. */
function machine(stopsMs: readonly number[]) {
  const stops = [...stopsMs];
  let nowMs = 1_000;
  const reading = (offsetMs: number) => () => {
    const readMs = nowMs + offsetMs;
    nowMs += stops.shift() ?? 0;
    return readMs;
  };
  vi.spyOn(performance, 'now').mockImplementation(reading(0));
  vi.spyOn(Date, 'now').mockImplementation(reading(Date.UTC(2026, 0, 1)));
  return { pass: (ms: number) => (nowMs += ms) };
}

describe('a reading of the system clock', () => {
  test.each([
    ['after the first clock', [80]],
    ['after the second clock', [0, 80]],
    ['again and again, but not for ever', [80, 0, 0, 80, 0, 0, 0, 80]],
  ])('is of one moment though the process is stopped %s', (_, stopsMs) => {
    machine(stopsMs);
    const { wallMs, monotonicMs } = systemClock.read();
    expect(wallMs - monotonicMs).toBe(Date.UTC(2026, 0, 1));
  });

  test.each([0, 1, 2, 3, 4, 5, 6, 7, 8])('shows no step that none has made (%i)', (before) => {
    const { pass } = machine([...Array.from({ length: before }, () => 0), 300]);
    const timeline = new Timeline(systemClock);
    const start = timeline.look();
    pass(1_000);
    const end = timeline.look();
    expect(end.driftMs).toBe(start.driftMs);
    expect(end.elapsedMs - start.elapsedMs).toBeLessThanOrEqual(1_300);
  });

  test('errs to the safe side on a machine that always stops: belief before stamp (L4)', () => {
    machine(Array.from({ length: 1_000 }, () => 80));
    const { wallMs, monotonicMs } = systemClock.read();
    expect(wallMs - monotonicMs).toBeGreaterThanOrEqual(Date.UTC(2026, 0, 1));
  });

  test('goes on with both clocks', async () => {
    const first = systemClock.read();
    await new Promise<void>((resolve) => systemClock.setTimer(20, resolve));
    const second = systemClock.read();
    expect(second.monotonicMs - first.monotonicMs).toBeGreaterThan(15);
    expect(second.wallMs - first.wallMs).toBeGreaterThan(15);
    expect(Math.abs(second.wallMs - Date.now())).toBeLessThan(60_000);
  });
});
