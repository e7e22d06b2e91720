// What users test their own handlers with: a table in memory, a clock, and a context.

import type { Context } from 'aws-lambda';
import { expect, test } from 'vitest';
import { isSkipped, withLease } from '../../src/index.ts';
import { FakeClock, fakeContext, MemoryStore } from '../../src/testing.ts';

test('a context has what Lambda gives, and its own request id', () => {
  const context: Context = fakeContext({ functionName: 'report', awsRequestId: 'r-1' });
  expect(context.functionName).toBe('report');
  expect(context.logGroupName).toBe('/aws/lambda/report');
  expect(context.invokedFunctionArn).toMatch(/:function:report$/);
  expect(context.awsRequestId).toBe('r-1');
  expect(fakeContext().awsRequestId).not.toBe(fakeContext().awsRequestId);
});

test('its remaining time goes by the clock, from when it was made, and never below 0', async () => {
  const clock = new FakeClock();
  await clock.advance(7_000);
  const context = fakeContext({ clock, timeoutSeconds: 3 });
  expect(context.getRemainingTimeInMillis()).toBe(3_000);
  await clock.advance(1_200);
  expect(context.getRemainingTimeInMillis()).toBe(1_800);
  await clock.advance(60_000);
  expect(context.getRemainingTimeInMillis()).toBe(0);
  expect(fakeContext().getRemainingTimeInMillis()).toBeLessThanOrEqual(30_000);
});

test('a run that hangs is replaced at its deadline and the tolerance, in no real time', async () => {
  const clock = new FakeClock();
  const store = new MemoryStore({ serverTimeMs: () => clock.read().wallMs });
  const tokens: number[] = [];
  const handler = withLease({ name: 'report', store, clock }, async (hangs: boolean, { lease }) => {
    tokens.push(lease.fencingToken);
    return hangs ? new Promise<string>(() => undefined) : 'done';
  });

  void handler(true, fakeContext({ clock, timeoutSeconds: 30 }));
  await clock.advance(34_900);
  expect(isSkipped(await handler(false, fakeContext({ clock })))).toBe(true);
  await clock.advance(200);
  expect(await handler(false, fakeContext({ clock }))).toBe('done');
  expect(tokens).toEqual([1, 2]);
});
