// The monitor as it is synthesised, prop by prop, and what it refuses.

import { CfnParameter, Duration } from 'aws-cdk-lib';
import { Match, type Template } from 'aws-cdk-lib/assertions';
import { EventBus, type IEventBus } from 'aws-cdk-lib/aws-events';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  LeaseDashboard,
  LeaseTable,
  LifecycleMonitor,
  type LifecycleMonitorProps,
} from '../../lib/index.ts';
import { bundle, FLAGS, plain, resourcesOf, stackWith, templateOf } from './stage.ts';

beforeAll(bundle);

function synth(props: Partial<LifecycleMonitorProps> = {}, context = {}): Template {
  return templateOf((stack) => {
    new LifecycleMonitor(stack, 'Monitor', { table: new LeaseTable(stack, 'Leases'), ...props });
  }, context);
}

const environmentOf = (template: Template) => {
  const [[, fn] = []] = resourcesOf(template, 'AWS::Lambda::Function');
  return plain((fn?.Properties['Environment'] as { Variables: object }).Variables) as object;
};

describe.each(FLAGS)('the monitor, with %s', (_, flags) => {
  test('is called each minute, for three at most, and never again for one that failed', () => {
    const template = synth({}, flags);
    template.hasResourceProperties('AWS::Scheduler::Schedule', {
      ScheduleExpression: 'rate(1 minute)',
      State: 'ENABLED',
      Target: Match.objectLike({
        RetryPolicy: { MaximumRetryAttempts: 3, MaximumEventAgeInSeconds: 60 },
      }),
    });
    template.hasResourceProperties('AWS::Lambda::EventInvokeConfig', {
      MaximumRetryAttempts: 0,
      MaximumEventAgeInSeconds: 60,
      DestinationConfig: { OnFailure: { Destination: Match.anyValue() } },
    });
    template.hasResourceProperties('AWS::Lambda::Function', {
      Timeout: 180,
      MemorySize: 256,
      Runtime: 'nodejs24.x',
      Architectures: ['arm64'],
      Handler: 'index.handler',
    });
    expect(resourcesOf(template, 'AWS::Logs::LogGroup')).toHaveLength(1);
    expect(resourcesOf(template, 'AWS::SQS::Queue')).toHaveLength(1);
    expect(resourcesOf(template, 'AWS::Events::EventBus')).toHaveLength(1);
  });

  test('is told its table, its bus, its pace and the names of its metrics', () => {
    expect(environmentOf(synth({}, flags))).toEqual({
      LEASE_TABLE_NAME: expect.stringMatching(/^<Leases/) as string,
      EVENT_BUS_NAME: expect.stringMatching(/^<MonitorEvents/) as string,
      PASS_INTERVAL_SECONDS: '10',
      RUN_SECONDS: '60',
      POWERTOOLS_METRICS_NAMESPACE: 'lambda-lease',
      POWERTOOLS_SERVICE_NAME: expect.stringMatching(/^Test-Monitor-/) as string,
    });
  });
});

describe('the monitor', () => {
  test('is as patient as it is told to be', () => {
    const gracePeriod = Duration.seconds(90);
    const toleration = Duration.minutes(10);
    const passInterval = Duration.seconds(20);
    expect(environmentOf(synth({ gracePeriod, toleration, passInterval }))).toMatchObject({
      GRACE_SECONDS: '90',
      TOLERATION_SECONDS: '600',
      PASS_INTERVAL_SECONDS: '20',
      RUN_SECONDS: '60',
    });
  });

  test('does not wait for the end of a minute in which it makes one pass', () => {
    const environment = environmentOf(synth({ passInterval: Duration.minutes(1) }));
    expect(environment).toMatchObject({ PASS_INTERVAL_SECONDS: '0.1', RUN_SECONDS: '0.1' });
  });

  test('uses the bus and the queue that it is given', () => {
    const template = templateOf((stack) => {
      new LifecycleMonitor(stack, 'Monitor', {
        table: new LeaseTable(stack, 'Leases'),
        eventBus: EventBus.fromEventBusName(stack, 'Default', 'default'),
        deadLetterQueue: new Queue(stack, 'Theirs'),
        memorySize: 512,
      });
    });
    expect(environmentOf(template)).toMatchObject({ EVENT_BUS_NAME: 'default' });
    expect(resourcesOf(template, 'AWS::Events::EventBus')).toEqual([]);
    expect(resourcesOf(template, 'AWS::SQS::Queue')).toHaveLength(1);
    template.hasResourceProperties('AWS::Lambda::Function', { MemorySize: 512 });
  });

  test('has a service name of its own among others', () => {
    const template = templateOf((stack) => {
      const table = new LeaseTable(stack, 'Leases');
      const eventBus = new EventBus(stack, 'Bus') as IEventBus;
      for (const id of ['A', 'B']) new LifecycleMonitor(stack, id, { table, eventBus });
    });
    const names = resourcesOf(template, 'AWS::Lambda::Function').map(
      ([, { Properties }]) =>
        (Properties['Environment'] as { Variables: Record<string, string> }).Variables[
          'POWERTOOLS_SERVICE_NAME'
        ],
    );
    expect(new Set(names).size).toBe(2);
  });

  test('takes times from a parameter of the template', () => {
    const template = templateOf((stack) => {
      const { valueAsNumber } = new CfnParameter(stack, 'Patience', { type: 'Number' });
      new LifecycleMonitor(stack, 'Monitor', {
        table: new LeaseTable(stack, 'Leases'),
        gracePeriod: Duration.seconds(valueAsNumber),
        toleration: Duration.seconds(valueAsNumber),
      });
    });
    expect(environmentOf(template)).toMatchObject({
      GRACE_SECONDS: '<Patience>',
      TOLERATION_SECONDS: '<Patience>',
    });
  });

  test('says nothing too long of a table with the longest name', () => {
    const template = templateOf((stack) => {
      const table = LeaseTable.fromTableName(stack, 'Leases', 'x'.repeat(255));
      const monitor = new LifecycleMonitor(stack, 'Monitor', { table });
      new LeaseDashboard(stack, 'Dashboard', { table, monitor });
    });
    for (const [id, { Properties }] of resourcesOf(template, 'AWS::Lambda::Function')) {
      // A reference has 255 characters once it is deployed.
      expect(Properties['Description'], id).toEqual(expect.any(String));
    }
  });

  test('is refused a table that is in another Region only', () => {
    const stack = stackWith();
    const far = stackWith({}, { region: 'us-west-1', account: stack.account });
    const table = new LeaseTable(far, 'Leases');
    expect(() => new LifecycleMonitor(stack, 'Monitor', { table })).toThrow(
      /function is in eu-west-1 and the table in us-west-1.*replicaRegions/,
    );
  });

  test('watches a copy that is in its Region', () => {
    const stack = stackWith();
    const far = stackWith({}, { region: 'eu-west-2', account: stack.account });
    const table = new LeaseTable(far, 'Leases', { replicaRegions: ['eu-west-1', 'eu-west-3'] });
    expect(() => new LifecycleMonitor(stack, 'Monitor', { table })).not.toThrow();
  });

  test('is refused a pace that is not known at synth', () => {
    const stack = stackWith();
    const { valueAsNumber } = new CfnParameter(stack, 'Pace', { type: 'Number' });
    const passInterval = Duration.seconds(valueAsNumber);
    const table = new LeaseTable(stack, 'Leases');
    expect(() => new LifecycleMonitor(stack, 'Monitor', { table, passInterval })).toThrow(
      /passInterval is known only when the stack is deployed/,
    );
  });

  test.each<[string, Partial<LifecycleMonitorProps>, RegExp]>([
    ['passes every two minutes', { passInterval: Duration.minutes(2) }, /passInterval is 120 s/],
    ['passes without a pause', { passInterval: Duration.millis(500) }, /passInterval is 0.5 s/],
    ['no grace', { gracePeriod: Duration.seconds(0) }, /gracePeriod is 0/],
    ['no toleration', { toleration: Duration.seconds(0) }, /toleration is 0/],
  ])('refuses %s', (_, props, message) => {
    expect(() => synth(props)).toThrow(message);
  });
});

test('what is not bundled is asked for', async () => {
  const { bundleOf } = await import('../../lib/bundle.ts');
  expect(() => bundleOf('no-such-function')).toThrow(
    /functions\/no-such-function.ts.*npm run bundle/,
  );
  const stack = stackWith();
  expect(() => new LeaseTable(stack, 'Leases')).not.toThrow();
});
