// The example stack: what is in it, that a policy checker has nothing to say, and that the app runs.

import { execFile } from 'node:child_process';
import { mkdtempDisposable, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { App, Duration, Stack, Validations } from 'aws-cdk-lib';
import { Template } from 'aws-cdk-lib/assertions';
import { Vpc } from 'aws-cdk-lib/aws-ec2';
import { ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { AwsSolutionsChecks, ServerlessChecks } from 'cdk-nag';
import { beforeAll, describe, expect, test } from 'vitest';
import { readContext } from '../../lib/context.ts';
import {
  LeaderElectionStack,
  LeaseAlarms,
  LeaseDashboard,
  LeaseTable,
  LifecycleMonitor,
  SingletonFunction,
  type LeaderElectionStackProps,
} from '../../lib/index.ts';
import { statementsOf } from './iam.ts';
import { bundle, FLAGS, newApp, plain, resourcesOf, root, someCode } from './stage.ts';

beforeAll(bundle);

type Outputs = Readonly<Record<string, { readonly Value: unknown }>>;

function synth(props: LeaderElectionStackProps = {}, context = {}): Template {
  return Template.fromStack(new LeaderElectionStack(newApp(context), 'Example', props));
}

describe.each(FLAGS)('the example stack, with %s', (_, flags) => {
  test('is made of these resources and no others', () => {
    const resources = synth({}, flags).toJSON()['Resources'] as Record<string, { Type: string }>;
    const counts: Record<string, number> = {};
    for (const { Type } of Object.values(resources)) counts[Type] = (counts[Type] ?? 0) + 1;
    expect(counts).toEqual({
      'AWS::CloudWatch::Alarm': 11,
      'AWS::CloudWatch::CompositeAlarm': 1,
      'AWS::CloudWatch::Dashboard': 1,
      'AWS::DynamoDB::GlobalTable': 1,
      'AWS::Events::EventBus': 1,
      'AWS::IAM::Policy': 5,
      'AWS::IAM::Role': 5,
      'AWS::Lambda::EventInvokeConfig': 2,
      'AWS::Lambda::Function': 3,
      'AWS::Logs::LogGroup': 3,
      'AWS::SNS::Topic': 1,
      'AWS::SNS::TopicPolicy': 1,
      'AWS::SQS::Queue': 2,
      'AWS::SQS::QueuePolicy': 2,
      'AWS::Scheduler::Schedule': 2,
    });
  });

  test('has no wildcard in any policy', () => {
    const statements = statementsOf(synth({}, flags));
    expect(statements.length).toBeGreaterThan(10);
    const texts = statements.flatMap(({ Action, Resource }) => [Action, Resource].flat());
    expect(texts.filter((text) => text.includes('*'))).toEqual([]);
  });
});

test('the example stack is the same with all feature flags and with none', () => {
  const [withAll, withNone] = FLAGS.map(([, flags]) => withoutOrder(synth({}, flags).toJSON()));
  expect(withNone).toEqual(withAll);
});

/** Some flags sort the actions of a policy. */
function withoutOrder(value: unknown): unknown {
  if (Array.isArray(value)) {
    const all = value.map(withoutOrder);
    return all.every((each) => typeof each === 'string') ? all.sort() : all;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, withoutOrder(each)]));
}

describe('the example stack', () => {
  test('keeps its table, and lets go of it where it is disposable', () => {
    const [[, kept] = []] = resourcesOf(synth(), 'AWS::DynamoDB::GlobalTable');
    expect(kept?.DeletionPolicy).toBe('Retain');
    const disposable = synth({ disposable: true });
    const policies = Object.values(
      disposable.toJSON()['Resources'] as Record<string, { DeletionPolicy?: string }>,
    ).map(({ DeletionPolicy }) => DeletionPolicy);
    expect(policies).not.toContain('Retain');
  });

  test('tells where to look', () => {
    const outputs = plain(synth().toJSON()['Outputs']) as Record<string, { Value: string }>;
    expect(Object.keys(outputs).sort()).toEqual([
      'DashboardUrl',
      'DeadLetterQueueUrl',
      'EventBusName',
      'LookCommand',
      'MonitorFunctionName',
      'TableName',
      'WidgetFunctionName',
      'WorkerFunctionName',
    ]);
    const table = outputs['TableName']?.Value ?? '';
    expect(outputs['LookCommand']?.Value).toContain(`aws dynamodb scan`);
    expect(outputs['LookCommand']?.Value).toContain(`--table-name ${table} `);
  });

  test.each([
    ['eu-west-1', 'console.aws.amazon.com'],
    ['cn-north-1', 'console.amazonaws.cn'],
    ['us-gov-west-1', 'console.amazonaws-us-gov.com'],
  ])('in %s has its dashboard at %s', (region, domain) => {
    const { DashboardUrl: known } = synth({ env: { region } }).toJSON()['Outputs'] as Outputs;
    const url = plain(known?.Value) as string;
    const page = `https://${region}.${domain}/cloudwatch/home?region=${region}#dashboards/dashboard/`;
    expect(url.replace(/<Dashboard\w+>$/, '')).toBe(page);
  });

  test('finds the console of a partition that is known only when it is deployed', () => {
    const { Outputs, Mappings } = synth().toJSON() as {
      Outputs: Outputs;
      Mappings: Record<string, unknown>;
    };
    const [[name, domains] = []] = Object.entries(Mappings);
    expect(domains).toEqual({
      aws: { domain: 'aws.amazon.com' },
      'aws-cn': { domain: 'amazonaws.cn' },
      'aws-us-gov': { domain: 'amazonaws-us-gov.com' },
    });
    const { 'Fn::Join': [, parts] = [] } = Outputs['DashboardUrl']?.Value as {
      'Fn::Join'?: [string, unknown[]];
    };
    expect(parts).toContainEqual({
      'Fn::FindInMap': [name, { Ref: 'AWS::Partition' }, 'domain'],
    });
  });

  test('subscribes an e-mail address to its alarms', () => {
    synth({ email: 'a@example.com' }).hasResourceProperties('AWS::SNS::Subscription', {
      Protocol: 'email',
      Endpoint: 'a@example.com',
    });
  });
});

describe('the context', () => {
  const read = (context: Record<string, unknown>) => readContext(newApp(context));

  test('is optional', () => {
    expect(read({})).toEqual({ stackName: 'LeaderElectionStack' });
  });

  test('names what is to be named', () => {
    const names = { stackName: 'S', tableName: 't', leaseName: 'l', namespace: 'n', email: 'a@b' };
    expect(read(names)).toEqual(names);
    expect(read({ disposable: 'true' })).toMatchObject({ disposable: true });
    expect(read({ disposable: false })).toMatchObject({ disposable: false });
    const { schedule } = read({ schedule: 'cron(0 3 * * ? *)' });
    expect(schedule?.expressionString).toBe('cron(0 3 * * ? *)');
  });

  test.each([
    [{ schedule: '5 minutes' }, /Context schedule is "5 minutes".*rate\(5 minutes\)/],
    [{ email: 'nobody' }, /Context email is "nobody"/],
    [{ disposable: 'yes' }, /Context disposable is "yes"; it must be true or false/],
    [{ tableName: ['a'] }, /Context tableName is \["a"\]; it must be a text/],
  ])('%j is refused', (context, message) => {
    expect(() => read(context)).toThrow(message);
  });
});

describe('a policy checker', () => {
  /** Rules that are broken, warnings included, by both packs. */
  async function findings(build: (app: App) => Stack | LeaderElectionStack): Promise<string[]> {
    await using folder = await mkdtempDisposable(join(tmpdir(), 'nag-'));
    const app = new App({ outdir: folder.path });
    Validations.of(app).addPlugins(new AwsSolutionsChecks(app), new ServerlessChecks(app));
    build(app);
    let thrown = '';
    try {
      app.synth();
    } catch (error) {
      thrown = String(error);
    }
    const report = await readFile(join(folder.path, 'validation-report.json'), 'utf8').catch(
      () => '',
    );
    if (thrown !== '' && report === '') throw new Error(thrown);
    return [...report.matchAll(/"ruleName":\s*"([^"]+)"/g)].map((match) => match[1] ?? '').sort();
  }

  test('has nothing to say', async () => {
    expect(await findings((app) => new LeaderElectionStack(app, 'Example'))).toEqual([]);
  });

  const HOURLY = ScheduleExpression.rate(Duration.hours(1));
  /** Of a reader's own function: whether it is traced is theirs to say. */
  const THEIRS = ['Serverless-LambdaTracing'];
  test.each<[string, string[], (stack: Stack) => unknown]>([
    [
      'a singleton function alone',
      THEIRS,
      (stack) =>
        new SingletonFunction(stack, 'Job', { code: someCode(), leaseName: 'a', schedule: HOURLY }),
    ],
    [
      'one in a VPC',
      THEIRS,
      (stack) => {
        const given = {
          vpcId: 'vpc-12345678',
          availabilityZones: ['eu-west-1a'],
          privateSubnetIds: ['subnet-12345678'],
        };
        const vpc = Vpc.fromVpcAttributes(stack, 'Vpc', given);
        new SingletonFunction(stack, 'Job', { code: someCode(), leaseName: 'a', vpc });
      },
    ],
    [
      'a table with copies',
      [],
      (stack) => new LeaseTable(stack, 'Leases', { replicaRegions: ['eu-west-2', 'eu-west-3'] }),
    ],
    [
      "everything else, on somebody else's table",
      [],
      (stack) => {
        const table = LeaseTable.fromTableName(stack, 'Leases', 'leases');
        const monitor = new LifecycleMonitor(stack, 'Monitor', { table });
        const alarms = new LeaseAlarms(stack, 'Alarms', { table, monitor });
        new LeaseDashboard(stack, 'Dashboard', { table, monitor, alarms });
      },
    ],
  ])('has to say of %s: %j', async (_, expected, build) => {
    const found = await findings((app) => {
      const stack = new Stack(app, 'Test', {
        env: { region: 'eu-west-1', account: '1'.repeat(12) },
      });
      build(stack);
      return stack;
    });
    expect(found).toEqual(expected);
  });

  test('would have something to say of a bare queue', async () => {
    const found = await findings((app) => {
      const stack = new LeaderElectionStack(app, 'Example');
      new Queue(stack, 'Bare');
      return stack;
    });
    expect(found).toContain('AwsSolutions-SQS4');
  });
});

describe('the app', () => {
  test('runs as cdk.json says, with no credentials', async () => {
    const { app, build, context } = JSON.parse(await readFile(`${root}cdk.json`, 'utf8')) as {
      app: string;
      build: string;
      context: object;
    };
    expect(build).toContain('npm run');
    await using folder = await mkdtempDisposable(join(tmpdir(), 'app-'));
    const [command = '', ...args] = app.split(' ');
    await promisify(execFile)(join(root, command), args, {
      cwd: root,
      env: {
        CDK_OUTDIR: folder.path,
        CDK_CONTEXT_JSON: JSON.stringify({ ...context, stackName: 'Mine' }),
      },
    });
    const template = await readFile(join(folder.path, 'Mine.template.json'), 'utf8');
    expect(template).toContain('AWS::DynamoDB::GlobalTable');
  });

  test('has every feature flag that the CDK recommends', async () => {
    const { context } = JSON.parse(await readFile(`${root}cdk.json`, 'utf8')) as {
      context: Record<string, unknown>;
    };
    expect(context).toMatchObject(FLAGS[0]![1]);
  });
});
