#!/usr/bin/env node
// The program `lambda-lease`.

import module from 'node:module';
import manifest from '../package.json' with { type: 'json' };

// Before all else is loaded: what one start has compiled, the next need not. Node 22.0 has it not.
(module as Partial<typeof module>).enableCompileCache?.();
const [{ runProcess }, { main }] = await Promise.all([
  import('./cli-process.ts'),
  import('./cli.ts'),
]);
await runProcess((host) => main(host, manifest.version));
