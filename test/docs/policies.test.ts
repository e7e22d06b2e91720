// What is deployed without the CDK is what the constructs would make: the policies in JSON, the
// table and the permissions of the SAM template, the attribute names of the Terraform one.

import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { beforeAll, describe, expect, test } from 'vitest';
import { parse, type CollectionTag, type ScalarTag } from 'yaml';
import { LeaseTable, LifecycleMonitor, type ILeaseTable } from '../../lib/index.ts';
import { KEY_ATTRIBUTE, TIME_TO_LIVE_ATTRIBUTE } from '../../src/schema.ts';
import { statementsOf, type Statement } from '../cdk/iam.ts';
import { bundle, plain, resourcesOf, templateOf } from '../cdk/stage.ts';
import { blocksOf, PAGES, sectionOf, textOf } from './pages.ts';

const page = textOf('docs/deploy.md');

beforeAll(bundle);

type Granting = (table: ILeaseTable, role: Role) => unknown;

function granted(grant: Granting): Statement[] {
  const template = templateOf((stack) => {
    const role = new Role(stack, 'Them', {
      assumedBy: new ServicePrincipal('lambda.amazonaws.com'),
    });
    grant(new LeaseTable(stack, 'Leases'), role);
  });
  return statementsOf(template, 'Them');
}

/** Whatever the resource is called. */
const rules = (statements: readonly Statement[]) =>
  statements.map(({ Effect, Action, Condition }) => ({
    Effect,
    Action: [Action].flat().sort(),
    Condition,
  }));

/** A list of one may be written without its brackets. */
const listed = (statements: readonly Statement[]) =>
  JSON.parse(
    JSON.stringify(rules(statements), (key, value: unknown) =>
      key === 'dynamodb:LeadingKeys' && Array.isArray(value) && value.length === 1
        ? (value as unknown[])[0]
        : value,
    ),
  ) as unknown;

const monitorStatements = () =>
  statementsOf(
    templateOf((stack) => {
      const table = new LeaseTable(stack, 'Leases');
      const eventBus = EventBus.fromEventBusName(stack, 'Bus', 'default');
      new LifecycleMonitor(stack, 'Monitor', { table, eventBus });
    }),
    'MonitorRole',
  ).filter(({ Action }) => !/logs:|sqs:/.test(JSON.stringify(Action)));

describe('a policy in JSON', () => {
  test.each<{ heading: string; grant: Granting }>([
    {
      heading: '### A function that holds leases',
      grant: (table, role) => table.grantHolder(role, { leases: ['nightly-report'] }),
    },
    {
      heading: '### A function with slots, or a lease for each tenant',
      grant: (table, role) => table.grantHolder(role, { leases: ['sync', 'sync/*'] }),
    },
    {
      heading: '### A worker with a heartbeat or an identity',
      grant: (table, role) => table.grantHolder(role, { leases: ['worker/*'], kind: 'heartbeat' }),
    },
    { heading: '### Whoever looks', grant: (table, role) => table.grantView(role) },
    { heading: '### An operator', grant: (table, role) => table.grantOperate(role) },
  ])('is what the grant makes: $heading', ({ heading, grant }) => {
    const [json = ''] = blocksOf(sectionOf(page, heading), 'json');
    expect(listed([JSON.parse(json) as Statement])).toEqual(listed(granted(grant)));
  });

  test('for the monitor is what the construct makes', () => {
    const [json = ''] = blocksOf(sectionOf(page, '### The lifecycle monitor'), 'json');
    expect(listed(JSON.parse(json) as Statement[])).toEqual(listed(monitorStatements()));
  });

  test('on the front page is the same', () => {
    const [json = ''] = blocksOf(textOf('README.md'), 'json');
    const statement = JSON.parse(json) as Statement;
    const [whole] = granted((table, role) =>
      table.grantHolder(role, { leases: ['nightly-report'] }),
    );
    expect(listed([statement])).toEqual(
      listed([{ ...whole!, Action: ['dynamodb:UpdateItem', 'dynamodb:GetItem'] }]),
    );
  });

  test.each(PAGES)('parses, as all JSON does: %s', (path) => {
    for (const json of blocksOf(textOf(path), 'json'))
      expect(() => JSON.parse(json) as unknown).not.toThrow();
  });
});

interface Template {
  readonly Resources: Readonly<
    Record<
      string,
      { readonly Type: string; readonly Properties: Readonly<Record<string, unknown>> }
    >
  >;
}

const tag = (name: string): ScalarTag => ({ tag: `!${name}`, resolve: (value) => `<${value}>` });
const customTags: (ScalarTag | CollectionTag)[] = ['Ref', 'GetAtt', 'Sub'].map(tag);

describe('the SAM template', () => {
  const [yaml = ''] = blocksOf(page, 'yaml');
  const { Resources } = parse(yaml, { customTags }) as Template;
  const table = Resources['Leases']!;

  test('makes the table that the construct makes', () => {
    const template = templateOf((stack) => new LeaseTable(stack, 'Leases'));
    const [[, made] = []] = resourcesOf(template, 'AWS::DynamoDB::GlobalTable');
    const own = plain(made!.Properties) as Record<string, unknown>;
    const [replica = {}] = own['Replicas'] as Record<string, unknown>[];
    expect(table.Properties).toEqual({
      AttributeDefinitions: own['AttributeDefinitions'],
      KeySchema: own['KeySchema'],
      BillingMode: own['BillingMode'],
      TimeToLiveSpecification: own['TimeToLiveSpecification'],
      PointInTimeRecoverySpecification: replica['PointInTimeRecoverySpecification'],
      DeletionProtectionEnabled: replica['DeletionProtectionEnabled'],
    });
    expect(table).toMatchObject({ DeletionPolicy: made!.DeletionPolicy });
  });

  test.each([
    [
      'NightlyReport',
      () => granted((table, role) => table.grantHolder(role, { leases: ['nightly-report'] })),
    ],
    ['Monitor', monitorStatements],
  ])('allows %s what the construct allows', (name, expected) => {
    const [policy] = Resources[name]!.Properties['Policies'] as { Statement: Statement[] }[];
    expect(listed(policy!.Statement)).toEqual(listed(expected()));
  });

  test('refers only to what is in it, and its schedules tell their ticks', () => {
    const referred = [...yaml.matchAll(/!(?:Ref|GetAtt) (\w+)/g)].map(([, name = '']) => name);
    expect(referred.length).toBeGreaterThan(4);
    expect(referred.filter((name) => Resources[name] === undefined)).toEqual([]);
    const { Events } = Resources['NightlyReport']!.Properties as {
      Events: Record<string, { Properties: { Input: string } }>;
    };
    expect(JSON.parse(Events['Nightly']!.Properties.Input)).toEqual({
      scheduledTime: '<aws.scheduler.scheduled-time>',
      scheduleArn: '<aws.scheduler.schedule-arn>',
    });
  });
});

const [hcl = ''] = blocksOf(page, 'hcl');

test('the Terraform template refers only to what is in it', () => {
  const declared = [...hcl.matchAll(/^(?:resource|data) "(\w+)" "(\w+)"/gm)].map(
    ([, type = '', name = '']) => `${type}.${name}`,
  );
  expect(new Set(declared).size).toBe(declared.length);
  const referred = [...hcl.matchAll(/\b((?:aws|archive)_\w+\.\w+)/g)].map(([, name = '']) => name);
  expect(referred.length).toBeGreaterThan(12);
  expect(referred.filter((name) => !declared.includes(name))).toEqual([]);
});

test('the Terraform template names the same attributes, and the same permissions', () => {
  expect(hcl).toMatch(new RegExp(`hash_key += "${KEY_ATTRIBUTE}"`));
  expect(hcl).toMatch(new RegExp(`attribute \\{\\s+name = "${KEY_ATTRIBUTE}"\\s+type = "S"`));
  expect(hcl).toMatch(
    new RegExp(`ttl \\{\\s+attribute_name = "${TIME_TO_LIVE_ATTRIBUTE}"\\s+enabled += true`),
  );
  expect(hcl).toMatch(/point_in_time_recovery \{\s+enabled = true/);
  expect(hcl).toMatch(/deletion_protection_enabled = true/);
  expect(hcl).toMatch(/billing_mode += "PAY_PER_REQUEST"/);
  const [statement] = granted((table, role) =>
    table.grantHolder(role, { leases: ['nightly-report'] }),
  );
  const actions = /actions += (\[[^\]]+\])/.exec(hcl)?.[1] ?? '[]';
  expect(JSON.parse(actions)).toEqual(statement!.Action);
  const conditions = Object.fromEntries(
    [...hcl.matchAll(/test += "([^"]+)"\s+variable = "([^"]+)"\s+values += \["([^"]+)"\]/g)].map(
      ([, test = '', variable = '', value]) => [
        test,
        { [variable]: test === 'Null' ? value : [value] },
      ],
    ),
  );
  expect(conditions).toEqual(statement!.Condition);
  expect(hcl).toContain(
    '{"scheduledTime": "<aws.scheduler.scheduled-time>", "scheduleArn": "<aws.scheduler.schedule-arn>"}',
  );
});
