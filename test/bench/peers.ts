// The peers, in a package of their own: installed by the benchmark, and by nothing else. Those in
// Java take part where a JDK and Maven are found.

import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Name, NAMES } from './contestant.ts';

const PEERS = fileURLToPath(new URL('peers', import.meta.url));
const JAVA = join(PEERS, 'java');
const TARGET = join(JAVA, 'target');

/** They would belong here. */
export const UNMEASURED =
  "ShedLock's DynamoDB provider (Java) and dynamolock (Go): no driver is written for them, since " +
  'their packages were not to be had where these figures were taken';

export function npmPeersInstalled(): boolean {
  // Written by npm when it has finished.
  return existsSync(join(PEERS, 'node_modules', '.package-lock.json'));
}

export function installPeers(): void {
  say(`\n!!! SKIPPED: ${UNMEASURED}.\n`);
  if (!npmPeersInstalled()) {
    say('Installs the peers from npm, into test/bench/peers only.');
    run('npm', ['ci', '--ignore-scripts'], PEERS);
  }
  if (existsSync(join(TARGET, 'Driver.class'))) return;
  const missing = ['javac', 'mvn'].filter((program) => !isFound(program));
  if (missing.length > 0) {
    say(`\n!!! SKIPPED: amazon-dynamodb-lock-client (Java), for want of ${missing.join(', ')}.\n`);
    return;
  }
  try {
    run('mvn', ['-q', '-B', 'dependency:copy-dependencies', '-DoutputDirectory=target/lib'], JAVA);
    run('javac', ['-cp', 'target/lib/*', '-d', 'target', 'Driver.java'], JAVA);
  } catch (error) {
    say(`\n!!! SKIPPED: amazon-dynamodb-lock-client (Java) could not be built: ${String(error)}\n`);
  }
}

/** All that there are here, those in Java included. */
export function contestants(): readonly Name[] {
  return existsSync(join(TARGET, 'Driver.class')) ? [...NAMES, 'awslabs'] : NAMES;
}

/** What starts a driver that is no Node process. */
export function javaCommand(): readonly [string, ...string[]] {
  return ['java', '-cp', `${TARGET}${delimiter}${join(TARGET, 'lib', '*')}`, 'Driver'];
}

function isFound(program: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${program}`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

function run(program: string, args: string[], cwd: string): void {
  execFileSync(program, args, { cwd, stdio: ['ignore', 2, 2] });
}

function say(words: string): void {
  process.stderr.write(`${words}\n`);
}
