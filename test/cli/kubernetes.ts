// The shape of a coordination.k8s.io/v1 LeaseList, as Kubernetes' API has it.

import { expect } from 'vitest';

const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/;
const LARGEST_INT32 = 2 ** 31 - 1;

export function expectLeaseList(list: unknown): void {
  const { items, ...rest } = list as { items: unknown[] };
  expect(rest).toEqual({ apiVersion: 'coordination.k8s.io/v1', kind: 'LeaseList', metadata: {} });
  expect(Array.isArray(items)).toBe(true);
  items.forEach(expectLease);
}

export function expectLease(lease: unknown): void {
  const { apiVersion, kind, metadata, spec, status, ...others } = lease as Record<
    'apiVersion' | 'kind' | 'metadata' | 'spec' | 'status',
    object
  >;
  expect([apiVersion, kind, others]).toEqual(['coordination.k8s.io/v1', 'Lease', {}]);
  expect(typeof status).toBe('object');
  only(metadata, {
    name: isText,
    namespace: isText,
    resourceVersion: isText,
    labels: isTexts,
    annotations: isTexts,
  });
  expect(metadata).toHaveProperty('name');
  expect(metadata).toHaveProperty('namespace');
  only(spec, {
    holderIdentity: isText,
    leaseDurationSeconds: (value) => isInt32(value) && Number(value) > 0,
    leaseTransitions: (value) => isInt32(value) && Number(value) >= 0,
    acquireTime: isMicroTime,
    renewTime: isMicroTime,
  });
}

function only(object: object, rules: Record<string, (value: unknown) => boolean>): void {
  for (const [name, value] of Object.entries(object)) {
    expect(rules[name]?.(value), `${name} is ${JSON.stringify(value)}`).toBe(true);
  }
}

const isText = (value: unknown) => typeof value === 'string';
const isInt32 = (value: unknown) =>
  Number.isInteger(value) && Math.abs(Number(value)) <= LARGEST_INT32;
const isMicroTime = (value: unknown) => isText(value) && MICRO_TIME.test(value);
const isTexts = (value: unknown) =>
  typeof value === 'object' && value !== null && Object.values(value).every(isText);
