// Who may do what with the table: each grant as a table of actions times keys, judged by the policy
// that is synthesised.

import { readFileSync } from 'node:fs';
import { Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { EventBus } from 'aws-cdk-lib/aws-events';
import { Key } from 'aws-cdk-lib/aws-kms';
import type { Stack } from 'aws-cdk-lib';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  LeaseDashboard,
  LeaseTable,
  LifecycleMonitor,
  type HolderGrantOptions,
} from '../../lib/index.ts';
import { EVENT_SOURCE } from '../../src/events.ts';
import { LEASE_KINDS } from '../../src/schema.ts';
import { allows, statementsOf, type Statement } from './iam.ts';
import { bundle, FLAGS, resourcesOf, root, templateOf } from './stage.ts';

beforeAll(bundle);

const ALL_ACTIONS = [
  'GetItem',
  'UpdateItem',
  'ConditionCheckItem',
  'DeleteItem',
  'PutItem',
  'Scan',
  'Query',
  'BatchGetItem',
  'BatchWriteItem',
  'PartiQLSelect',
  'PartiQLUpdate',
  'DescribeTable',
  'DeleteTable',
  'UpdateTable',
  'UpdateTimeToLive',
  'RestoreTableToPointInTime',
].map((name) => `dynamodb:${name}`);
const HOLDING = ['dynamodb:GetItem', 'dynamodb:UpdateItem', 'dynamodb:ConditionCheckItem'];

const role = (stack: Stack) =>
  new Role(stack, 'Them', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });

/** What the policy allows for these keys, which a request that is not about items does not have. */
function allowed(statements: Statement[], keys?: readonly string[], table = 'Leases'): string[] {
  const [name = ''] = [...new Set(statements.flatMap(({ Resource }) => Resource))].filter(
    (resource) => resource.startsWith(`<${table}`),
  );
  const context = keys === undefined ? {} : { 'dynamodb:LeadingKeys': keys };
  return ALL_ACTIONS.filter((action) => allows(statements, { action, resource: name, context }));
}

function granted(options: HolderGrantOptions, context = {}): Statement[] {
  const template = templateOf((stack) => {
    new LeaseTable(stack, 'Leases').grantHolder(role(stack), options);
  }, context);
  return statementsOf(template, 'Them');
}

describe.each(FLAGS)('grantHolder, with %s', (_, flags) => {
  const one = () => granted({ leases: ['nightly/report', 'b'] }, flags);

  test.each([
    ['its lease', ['default/nightly/report'], HOLDING],
    ['its other lease', ['default/b'], HOLDING],
    ['both at once', ['default/b', 'default/nightly/report'], HOLDING],
    ["somebody else's", ['default/c'], []],
    ['its own and another', ['default/b', 'default/c'], []],
    ['a namesake in another namespace', ['other/b'], []],
    ['one whose name begins alike', ['default/b2'], []],
    ["the monitor's", ['lambda-lease/lifecycle-monitor'], []],
    ['no key at all', undefined, []],
    ['an empty list of keys', [], HOLDING],
  ])('for %s', (_case, keys, expected) => {
    expect(allowed(one(), keys)).toEqual(expected);
  });

  test('is for that table only', () => {
    const template = templateOf((stack) => {
      const them = role(stack);
      new LeaseTable(stack, 'Leases').grantHolder(them, { leases: ['a'] });
      new LeaseTable(stack, 'Others').grantMonitor(them);
    }, flags);
    const other = resourcesOf(template, 'AWS::DynamoDB::GlobalTable')
      .map(([name]) => name)
      .find((name) => name.startsWith('Others'));
    const statements = statementsOf(template, 'Them').filter(({ Condition }) => Condition);
    const context = { 'dynamodb:LeadingKeys': ['default/a'] };
    const resource = `<${other ?? ''}.Arn>`;
    expect(allows(statements, { action: 'dynamodb:GetItem', resource, context })).toBe(false);
  });
});

describe('grantHolder', () => {
  test.each(LEASE_KINDS)('for a lease of kind %s deletes it only where that is safe', (kind) => {
    const actions = allowed(granted({ leases: ['a'], kind }), ['default/a']);
    const expected = kind === 'leader' ? HOLDING : [...HOLDING, 'dynamodb:DeleteItem'];
    expect(actions).toEqual(expected);
    expect(allowed(granted({ leases: ['a'], kind }), ['default/b'])).toEqual([]);
  });

  test.each([
    ['sync/*', ['default/sync/acme'], true],
    ['sync/*', ['default/sync/a/b'], true],
    ['sync/*', ['default/sync'], false],
    ['sync/*', ['default/async/acme'], false],
    ['sync/*', ['other/sync/acme'], false],
    ['*', ['default/anything'], true],
    ['*', ['lambda-lease/lifecycle-monitor'], false],
    ['what?*', ['default/what?now'], true],
    ['what?*', ['default/whatXnow'], false],
    ['what?', ['default/what?'], true],
    ['what?', ['default/whats'], false],
    ['${aws:username}', ['default/${aws:username}'], true],
    ['${aws:username}', ['default/root'], false],
    ['$*', ['default/$1'], true],
    ['$*', ['default/1'], false],
  ])('of %s, asked for %j', (name, keys, expected) => {
    const statements = granted({ leases: [name] });
    expect(allowed(statements, keys)).toEqual(expected ? HOLDING : []);
    // What the service would take for a variable of its own is spelt out.
    const texts = JSON.stringify(statements);
    expect(texts).not.toMatch(/\$\{(?![*?$]\})/);
  });

  test.each([
    [['default/sync'], HOLDING],
    [['default/sync/0'], HOLDING],
    [['default/sync/99'], HOLDING],
    [['default/synchronised'], []],
  ])('of a lease with slots, asked for %j', (keys, expected) => {
    expect(allowed(granted({ leases: ['sync', 'sync/*'] }), keys)).toEqual(expected);
  });

  test('covers the copies in other Regions', () => {
    const template = templateOf((stack) => {
      const table = new LeaseTable(stack, 'Leases', {
        replicaRegions: ['eu-west-2', 'eu-central-1'],
      });
      table.grantHolder(role(stack), { leases: ['a'] });
    });
    const resources = statementsOf(template, 'Them').flatMap(({ Resource }) => Resource);
    expect(resources.map((arn) => /dynamodb:([a-z0-9-]+):/.exec(arn)?.[1] ?? 'here')).toEqual([
      'here',
      'eu-west-2',
      'eu-central-1',
    ]);
  });

  test.each<[string, HolderGrantOptions, RegExp]>([
    ['no lease', { leases: [] }, /leases is empty/],
    ['a namespace that is a pattern', { leases: ['a'], namespace: '*' }, /namespace is "\*"/],
    ['a namespace with a slash', { leases: ['a'], namespace: 'a/b' }, /must not contain a slash/],
    ['an empty name', { leases: [''] }, /must be printable text/],
    ['blanks around a name', { leases: [' a'] }, /" a"/],
    ['a name that is too long', { leases: ['x'.repeat(121)] }, /129 bytes .* at most 128/],
    ['a namespace that is too long', { leases: ['a'], namespace: 'n'.repeat(64) }, /at most 63/],
  ])('refuses %s', (_, options, message) => {
    expect(() => granted(options)).toThrow(message);
  });
});

describe('grantMonitor, grantView and grantOperate', () => {
  const statements = (grant: 'grantMonitor' | 'grantView' | 'grantOperate') =>
    statementsOf(
      templateOf((stack) => new LeaseTable(stack, 'Leases')[grant](role(stack))),
      'Them',
    );

  test('the monitor reads everything, flags, evicts and collects', () => {
    const expected = ['GetItem', 'UpdateItem', 'DeleteItem', 'Scan'].map((n) => `dynamodb:${n}`);
    expect(allowed(statements('grantMonitor'), ['default/a'])).toEqual(expected);
    expect(allowed(statements('grantMonitor'))).toEqual(expected);
  });

  test('a viewer reads, and changes nothing', () => {
    const expected = ['dynamodb:GetItem', 'dynamodb:Scan'];
    expect(allowed(statements('grantView'), ['default/a'])).toEqual(expected);
    expect(allowed(statements('grantView'))).toEqual(expected);
  });

  test('an operator intervenes, and deletes nothing', () => {
    const expected = ['GetItem', 'UpdateItem', 'Scan'].map((name) => `dynamodb:${name}`);
    expect(allowed(statements('grantOperate'), ['default/a'])).toEqual(expected);
    expect(allowed(statements('grantOperate'))).toEqual(expected);
  });

  test('a table of another app is granted in the same way', () => {
    const template = templateOf((stack) => {
      LeaseTable.fromTableName(stack, 'Imported', 'leases').grantHolder(role(stack), {
        leases: ['a'],
      });
    });
    const context = { 'dynamodb:LeadingKeys': ['default/a'] };
    const resource = 'arn:<AWS::Partition>:dynamodb:eu-west-1:123456789012:table/leases';
    for (const action of ALL_ACTIONS) {
      const answer = allows(statementsOf(template, 'Them'), { action, resource, context });
      expect(answer, action).toBe(HOLDING.includes(action));
    }
  });
});

test('the library calls nothing that the grants leave out', () => {
  const store = readFileSync(`${root}src/dynamodb-store.ts`, 'utf8');
  const called = [...new Set([...store.matchAll(/new (\w+)Command\(/g)].map((match) => match[1]))];
  expect(called.sort()).toEqual(['DeleteItem', 'GetItem', 'Scan', 'UpdateItem']);
});

describe('a key of the customer', () => {
  const ENCRYPT = ['kms:Decrypt', 'kms:Encrypt', 'kms:ReEncryptFrom', 'kms:GenerateDataKey'];

  test.each([
    ['grantHolder', ENCRYPT],
    ['grantMonitor', ENCRYPT],
    ['grantOperate', ENCRYPT],
    ['grantView', ['kms:Decrypt']],
  ] as const)('is used with %s, for a table made here or elsewhere', (grant, expected) => {
    for (const imported of [false, true]) {
      const template = templateOf((stack) => {
        const encryptionKey = new Key(stack, 'Key');
        const table = imported
          ? LeaseTable.fromTableName(stack, 'Leases', 'leases', { encryptionKey })
          : new LeaseTable(stack, 'Leases', { encryptionKey });
        if (grant === 'grantHolder') table.grantHolder(role(stack), { leases: ['a'] });
        else table[grant](role(stack));
      });
      const [[key] = ['']] = resourcesOf(template, 'AWS::KMS::Key');
      const actions = [...ENCRYPT, 'kms:ScheduleKeyDeletion', 'kms:CreateGrant'];
      const statements = statementsOf(template, 'Them');
      const resource = `<${key}.Arn>`;
      expect(actions.filter((action) => allows(statements, { action, resource }))).toEqual(
        expected,
      );
    }
  });

  test('is used by the widget of the dashboard for reading', () => {
    const template = templateOf((stack) => {
      const table = new LeaseTable(stack, 'Leases', { encryptionKey: new Key(stack, 'Key') });
      new LeaseDashboard(stack, 'Dashboard', {
        table,
        monitor: new LifecycleMonitor(stack, 'Monitor', { table }),
      });
    });
    const actions = statementsOf(template, 'DashboardWidgetRole').map(({ Action }) => Action);
    expect(actions).toContain('kms:Decrypt');
  });
});

test('the widget of the dashboard reads the table whole, and does nothing else', () => {
  const statements = statementsOf(
    templateOf((stack) => {
      const table = new LeaseTable(stack, 'Leases');
      const monitor = new LifecycleMonitor(stack, 'Monitor', { table });
      new LeaseDashboard(stack, 'Dashboard', { table, monitor });
    }),
    'DashboardWidgetRole',
  );
  expect(allowed(statements)).toEqual(['dynamodb:Scan']);
});

describe("the monitor's role", () => {
  const template = () =>
    templateOf((stack) => {
      const table = new LeaseTable(stack, 'Leases');
      new LifecycleMonitor(stack, 'Monitor', { table });
      new EventBus(stack, 'Another');
    });

  test.each([
    [EVENT_SOURCE, 'MonitorEvents', true],
    ['aws.ec2', 'MonitorEvents', false],
    ['somebody', 'MonitorEvents', false],
    [EVENT_SOURCE, 'Another', false],
  ])('may publish events of %s on %s: %s', (source, bus, expected) => {
    const synthesised = template();
    const [name = ''] =
      resourcesOf(synthesised, 'AWS::Events::EventBus').find(([id]) => id.startsWith(bus)) ?? [];
    const request = {
      action: 'events:PutEvents',
      resource: `<${name}.Arn>`,
      context: { 'events:source': [source] },
    };
    expect(allows(statementsOf(synthesised, 'MonitorRole'), request)).toBe(expected);
  });
});
