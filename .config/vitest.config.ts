import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Two cores, and tests that wait more than they work. More workers only make real time noisier.
    maxWorkers: 3,
    reporters:
      process.env['CI'] === 'true'
        ? ['default', ['json', { outputFile: 'coverage/results.json' }]]
        : ['default'],
  },
});
