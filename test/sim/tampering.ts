// What another client of the table does to a record: nonsense, an operator's requests, a deletion.
// None of it takes a lease from its holder; what does is told apart by the oracles.

import { asNumber, type Item, type Value } from '../../src/lease.ts';
import { isoTime } from '../../src/lease.ts';
import type { Nonsense } from './faults.ts';
import { EPOCH_MS } from './machine.ts';

/** Further ahead than any lease lasts: what another client puts before that is believed. */
const YEARS_MS = 2 * 366 * 86_400_000;

export function nonsense(what: Nonsense, item: Item, nowMs: number): Item {
  const put = (name: string, value: Value): Item => ({ ...item, [name]: value });
  switch (what) {
    case 'renewTime is no time':
      return put('renewTime', { S: 'yesterday' });
    case 'expireTime is a text':
      return held(item) ? put('expireTime', { S: 'soon' }) : item;
    case 'expireTime is years ahead':
      return held(item) ? put('expireTime', { N: String(EPOCH_MS + nowMs + YEARS_MS) }) : item;
    case 'duration is a text':
      return put('leaseDurationSeconds', { S: 'long' });
    case 'duration is negative':
      return put('leaseDurationSeconds', { N: '-5' });
    case 'version rises':
      return put('version', { N: String((asNumber(item['version']) ?? 0) + 5) });
    case 'version is a text for a while':
      return put('version', { S: JSON.stringify(asNumber(item['version']) ?? 0) });
    case 'condition is a text':
      return put('condition', { S: 'well' });
    case 'condition is half a verdict':
      return put('condition', { M: { status: { S: 'NotReady' }, event: { S: 'what?' } } });
    case 'labels are numbers':
      return put('labels', { M: { zone: { N: '7' } } });
    case 'annotations are missing':
      return without(item, 'annotations');
    case 'openVerdict is a text':
      return put('openVerdict', { S: 'yes' });
    case 'dueTime has passed':
      return put('dueTime', { N: String(EPOCH_MS + nowMs - 1) });
    case 'an unknown attribute':
      return put('colour', { L: [{ S: 'red' }, { NULL: true }] });
    case 'notBefore is a text':
      return put('notBefore', { S: 'tomorrow' });
    case 'an unreadable holder of what is vacant':
      return held(item) ? item : put('holderIdentity', { N: '5' });
  }
}

/** What no retry mends, somebody does: a version that is a text, an operator's stop. */
export function mend(item: Item): Item {
  const { version } = item;
  const mended =
    version !== undefined && 'S' in version
      ? { ...item, version: { N: String(Number(version.S) + 1_000) } }
      : item;
  return without(mended, 'suspended');
}

export function needsMending(item: Item | undefined): boolean {
  if (item === undefined) return false;
  return item['suspended'] !== undefined || 'S' in (item['version'] ?? { N: '' });
}

export function requested(what: 'step down' | 'suspend', item: Item, nowMs: number): Item {
  const name = what === 'suspend' ? 'suspended' : 'stepDownRequested';
  const since = { S: isoTime(EPOCH_MS + nowMs) };
  return { ...item, [name]: { M: { since, by: { S: 'operator' }, why: { S: 'a trial' } } } };
}

function held(item: Item): boolean {
  return item['holderIdentity'] !== undefined;
}

function without(item: Item, name: string): Item {
  return Object.fromEntries(Object.entries(item).filter(([known]) => known !== name));
}
