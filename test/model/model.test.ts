// The protocol itself, checked by visiting every state of a small model of it. Each rule that is
// broken on purpose must be noticed, by the claim that it names.

import { afterAll, describe, expect, test } from 'vitest';
import { BREAKS, counterExample, HOLDS, missingTools, search, SEEN, storyLines } from './run.ts';

const MINUTES = 60_000;
const missing = await missingTools();
if (missing !== undefined) {
  if (process.env['CI'] === 'true') throw new Error(missing);
  console.warn(`\n!!! SKIPPED: ${missing}\n`);
}

describe.skipIf(missing !== undefined)('the model of the protocol', () => {
  const report: string[] = [];
  const told = new Set<number>();
  afterAll(() => {
    console.log(report.join('\n'));
  });

  test.each(HOLDS)(
    'holds: $title',
    async (configuration) => {
      const { states, errors, incomplete, told: lines } = await search(configuration);
      report.push(`${states.toLocaleString('en')} states, no violation: ${configuration.title}`);
      for (const line of lines.keys()) told.add(line);
      expect(errors).toBe(0);
      expect(incomplete).toEqual([]);
      expect(states).toBeGreaterThan(40_000);
    },
    10 * MINUTES,
  );

  test('was in every situation that it can tell of', async () => {
    const never = [...(await storyLines())].filter(([line]) => !told.has(line));
    expect(never).toEqual([]);
    expect((await storyLines()).size).toBeGreaterThan(25);
  });

  test.each(BREAKS)(
    'fails without the rule: $title ($failing)',
    async (configuration) => {
      const { errors, violated, story } = await counterExample(configuration);
      const { title, failing } = configuration;
      report.push(`\n${title}:`, ...story.map((line) => `  ${line}`), `=> ${SEEN[failing]}`);
      expect(errors).toBe(1);
      const claims = { LEADERS: /x==y/, ONCE: /ended/, FENCE: /over/ };
      expect(violated).toMatch(claims[failing]);
      expect(story.length).toBeGreaterThan(4);
      expect(story.filter((line) => / leads$|commits a guarded| holds on$/.test(line))).not.toEqual(
        [],
      );
    },
    5 * MINUTES,
  );
});
