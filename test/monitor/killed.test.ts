// The monitor fails between any two of its effects: each of them is enumerated, none is sampled.
// Whoever continues ends where an undisturbed monitor ends, and nothing that was recorded is lost.

import { describe, expect, test } from 'vitest';
import { heldSince, vacated } from './one-lease.ts';
import { type Fault, Process, seenBefore, Table } from './pass-stage.ts';

/** Something fails in these; the others let a monitor that was blind catch up. */
const DISTURBED_PASSES = 8;
const PASSES = 20;

/** One of everything that a monitor has to do with. */
async function scene(): Promise<Table> {
  const table = new Table();
  await seenBefore(table);
  table.hold('dead-leader', { token: 3 });
  table.hold('dead-worker', { kind: 'heartbeat' });
  table.hold('returner', { kind: 'heartbeat' });
  table.hold('no-clocks', { trustsClocks: false, token: 2 });
  table.hold('dead-no-clocks', { trustsClocks: false, token: 2 });
  const due = { N: String(table.clock.read().wallMs + 90_000) };
  table.put('job', { ...vacated(heldSince(0, { token: 0 })), dueTime: due });
  table.hold('collected', { kind: 'identity' });
  return table;
}

/** What the holders do before the pass of that number. */
function live(table: Table, pass: number): void {
  if (pass >= 3) table.hold('returner', { kind: 'heartbeat' });
  table.hold('no-clocks', { trustsClocks: false, token: 2 });
  if (pass === 4) table.hold('job', { token: 1 });
}

interface Ending {
  readonly state: unknown;
  readonly ids: string[];
  readonly events: string[];
}

function ending(table: Table): Ending {
  const names = ['dead-leader', 'dead-worker', 'returner', 'no-clocks', 'dead-no-clocks', 'job'];
  return {
    state: names.map((name) => {
      const { holderIdentity, version, leaseTransitions } = table.record(name);
      return { name, status: table.status(name), holderIdentity, version, leaseTransitions };
    }),
    ids: table.ids(),
    events: table
      .events()
      .map((event) => event.replace(/ [\d.]+$/, ''))
      .sort(),
  };
}

/** Every pass by one process; after it has been killed, by a new one at the same moment. */
async function run(
  fault?: Process['fault'],
): Promise<{ table: Table; process: Process; disturbed: number }> {
  const table = await scene();
  const process = new Process(table, { retentionSeconds: 60 });
  process.fault = fault;
  let current = process;
  let disturbed = 0;
  for (let pass = 0; pass < PASSES; pass++) {
    await table.clock.advance(60_000);
    live(table, pass);
    const report = await current.pass();
    if (pass === DISTURBED_PASSES - 1) disturbed = process.effects.length;
    if (current.dead) {
      current = new Process(table, { retentionSeconds: 60 });
      await current.whole();
    } else if (report?.unusable !== 0 || report.unpublished !== 0 || report.blind !== undefined) {
      await current.whole();
    }
  }
  return { table, process, disturbed };
}

const undisturbed = await run();
const expected = ending(undisturbed.table);
const effects = undisturbed.process.effects
  .slice(0, undisturbed.disturbed)
  .map(({ what, lease }, place) => [place, what, lease] as const);

test('the scene has every kind of effect and every kind of event', () => {
  expect(new Set(effects.map(([, what]) => what))).toEqual(new Set(['write', 'remove', 'publish']));
  expect(new Set(expected.events.map((event) => event.split(': ')[1]))).toEqual(
    new Set([
      'Lease Not Ready',
      'Lease Ready',
      'Lease Evicted',
      'Leader Changed',
      'Schedule Missed',
    ]),
  );
  expect(effects.length).toBeGreaterThan(40);
});

describe.each<Fault>(['killed before', 'killed after'])('a monitor that is %s', (fault) => {
  test.each(effects)('effect %i, a %s of %s, is continued by the next', async (effect) => {
    const { table, process } = await run({ effect, fault });
    expect(process.dead).toBe(true);
    expect(table.wrongs).toEqual([]);
    expect(table.unpublished()).toEqual([]);
    expect(ending(table)).toEqual(expected);
  });
});

describe.each<Fault>(['fails before', 'fails after'])('a call that %s', (fault) => {
  test.each(effects)('effect %i, a %s of %s, is made up for', async (effect) => {
    const { table } = await run({ effect, fault });
    expect(table.wrongs).toEqual([]);
    expect(table.unpublished()).toEqual([]);
    const { state, events } = ending(table);
    // The monitor itself may have been blind for a grace period.
    expect({ state, events: new Set(events) }).toEqual({
      state: expected.state,
      events: new Set(expected.events),
    });
  });
});

describe('two monitors at once', () => {
  test('do what one does', async () => {
    const table = await scene();
    const both = [0, 1].map(() => new Process(table, { retentionSeconds: 60 }));
    for (let pass = 0; pass < PASSES; pass++) {
      await table.clock.advance(60_000);
      live(table, pass);
      await Promise.all(both.map((process) => process.whole()));
      await both[0]!.whole();
    }
    expect(table.wrongs).toEqual([]);
    expect(table.unpublished()).toEqual([]);
    expect(ending(table)).toEqual(expected);
  });

  test.each(effects)(
    'of which one stands still before effect %i, a %s of %s: no older verdict wins',
    async (effect) => {
      const table = await scene();
      const slow = new Process(table, { retentionSeconds: 60 });
      let go: () => void = () => undefined;
      const gate = new Promise<void>((resolve) => (go = resolve));
      slow.before = (call) => (call.effect === effect ? gate : undefined);
      const quick = new Process(table, { retentionSeconds: 60 });
      let held = false;
      for (let pass = 0; pass < PASSES; pass++) {
        await table.clock.advance(60_000);
        live(table, pass);
        if (held) await quick.whole();
        else held = (await slow.pass()) === undefined;
        // A pass later, what it has sent arrives, and it goes on.
        if (held && slow.effects.length > effect && pass > 0) go();
      }
      go();
      await table.clock.advance(0);
      await quick.whole();
      expect(table.wrongs).toEqual([]);
      expect(table.unpublished()).toEqual([]);
      expect(ending(table).state).toEqual(expected.state);
    },
  );
});
