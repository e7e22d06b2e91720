#!/usr/bin/env node
// The program `lambda-lease`.

import { main } from './cli.ts';
import { runProcess } from './cli-process.ts';
import manifest from '../package.json' with { type: 'json' };

await runProcess((host) => main(host, manifest.version));
