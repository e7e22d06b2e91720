// Ends the process groups that this process leaves behind, however it ends.
//
// An exit handler does not run on SIGKILL, nor when a test runner ends its worker. So a
// small shell outside our own group reads from a pipe which groups are alive, and kills
// what is left when the pipe closes. SIGKILL works on stopped processes too. It never
// touches a group that was taken off the list.

import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';

const script = `
  trap '' INT TERM HUP
  live=
  while read -r sign id; do
    case $sign in
      +) live="$live $id" ;;
      -) rest=; for other in $live; do [ "$other" = "$id" ] || rest="$rest $other"; done; live=$rest ;;
    esac
  done
  for id in $live; do kill -9 "-$id"; done`;

let reaper: Writable | undefined;

export function watchGroup(pgid: number): void {
  tell(`+ ${pgid}\n`);
}

export function forgetGroup(pgid: number): void {
  tell(`- ${pgid}\n`);
}

function tell(line: string): void {
  reaper ??= startReaper();
  reaper.write(line);
}

function startReaper(): Writable {
  const child = spawn('/bin/sh', ['-c', script], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  child.unref();
  child.on('error', (error) => {
    throw error;
  });
  return child.stdin;
}
