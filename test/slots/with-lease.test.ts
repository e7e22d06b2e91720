// A wrapped handler with slots: so many run at once and never more, whatever happens to one slot.

import { beforeEach, describe, expect, test } from 'vitest';
import { LeaseError } from '../../src/errors.ts';
import { readLease, type Item } from '../../src/lease.ts';
import type { Lease } from '../../src/lease-handle.ts';
import { withLease, type WithLeaseOptions } from '../../src/with-lease.ts';
import { gate, rejection, Stage, type Gate } from '../handler/stage.ts';

type Context = ReturnType<Stage['context']>;
type Options = Partial<WithLeaseOptions<null, Context>>;

interface Run {
  readonly lease: Lease;
  readonly gate: Gate;
}

let stage: Stage;
/** Those at work now. */
let inside: Run[];
/** All that ever were, as `slot/token`. */
let began: string[];
beforeEach(() => {
  stage = new Stage();
  inside = [];
  began = [];
});

/** Starts at this slot of three. */
const from = (slot: number) => ({
  fraction: () => (slot + 0.5) / 3,
  uuid: () => globalThis.crypto.randomUUID(),
});

/** Stays inside until its gate is opened. */
const job = (options: Options = {}) =>
  withLease<null, number | undefined, Context>(
    { ...stage.options, name: 'job', slots: 3, ...options },
    async (_event, { lease }) => {
      const run = { lease, gate: gate() };
      began.push(`${lease.slot}/${lease.fencingToken}`);
      inside.push(run);
      await run.gate.opened;
      inside = inside.filter((other) => other !== run);
      return lease.slot;
    },
  );

const slotsInside = () => inside.map(({ lease }) => lease.slot).sort();
const settle = () => stage.clock.advance(1);
/** Settles when the run is over, or refused. */
const begin = (options?: Options) => {
  const running = job(options)(null, stage.context());
  running.catch(() => undefined);
  return running;
};
/** As begin, of one that is to stay inside. */
const occupy = async (slot: number, options?: Options) => {
  void begin({ random: from(slot), ...options });
  await settle();
};
const leave = async (slot: number) => {
  inside.find(({ lease }) => lease.slot === slot)!.gate.open();
  await settle();
};
const suspension = {
  suspended: { M: { since: { S: '2026-01-01' }, by: { S: 'ops' }, why: { S: 'migration' } } },
} satisfies Item;
const resume = (name: string) => {
  const attributes = Object.entries(stage.table.peek(`default/${name}`)!);
  const others = attributes.filter(([attribute]) => attribute !== 'suspended');
  stage.table.poke(`default/${name}`, Object.fromEntries(others));
};
const corrupt = { version: { S: 'garbage' } } satisfies Item;
const loseAnswers = (count: number) => {
  let left = count;
  stage.store.after = () => {
    left -= 1;
    if (left >= 0) throw new LeaseError('store-unavailable', 'The answer was lost.');
  };
};

describe('three of five', () => {
  test('run at once, each in a slot, and the others are told of the one that is free first', async () => {
    for (let count = 0; count < 3; count++) {
      void begin();
      await stage.clock.advance(1_000);
    }
    expect(slotsInside()).toEqual([0, 1, 2]);
    const first = inside[0]!.lease;
    for (const slot of [0, 1, 2]) {
      expect(await begin({ random: from(slot) })).toMatchObject({
        skipped: true,
        reason: 'held',
        name: `job/${first.slot}`,
        holderIdentity: first.holderIdentity,
        fencingToken: 1,
      });
    }
    expect(await rejection(begin({ whenHeld: 'throw' }))).toMatchObject({
      code: 'lease-held',
      record: { lease: `default/job/${first.slot}` },
    });
    expect(inside).toHaveLength(3);
  });

  test('of which two wait: they run as soon as there is room, the first that is free', async () => {
    for (const slot of [0, 1, 2]) await occupy(slot);
    const waiting = [1, 2].map(() =>
      job({ whenHeld: 'wait', maxWaitSeconds: 30 })(null, stage.context()),
    );
    await stage.clock.advance(5_000);
    expect(inside).toHaveLength(3);
    await leave(1);
    await stage.clock.advance(3_000);
    expect(slotsInside()).toEqual([0, 1, 2]);
    await leave(0);
    await stage.clock.advance(3_000);
    expect(slotsInside()).toEqual([0, 1, 2]);
    expect(began.sort()).toEqual(['0/1', '0/2', '1/1', '1/2', '2/1']);
    for (const { gate: own } of inside) own.open();
    expect((await Promise.all(waiting)).sort()).toEqual([0, 1]);
  });

  test('and who waits in vain is told of the soonest', async () => {
    for (const slot of [2, 0, 1]) {
      await occupy(slot);
      await stage.clock.advance(500);
    }
    const error = rejection(job({ whenHeld: 'wait', maxWaitSeconds: 5 })(null, stage.context()));
    expect(await stage.until(error)).toMatchObject({
      code: 'lease-held',
      record: { lease: 'default/job/2' },
    });
    expect(inside).toHaveLength(3);
  });
});

test('each slot has its name, and tokens of its own', async () => {
  for (const token of [1, 2, 3]) {
    await occupy(2);
    expect(inside[0]?.lease).toMatchObject({
      slot: 2,
      name: 'job/2',
      namespace: 'default',
      fencingToken: token,
    });
    await leave(2);
  }
  await occupy(0);
  expect(inside[0]?.lease).toMatchObject({ slot: 0, name: 'job/0', fencingToken: 1 });
  expect(stage.table.peek('default/job')).toBeUndefined();
  expect(readLease('default/job/2', stage.table.peek('default/job/2')!)).toMatchObject({
    vacant: true,
    leaseTransitions: 3,
  });
});

test('different chances begin at different slots', async () => {
  for (const fraction of [0, 0.3333, 0.34, 0.6666, 0.67, 0.999_999]) {
    const random = { ...from(0), fraction: () => fraction };
    void begin({ random });
    await settle();
    for (const slot of slotsInside()) await leave(slot!);
  }
  expect(began).toEqual(['0/1', '0/2', '1/1', '1/2', '2/1', '2/2']);
});

test('a run that was killed is replaced in its slot at its deadline and the tolerance', async () => {
  for (const slot of [0, 1]) await occupy(slot);
  stage.holds('killed', 'job/2', 20_000);
  expect(await begin({ random: from(1) })).toMatchObject({ skipped: true, name: 'job/2' });
  await stage.clock.advance(20_001);
  await occupy(1);
  expect(slotsInside()).toEqual([0, 1, 2]);
  expect(began.at(-1)).toBe('2/8');
});

test('a slot that another holds as a plain lease is one slot less, for as long as that', async () => {
  const plain = gate();
  const other = withLease<null, unknown, Context>(
    { ...stage.options, name: 'job/1' },
    () => plain.opened,
  )(null, stage.context());
  await settle();
  for (const slot of [0, 1, 2]) void begin({ random: from(slot) });
  await settle();
  expect(slotsInside()).toEqual([0, 2]);
  plain.open();
  await other;
  await occupy(1);
  expect(began.at(-1)).toBe('1/2');
});

describe('suspended', () => {
  test('on the name: nobody begins, and who runs finishes', async () => {
    await occupy(0);
    stage.mark('job', suspension);
    expect(await begin()).toMatchObject({
      skipped: true,
      reason: 'suspended',
      name: 'job',
      message: 'Lease "default/job" is suspended since 2026-01-01 by ops: migration',
    });
    expect(await rejection(begin({ whenHeld: 'throw' }))).toMatchObject({
      code: 'lease-suspended',
    });
    expect(inside[0]?.lease.isHeld()).toBe(true);
    await leave(0);
    expect(began).toEqual(['0/1']);
    expect(stage.record('job/0').vacant).toBe(true);
  });

  test('on the name, while others wait: they wait on, and are told so', async () => {
    for (const slot of [0, 1, 2]) await occupy(slot);
    const told = rejection(job({ whenHeld: 'wait', maxWaitSeconds: 20 })(null, stage.context()));
    const patient = job({ whenHeld: 'wait', maxWaitSeconds: 50 })(null, stage.context());
    await stage.clock.advance(3_000);
    stage.mark('job', suspension);
    await stage.clock.advance(3_000);
    await leave(1);
    await stage.clock.advance(15_000);
    expect(began).toHaveLength(3);
    expect(await told).toMatchObject({
      code: 'lease-suspended',
      record: { lease: 'default/job', suspended: { by: 'ops' } },
    });
    resume('job');
    await stage.clock.advance(3_000);
    expect(began.at(-1)).toBe('1/2');
    await leave(1);
    expect(await patient).toBe(1);
  });

  test('on one slot: the others are used', async () => {
    stage.mark('job/1', suspension);
    for (const slot of [1, 1, 1]) void begin({ random: from(slot) });
    await settle();
    expect(slotsInside()).toEqual([0, 2]);
    // Of those that will be free at all.
    expect(await begin({ random: from(1) })).toMatchObject({ reason: 'held', name: 'job/2' });
    resume('job/1');
    await occupy(0);
    expect(slotsInside()).toEqual([0, 1, 2]);
  });

  test('on every slot: says so', async () => {
    for (const slot of [0, 1, 2]) stage.mark(`job/${slot}`, suspension);
    expect(await begin({ random: from(2) })).toMatchObject({ reason: 'suspended', name: 'job/2' });
  });
});

describe.each([
  ['corrupt', corrupt, 'corrupt-record'],
  ['of another kind', { kind: { S: 'heartbeat' }, version: { N: '1' } }, 'kind-mismatch'],
] as const)('a record that is %s', (_, attributes, code) => {
  test.each([0, 1, 2])(
    'in one slot leaves the others, also to who begins at slot %i',
    async (at) => {
      stage.mark('job/1', attributes);
      for (let count = 0; count < 3; count++) {
        void begin({ random: from(at) });
        await settle();
      }
      expect(slotsInside()).toEqual([0, 2]);
      expect(await begin({ random: from(at) })).toMatchObject({ skipped: true, reason: 'held' });
      const errors = stage.errors();
      expect(errors.length).toBeGreaterThan(0);
      expect(errors[0]).toMatchObject({
        message: 'A slot of a lease cannot be used until it is mended.',
        details: {
          lease: 'default/job/1',
          error: expect.stringContaining('"default/job/1"') as string,
        },
      });
    },
  );

  test('in one slot does not end a wait, and is told once', async () => {
    stage.mark('job/1', attributes);
    for (const slot of [0, 2]) await occupy(slot);
    const waiting = job({ whenHeld: 'wait', random: from(1) })(null, stage.context());
    await stage.clock.advance(10_000);
    expect(stage.errors()).toHaveLength(1);
    await leave(2);
    await stage.clock.advance(3_000);
    await leave(2);
    expect(await waiting).toBe(2);
  });

  test('in every slot fails, and so does that of the name', async () => {
    for (const slot of [0, 1, 2]) stage.mark(`job/${slot}`, attributes);
    expect(await rejection(begin())).toMatchObject({ code });
    expect(await rejection(begin({ whenHeld: 'wait' }))).toMatchObject({ code });
    stage = new Stage();
    stage.mark('job', attributes);
    expect(await rejection(begin({ whenHeld: 'wait' }))).toMatchObject({
      code,
      message: expect.stringContaining('"default/job"') as string,
    });
    expect(stage.store.sent).toEqual(['read']);
    expect(began).toEqual([]);
  });
});

describe('an attempt that nobody answered', () => {
  const named = () => [0, 1, 2].filter((slot) => !stage.record(`job/${slot}`).vacant);

  test('is found out at its slot before another one is tried, by one who waits', async () => {
    stage.store.before = () => {
      // The look at the name passes; then two writes, and the read that would tell, are lost.
      stage.store.before = () => undefined;
      const passing = stage.store.after;
      stage.store.after = () => {
        stage.store.after = passing;
        loseAnswers(3);
      };
    };
    void begin({ whenHeld: 'wait', random: from(1) });
    await settle();
    expect(stage.store.sent).toEqual(['read', 'acquire', 'acquire', 'read']);
    expect(named()).toEqual([1]);
    expect(began).toEqual([]);
    await stage.clock.advance(3_000);
    expect(began).toEqual(['1/1']);
    expect(named()).toEqual([1]);
  });

  test('is given back by one who gives up', async () => {
    let reads = 0;
    stage.store.after = (what) => {
      if (what === 'read') reads += 1;
      // Of the reads that of the name is answered, and the last of all, the withdrawal's.
      if (what === 'acquire' || reads === 2) {
        throw new LeaseError('store-unavailable', 'The answer was lost.');
      }
    };
    const waiting = begin({ whenHeld: 'wait', maxWaitSeconds: 1, random: from(1) });
    const error = await stage.until(rejection(waiting));
    expect(stage.store.sent).toEqual(['read', 'acquire', 'acquire', 'read', 'read', 'release']);
    expect(error).toMatchObject({ code: 'store-unavailable' });
    expect(named()).toEqual([]);
    expect(began).toEqual([]);
  });

  test('is no slot more for one whose release was not answered either', async () => {
    await occupy(2);
    loseAnswers(9);
    await leave(2);
    stage.store.after = () => undefined;
    await stage.clock.advance(10_000);
    expect(named()).toEqual([]);
  });
});

test('a request that fails says so, and no other slot is tried', async () => {
  stage.store.before = (what) => {
    if (what === 'acquire') throw new LeaseError('access-denied', 'UpdateItem is not allowed.');
  };
  expect(await rejection(begin({ whenHeld: 'wait' }))).toMatchObject({ code: 'access-denied' });
  expect(stage.store.sent).toEqual(['read', 'acquire']);
});
