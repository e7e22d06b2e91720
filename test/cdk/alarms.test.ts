// Each alarm: when it goes off, what silence means to it, and what it tells whoever is woken.

import type { Stack } from 'aws-cdk-lib';
import type { Template } from 'aws-cdk-lib/assertions';
import { Topic } from 'aws-cdk-lib/aws-sns';
import { beforeAll, describe, expect, test } from 'vitest';
import {
  LeaseAlarms,
  LeaseTable,
  LifecycleMonitor,
  SingletonFunction,
  type LeaseAlarmsProps,
} from '../../lib/index.ts';
import { bundle, FLAGS, plain, resourcesOf, someCode, templateOf } from './stage.ts';

beforeAll(bundle);

function build(stack: Stack, jobs: number, props: Partial<LeaseAlarmsProps> = {}): LeaseAlarms {
  const table = new LeaseTable(stack, 'Leases');
  const monitor = new LifecycleMonitor(stack, 'Monitor', { table });
  return new LeaseAlarms(stack, 'Alarms', {
    table,
    monitor,
    jobs: Array.from({ length: jobs }, (_, n) => {
      const job = { code: someCode(), leaseName: `job-${n}`, table };
      return new SingletonFunction(stack, `Job${n}`, {
        ...job,
        ...(props.topic === undefined ? {} : { alarmTopic: props.topic }),
      });
    }),
    ...props,
  });
}

function alarmsOf(template: Template): Map<string, Readonly<Record<string, unknown>>> {
  return new Map(
    resourcesOf(template, 'AWS::CloudWatch::Alarm').map(([id, { Properties }]) => [
      id.replace(/^Alarms|^Job\d/, '').slice(0, -8),
      plain(Properties) as Readonly<Record<string, unknown>>,
    ]),
  );
}

const AT_LEAST = 'GreaterThanOrEqualToThreshold';

describe.each(FLAGS)('alarms, with %s', (_, flags) => {
  let template: Template;
  beforeAll(() => {
    template = templateOf((stack) => build(stack, 1), flags);
  });

  /** Missing data, comparison, threshold, periods, their length (a formula has none of its own). */
  test.each([
    ['ExpiredHolder', 'notBreaching', AT_LEAST, 1, 2, 60],
    ['Leaderless', 'notBreaching', AT_LEAST, 1, 2, 60],
    ['Flapping', 'notBreaching', AT_LEAST, 20, 1, 600],
    ['MissedSchedule', 'notBreaching', AT_LEAST, 1, 1, 300],
    ['MassExpiry', 'notBreaching', AT_LEAST, 1, 1, undefined],
    ['ThrottledTable', 'notBreaching', AT_LEAST, 1, 2, undefined],
    ['MonitorSilent', 'breaching', 'LessThanThreshold', 1, 3, 60],
    ['MonitorBlind', 'notBreaching', AT_LEAST, 1, 3, 60],
    ['EventsUnpublished', 'notBreaching', AT_LEAST, 1, 5, 60],
    ['Failing', 'notBreaching', AT_LEAST, 1, 1, 300],
    ['Undelivered', 'notBreaching', AT_LEAST, 1, 1, 300],
  ])('%s', (name, missing, comparison, threshold, periods, seconds) => {
    const alarm = alarmsOf(template).get(name);
    expect(alarm).toMatchObject({
      TreatMissingData: missing,
      ComparisonOperator: comparison,
      Threshold: threshold,
      EvaluationPeriods: periods,
    });
    expect(alarm?.['Period']).toBe(seconds);
    expect(alarm?.['DatapointsToAlarm'] ?? periods).toBe(periods);
  });

  test('are all of them in the table above, and in the composite', () => {
    expect(alarmsOf(template).size).toBe(11);
    const [[, any] = []] = resourcesOf(template, 'AWS::CloudWatch::CompositeAlarm');
    const rule = plain(any?.Properties['AlarmRule']) as string;
    const ids = resourcesOf(template, 'AWS::CloudWatch::Alarm').map(([id]) => id);
    expect([...rule.matchAll(/ALARM\("<(\w+)\.Arn>"\)/g)].map((match) => match[1])).toEqual(
      expect.arrayContaining(ids),
    );
    expect(rule.split(' OR ')).toHaveLength(11);
  });

  test('say what has happened and what to do, within what CloudWatch keeps', () => {
    for (const [name, alarm] of alarmsOf(template)) {
      const description = alarm['AlarmDescription'] as string;
      expect(description.length, name).toBeLessThanOrEqual(1_024);
      expect(description, name).toMatch(/Look |Start a candidate|Read them|Its log says/);
    }
  });
});

describe('alarms', () => {
  test('tell the topic, also when they are over, and CloudWatch may publish there', () => {
    const template = templateOf((stack) => {
      build(stack, 1, { topic: new Topic(stack, 'Alerts', { enforceSSL: true }) });
    });
    for (const [name, alarm] of alarmsOf(template)) {
      const topic = [expect.stringMatching(/^<Alerts/)];
      expect(alarm, name).toMatchObject({ AlarmActions: topic, OKActions: topic });
    }
    const policies = resourcesOf(template, 'AWS::SNS::TopicPolicy');
    const statements = policies.flatMap(
      ([, { Properties }]) =>
        (Properties['PolicyDocument'] as { Statement: Record<string, unknown>[] }).Statement,
    );
    expect(statements.filter(({ Effect }) => Effect === 'Allow')).toEqual([
      expect.objectContaining({
        Action: 'sns:Publish',
        Principal: { Service: 'cloudwatch.amazonaws.com' },
        Condition: { StringEquals: { 'aws:SourceAccount': '123456789012' } },
      }),
    ]);
  });

  test('tell nobody where there is no topic', () => {
    for (const [name, alarm] of alarmsOf(templateOf((stack) => build(stack, 1)))) {
      expect(alarm, name).not.toHaveProperty('AlarmActions');
    }
  });

  test.each([
    [0, undefined, 10],
    [3, undefined, 40],
    [3, 5, 5],
  ])('call %s jobs flapping, told %s, from %s changes on', (jobs, flappingThreshold, expected) => {
    const props = flappingThreshold === undefined ? {} : { flappingThreshold };
    const template = templateOf((stack) => build(stack, jobs, props));
    expect(alarmsOf(template).get('Flapping')).toMatchObject({ Threshold: expected });
  });

  test('of more jobs than one rule can name are in composites of the composite', () => {
    const template = templateOf((stack) => build(stack, 25));
    const composites = resourcesOf(template, 'AWS::CloudWatch::CompositeAlarm');
    const named = (rule: unknown) =>
      [...(plain(rule) as string).matchAll(/ALARM\("<(\w+)\.Arn>"\)/g)].map(([, id]) => id);
    const rules = composites.map(([id, { Properties }]) => ({
      id,
      names: named(Properties['AlarmRule']),
    }));
    const ids = resourcesOf(template, 'AWS::CloudWatch::Alarm').map(([id]) => id);
    expect(ids).toHaveLength(59);
    expect(rules.map(({ names }) => names.length).sort()).toEqual([2, 50, 9]);
    const top = rules.find(({ names }) => names.length === 2)!;
    const below = rules.filter((each) => each !== top);
    expect([...top.names].sort()).toEqual(below.map(({ id }) => id).sort());
    expect(below.flatMap(({ names }) => names).sort()).toEqual(ids.sort());
  });

  test('of a zone add up what is partly and what is wholly silent', () => {
    const alarm = alarmsOf(templateOf((stack) => build(stack, 0))).get('MassExpiry');
    const metrics = alarm?.['Metrics'] as { Id: string; Expression?: string }[];
    expect(metrics.find(({ Expression }) => Expression)?.Expression).toBe('partial + full');
    expect(metrics.map(({ Id }) => Id)).toEqual(expect.arrayContaining(['partial', 'full']));
  });
});
