import { describe, expect, test } from 'vitest';
import { type Fault, FaultQueue, type RequestBody } from './fault-proxy-faults.ts';

const denied: Fault = { kind: 'error', error: 'AccessDeniedException' };
const missing: Fault = { kind: 'error', error: 'ResourceNotFoundException' };
const delay: Fault = { kind: 'delay', when: 'before', ms: 1 };

/** The faults that one request after another takes. */
function taken(queue: FaultQueue, requests: number, operation = 'GetItem', body = {}): Fault[][] {
  return Array.from({ length: requests }, () =>
    queue.take(operation, body).map(({ fault }) => fault),
  );
}

describe('a queue of faults', () => {
  test('gives a fault to the next request and no other', () => {
    const queue = new FaultQueue();
    queue.inject({ fault: denied });
    expect(taken(queue, 2)).toEqual([[denied], []]);
  });

  test('gives them in the order of injection (P1), one that ends the request at a time (P2)', () => {
    const queue = new FaultQueue();
    queue.inject({ fault: missing });
    queue.inject({ fault: denied });
    queue.inject({ fault: { kind: 'truncate' } });
    expect(taken(queue, 4)).toEqual([[missing], [denied], [{ kind: 'truncate' }], []]);
  });

  test('gives one of each other kind beside it, before and after being two (P2)', () => {
    const queue = new FaultQueue();
    const faults: Fault[] = [
      delay,
      { ...delay, when: 'after' },
      { kind: 'date-removed' },
      { kind: 'strip-item' },
      denied,
    ];
    for (const fault of faults) queue.inject({ fault });
    for (const fault of faults) queue.inject({ fault });
    expect(taken(queue, 3)).toEqual([faults, faults, []]);
  });

  test('gives a fault as often as it is told, until it is removed', () => {
    const queue = new FaultQueue();
    queue.inject({ fault: delay, times: 2 });
    const handle = queue.inject({ fault: denied, times: Infinity });
    expect(taken(queue, 3)).toEqual([[delay, denied], [delay, denied], [denied]]);
    handle.remove();
    expect(taken(queue, 1)).toEqual([[]]);
  });

  test('gives a fault only to what it is meant for, and saves it until then', () => {
    const queue = new FaultQueue();
    const match = ({ TableName }: RequestBody): boolean => TableName === 't';
    queue.inject({ fault: denied, operation: 'PutItem', match });
    expect(taken(queue, 1, 'PutItem', { TableName: 'u' })).toEqual([[]]);
    expect(taken(queue, 1, 'GetItem', { TableName: 't' })).toEqual([[]]);
    expect(taken(queue, 2, 'PutItem', { TableName: 't' })).toEqual([[denied], []]);
  });

  test('gives nothing any more once it is cleared', () => {
    const queue = new FaultQueue();
    queue.inject({ fault: denied, times: Infinity });
    queue.clear();
    expect(taken(queue, 1)).toEqual([[]]);
  });
});

describe('the handle of a fault', () => {
  test('counts the requests that met it, not those that are on their way to it', async () => {
    const queue = new FaultQueue();
    const handle = queue.inject({ fault: { kind: 'reset', when: 'after' }, times: 2 });
    const reached = handle.reached(2);
    const strikes = [...queue.take('GetItem', {}), ...queue.take('GetItem', {})];
    expect(handle.hits).toBe(0);
    for (const strike of strikes) strike.struck();
    await reached;
    await handle.reached(1);
    expect(handle.hits).toBe(2);
  });

  test('lets go what it holds, and holds nothing any more', async () => {
    const queue = new FaultQueue();
    const handle = queue.inject({ fault: { kind: 'hold', when: 'before' }, times: Infinity });
    const [held] = queue.take('GetItem', {});
    handle.release();
    await held!.released;
    expect(taken(queue, 1)).toEqual([[]]);
  });
});
