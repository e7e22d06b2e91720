// The table as it is synthesised, prop by prop, and what it refuses.

import { RemovalPolicy } from 'aws-cdk-lib';
import { Key } from 'aws-cdk-lib/aws-kms';
import { Match } from 'aws-cdk-lib/assertions';
import { describe, expect, test } from 'vitest';
import { LeaseTable, type LeaseTableProps } from '../../lib/index.ts';
import { FLAGS, plain, resourcesOf, stackWith, templateOf } from './stage.ts';

function tableOf(props?: LeaseTableProps, context = {}) {
  const template = templateOf((stack) => new LeaseTable(stack, 'Leases', props), context);
  const [[, table] = []] = resourcesOf(template, 'AWS::DynamoDB::GlobalTable');
  const [replica = {}] = plain(table?.Properties['Replicas']) as Record<string, unknown>[];
  return { template, table: table!, properties: table!.Properties, replica };
}

describe.each(FLAGS)('a lease table, with %s', (_, flags) => {
  test('has one key, is on demand, backed up, protected and kept', () => {
    const { template, table, properties, replica } = tableOf({}, flags);
    expect(properties).toMatchObject({
      KeySchema: [{ AttributeName: 'lease', KeyType: 'HASH' }],
      AttributeDefinitions: [{ AttributeName: 'lease', AttributeType: 'S' }],
      BillingMode: 'PAY_PER_REQUEST',
      TimeToLiveSpecification: { AttributeName: 'timeToLive', Enabled: true },
    });
    expect(properties).not.toHaveProperty('TableName');
    expect(properties).not.toHaveProperty('GlobalSecondaryIndexes');
    expect(replica).toMatchObject({
      Region: 'eu-west-1',
      DeletionProtectionEnabled: true,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: true },
    });
    expect(table.DeletionPolicy).toBe('Retain');
    expect(Object.keys(template.toJSON()['Resources'] as object)).toHaveLength(1);
  });

  test('does without where it is told to', () => {
    const { table, properties, replica } = tableOf(
      {
        tableName: 'leases',
        timeToLive: false,
        pointInTimeRecovery: false,
        removalPolicy: RemovalPolicy.DESTROY,
      },
      flags,
    );
    expect(properties).toMatchObject({ TableName: 'leases' });
    expect(properties).not.toHaveProperty('TimeToLiveSpecification');
    expect(replica).toMatchObject({
      DeletionProtectionEnabled: false,
      PointInTimeRecoverySpecification: { PointInTimeRecoveryEnabled: false },
    });
    expect(table.DeletionPolicy).toBe('Delete');
  });

  test('excludes across three Regions, without Time to Live', () => {
    const { properties } = tableOf({ replicaRegions: ['eu-west-2', 'eu-central-1'] }, flags);
    expect(properties).toMatchObject({ MultiRegionConsistency: 'STRONG' });
    expect(properties).not.toHaveProperty('TimeToLiveSpecification');
    expect(regionsOf(properties)).toEqual(['eu-central-1', 'eu-west-1', 'eu-west-2']);
  });

  test('excludes across two Regions and a witness', () => {
    const { properties } = tableOf(
      { replicaRegions: ['eu-west-3'], witnessRegion: 'eu-central-1' },
      flags,
    );
    expect(properties).toMatchObject({
      MultiRegionConsistency: 'STRONG',
      GlobalTableWitnesses: [{ Region: 'eu-central-1' }],
    });
    expect(regionsOf(properties)).toEqual(['eu-west-1', 'eu-west-3']);
  });

  test('is eventually consistent only where it need not exclude', () => {
    const { properties } = tableOf({ replicaRegions: ['us-east-1'], exclusion: false }, flags);
    expect(properties['MultiRegionConsistency']).not.toBe('STRONG');
    expect(properties).toHaveProperty('TimeToLiveSpecification');
    expect(regionsOf(properties)).toEqual(['eu-west-1', 'us-east-1']);
  });
});

test('deletion protection outlives a removal policy where it is asked for', () => {
  const { replica } = tableOf({
    removalPolicy: RemovalPolicy.DESTROY,
    deletionProtection: true,
  });
  expect(replica).toMatchObject({ DeletionProtectionEnabled: true });
});

test('is encrypted with a key of the customer', () => {
  const template = templateOf((stack) => {
    new LeaseTable(stack, 'Leases', { encryptionKey: new Key(stack, 'Key') });
  });
  template.hasResourceProperties('AWS::DynamoDB::GlobalTable', {
    SSESpecification: { SSEEnabled: true, SSEType: 'KMS' },
    Replicas: [Match.objectLike({ SSESpecification: { KMSMasterKeyId: Match.anyValue() } })],
  });
});

test('a metric is of that table', () => {
  const metric = new LeaseTable(stackWith(), 'Leases').metric('WriteThrottleEvents');
  expect(metric.namespace).toBe('AWS/DynamoDB');
  expect(Object.keys(metric.dimensions ?? {})).toEqual(['TableName']);
});

describe('a lease table refuses', () => {
  test.each<[string, LeaseTableProps, RegExp]>([
    [
      'Time to Live with strong consistency',
      { replicaRegions: ['eu-west-2', 'eu-central-1'], timeToLive: true },
      /timeToLive is true.*Leave timeToLive out/,
    ],
    [
      'two Regions that would have to agree',
      { replicaRegions: ['eu-west-2'] },
      /2 Regions \(eu-west-1, eu-west-2\).*exactly 3.*witnessRegion.*set exclusion to false/,
    ],
    [
      'four Regions',
      { replicaRegions: ['eu-west-2', 'eu-west-3', 'eu-central-1'] },
      /4 Regions.*exactly 3/,
    ],
    [
      'a witness beside three Regions',
      { replicaRegions: ['eu-west-2', 'eu-west-3'], witnessRegion: 'eu-central-1' },
      /4 Regions.*exactly 3/,
    ],
    [
      'Regions of two sets',
      { replicaRegions: ['eu-west-2', 'us-east-1'] },
      /no strong consistency between eu-west-1, eu-west-2, us-east-1.*eu-west-1, eu-west-2/,
    ],
    [
      'a Region without strong consistency',
      { replicaRegions: ['eu-west-2', 'eu-north-1'] },
      /no strong consistency between/,
    ],
    [
      'its own Region as a replica',
      { replicaRegions: ['eu-west-1', 'eu-west-2'] },
      /names "eu-west-1" again/,
    ],
    ['a Region twice', { replicaRegions: ['eu-west-2', 'eu-west-2'] }, /names "eu-west-2" again/],
    [
      'a witness where there is a copy',
      { replicaRegions: ['eu-west-2'], witnessRegion: 'eu-west-2' },
      /witnessRegion is "eu-west-2", which has a copy already/,
    ],
    [
      'a witness of nothing',
      { witnessRegion: 'eu-west-2' },
      /witnessRegion is "eu-west-2" without replicaRegions/,
    ],
    [
      'a witness of copies that do not agree',
      { replicaRegions: ['eu-west-2'], witnessRegion: 'eu-west-3', exclusion: false },
      /eventual consistency has no witness/,
    ],
  ])('%s', (_, props, message) => {
    expect(() => tableOf(props)).toThrow(message);
    expect(() => tableOf(props)).toThrow(/^Test\/Leases: /);
  });

  test('copies of a stack whose Region is not known', () => {
    const stack = stackWith({}, {});
    expect(() => new LeaseTable(stack, 'Leases', { replicaRegions: ['eu-west-2'] })).toThrow(
      /Give the stack an env with a region/,
    );
  });

  test('a name that DynamoDB does not take', () => {
    expect(() => tableOf({ tableName: 'a b' })).toThrow(/tableName is "a b"/);
  });

  test('one key for copies in several Regions', () => {
    const stack = stackWith();
    const encryptionKey = new Key(stack, 'Key');
    const replicaRegions = ['eu-west-2', 'eu-west-3'];
    expect(() => new LeaseTable(stack, 'Leases', { encryptionKey, replicaRegions })).toThrow(
      /encryptionKey is given beside replicaRegions.*Leave one/,
    );
  });

  test('an ARN for a name', () => {
    const arn = 'arn:aws:dynamodb:eu-west-1:123456789012:table/leases';
    expect(() => LeaseTable.fromTableName(stackWith(), 'Imported', arn)).toThrow(/not its ARN/);
  });
});

function regionsOf(properties: Readonly<Record<string, unknown>>): string[] {
  return (properties['Replicas'] as { Region: string }[]).map(({ Region }) => Region).sort();
}
