// The live table: the lease and who leads, and below it what each environment does.

import { styleText } from 'node:util';
import type { LeaseRecord } from '../../src/lease.ts';
import type { Doing, Fleet } from './fleet.ts';

const BAR_WIDTH = 24;

const STYLES = { busy: 'green', idle: 'dim', hurt: 'yellow', gone: 'red' } as const;
const SIGNS = { busy: '▶', idle: '·', hurt: '!', gone: '✗' } as const;

export function boardLines(fleet: Fleet, record: LeaseRecord, columns: number): string[] {
  const width = columns - 1;
  return [
    styleText('dim', '─'.repeat(width)),
    leaseLine(fleet, record).slice(0, width),
    ...fleet.members.map(({ name, doing }) =>
      styled(doing, `  ${name}  ${SIGNS[doing.mood]} ${oneLine(doing.text)}`.slice(0, width)),
    ),
  ];
}

function leaseLine(fleet: Fleet, record: LeaseRecord): string {
  const { holderIdentity, leaseTransitions, expireTimeMs, leaseDurationMs } = record;
  if (holderIdentity === undefined) return '  The lease is free.';
  const leader = fleet.whoIs(holderIdentity)?.name ?? '?';
  const leftMs = Math.max(0, (expireTimeMs ?? 0) - Date.now());
  const filled = Math.min(
    BAR_WIDTH,
    Math.round((BAR_WIDTH * leftMs) / (leaseDurationMs ?? leftMs)),
  );
  const bar = '█'.repeat(filled) + '░'.repeat(BAR_WIDTH - filled);
  const left = `${(leftMs / 1_000).toFixed(1)} s left`;
  return `  Lease held by ${leader}, fencing token ${leaseTransitions}   ${bar} ${left}`;
}

/** The error of a handler may have several. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ');
}

function styled({ mood }: Doing, text: string): string {
  return styleText(STYLES[mood], text);
}
