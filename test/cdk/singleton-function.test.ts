// A scheduled singleton as it is synthesised, prop by prop, and what it refuses.

import { CfnParameter, Duration } from 'aws-cdk-lib';
import { Match, type Template } from 'aws-cdk-lib/assertions';
import { Vpc, type IVpc } from 'aws-cdk-lib/aws-ec2';
import {
  Alias,
  Architecture,
  Function as LambdaFunction,
  Runtime,
  type IVersion,
} from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays } from 'aws-cdk-lib/aws-logs';
import { ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import { Queue, QueueEncryption } from 'aws-cdk-lib/aws-sqs';
import { describe, expect, test } from 'vitest';
import {
  LeaseTable,
  singleton,
  SingletonFunction,
  type SingletonFunctionProps,
  type SingletonProps,
} from '../../lib/index.ts';
import { allows, statementsOf } from './iam.ts';
import {
  FLAGS,
  plain,
  resourcesOf,
  someCode,
  someFunction,
  stackWith,
  templateOf,
} from './stage.ts';

const HOURLY = ScheduleExpression.rate(Duration.hours(1));

function synth(props: Partial<SingletonFunctionProps> = {}, context = {}): Template {
  return templateOf((stack) => {
    const job = { code: someCode(), leaseName: 'nightly-report', schedule: HOURLY, ...props };
    new SingletonFunction(stack, 'Job', job);
  }, context);
}

const environmentOf = (template: Template) => {
  const [[, fn] = []] = resourcesOf(template, 'AWS::Lambda::Function');
  const { Variables } = fn?.Properties['Environment'] as { Variables: Record<string, unknown> };
  return plain(Variables) as Record<string, string>;
};

describe.each(FLAGS)('a singleton function, with %s', (_, flags) => {
  test('brings a table, grants, a schedule, a queue of dead letters and two alarms', () => {
    const template = synth({}, flags);
    const counts = (type: string) => resourcesOf(template, type).length;
    expect(
      Object.fromEntries(
        [
          'AWS::DynamoDB::GlobalTable',
          'AWS::Lambda::Function',
          'AWS::Lambda::EventInvokeConfig',
          'AWS::Logs::LogGroup',
          'AWS::Scheduler::Schedule',
          'AWS::SQS::Queue',
          'AWS::CloudWatch::Alarm',
          'AWS::IAM::Role',
        ].map((type) => [type.replace('AWS::', ''), counts(type)]),
      ),
    ).toEqual({
      'DynamoDB::GlobalTable': 1,
      'Lambda::Function': 1,
      'Lambda::EventInvokeConfig': 1,
      'Logs::LogGroup': 1,
      'Scheduler::Schedule': 1,
      'SQS::Queue': 1,
      'CloudWatch::Alarm': 2,
      'IAM::Role': 2,
    });
  });

  test('tells the function its lease, and lets it hold that one only', () => {
    const template = synth({ namespace: 'reports' }, flags);
    expect(environmentOf(template)).toEqual({
      LEASE_TABLE_NAME: expect.stringMatching(/^<JobLeases/) as string,
      LEASE_NAMESPACE: 'reports',
      LEASE_NAME: 'nightly-report',
      LEASE_PERIOD_SECONDS: '3600',
    });
    const [condition] = statementsOf(template, 'JobRole').flatMap((s) => s.Condition ?? []);
    expect(condition?.['ForAllValues:StringEquals']).toEqual({
      'dynamodb:LeadingKeys': ['reports/nightly-report'],
    });
  });

  test('is told the scheduled time, and gives up soon', () => {
    const template = synth({ input: { report: 'sales' } }, flags);
    template.hasResourceProperties('AWS::Scheduler::Schedule', {
      ScheduleExpression: 'rate(1 hour)',
      FlexibleTimeWindow: { Mode: 'OFF' },
      Target: Match.objectLike({
        Input: JSON.stringify({
          scheduledTime: '<aws.scheduler.scheduled-time>',
          scheduleArn: '<aws.scheduler.schedule-arn>',
          report: 'sales',
        }),
        RetryPolicy: { MaximumRetryAttempts: 3, MaximumEventAgeInSeconds: 300 },
        DeadLetterConfig: { Arn: Match.anyValue() },
      }),
    });
    template.hasResourceProperties('AWS::Lambda::EventInvokeConfig', {
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: 300,
      DestinationConfig: { OnFailure: { Destination: Match.anyValue() } },
    });
  });

  test('logs where Lambda usually does, into one log group that goes with it', () => {
    const template = synth({}, flags);
    const [[, group] = [], ...others] = resourcesOf(template, 'AWS::Logs::LogGroup');
    const [[, fn] = []] = resourcesOf(template, 'AWS::Lambda::Function');
    expect(others).toEqual([]);
    const name = fn?.Properties['FunctionName'] as string;
    expect(group).toMatchObject({ DeletionPolicy: 'Delete' });
    expect(group?.Properties).toMatchObject({
      LogGroupName: `/aws/lambda/${name}`,
      RetentionInDays: 30,
    });
    expect(Buffer.byteLength(name)).toBeLessThanOrEqual(64);
  });
});

describe('a singleton function', () => {
  test('has defaults for the rest, which can be changed', () => {
    const byDefault = {
      Handler: 'index.handler',
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      Timeout: 60,
      MemorySize: 256,
    };
    synth().hasResourceProperties('AWS::Lambda::Function', byDefault);
    synth({
      handler: 'index.other',
      runtime: Runtime.NODEJS_22_X,
      architecture: Architecture.X86_64,
      timeout: Duration.minutes(5),
      memorySize: 512,
      functionName: 'report',
      environment: { THEIRS: 'too' },
    }).hasResourceProperties('AWS::Lambda::Function', {
      Handler: 'index.other',
      Runtime: 'nodejs22.x',
      Architectures: ['x86_64'],
      Timeout: 300,
      MemorySize: 512,
      FunctionName: 'report',
      Environment: { Variables: Match.objectLike({ THEIRS: 'too', LEASE_NAME: 'nightly-report' }) },
    });
  });

  test('repeats failed runs, waits longer and uses a queue where it is told to', () => {
    const template = templateOf((stack) => {
      new SingletonFunction(stack, 'Job', {
        code: someCode(),
        leaseName: 'a',
        schedule: HOURLY,
        retryAttempts: 2,
        maxEventAge: Duration.hours(2),
        deadLetterQueue: new Queue(stack, 'Theirs'),
      });
    });
    expect(resourcesOf(template, 'AWS::SQS::Queue')).toHaveLength(1);
    template.hasResourceProperties('AWS::Lambda::EventInvokeConfig', {
      MaximumRetryAttempts: 2,
      MaximumEventAgeInSeconds: 7_200,
    });
    template.hasResourceProperties('AWS::Scheduler::Schedule', {
      Target: Match.objectLike({
        RetryPolicy: Match.objectLike({ MaximumEventAgeInSeconds: 7_200 }),
      }),
    });
  });

  test('has no schedule unless it is given one', () => {
    const template = templateOf((stack) => {
      new SingletonFunction(stack, 'Job', { code: someCode(), leaseName: 'a' });
    });
    expect(resourcesOf(template, 'AWS::Scheduler::Schedule')).toEqual([]);
    expect(resourcesOf(template, 'AWS::Lambda::EventInvokeConfig')).toHaveLength(1);
  });

  test('passes a duration on', () => {
    const environment = environmentOf(synth({ leaseDuration: Duration.millis(7_500) }));
    expect(environment['LEASE_DURATION_SECONDS']).toBe('7.5');
    expect(environmentOf(synth())).not.toHaveProperty('LEASE_DURATION_SECONDS');
  });

  test.each([
    [ScheduleExpression.rate(Duration.minutes(1)), '60'],
    [ScheduleExpression.rate(Duration.days(2)), '172800'],
    [ScheduleExpression.expression('rate(5 hours)'), '18000'],
    [ScheduleExpression.cron({ minute: '0' }), undefined],
    [undefined, undefined],
  ])('passes the period of %s on', (schedule, expected) => {
    const template = templateOf((stack) => {
      const job = { code: someCode(), leaseName: 'a' };
      new SingletonFunction(stack, 'Job', schedule === undefined ? job : { ...job, schedule });
    });
    expect(environmentOf(template)['LEASE_PERIOD_SECONDS']).toBe(expected);
  });

  test('takes its duration from a parameter of the template', () => {
    const template = templateOf((stack) => {
      const { valueAsNumber } = new CfnParameter(stack, 'Seconds', { type: 'Number' });
      const leaseDuration = Duration.seconds(valueAsNumber);
      const timeout = leaseDuration;
      const job = { code: someCode(), leaseName: 'a', leaseDuration, timeout, renewed: false };
      new SingletonFunction(stack, 'Job', { ...job, retryAttempts: valueAsNumber });
    });
    expect(environmentOf(template)['LEASE_DURATION_SECONDS']).toBe('<Seconds>');
  });

  test("lets its schedule use a queue's own key", () => {
    const template = templateOf((stack) => {
      const deadLetterQueue = new Queue(stack, 'Theirs', { encryption: QueueEncryption.KMS });
      const job = { code: someCode(), leaseName: 'a', deadLetterQueue, schedule: HOURLY };
      new SingletonFunction(stack, 'Job', job);
    });
    const statements = statementsOf(template, 'JobSchedulerRole');
    const [[key] = ['']] = resourcesOf(template, 'AWS::KMS::Key');
    for (const action of ['kms:Decrypt', 'kms:GenerateDataKey']) {
      expect(allows(statements, { action, resource: `<${key}.Arn>` }), action).toBe(true);
    }
  });

  test('may work in a VPC', () => {
    const template = templateOf((stack) => {
      const vpc = new Vpc(stack, 'Vpc', { natGateways: 0 }) as IVpc;
      const vpcSubnets = { subnets: vpc.isolatedSubnets };
      new SingletonFunction(stack, 'Job', { code: someCode(), leaseName: 'a', vpc, vpcSubnets });
    });
    const roles = JSON.stringify(resourcesOf(template, 'AWS::IAM::Role'));
    expect(roles).toContain('AWSLambdaVPCAccessExecutionRole');
  });

  test('is called by a role that can call nothing else', () => {
    const statements = statementsOf(synth(), 'JobSchedulerRole');
    expect(statements.map(({ Action, Resource }) => [Action, Resource])).toEqual([
      ['lambda:InvokeFunction', expect.stringMatching(/^<JobFunction\w+\.Arn>$/)],
      ['sqs:SendMessage', expect.stringMatching(/^<JobDeadLetters\w+\.Arn>$/)],
    ]);
    const [, role] = resourcesOf(synth(), 'AWS::IAM::Role').find(([n]) => n.includes('Scheduler'))!;
    expect(JSON.stringify(plain(role.Properties))).toContain(':schedule-group/default');
  });
});

describe.each(FLAGS)('a function that exists, with %s', (_, flags) => {
  test('becomes a singleton', () => {
    const template = templateOf((stack) => {
      const table = new LeaseTable(stack, 'Leases');
      singleton(someFunction(stack), { leaseName: 'a', table, schedule: HOURLY });
    }, flags);
    expect(resourcesOf(template, 'AWS::DynamoDB::GlobalTable')).toHaveLength(1);
    expect(environmentOf(template)).toMatchObject({ LEASE_NAME: 'a', LEASE_NAMESPACE: 'default' });
    expect(resourcesOf(template, 'AWS::Scheduler::Schedule')).toHaveLength(1);
    const [condition] = statementsOf(template, 'TheirsServiceRole').flatMap(
      (statement) => statement.Condition ?? [],
    );
    expect(condition?.['ForAllValues:StringEquals']).toEqual({
      'dynamodb:LeadingKeys': ['default/a'],
    });
  });
});

describe('a singleton refuses', () => {
  test.each<[string, Partial<SingletonProps>, RegExp]>([
    ['an empty name', { leaseName: '' }, /name of a lease is ""/],
    ['a name that is a pattern', { leaseName: 'sync/*' }, /leaseName is "sync\/\*".*pattern/],
    ['a namespace with a slash', { namespace: 'a/b' }, /must not contain a slash/],
    ['a key that is too long', { leaseName: 'é'.repeat(61) }, /130 bytes.*at most 128/],
    [
      'a lease that is shorter than the time-out and not renewed',
      { leaseDuration: Duration.seconds(64), renewed: false },
      /leaseDuration \(64 s\).*together \(65 s\).*raise it to 65 s/,
    ],
    [
      'no renewal without a duration',
      { renewed: false },
      /renewed is false without a leaseDuration/,
    ],
    ['no duration at all', { leaseDuration: Duration.seconds(0) }, /leaseDuration is 0 s/],
    ['a duration of more than a year', { leaseDuration: Duration.days(367) }, /366 days/],
    ['a tick of its own', { input: { scheduledTime: 'now' } }, /input has scheduledTime/],
    ['an ARN of its own', { input: { scheduleArn: 'arn' } }, /input has scheduleArn/],
    ['three retries', { retryAttempts: 3 }, /retryAttempts is 3.*0, 1 or 2/],
    ['an age below a minute', { maxEventAge: Duration.seconds(59) }, /maxEventAge is 59 s/],
    ['an age of a day', { maxEventAge: Duration.days(1) }, /between 60 s and 6 hours/],
  ])('%s', (_, props, message) => {
    expect(() => synth(props)).toThrow(message);
  });

  test('a table that is in another Region', () => {
    const stack = stackWith();
    const far = stackWith({}, { region: 'us-west-1', account: stack.account });
    const table = new LeaseTable(far, 'Leases');
    expect(() => singleton(someFunction(stack), { leaseName: 'a', table })).toThrow(
      /function is in eu-west-1 and the table in us-west-1/,
    );
  });

  test('what is not made in this app', () => {
    const stack = stackWith();
    const imported = LambdaFunction.fromFunctionName(stack, 'Theirs', 'theirs');
    const { currentVersion: version } = someFunction(stack, 'Ours');
    const alias = new Alias(stack, 'Live', { aliasName: 'live', version: version as IVersion });
    for (const fn of [imported, version, alias]) {
      expect(() => singleton(fn as unknown as LambdaFunction, { leaseName: 'a' })).toThrow(
        /^Test\/.*: only a function that is made in this app/,
      );
    }
  });

  test('to be one twice, or to settle again what is settled', () => {
    const stack = stackWith();
    const twice = someFunction(stack, 'Twice');
    singleton(twice, { leaseName: 'a' });
    expect(() => singleton(twice, { leaseName: 'b' })).toThrow(
      /Test\/Twice is a singleton already/,
    );
    const settled = someFunction(stack, 'Settled');
    settled.configureAsyncInvoke({ retryAttempts: 1 });
    expect(() => singleton(settled, { leaseName: 'c' })).toThrow(
      /asynchronous invocation is configured already. Leave onFailure/,
    );
  });

  test('nothing that works', () => {
    for (const props of [
      { leaseDuration: Duration.seconds(65), renewed: false },
      { leaseDuration: Duration.seconds(15) },
      { leaseName: 'é'.repeat(60) },
      { maxEventAge: Duration.seconds(60), retryAttempts: 1 },
    ] satisfies Partial<SingletonProps>[]) {
      expect(() => synth(props)).not.toThrow();
    }
  });

  test('to count on a time-out that it does not know', () => {
    const stack = stackWith();
    const fn = someFunction(stack, 'Theirs', 10);
    const renewed = { leaseName: 'a', renewed: false };
    expect(() => singleton(fn, { ...renewed, leaseDuration: Duration.seconds(14) })).toThrow(
      /together \(15 s\)/,
    );
  });
});

test('a duration that no clock can be proven for is warned of', () => {
  const warned = (seconds: number) => {
    const stack = stackWith();
    const leaseDuration = Duration.seconds(seconds);
    new SingletonFunction(stack, 'Job', { code: someCode(), leaseName: 'a', leaseDuration });
    return stack.node
      .findChild('Job')
      .node.metadata.some(({ data }) => String(data).includes('cannot prove'));
  };
  expect([warned(5), warned(7), warned(8), warned(15)]).toEqual([true, true, false, false]);
});

test('two scheduled jobs that share their ticks are warned of', () => {
  const stack = stackWith();
  const table = new LeaseTable(stack, 'Leases');
  const job = { code: someCode(), leaseName: 'a', table };
  const warned = (id: string, props: Partial<SingletonFunctionProps>) =>
    new SingletonFunction(stack, id, { ...job, ...props }).node.metadata.some(({ data }) =>
      String(data).includes('lease default/a of Test/First'),
    );
  expect([
    warned('First', { schedule: HOURLY }),
    warned('ByHand', {}),
    warned('Elsewhere', { schedule: HOURLY, namespace: 'other' }),
    warned('Another', { schedule: HOURLY, leaseName: 'b' }),
    warned('Second', { schedule: HOURLY }),
  ]).toEqual([false, false, false, false, true]);
});

test('a queue that is FIFO is refused', () => {
  const stack = stackWith();
  const deadLetterQueue = new Queue(stack, 'Queue', { fifo: true });
  expect(() => singleton(someFunction(stack), { leaseName: 'a', deadLetterQueue })).toThrow(
    /deadLetterQueue is a FIFO queue/,
  );
});

test('logs are kept elsewhere where a log group is given', () => {
  const template = templateOf((stack) => {
    const logGroup = new LogGroup(stack, 'Mine', { retention: RetentionDays.ONE_DAY });
    new SingletonFunction(stack, 'Job', { code: someCode(), leaseName: 'a', logGroup });
  });
  expect(resourcesOf(template, 'AWS::Logs::LogGroup')).toHaveLength(1);
  template.hasResourceProperties('AWS::Lambda::Function', {
    LoggingConfig: { LogGroup: Match.anyValue() },
  });
});
