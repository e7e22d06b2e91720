// Alarms and graphs look at metrics by their names; one that nobody emits stays silent for ever. So
// each is looked up in what the monitor's own emitter writes, with the monitor's own environment.

import { readFileSync } from 'node:fs';
import { Template } from 'aws-cdk-lib/assertions';
import { AccountRootPrincipal, Role } from 'aws-cdk-lib/aws-iam';
import { beforeAll, describe, expect, test } from 'vitest';
import { LeaderElectionStack } from '../../lib/index.ts';
import { EmfMetrics } from '../../src/metrics.ts';
import { measure, noCounts } from '../../src/pass-report.ts';
import { statementsOf } from './iam.ts';
import { bundle, newApp, plain, resourcesOf, root } from './stage.ts';

interface Metric {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

/** As AWS documents them; their dimensions are the resources of this stack. */
const OF_AWS: Readonly<Record<string, readonly string[]>> = {
  'AWS/DynamoDB': [
    'ConsumedReadCapacityUnits',
    'ConsumedWriteCapacityUnits',
    'ConditionalCheckFailedRequests',
    'ReadThrottleEvents',
    'WriteThrottleEvents',
  ],
  'AWS/Lambda': ['Invocations', 'Errors', 'Duration', 'Throttles'],
  'AWS/SQS': ['ApproximateNumberOfMessagesVisible'],
};

let template: Template;
let emitted: Metric[];
let onDashboard: Metric[];
let inAlarms: Metric[];

beforeAll(() => {
  bundle();
  template = Template.fromStack(new LeaderElectionStack(newApp(), 'Example'));
  emitted = emit();
  inAlarms = resourcesOf(template, 'AWS::CloudWatch::Alarm').flatMap(([, { Properties }]) =>
    metricsOfAlarm(plain(Properties) as AlarmProperties),
  );
  onDashboard = dashboard().flatMap(({ properties }) => metricsOfWidget(properties.metrics ?? []));
});

/** What the monitor writes in a pass, read as CloudWatch reads it. */
function emit(): Metric[] {
  const [, monitor] = resourcesOf(template, 'AWS::Lambda::Function').find(([id]) =>
    id.startsWith('Monitor'),
  )!;
  const { Variables } = monitor.Properties['Environment'] as { Variables: Record<string, string> };
  const lines: string[] = [];
  const metrics = new EmfMetrics({
    namespace: Variables['POWERTOOLS_METRICS_NAMESPACE']!,
    service: Variables['POWERTOOLS_SERVICE_NAME']!,
    nowMs: () => 0,
    write: (line) => lines.push(line),
  });
  measure({ blind: undefined, ...noCounts(), zones: {} }, 1, metrics);
  return lines.flatMap((line) => {
    const entry = JSON.parse(line) as Record<string, unknown> & {
      _aws: {
        CloudWatchMetrics: {
          Namespace: string;
          Dimensions: string[][];
          Metrics: { Name: string }[];
        }[];
      };
    };
    return entry._aws.CloudWatchMetrics.flatMap(({ Namespace, Dimensions, Metrics }) =>
      Dimensions.flatMap((names) =>
        Metrics.map(({ Name }) => ({
          namespace: Namespace,
          name: Name,
          dimensions: Object.fromEntries(names.map((name) => [name, String(entry[name])])),
        })),
      ),
    );
  });
}

interface AlarmMetric {
  readonly Namespace: string;
  readonly MetricName: string;
  readonly Dimensions?: readonly { readonly Name: string; readonly Value: string }[];
}
interface AlarmProperties extends AlarmMetric {
  readonly Metrics?: readonly { readonly MetricStat?: { readonly Metric: AlarmMetric } }[];
}

function metricsOfAlarm(alarm: AlarmProperties): Metric[] {
  const metrics = alarm.Metrics?.flatMap(({ MetricStat }) => MetricStat?.Metric ?? []) ?? [alarm];
  return metrics.map(({ Namespace, MetricName, Dimensions = [] }) => ({
    namespace: Namespace,
    name: MetricName,
    dimensions: Object.fromEntries(Dimensions.map(({ Name, Value }) => [Name, Value])),
  }));
}

interface Widget {
  readonly type: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  readonly properties: { readonly metrics?: readonly (readonly unknown[])[] };
}

function dashboard(): Widget[] {
  const [[, resource] = []] = resourcesOf(template, 'AWS::CloudWatch::Dashboard');
  const body = plain(resource?.Properties['DashboardBody']) as string;
  return (JSON.parse(body) as { widgets: Widget[] }).widgets;
}

function metricsOfWidget(metrics: readonly (readonly unknown[])[]): Metric[] {
  return metrics.map((row) => {
    const [namespace, name, ...pairs] = row.filter((each) => typeof each === 'string');
    const dimensions = pairs.flatMap((each, at) => (at % 2 === 0 ? [[each, pairs[at + 1]]] : []));
    return {
      namespace: namespace ?? '',
      name: name ?? '',
      dimensions: Object.fromEntries(dimensions) as Record<string, string>,
    };
  });
}

/** What is wrong with a metric; undefined where it is emitted, or AWS's own of a resource here. */
function complaint(metric: Metric): string | undefined {
  const text = JSON.stringify(metric);
  if (emitted.some((each) => JSON.stringify(each) === text)) return undefined;
  if (!OF_AWS[metric.namespace]?.includes(metric.name)) return `nobody emits ${text}`;
  const ours = Object.values(metric.dimensions).every((value) => /^<\w+(\.\w+)?>$/.test(value));
  return ours ? undefined : `of no resource of the stack: ${text}`;
}

describe('metrics', () => {
  test('of every alarm are emitted', () => {
    expect(inAlarms.length).toBeGreaterThan(10);
    expect(inAlarms.flatMap((metric) => complaint(metric) ?? [])).toEqual([]);
  });

  test('of every graph are emitted', () => {
    expect(onDashboard.length).toBeGreaterThan(15);
    expect(onDashboard.flatMap((metric) => complaint(metric) ?? [])).toEqual([]);
  });

  test('that are emitted are all to be seen', () => {
    const seen = [...inAlarms, ...onDashboard].map(({ name }) => name);
    expect(emitted.map(({ name }) => name).filter((name) => !seen.includes(name))).toEqual([]);
  });
});

test('are as many as the page about deploying charges for', () => {
  const page = readFileSync(`${root}docs/deploy.md`, 'utf8');
  const alarms = resourcesOf(template, 'AWS::CloudWatch::Alarm').length;
  expect(page).toContain(`CloudWatch: ${emitted.length} metrics | 3.90 |`);
  expect((emitted.length * 0.3).toFixed(2)).toBe('3.90');
  expect(page).toContain(`${alarms} alarms on ${inAlarms.length} metrics, 1 composite | 1.80 |`);
  expect((inAlarms.length * 0.1 + 0.5).toFixed(2)).toBe('1.80');
});

test('and its rows add up to what it says they cost together', () => {
  const page = readFileSync(`${root}docs/deploy.md`, 'utf8');
  const [, table = ''] = /\| resource \| \$ \| for \|\n\|[-|]+\n((?:\|.*\n)+)/.exec(page) ?? [];
  const rows = table
    .trim()
    .split('\n')
    .map((row) => Number(row.split('|')[2]?.replaceAll('*', '')));
  expect(rows.length).toBeGreaterThan(5);
  const together = rows.pop();
  expect(rows.reduce((sum, each) => sum + each, 0)).toBeCloseTo(together!, 6);
});

describe('the dashboard', () => {
  test('may be viewed with its widget, and nothing else', () => {
    const stack = new LeaderElectionStack(newApp(), 'Example');
    const viewer = new Role(stack, 'Viewer', { assumedBy: new AccountRootPrincipal() });
    stack.dashboard.grantView(viewer);
    const statements = statementsOf(Template.fromStack(stack), 'Viewer');
    const pairs = statements.flatMap(({ Action, Resource }) =>
      [Action].flat().map((action) => [action, String(Resource)]),
    );
    expect(pairs).toEqual([
      ['cloudwatch:GetDashboard', expect.stringMatching(/dashboard\/<Dashboard\w+>$/)],
      ['lambda:InvokeFunction', expect.stringMatching(/^<DashboardWidgetFunction\w+\.Arn>$/)],
    ]);
  });

  test('lies within 24 columns, and no widget on another', () => {
    const taken = new Set<string>();
    for (const { x, y, width, height } of dashboard()) {
      expect(x + width).toBeLessThanOrEqual(24);
      for (let column = x; column < x + width; column++) {
        for (let row = y; row < y + height; row++) {
          const cell = `${column},${row}`;
          expect(taken, cell).not.toContain(cell);
          taken.add(cell);
        }
      }
    }
  });

  test('has alarms first, then the leases, graphs, and what the monitor saw', () => {
    const types = dashboard().map(({ type }) => type);
    expect(types).toEqual(['alarm', 'custom', ...Array<string>(6).fill('metric'), 'log']);
    for (const { type, properties } of dashboard()) {
      expect(properties, type).toMatchObject({ title: expect.stringMatching(/\w/) as string });
    }
  });

  test('shows every alarm, and asks the function of the widget', () => {
    const [alarms, widget] = dashboard();
    const ids = [
      ...resourcesOf(template, 'AWS::CloudWatch::Alarm'),
      ...resourcesOf(template, 'AWS::CloudWatch::CompositeAlarm'),
    ].map(([id]) => `<${id}.Arn>`);
    expect([...(alarms?.properties as { alarms: string[] }).alarms].sort()).toEqual(ids.sort());
    expect(widget?.properties).toMatchObject({
      endpoint: expect.stringMatching(/^<DashboardWidgetFunction\w+\.Arn>$/) as string,
      updateOn: { refresh: true, resize: true, timeRange: false },
    });
  });
});
