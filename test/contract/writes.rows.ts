// Records, and what each write may do to them. A record may have any attribute missing, or garbage
// in it.

import { isoTime, type Item, type Value } from '../../src/lease.ts';
import type { Acquisition } from '../../src/writes.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
export const PAST = { N: String(NOW_MS - 1) };
const NOW = { N: String(NOW_MS) };
const SOON = { N: String(NOW_MS + 50) };
const FUTURE = { N: String(NOW_MS + 60_000) };

export const VACANT: Item = {
  kind: { S: 'leader' },
  leaseDurationSeconds: { N: '15' },
  acquireTime: { S: isoTime(NOW_MS - 60_000) },
  renewTime: { S: isoTime(NOW_MS - 5_000) },
  leaseTransitions: { N: '3' },
  version: { N: '1767000000042' },
};
const HELD: Item = { ...VACANT, holderIdentity: { S: 'other' }, expireTime: FUTURE };
const EXPIRED: Item = { ...HELD, expireTime: PAST };

const NAMED: Item = { holderIdentity: { S: 'x' } };
const NULL = { NULL: true };

export const GARBAGE: Readonly<Record<string, Value>> = {
  'a text of digits': { S: '1' },
  'an empty text': { S: '' },
  NULL: { NULL: true },
  'a list': { L: [{ N: '1' }] },
};

/** The stamp may run ahead of the clock (a clock that was set back); the clock judges. */
export const STAMP_MS = NOW_MS + 100;
export const CLAIM: Acquisition = {
  holderIdentity: 'me',
  stampMs: STAMP_MS,
  nowMs: NOW_MS,
  leaseDurationMs: 20_500,
  writeExpireTime: true,
  kind: 'leader',
  knownTransitions: 0,
  annotations: { region: 'eu-north-1' },
  labels: {},
};

/** Which ways to take a lease may take this record: by the clock, vacant only, and as read. */
type Ways = 'all' | 'by clock, as read' | 'as read' | 'none';

export const acquisitions: readonly (readonly [string, Item | undefined, Ways])[] = [
  ['no record', undefined, 'all'],
  ['a record with nothing in it', {}, 'all'],
  ['a vacant lease', VACANT, 'all'],
  ['a vacant lease with an expiry left behind', { ...VACANT, expireTime: FUTURE }, 'all'],
  ['a held lease', HELD, 'as read'],
  ['an expired lease', EXPIRED, 'by clock, as read'],
  ['a lease that expires at this very millisecond', { ...HELD, expireTime: NOW }, 'as read'],
  ['a lease that expires before the stamp only', { ...HELD, expireTime: SOON }, 'as read'],
  ['a lease that expired in 1970', { ...HELD, expireTime: { N: '0' } }, 'by clock, as read'],
  ['a held lease without an expiry', without(HELD, 'expireTime'), 'as read'],
  ...garbage('a held lease whose expiry is', HELD, 'expireTime', 'as read'),
  // Somebody, of unknown name.
  ...garbage('a held lease whose holder is', HELD, 'holderIdentity', 'as read'),
  ...garbage('an expired lease whose holder is', EXPIRED, 'holderIdentity', 'by clock, as read'),

  ['a vacant lease of no kind', without(VACANT, 'kind'), 'all'],
  ['an expired lease of no kind', without(EXPIRED, 'kind'), 'by clock, as read'],
  ['a vacant lease of another kind', { ...VACANT, kind: { S: 'heartbeat' } }, 'none'],
  ['an expired lease of another kind', { ...EXPIRED, kind: { S: 'identity' } }, 'none'],
  ...garbage('a vacant lease whose kind is', VACANT, 'kind', 'none'),

  ['a suspended vacant lease', { ...VACANT, suspended: { M: { by: { S: 'ops' } } } }, 'none'],
  ['a suspended expired lease', { ...EXPIRED, suspended: { M: {} } }, 'none'],
  ...garbage('a vacant lease whose suspension is', VACANT, 'suspended', 'none'),

  // A contender whose clock has not been checked lets nothing that a clock must judge pass.
  ['a vacant lease after its notBefore', { ...VACANT, notBefore: PAST }, 'by clock, as read'],
  ['a vacant lease at its notBefore', { ...VACANT, notBefore: NOW }, 'none'],
  ['a vacant lease with a notBefore before the stamp only', { ...VACANT, notBefore: SOON }, 'none'],
  ['a vacant lease before its notBefore', { ...VACANT, notBefore: FUTURE }, 'none'],
  ['an expired lease before its notBefore', { ...EXPIRED, notBefore: FUTURE }, 'none'],
  ['an expired lease after its notBefore', { ...EXPIRED, notBefore: PAST }, 'by clock, as read'],
  ...garbage('a vacant lease whose notBefore is', VACANT, 'notBefore', 'by clock, as read'),

  ...garbage('a vacant lease whose lastTick is', VACANT, 'lastTick', 'all'),
  ['a vacant lease with a lastTick in the future', { ...VACANT, lastTick: FUTURE }, 'all'],
  ['a vacant lease without a token', without(VACANT, 'leaseTransitions'), 'all'],

  ['a vacant lease without a version', without(VACANT, 'version'), 'all'],
  ['a held lease without a version', without(HELD, 'version'), 'as read'],
  ['a held lease of a holder only', NAMED, 'as read'],
  ['one without a version, with a holder NULL', { holderIdentity: NULL }, 'as read'],
  ['one without a version, with a renewTime 7', { ...NAMED, renewTime: { N: '7' } }, 'as read'],
  ['one without a version, with a renewTime NULL', { ...NAMED, renewTime: NULL }, 'as read'],
];

/** What another does between our reading of a record and our writing, and whether we take it. */
export const overtaken: readonly (readonly [
  string,
  Item | undefined,
  Item | undefined,
  boolean,
])[] = [
  ['nobody did anything', HELD, HELD, true],
  ['its version moved on', HELD, { ...HELD, version: { N: '1767000000043' } }, false],
  ['its version went back', HELD, { ...HELD, version: { N: '1' } }, false],
  ['its version became a text', HELD, { ...HELD, version: { S: '1767000000042' } }, false],
  ['its version vanished', HELD, without(HELD, 'version'), false],
  ['a monitor flagged it', HELD, { ...HELD, condition: { M: {} }, openVerdict: PAST }, true],
  ['a user added something', HELD, { ...HELD, size: { N: '42' } }, true],
  ['an operator suspended it', HELD, { ...HELD, suspended: { M: {} } }, false],
  ['the record was deleted', HELD, undefined, false],
  ['somebody created it', undefined, HELD, false],
  ['somebody created it and gave it back', undefined, VACANT, false],

  ['it got a version', without(HELD, 'version'), HELD, false],
  ['it got a version of garbage', without(HELD, 'version'), { ...HELD, version: NULL }, false],
  [
    'another took it, and no version tells',
    without(HELD, 'version'),
    { ...without(HELD, 'version'), holderIdentity: { S: 'third' } },
    false,
  ],
  [
    'its holder renewed it, and no version tells',
    without(HELD, 'version'),
    { ...without(HELD, 'version'), renewTime: { S: isoTime(NOW_MS) } },
    false,
  ],
  [
    'it was given back, and no version tells',
    without(HELD, 'version'),
    without(HELD, 'version', 'holderIdentity'),
    false,
  ],
  [
    'another took it that was vacant, and no version tells',
    without(VACANT, 'version'),
    without(HELD, 'version'),
    false,
  ],
  [
    'its renewTime changed its type only',
    { ...NAMED, renewTime: { S: '7' } },
    { ...NAMED, renewTime: { N: '7' } },
    false,
  ],
  ['a held record without a version was deleted', without(HELD, 'version'), undefined, false],
];

/** A scheduled job's: what the record says of the last tick, and whether this one is still open. */
export const TICK_MS = NOW_MS - 60_000;
export const ticks: readonly (readonly [string, Value | undefined, boolean])[] = [
  ['no last tick', undefined, true],
  ['an older last tick', { N: String(TICK_MS - 1) }, true],
  ['a last tick of 0', { N: '0' }, true],
  ['a negative last tick', { N: '-5' }, true],
  ['a last tick with more digits but less', { N: '999999999999.75' }, true],
  ['this tick', { N: String(TICK_MS) }, false],
  ['a newer last tick', { N: String(TICK_MS + 1) }, false],
  ['a last tick in the future', FUTURE, false],
  ...Object.entries(GARBAGE).map(
    ([value, garbage]) => [`a last tick that is ${value}`, garbage, true] as const,
  ),
];

export const MINE: Item = { ...HELD, holderIdentity: { S: 'me' } };

/** A renewal and a release ask the same: this holder, at this version. */
export const holding: readonly (readonly [string, Item | undefined, boolean])[] = [
  ['my lease', MINE, true],
  ['my lease that has expired', { ...MINE, expireTime: PAST }, true],
  ['my lease without an expiry', without(MINE, 'expireTime'), true],
  ['my lease that was suspended', { ...MINE, suspended: { M: {} } }, true],
  ['my lease with a notBefore', { ...MINE, notBefore: FUTURE }, true],
  ['my lease that a monitor flagged', { ...MINE, condition: { M: {} } }, true],
  ['my lease whose token was lost', without(MINE, 'leaseTransitions'), true],
  ['no record', undefined, false],
  ['my lease at a later version', { ...MINE, version: { N: '1767000000043' } }, false],
  ['my lease at an earlier version', { ...MINE, version: { N: '1767000000041' } }, false],
  ['my lease without a version', without(MINE, 'version'), false],
  ['my lease whose version is a text', { ...MINE, version: { S: '1767000000042' } }, false],
  ["another's lease at the same version", HELD, false],
  ['a vacant lease at the same version', VACANT, false],
  ['one whose holder begins like me', { ...MINE, holderIdentity: { S: 'me/2' } }, false],
  ...garbage('one whose holder is', MINE, 'holderIdentity', false),
];

function garbage<const Expected>(what: string, item: Item, name: string, expected: Expected) {
  return Object.entries(GARBAGE).map(
    ([value, garbage]) => [`${what} ${value}`, { ...item, [name]: garbage }, expected] as const,
  );
}

export function without(item: Item, ...names: string[]): Item {
  return Object.fromEntries(Object.entries(item).filter(([name]) => !names.includes(name)));
}
