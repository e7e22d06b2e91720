// The events on their way to EventBridge: the SDK's own client, and a server that refuses some.

import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { EventBridgeSink, type EventBridgeSinkOptions } from '../../src/eventbridge.ts';
import { makeEvent, type LeaseEvent } from '../../src/events.ts';
import { type EventBridge, startEventBridge } from '../support/eventbridge.ts';
import { at, heldSince, OneLease } from './one-lease.ts';

let bridge: EventBridge;
const warnings: object[] = [];
const clients: EventBridgeClient[] = [];

beforeEach(async () => {
  warnings.length = 0;
  bridge = await startEventBridge();
  return () => bridge[Symbol.asyncDispose]();
});

afterAll(() => {
  for (const client of clients) client.destroy();
});

function sink(options: EventBridgeSinkOptions = {}): EventBridgeSink {
  const client = new EventBridgeClient({
    endpoint: bridge.endpoint,
    region: 'eu-north-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    maxAttempts: 1,
    requestHandler: { requestTimeout: 300, throwOnRequestTimeout: true },
  });
  clients.push(client);
  const log = (message: string, details: object = {}) => warnings.push({ message, ...details });
  const logger = { debug: log, info: log, warn: log, error: log };
  return new EventBridgeSink({ client, logger, ...options });
}

function event(number = 0): LeaseEvent {
  const lease = new OneLease(heldSince(0, { token: number, labels: { zone: 'a' } }));
  const action = lease.judge(at(60));
  if (action.kind !== 'flag') throw new Error(action.kind);
  return makeEvent(lease.record, action.verdict, action.verdict.event!);
}

describe('an EventBridgeSink', () => {
  test('sends what a rule can match, and what a reader at night needs', async () => {
    const resources = 'arn:aws:dynamodb:eu-north-1:123456789012:table/leases';
    const options = { eventBusName: 'ops', tableArn: resources };
    expect(await sink(options).publish([event()])).toEqual([true]);
    const [entry] = bridge.accepted;
    expect({ ...entry, Detail: JSON.parse(entry!.Detail) as unknown }).toEqual({
      Source: 'lambda-lease',
      DetailType: 'Lease Not Ready',
      Time: at(60).nowMs / 1_000,
      EventBusName: 'ops',
      Resources: [resources],
      Detail: {
        metadata: { id: 'default/watched#0#1#2026-01-01T12:01:00.000Z', version: '1' },
        data: {
          lease: 'default/watched',
          namespace: 'default',
          name: 'watched',
          kind: 'leader',
          holderIdentity: 'host/1/a',
          fencingToken: 0,
          status: 'NotReady',
          reason: 'expired',
          renewTime: '2026-01-01T12:00:00.000Z',
          annotations: { logStream: 'logs of host/1/a' },
          labels: { zone: 'a' },
        },
      },
    });
  });

  test('sends to the default bus, without resources, where none are given', async () => {
    await sink().publish([event()]);
    expect(bridge.accepted[0]).not.toHaveProperty('EventBusName');
    expect(bridge.accepted[0]).not.toHaveProperty('Resources');
  });

  test('sends ten at a time, and answers for each in its place', async () => {
    const refused = [3, 11, 24];
    const refuse = (offset: number) => ({
      refuse: (_: unknown, index: number) => refused.includes(offset + index),
    });
    bridge.answerWith(refuse(0), refuse(10), refuse(20));
    const events = Array.from({ length: 25 }, () => event());
    const accepted = await sink().publish(events);
    expect(bridge.calls.map(({ length }) => length)).toEqual([10, 10, 5]);
    expect(accepted).toHaveLength(25);
    expect(accepted.flatMap((each, index) => (each ? [] : [index]))).toEqual(refused);
    expect(warnings).toHaveLength(3);
    expect(warnings[0]).toMatchObject({
      id: events[3]!.detail.metadata.id,
      error: 'ThrottlingException: Slow down.',
    });
  });

  test.each([
    ['a server error', { status: 500, error: 'InternalException' }],
    ['a refusal of the whole call', { status: 400, error: 'AccessDeniedException' }],
    ['no answer in time', 'nothing'],
  ] as const)('takes %s for not accepted, and goes on with the rest', async (_, answer) => {
    bridge.answerWith(answer);
    const accepted = await sink().publish(Array.from({ length: 12 }, () => event()));
    expect(accepted).toEqual([...Array<boolean>(10).fill(false), true, true]);
    expect(warnings).toEqual([expect.objectContaining({ count: 10 })]);
  });

  test('sends nothing when there is nothing to send', async () => {
    expect(await sink().publish([])).toEqual([]);
    expect(bridge.calls).toEqual([]);
  });
});
