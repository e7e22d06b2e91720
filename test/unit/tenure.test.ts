// A tenure in itself, with no store and no timer: what a record tells it.

import { describe, expect, test } from 'vitest';
import { FakeClock } from '../../src/fake-clock.ts';
import { isoTime, type Item, readLease } from '../../src/lease.ts';
import { Attempts, Tenure } from '../../src/tenure.ts';
import { Timeline } from '../../src/timeline.ts';

const LEASE = 'default/job';

/** Undefined: the attribute is absent. */
type Changes = Partial<Record<string, Item[string] | undefined>>;

/** A tenure with token 7, and a record as it wrote it, with other attributes. */
function held(changes: Changes = {}) {
  const timeline = new Timeline(new FakeClock());
  const attempts = new Attempts('me', timeline);
  const { stampMs } = attempts.next(() => ({ leaseDurationMs: 15_000, renewDeadlineMs: 10_000 }));
  const item: Item = {
    holderIdentity: { S: 'me' },
    renewTime: { S: isoTime(stampMs) },
    leaseTransitions: { N: '7' },
    version: { N: '100' },
  };
  const changed = Object.entries({ ...item, ...changes }).filter(
    (entry): entry is [string, Item[string]] => entry[1] !== undefined,
  );
  return {
    tenure: new Tenure(attempts, readLease(LEASE, item), timeline),
    record: readLease(LEASE, Object.fromEntries(changed)),
  };
}

describe('a tenure, shown a record', () => {
  test.each<[string, Changes, string | undefined]>([
    ['with its name and its token goes on', {}, undefined],
    ['with another name was taken over', { holderIdentity: { S: 'other' } }, 'taken over'],
    [
      'with its name and another token was taken over',
      { leaseTransitions: { N: '8' } },
      'taken over',
    ],
    ['that is vacant, with its token, was evicted', { holderIdentity: undefined }, 'evicted'],
    [
      'that is vacant again, with a later token, was taken over',
      { holderIdentity: undefined, leaseTransitions: { N: '8' } },
      'taken over',
    ],
  ])('%s', (_, changes, reason) => {
    const { tenure, record } = held(changes);
    expect(tenure.whyOver(record)).toBe(reason);
  });

  test('that is gone knows that it was deleted', () => {
    expect(held().tenure.whyOver(undefined)).toBe('record deleted');
  });
});
