// Clocks that lie, stop, or are set: each of these, judged the wrong way round, gives two leaders.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { isoTime } from '../../src/lease.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { change, Contender, LEASE, START } from './locksmith.ts';

/** A record that another holds, renewed `agoMs` ago by true time. */
function heldRecord(trueMs: number, agoMs = 0, durationMs = 15_000) {
  return {
    lease: { S: LEASE },
    kind: { S: 'leader' },
    holderIdentity: { S: 'other-1' },
    leaseDurationSeconds: { N: String(durationMs / 1_000) },
    renewTime: { S: isoTime(trueMs - agoMs) },
    expireTime: { N: String(trueMs - agoMs + durationMs) },
    leaseTransitions: { N: '5' },
    version: { N: '77' },
  };
}

describe('a cold process', () => {
  test('whose first answer took 15 s has no checked clock: an expired lease is left alone', async () => {
    const a = new Contender('a', {
      requestTimeoutMs: 60_000,
      terms: { leaseDurationMs: 90_000, renewDeadlineMs: 80_000 },
    });
    change(a.store.memory, heldRecord(START, 7_200_000, 3_600_000));
    a.store.script = () => ({ requestMs: 7_500, answerMs: 7_500 });
    const answer = a.tryAcquire();
    await a.clock.advance(70_000);
    expect(await answer).toMatchObject({
      kind: 'refused',
      waiting: { because: 'clock unchecked' },
    });
    expect(a.record().holderIdentity).toBe('other-1');
  });

  test('takes an expired lease with its second request, by the sample of the first', async () => {
    const a = new Contender('a');
    change(a.store.memory, heldRecord(START, 60_000));
    const tenure = await a.acquire();
    expect(tenure.fencingToken).toBe(6);
    expect(a.store.kinds()).toEqual(['acquire', 'acquire']);
  });

  test('whose clock is an hour ahead takes nothing from a holder that is alive', async () => {
    const network = new FakeClock(START + 500);
    const a = new Contender('a', { network, clock: new FakeClock(START + 3_600_000) });
    change(a.store.memory, heldRecord(START));
    const answer = await a.during(a.tryAcquire());
    expect(answer).toMatchObject({ kind: 'refused', record: { holderIdentity: 'other-1' } });
    expect(a.record().holderIdentity).toBe('other-1');
    const again = await a.during(a.tryAcquire());
    expect(again.kind === 'failed' && again.error.code).toBe('clock-wrong');
    expect(again.kind === 'failed' && again.error.message).toMatch(/359\d|3600/);
  });

  test('whose clock is an hour ahead gives a vacant lease back', async () => {
    const network = new FakeClock(START + 500);
    const a = new Contender('a', { network, clock: new FakeClock(START + 3_600_000) });
    const answer = await a.during(a.tryAcquire());
    expect(answer.kind === 'failed' && answer.error.code).toBe('clock-wrong');
    expect(a.record().vacant).toBe(true);
  });
});

describe('a contender whose clock was ahead and has been set right', () => {
  test('does not judge a live holder by the stamps of its earlier attempts', async () => {
    const network = new FakeClock(START + 500);
    const clock = new FakeClock(START + 500 + 3_600_000);
    const a = new Contender('a', { network, clock });
    change(a.store.memory, heldRecord(START));
    expect((await a.during(a.tryAcquire())).kind).toBe('refused');
    clock.stepWall(-3_600_000);
    // Two looks: the first measures the clock anew, the second finds it checked.
    await a.during(a.lock.look());
    expect(a.lock.clockStatus.kind).toBe('checked');
    const answer = await a.during(a.tryAcquire());
    expect(answer).toMatchObject({ kind: 'refused', waiting: { because: 'held' } });
    expect(a.record().holderIdentity).toBe('other-1');
  });
});

describe('an acquisition whose own answer was too slow to prove the clock', () => {
  test('is renewed until an answer proves it, and counts from that one', async () => {
    const a = new Contender('a', { requestTimeoutMs: 9_000 });
    a.store.plan('acquire', { requestMs: 2_000, answerMs: 2_000 });
    const answer = a.tryAcquire();
    await a.clock.advance(4_000);
    const acquired = await answer;
    expect(acquired.kind).toBe('acquired');
    expect(a.store.kinds()).toEqual(['acquire', 'renew']);
    expect(acquired.kind === 'acquired' && acquired.tenure.remainingMs()).toBe(10_000);
  });

  test.each([20, 500, 980])(
    'proves a right clock also with the smallest tolerance that can be checked, %i ms into a second',
    async (fractionMs) => {
      const clock = new FakeClock(START + fractionMs);
      const terms = { leaseDurationMs: 7_500, renewDeadlineMs: 5_000 };
      const a = new Contender('a', { clock, terms });
      expect((await a.during(a.tryAcquire(), 500)).kind).toBe('acquired');
    },
  );

  test('is undone after three renewals that prove nothing', async () => {
    const a = new Contender('a', { requestTimeoutMs: 9_000 });
    a.store.script = ({ kind }) =>
      kind === 'release' ? undefined : { requestMs: 2_000, answerMs: 2_000 };
    const answer = a.tryAcquire();
    await a.clock.advance(16_000);
    const failed = await answer;
    expect(failed.kind === 'failed' && failed.error.code).toBe('clock-unproven');
    expect(a.store.kinds()).toEqual(['acquire', 'renew', 'renew', 'renew', 'release']);
    expect(a.record().vacant).toBe(true);
  });

  test('is not proved by a clock that was set between its stamp and its sample', async () => {
    const network = new FakeClock(START + 500);
    const clock = new FakeClock(START + 500 - 60_000);
    const a = new Contender('a', { network, clock });
    a.store.plan('acquire', { after: () => clock.stepWall(60_000) });
    const acquired = await a.during(a.tryAcquire());
    expect(acquired.kind).toBe('acquired');
    // The stamp that lay a minute in the past has been replaced before anybody could believe it.
    expect(a.store.kinds()).toEqual(['acquire', 'renew']);
    expect(a.record().expireTimeMs).toBe(START + 500 + 15_000);
  });
});

describe('belief (L4)', () => {
  test('ends in a laptop asleep: the monotonic clock stood still, the wall clock is right', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    a.clock.freeze(10_000, { monotonicRuns: false });
    expect(tenure.isHeld()).toBe(false);
  });

  test('ends in a pause that stopped the wall clock', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    a.clock.freeze(10_000, { wallRuns: false });
    expect(tenure.isHeld()).toBe(false);
  });

  test.each([-3_600_000, -5_000])(
    'is not prolonged by a wall clock set back by %i ms',
    async (step) => {
      const a = new Contender('a');
      const tenure = await a.acquire();
      await a.clock.advance(4_000);
      expect(tenure.remainingMs()).toBe(6_000);
      a.clock.stepWall(step);
      expect(tenure.remainingMs()).toBe(6_000);
      await a.clock.advance(6_000);
      expect(tenure.isHeld()).toBe(false);
    },
  );

  test('goes on over a wall clock set back: stamps follow elapsed time, and never go back', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    await a.clock.advance(2_000);
    a.clock.stepWall(-3_600_000);
    await a.clock.advance(2_000);
    expect((await a.during(a.renew(tenure))).kind).toBe('renewed');
    expect(a.record().renewTime).toBe(isoTime(START + 500 + 4_000));
    expect(a.record().expireTimeMs).toBe(START + 500 + 4_000 + 15_000);
  });

  test('ends early when the wall clock is set forward, and does not come back with it', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    a.clock.stepWall(11_000);
    expect(tenure.isHeld()).toBe(false);
    a.clock.stepWall(-11_000);
    expect(tenure.isHeld()).toBe(false);
  });

  test('counts the pause between reading the clocks and sending', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    await a.clock.advance(5_000);
    // The process stands still after it has looked at the clocks, before the request leaves.
    a.store.plan('renew', { before: () => a.clock.freeze(4_000) });
    expect((await a.during(a.renew(tenure))).kind).toBe('renewed');
    expect(tenure.remainingMs()).toBe(6_000);
    expect(a.record().renewTime).toBe(isoTime(START + 500 + 5_000));
  });

  test('is shortened by a shorter renewal when it is sent, not when it is answered', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    await a.clock.advance(1_000);
    a.store.plan('renew', { lose: 'answer', hang: true });
    const renewed = a.lock.renew(tenure, () => ({
      leaseDurationMs: 6_000,
      renewDeadlineMs: 1_000,
    }));
    await a.clock.advance(0);
    expect(tenure.remainingMs()).toBe(1_000);
    await a.clock.advance(1_000);
    expect(tenure.isHeld()).toBe(false);
    await a.clock.advance(3_000);
    await renewed;
    expect(tenure.isHeld()).toBe(false);
  });
});

describe('stamps', () => {
  test('of one identity differ by at least a millisecond', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    await a.during(a.renew(tenure));
    const first = a.record().renewTime;
    await a.during(a.renew(tenure));
    expect(Date.parse(a.record().renewTime!) - Date.parse(first!)).toBeGreaterThanOrEqual(1);
  });

  test('do not run ahead of the clock over a day of renewals', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    for (let renewal = 0; renewal < 10_000; renewal++) {
      a.clock.freeze(2_000.4);
      await a.renew(tenure);
    }
    const aheadMs = Date.parse(a.record().renewTime!) - a.clock.read().wallMs;
    expect(Math.abs(aheadMs)).toBeLessThanOrEqual(1);
  });
});

describe('a contender', () => {
  test('with a tolerance of 45 s judges a record of 15 / 10 s by a clock within 5 s', async () => {
    const network = new FakeClock(START + 500);
    const clock = new FakeClock(START + 500 + 4_000);
    const terms = { leaseDurationMs: 90_000, renewDeadlineMs: 45_000 };
    const a = new Contender('a', { network, clock, terms });
    // Alive, and to be renewed within 3 s; by this clock it has expired.
    change(a.store.memory, heldRecord(START + 500, 12_000));
    const answer = await a.during(a.tryAcquire());
    expect(answer.kind).toBe('refused');
    expect(a.record().holderIdentity).toBe('other-1');
  });

  test('that trusts no clocks waits by observation, and takes the expireTime away', async () => {
    const a = new Contender('a', { trustClocks: false });
    change(a.store.memory, heldRecord(START, 3_600_000));
    expect((await a.during(a.tryAcquire())).kind).toBe('refused');
    await a.clock.advance(14_999);
    expect((await a.during(a.tryAcquire())).kind).toBe('refused');
    await a.clock.advance(1);
    expect((await a.during(a.tryAcquire())).kind).toBe('acquired');
    expect(a.record().expireTimeMs).toBeUndefined();
    expect(a.store.memory.peek(LEASE)).not.toHaveProperty('expireTime');
  });

  test('that watches is stopped by nothing but a new version: a day ahead is no protection', async () => {
    const a = new Contender('a');
    change(a.store.memory, { ...heldRecord(START), expireTime: { N: String(START + 86_400_000) } });
    await a.during(a.tryAcquire());
    await a.clock.advance(10_000);
    change(a.store.memory, { version: { N: '78' } });
    await a.during(a.tryAcquire());
    await a.clock.advance(14_999);
    expect((await a.during(a.tryAcquire())).kind).toBe('refused');
    await a.clock.advance(1);
    expect((await a.during(a.tryAcquire())).kind).toBe('acquired');
  });

  test('that watched is too late when the holder renews at the last moment (L1)', async () => {
    const memory = new MemoryStore();
    const a = new Contender('a', { memory, trustClocks: false });
    change(memory, heldRecord(START));
    await a.during(a.tryAcquire());
    await a.clock.advance(15_000);
    a.store.plan('acquire', { before: () => change(memory, { version: { N: '78' } }) });
    expect((await a.during(a.tryAcquire())).kind).toBe('refused');
    expect(a.record().holderIdentity).toBe('other-1');
  });
});

describe('a lease of 60 days', () => {
  test('is held for as long as it says, and no timer fires early', async () => {
    const days = 86_400_000;
    const a = new Contender('a', {
      terms: { leaseDurationMs: 60 * days, renewDeadlineMs: 50 * days },
    });
    const tenure = await a.acquire();
    await a.clock.advance(50 * days - 1);
    expect(tenure.isHeld()).toBe(true);
    await a.clock.advance(1);
    expect(tenure.isHeld()).toBe(false);
  });
});
