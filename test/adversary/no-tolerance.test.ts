// Rounded to milliseconds, nothing may be left of the tolerance.

import { expect, it } from 'vitest';
import { resolveTiming } from '../../src/options.ts';
import { checkInvocationOptions } from '../../src/invocation-options.ts';

it('refuses a tolerance that is less than a millisecond', () => {
  const options = { leaseDurationSeconds: 10.0004, renewDeadlineSeconds: 10 };
  expect(() => resolveTiming(options)).toThrow(/leaseDurationSeconds/);
});

it('refuses one of a lease without a duration', () => {
  expect(() => checkInvocationOptions({ name: 'job', toleranceSeconds: 0.0004 })).toThrow(
    /toleranceSeconds/,
  );
});
