// Which programs can play the Node runtime of Lambda here, and where they are.
//
// `ric` is the real one, AWS's runtime interface client; it is there only after
// `install.sh` has run. `stand-in` is our own loop and is always there. Nothing here
// starts either of them.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export type RuntimeKind = 'ric' | 'stand-in';

const installer = 'test/support/lambda-runtime/install.sh';
const ricEntry = fromHere('./node_modules/aws-lambda-ric/index.mjs');
const ricNativePart = fromHere('./node_modules/aws-lambda-ric/rapid-client.node');
const standInEntry = fromHere('./stand-in.ts');

export function realRuntimeAvailable(): boolean {
  // The native part comes last in an install: without it the install broke off.
  return existsSync(ricEntry) && existsSync(ricNativePart);
}

/**
 * Whether a test file may use the real runtime, for `describe.skipIf(!…)`. A missing one
 * is said aloud, and is an error in CI: a skipped test must not look like a passed one.
 */
export function expectRealRuntime(): boolean {
  if (realRuntimeAvailable()) return true;
  const message = `The real Lambda runtime is not installed. Run: ${installer}`;
  if (process.env['CI'] === 'true') throw new Error(message);
  console.warn(`\n!!! SKIPPED: ${message}\n`);
  return false;
}

export function resolveRuntime(wanted: RuntimeKind | 'auto'): RuntimeKind {
  if (wanted === 'auto') return realRuntimeAvailable() ? 'ric' : 'stand-in';
  if (wanted === 'ric' && !realRuntimeAvailable()) {
    throw new Error(`The real Lambda runtime is not installed. Run: ${installer}`);
  }
  return wanted;
}

export function runtimeEntry(runtime: RuntimeKind): string {
  return runtime === 'ric' ? ricEntry : standInEntry;
}

function fromHere(path: string): string {
  return fileURLToPath(new URL(path, import.meta.url));
}
