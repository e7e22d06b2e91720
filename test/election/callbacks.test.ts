// What an elector tells its caller: in which order, how often, and what it makes of callbacks
// that fail.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { MemoryStore } from '../../src/memory-store.ts';
import { BLACK_HOLE } from '../support/scripted-store.ts';
import {
  Candidate,
  change,
  held,
  LEASE,
  recordIn,
  SECOND,
  untilTold,
  usurp,
  vacant,
  type CandidateOptions,
} from './harness.ts';

function scene(options: Omit<CandidateOptions, 'clock'> = {}) {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const candidate = new Candidate({ clock, memory, ...options });
  return { clock, memory, candidate, store: candidate.store };
}

describe('a tenure', () => {
  test('is told of in order, each once: new leader, started, stopped', async () => {
    const { clock, candidate } = scene();
    candidate.run();
    await clock.advance(60 * SECOND);
    candidate.stop();
    candidate.stop();
    await clock.advance(60 * SECOND);
    expect(candidate.log).toEqual(['new leader a-1', 'started a-1, token 1', 'stopped: stopped']);
    expect(candidate.ended).toEqual({});
  });

  test('holds from before the first callback to before the last', async () => {
    const said: unknown[] = [];
    const { clock, candidate } = scene({
      onNewLeader: () => said.push(['new', candidate.elector.isLeader()]),
      onStartedLeading: (lease) => {
        said.push(['started', candidate.elector.isLeader(), lease.isHeld()]);
        return untilTold()(lease);
      },
      onStoppedLeading: () => said.push(['stopped', candidate.elector.isLeader()]),
    });
    candidate.run();
    await clock.advance(3 * SECOND);
    candidate.stop();
    await clock.advance(0);
    expect(said).toEqual([
      ['new', true],
      ['started', true, true],
      ['stopped', false],
    ]);
  });

  test.each([
    ['stop', (candidate: Candidate) => candidate.stop()],
    ['stepDown', (candidate: Candidate) => void candidate.elector.stepDown()],
  ])(
    'that onNewLeader() ends already, by %s, starts nothing and gives the lease back',
    async (_, end) => {
      const { clock, candidate, memory } = scene({ onNewLeader: () => end(candidate) });
      candidate.run();
      await clock.advance(10 * SECOND);
      expect(candidate.log).toEqual([]);
      expect(candidate.store.kinds().slice(0, 2)).toEqual(['acquire', 'release']);
      expect(recordIn(memory).vacant).toBe(true);
    },
  );
});

describe('a candidate that is stopped', () => {
  test('before it began sends nothing', async () => {
    const { clock, candidate } = scene();
    const signal = AbortSignal.abort();
    await candidate.elector.run({ signal });
    await candidate.elector.observe({ signal });
    await clock.advance(30 * SECOND);
    expect([candidate.store.calls, candidate.log]).toEqual([[], []]);
  });

  test('while another leads was never leading, and is not told that it stopped', async () => {
    const { clock, memory, candidate } = scene();
    memory.poke(LEASE, held(clock));
    candidate.run();
    await clock.advance(5 * SECOND);
    candidate.stop();
    await clock.advance(0);
    expect(candidate.ended).toEqual({});
    expect(candidate.log).toEqual(['new leader other']);
    expect(clock.timers).toBe(0);
  });

  test('while its attempt is under way gives back what that took, and starts nothing', async () => {
    const { clock, memory, candidate, store } = scene();
    store.plan('acquire', { requestMs: 100, answerMs: 500 });
    candidate.run();
    await clock.advance(300);
    expect(recordIn(memory).vacant).toBe(false);
    candidate.stop();
    await clock.advance(300);
    expect(candidate.ended).toEqual({});
    expect(store.kinds()).toEqual(['acquire', 'release']);
    expect(recordIn(memory).vacant).toBe(true);
    expect(candidate.log).toEqual([]);
  });

  test('while nothing answers leaves in bounded time', async () => {
    const { clock, candidate, store } = scene();
    store.script = () => ({ hang: true, ignoreSignal: true });
    candidate.run();
    await clock.advance(SECOND);
    candidate.stop();
    // Two attempts, a look at the record, and one more for what they may have taken.
    await clock.advance(4 * 3 * SECOND - SECOND);
    expect(candidate.ended).toEqual({});
    expect(clock.timers).toBe(0);
  });

  test('after attempts that nobody answered gives back what they took, and starts nothing', async () => {
    const { clock, memory, candidate, store } = scene();
    store.plan('acquire', { lose: 'answer' }, { lose: 'answer' });
    store.plan('read', { fail: 'store-unavailable' });
    candidate.run();
    await clock.advance(SECOND);
    expect(recordIn(memory).vacant).toBe(false);
    candidate.stop();
    await clock.advance(0);
    expect(candidate.ended).toEqual({});
    expect(recordIn(memory).vacant).toBe(true);
    expect(store.kinds().slice(3)).toEqual(['read', 'release']);
    expect(candidate.log).toEqual(['error: store-unavailable']);
  });
});

describe('a record that names me', () => {
  test('does not start me when I only read it: a write must be answered first (L7)', async () => {
    const { clock, memory, candidate, store } = scene();
    // Applied, unanswered, twice; and the record cannot be read. A later look shows my name, but
    // before the next write another has taken the lease.
    const taken = () => usurp(memory, clock);
    store.plan('acquire', { lose: 'answer' }, { lose: 'answer' }, { before: taken });
    store.plan('read', { fail: 'store-unavailable' });
    candidate.run();
    await clock.advance(10 * SECOND);
    expect(store.kinds().slice(0, 5)).toEqual(['acquire', 'acquire', 'read', 'read', 'acquire']);
    expect(candidate.log).toEqual(['error: store-unavailable', 'new leader usurper']);
  });

  test('starts me when the refusal of my own write shows it, or a consistent read (L7)', async () => {
    for (const second of [{}, { lose: 'answer' }] as const) {
      const { clock, candidate, store } = scene();
      store.plan('acquire', { lose: 'answer' }, second);
      candidate.run();
      await clock.advance(0);
      expect(candidate.told('started')).toEqual(['started a-1, token 1']);
      expect(store.of('read').map(({ consistent }) => consistent)).toEqual(
        'lose' in second ? [true] : [],
      );
    }
  });
});

describe('an observer', () => {
  test('follows the leaders, and never writes', async () => {
    const { clock, memory, candidate, store } = scene({ name: 'w' });
    candidate.observe();
    await clock.advance(3 * SECOND);
    expect(candidate.elector.getLeader()).toBeUndefined();
    const leader = new Candidate({ clock, memory, name: 'a' }).run();
    await clock.advance(3 * SECOND);
    expect(candidate.elector.getLeader()).toBe(leader.lease.holderIdentity);
    leader.stop();
    await clock.advance(3 * SECOND);
    expect(candidate.elector.getLeader()).toBeUndefined();
    new Candidate({ clock, memory, name: 'b' }).run();
    await clock.advance(3 * SECOND);
    expect(candidate.log).toEqual(['new leader a-1', 'new leader b-1']);
    expect(new Set(store.kinds())).toEqual(new Set(['read']));
    candidate.stop();
    await clock.advance(0);
    expect(candidate.ended).toEqual({});
  });

  test('knows no leader where a lease has expired', async () => {
    const { clock, memory, candidate } = scene();
    memory.poke(LEASE, held(clock));
    candidate.observe();
    await clock.advance(14 * SECOND);
    expect(candidate.elector.getLeader()).toBe('host/1/other');
    await clock.advance(4 * SECOND);
    expect(candidate.elector.getLeader()).toBeUndefined();
    expect(candidate.log).toEqual(['new leader other']);
  });

  test('needs no work to do', async () => {
    const { clock, candidate } = scene();
    candidate.observe();
    await clock.advance(3 * SECOND);
    expect(candidate.isLeader).toBe(false);
    expect(candidate.store.calls.length).toBeGreaterThan(1);
  });
});

describe('onNewLeader()', () => {
  test('is not repeated for the same leader, whatever was seen in between', async () => {
    const { clock, memory, candidate } = scene();
    memory.poke(LEASE, held(clock, { durationSeconds: 3_600 }));
    candidate.run();
    await clock.advance(20 * SECOND);
    candidate.store.script = () => BLACK_HOLE;
    await clock.advance(20 * SECOND);
    candidate.store.script = () => undefined;
    await clock.advance(20 * SECOND);
    expect(candidate.told('new leader')).toEqual(['new leader other']);
  });

  test('is silent about a vacant record and about a holder without a name', async () => {
    const { clock, memory, candidate } = scene();
    memory.poke(LEASE, { ...vacant(clock), suspended: { M: {} } });
    candidate.run();
    await clock.advance(5 * SECOND);
    change(memory, { holderIdentity: { S: '' }, version: { N: '99' } });
    await clock.advance(5 * SECOND);
    change(memory, { holderIdentity: { N: '1' }, version: { N: '100' } });
    await clock.advance(5 * SECOND);
    expect(candidate.log).toEqual([]);
  });
});

describe('a run', () => {
  test('of one tenure ends when that was lost, and contends as long as it must before', async () => {
    const { clock, memory, candidate } = scene();
    memory.poke(LEASE, held(clock));
    candidate.run({ once: true });
    await clock.advance(20 * SECOND);
    expect(candidate.told('started')).toEqual(['started a-1, token 8']);
    usurp(memory, clock);
    await clock.advance(2 * SECOND);
    expect(candidate.ended).toEqual({});
    expect(candidate.told('stopped')).toEqual(['stopped: taken over']);
    await clock.advance(60 * SECOND);
    expect(candidate.told('started')).toHaveLength(1);
  });

  test('is refused while another one goes on, which it does not disturb', async () => {
    const { clock, candidate } = scene();
    candidate.run();
    await clock.advance(SECOND);
    const refused = { code: 'invalid-configuration' };
    await expect(candidate.elector.run()).rejects.toMatchObject(refused);
    await expect(candidate.elector.observe()).rejects.toMatchObject(refused);
    await clock.advance(30 * SECOND);
    expect(candidate.log).toEqual(['new leader a-1', 'started a-1, token 1']);
  });
});

describe('a callback that', () => {
  const broken = new Error('broken callback');
  test.each<[string, () => never]>([
    [
      'throws',
      () => {
        throw broken;
      },
    ],
    ['rejects', (() => Promise.reject(broken)) as () => never],
  ])('%s is reported, and changes nothing about the election', async (_, fails) => {
    const errors: unknown[] = [];
    const { clock, memory, candidate } = scene({
      onNewLeader: fails,
      onStoppedLeading: fails,
      onError: (error) => {
        errors.push(error);
        return fails();
      },
    });
    candidate.run();
    await clock.advance(10 * SECOND);
    expect(candidate.isLeader).toBe(true);
    candidate.stop();
    await clock.advance(0);
    expect(candidate.ended).toEqual({});
    expect(recordIn(memory).vacant).toBe(true);
    expect(errors).toEqual([broken, broken]);
  });
});

test('between any two steps of two electors, at most one says that it leads (L4)', async () => {
  const clock = new FakeClock();
  const memory = new MemoryStore();
  const pair = ['a', 'b'].map((name, seed) => new Candidate({ clock, memory, name, seed }));
  let checks = 0;
  const check = () => {
    checks += 1;
    expect(pair.filter(({ isLeader }) => isLeader).length).toBeLessThanOrEqual(1);
    const believer = pair.find(({ isLeader }) => isLeader);
    const { leaseTransitions } = recordIn(memory);
    if (believer !== undefined && believer.leases.length > 0) {
      expect(believer.lease.fencingToken).toBeLessThanOrEqual(leaseTransitions);
    }
  };
  const probe = async () => {
    for (let step = 0; step < 40; step++) {
      check();
      await Promise.resolve();
    }
  };
  pair.forEach(({ store }) => (store.onEvent = () => void probe()));
  pair.forEach((candidate) => candidate.run());
  // In turn, each is cut off for long enough to lose the lease, in the middle of whatever it does.
  for (let turn = 0; turn < 12; turn++) {
    const { store } = pair[turn % 2]!;
    await clock.advance(1_700 * (turn + 1));
    store.script = ({ index }) =>
      [BLACK_HOLE, { hang: true } as const, { lose: 'answer' } as const][index % 3];
    await clock.advance(18 * SECOND);
    store.script = () => ({ requestMs: 150, answerMs: 150 });
  }
  expect(checks).toBeGreaterThan(10_000);
  expect(pair.every(({ leases }) => leases.length > 3)).toBe(true);
});
