import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** What takes longest, so that none of it begins when everything else is over. */
const LONGEST = ['deploy', 'sim', 'chaos', 'model', 'package'];

class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const found = LONGEST.findIndex((folder) => moduleId.includes(`/test/${folder}/`));
      return found === -1 ? LONGEST.length : found;
    };
    return (await super.sort(files)).toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
    // Two cores: more workers than that only make real time noisier.
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    reporters:
      process.env['CI'] === 'true'
        ? ['default', ['json', { outputFile: 'coverage/results.json' }]]
        : ['default'],
  },
});
