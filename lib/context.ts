// What the app may be told by context, checked: a misspelt value must not deploy something else.

import type { App } from 'aws-cdk-lib';
import { ScheduleExpression } from 'aws-cdk-lib/aws-scheduler';
import type { LeaderElectionStackProps } from './leader-election-stack.ts';

/**
 * `stackName`, `tableName`, `leaseName`, `namespace`, `schedule` (`rate(5 minutes)`, `cron(…)`),
 * `email` and `disposable`.
 */
export function readContext(app: App): LeaderElectionStackProps & { readonly stackName: string } {
  const schedule = textOf(app, 'schedule');
  const disposable = textOf(app, 'disposable');
  if (disposable !== undefined && !['true', 'false'].includes(disposable)) {
    throw new Error(`Context disposable is "${disposable}"; it must be true or false.`);
  }
  if (schedule !== undefined && !/^(?:rate|cron|at)\(.+\)$/.test(schedule)) {
    throw new Error(
      `Context schedule is "${schedule}"; it must be an expression of EventBridge Scheduler, ` +
        'such as "rate(5 minutes)" or "cron(0 3 * * ? *)".',
    );
  }
  const email = textOf(app, 'email');
  if (email !== undefined && !/^[^@\s]+@[^@\s]+$/.test(email)) {
    throw new Error(`Context email is "${email}"; it must be an e-mail address.`);
  }
  const texts = Object.fromEntries(
    (['tableName', 'leaseName', 'namespace'] as const).flatMap((name) => {
      const text = textOf(app, name);
      return text === undefined ? [] : [[name, text]];
    }),
  );
  return {
    stackName: textOf(app, 'stackName') ?? 'LeaderElectionStack',
    ...texts,
    ...(schedule === undefined ? {} : { schedule: ScheduleExpression.expression(schedule) }),
    ...(email === undefined ? {} : { email }),
    ...(disposable === undefined ? {} : { disposable: disposable === 'true' }),
  };
}

/** Also where cdk.json has a number or a truth value. */
function textOf(app: App, name: string): string | undefined {
  const value: unknown = app.node.tryGetContext(name);
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  throw new Error(`Context ${name} is ${JSON.stringify(value)}; it must be a text.`);
}
