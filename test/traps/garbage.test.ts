// Another client of the table that writes nonsense: no record is held for ever, none silently
// free, and none breaks a contender.

import { describe, expect, test } from 'vitest';
import { isoTime, type Item } from '../../src/lease.ts';
import { change, Contender, LEASE, START } from './locksmith.ts';

const record: Item = {
  lease: { S: LEASE },
  kind: { S: 'leader' },
  holderIdentity: { S: 'other-1' },
  leaseDurationSeconds: { N: '15' },
  renewTime: { S: isoTime(START) },
  expireTime: { N: String(START + 15_000) },
  leaseTransitions: { N: '5' },
  version: { N: '77' },
};

describe('a held record is taken once it was watched for its duration', () => {
  test.each([
    ['without expireTime', { expireTime: undefined }, 15_000],
    ['with an expireTime that is text', { expireTime: { S: 'never' } }, 15_000],
    ['with an expireTime a day ahead', { expireTime: { N: String(START + 86_400_000) } }, 15_000],
    ['with an expireTime in the year 9999', { expireTime: { N: '253402300799000' } }, 15_000],
    ['with an empty holderIdentity', { holderIdentity: { S: '' }, expireTime: undefined }, 15_000],
    [
      'with a holderIdentity that is a number',
      { holderIdentity: { N: '1' }, expireTime: undefined },
      15_000,
    ],
    ['without version', { version: undefined, expireTime: undefined }, 15_000],
    [
      'without version or renewTime',
      { version: undefined, renewTime: undefined, expireTime: undefined },
      15_000,
    ],
    [
      'with a renewTime that is no time',
      { renewTime: { S: 'soon' }, expireTime: undefined },
      15_000,
    ],
    ['without duration', { leaseDurationSeconds: undefined, expireTime: undefined }, 60_000],
    [
      'with a duration that is text',
      { leaseDurationSeconds: { S: '15' }, expireTime: { S: '' } },
      60_000,
    ],
  ] as const)('%s', async (_, garbage, durationMs) => {
    const a = new Contender('a');
    change(a.store.memory, { ...record, ...garbage });
    expect((await a.during(a.tryAcquire())).kind).toBe('refused');
    await a.clock.advance(durationMs - 1);
    expect((await a.during(a.tryAcquire())).kind).toBe('refused');
    await a.clock.advance(1);
    const answer = await a.during(a.tryAcquire());
    expect(answer.kind).toBe('acquired');
    expect(answer.kind === 'acquired' && answer.tenure.fencingToken).toBe(6);
    expect(a.record().version).toBeGreaterThan(77);
  });

  test('at once where its expireTime lies in 1970', async () => {
    const a = new Contender('a');
    change(a.store.memory, { ...record, expireTime: { N: '1' } });
    expect((await a.during(a.tryAcquire())).kind).toBe('acquired');
  });
});

describe('a vacant record is taken at once', () => {
  const vacant = { ...record, holderIdentity: undefined, expireTime: undefined };
  test.each([
    ['with a notBefore that is text', { notBefore: { S: '9999999999999' } }],
    ['with a lastTick that is text', { lastTick: { S: '9999999999999' } }],
    [
      'with nothing but its key',
      { version: undefined, leaseTransitions: undefined, kind: undefined },
    ],
  ] as const)('%s', async (_, garbage) => {
    const a = new Contender('a');
    change(a.store.memory, { ...vacant, ...garbage });
    expect((await a.during(a.tryAcquire())).kind).toBe('acquired');
  });
});

describe('a record that cannot be used is named, and left as it is', () => {
  const vacant = { ...record, holderIdentity: undefined, expireTime: undefined };
  test.each([
    ['a version that is text', { ...vacant, version: { S: '7' } }, 'corrupt-record', 'version'],
    ['a held one too', { ...record, version: { S: '7' } }, 'corrupt-record', 'version'],
    ['a negative version', { ...record, version: { N: '-1' } }, 'corrupt-record', 'version'],
    [
      'a token that is text',
      { ...vacant, leaseTransitions: { S: '5' } },
      'corrupt-record',
      'leaseTransitions',
    ],
    [
      'a token that is a fraction',
      { ...record, leaseTransitions: { N: '5.5' } },
      'corrupt-record',
      'leaseTransitions',
    ],
    ['another kind', { ...vacant, kind: { S: 'heartbeat' } }, 'kind-mismatch', 'heartbeat'],
    ['a kind that is no text', { ...vacant, kind: { N: '1' } }, 'kind-mismatch', 'kind'],
  ] as const)('%s', async (_, garbage, code, named) => {
    const a = new Contender('a');
    change(a.store.memory, garbage);
    const before = a.store.memory.peek(LEASE);
    const answer = await a.during(a.tryAcquire());
    expect(answer.kind === 'failed' && answer.error.code).toBe(code);
    expect(answer.kind === 'failed' && answer.error.message).toContain(LEASE);
    expect(answer.kind === 'failed' && answer.error.message).toContain(named);
    expect(a.store.memory.peek(LEASE)).toEqual(before);
  });
});

describe('a holder whose record is meddled with', () => {
  test.each([
    ['another holder', { holderIdentity: { S: 'x' }, version: { N: '99' } }, 'taken over'],
    ['no holder', { holderIdentity: undefined, version: { N: '99' } }, 'evicted'],
    ['an empty holder', { holderIdentity: { S: '' }, version: { N: '99' } }, 'taken over'],
    ['another token', { leaseTransitions: { N: '99' }, version: { N: '99' } }, 'taken over'],
  ] as const)('%s: lost', async (_, meddling, reason) => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    change(a.store.memory, meddling);
    expect(await a.during(a.renew(tenure))).toEqual({ kind: 'lost', reason });
    expect(tenure.isHeld()).toBe(false);
  });

  test('a renewTime that no attempt of it wrote: never a loss, but no belief comes from it', async () => {
    const a = new Contender('a');
    const tenure = await a.acquire();
    await a.clock.advance(4_000);
    const version = String((a.record().version ?? 0) + 1);
    change(a.store.memory, { renewTime: { S: 'yesterday' }, version: { N: version } });
    a.store.plan('renew', {}, { lose: 'request' });
    expect((await a.during(a.renew(tenure))).kind).toBe('unknown');
    expect(tenure.remainingMs()).toBe(6_000);
    expect((await a.during(a.renew(tenure))).kind).toBe('renewed');
    expect(tenure.remainingMs()).toBe(10_000);
  });

  test('what it does not know survives every write', async () => {
    const a = new Contender('a');
    change(a.store.memory, { lease: { S: LEASE }, theirs: { L: [{ S: 'x' }] } });
    const tenure = await a.acquire();
    await a.during(a.renew(tenure));
    await a.during(a.lock.release(tenure, 'completed', 1_000));
    expect(a.store.memory.peek(LEASE)).toMatchObject({ theirs: { L: [{ S: 'x' }] } });
  });
});
