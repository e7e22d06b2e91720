// The app that the test deploys: the stack that users deploy, hurried on and fitted to the emulator,
// and beside it a rule with a queue, as a user has who listens to the monitor.
//
// What the emulator creates without doing it, or does wrongly, is no evidence, and no test here leans
// on it. On the template that users deploy, test/cdk asserts instead:
//
//   - alarms and the composite (never evaluated, and some of them rewritten by `emulated.ts`): what
//     they watch, their thresholds, what missing data means, whom they tell
//   - metrics that functions print (not read from the log): names, dimensions
//   - Time to Live, backups, protection against deletion (ignored, or not in a template)
//   - policies (every call is allowed)
//   - a schedule's <aws.scheduler.…> (nothing is put in its place), its retries and dead letters
//     (a call that a schedule has made is never repeated)

import { App, Aspects, CfnOutput } from 'aws-cdk-lib';
import { Rule } from 'aws-cdk-lib/aws-events';
import { SqsQueue } from 'aws-cdk-lib/aws-events-targets';
import { Queue } from 'aws-cdk-lib/aws-sqs';
import { LeaderElectionStack } from '../../lib/leader-election-stack.ts';
import { Emulated } from './emulated.ts';

const app = new App();
const stack = new LeaderElectionStack(app, 'LeaderElectionStack', { disposable: true });

const hurried = {
  worker: { WORK_URL: setting('workUrl'), LEASE_DURATION_SECONDS: '8' },
  monitor: { PASS_INTERVAL_SECONDS: setting('passIntervalSeconds'), GRACE_SECONDS: '2' },
};
for (const [name, value] of Object.entries(hurried.worker)) {
  stack.worker.function.addEnvironment(name, value);
}
for (const [name, value] of Object.entries(hurried.monitor)) {
  stack.monitor.function.addEnvironment(name, value);
}

const heard = new Queue(stack, 'Heard');
new Rule(stack, 'Hears', {
  eventBus: stack.monitor.eventBus,
  eventPattern: { source: ['lambda-lease'], detailType: ['Lease Not Ready'] },
  targets: [new SqsQueue(heard)],
});
new CfnOutput(stack, 'HeardQueueUrl', { value: heard.queueUrl });

Aspects.of(stack).add(new Emulated(setting('proxyUrl')));
app.synth();

function setting(name: string): string {
  const value: unknown = app.node.tryGetContext(name);
  if (typeof value !== 'string') throw new Error(`Context ${name} is missing.`);
  return value;
}
