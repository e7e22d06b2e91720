import { describe, expect, test } from 'vitest';
import { isLeaseError } from '../../src/errors.ts';
import { FakeClock } from '../../src/fake-clock.ts';
import { release, renew, type Write } from '../../src/writes.ts';
import { BLACK_HOLE, NEVER_SETTLES, ScriptedStore, type Fault } from '../support/scripted-store.ts';
import { deferred, held, LEASE, recordIn, SECOND } from './harness.ts';

function scene(...faults: Fault[]) {
  const clock = new FakeClock();
  const store = new ScriptedStore({ clock });
  store.memory.poke(LEASE, held(clock, { by: 'me', version: 70 }));
  store.plan('any', ...faults);
  const abort = new AbortController();
  const dates: (string | undefined)[] = [];
  /** Sends a write; tells what its caller knows of it. */
  const send = (write: Write = vacate) => {
    const caller = { knows: 'nothing' };
    const attempt = () => (date: string | undefined) => void dates.push(date);
    store.write(LEASE, write, { signal: abort.signal, attempt }).then(
      (answer) => (caller.knows = answer.kind === 'refused' ? shown(answer.item) : answer.kind),
      (error: unknown) => (caller.knows = isLeaseError(error) ? error.code : 'something else'),
    );
    return caller;
  };
  return { clock, store, abort, dates, send, vacated: () => recordIn(store.memory).vacant };
}

const vacate = release('me', 70);
const shown = (item: unknown) => (item === undefined ? 'refused, unseen' : 'refused, seen');

describe('a scripted store', () => {
  test.each([
    ['carries out and answers a call that nothing is planned for', {}, 0, true, 'applied'],
    ['delays a request', { requestMs: 500 }, 499, false, 'nothing'],
    ['carries out a delayed request', { requestMs: 500 }, 500, true, 'applied'],
    ['delays an answer', { answerMs: 500 }, 499, true, 'nothing'],
    ['delivers a delayed answer', { answerMs: 500 }, 500, true, 'applied'],
    ['loses a request', { lose: 'request' }, 0, false, 'store-unavailable'],
    ['applies a write and loses the answer', { lose: 'answer' }, 0, true, 'store-unavailable'],
    ['drops a request and says nothing', BLACK_HOLE, 60_000, false, 'nothing'],
    ['applies a write and never answers', { hang: true }, 60_000, true, 'nothing'],
    ['is out of reach', { fail: 'store-unavailable' }, 0, false, 'store-unavailable'],
    ['denies access', { fail: 'access-denied' }, 0, false, 'access-denied'],
    ['has no table', { fail: 'table-not-found' }, 0, false, 'table-not-found'],
  ] as const)('%s', async (_, fault, afterMs, vacated, knows) => {
    const at = scene(fault);
    const caller = at.send();
    await at.clock.advance(afterMs);
    expect({ vacated: at.vacated(), knows: caller.knows }).toEqual({ vacated, knows });
  });

  test('holds a call until it is released', async () => {
    const gate = deferred();
    const at = scene({ until: gate.promise });
    const caller = at.send();
    await at.clock.advance(60 * SECOND);
    expect(at.vacated()).toBe(false);
    gate.resolve();
    await at.clock.advance(0);
    expect(caller.knows).toBe('applied');
  });

  test('rejects on abort, and applies the write all the same', async () => {
    const at = scene({ requestMs: 60 * SECOND });
    const caller = at.send();
    await at.clock.advance(SECOND);
    at.abort.abort();
    await at.clock.advance(0);
    expect(caller.knows).toBe('store-unavailable');
    await at.clock.advance(59 * SECOND);
    expect(at.vacated()).toBe(true);
    expect(at.dates).toEqual([]);
  });

  test('leaves a call unsettled whatever its signal says', async () => {
    const at = scene(NEVER_SETTLES);
    const caller = at.send();
    at.abort.abort();
    await at.clock.advance(60 * SECOND);
    expect(caller.knows).toBe('nothing');
    expect(at.vacated()).toBe(true);
  });

  test('dates its answers by the server, shifts the date, and removes it', async () => {
    const at = scene({}, { date: -7 * SECOND }, { date: 'none' }, { fail: 'store-unavailable' });
    for (let call = 0; call < 4; call++) at.send();
    await at.clock.advance(0);
    const [start, before] = [0, -7].map((s) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)));
    expect(at.dates.toSorted()).toEqual(
      [start, before, undefined, start].map((date) => date?.toUTCString()).toSorted(),
    );
  });

  test('hides the item from a refusal', async () => {
    const at = scene({}, { hideItem: true });
    const seen = at.send(release('me', 1));
    const unseen = at.send(release('me', 1));
    await at.clock.advance(0);
    expect([seen.knows, unseen.knows]).toEqual(['refused, seen', 'refused, unseen']);
  });

  test('remembers what each call was, when it was sent, and what became of it', async () => {
    const at = scene();
    at.store.plan('renew', { requestMs: 300, answerMs: 200 });
    at.store.plan('release', { lose: 'request' });
    const claim = { holderIdentity: 'me', stampMs: 0, leaseDurationMs: 1, writeExpireTime: true };
    await at.clock.advance(SECOND);
    at.send();
    at.send(renew(claim, 70));
    await at.clock.advance(SECOND);
    expect(at.store.calls).toMatchObject([
      { kind: 'release', atMs: 1_000, outcome: 'lost', answer: 'failed', answeredAtMs: 1_000 },
      { kind: 'renew', atMs: 1_000, outcome: 'applied', answer: 'given', answeredAtMs: 1_500 },
    ]);
    expect(at.store.calls.map(({ carriedOutAtMs }) => carriedOutAtMs)).toEqual([undefined, 1_300]);
  });
});
