import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Two cores: more workers than that only make real time noisier.
    maxWorkers: 2,
    reporters:
      process.env['CI'] === 'true'
        ? ['default', ['json', { outputFile: 'coverage/results.json' }]]
        : ['default'],
  },
});
