// How a scheduled function is called. Two layers may repeat a call, EventBridge Scheduler and
// Lambda's asynchronous queue, and by default both go on for hours: far longer than a tick is of
// any use. Here both give up soon, and what they give up lands in one queue.

import { Duration, Stack, Token } from 'aws-cdk-lib';
import { PolicyStatement, Role, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import type { Function as LambdaFunction } from 'aws-cdk-lib/aws-lambda';
import { SqsDestination } from 'aws-cdk-lib/aws-lambda-destinations';
import {
  ContextAttribute,
  Schedule,
  ScheduleTargetInput,
  type ScheduleExpression,
} from 'aws-cdk-lib/aws-scheduler';
import { LambdaInvoke } from 'aws-cdk-lib/aws-scheduler-targets';
import { Queue, QueueEncryption, type IQueue } from 'aws-cdk-lib/aws-sqs';
import type { Construct } from 'constructs';
import { acknowledge } from './acknowledge.ts';
import { isUnknown, secondsOf } from './durations.ts';

export interface Delivery {
  /**
   * How often Lambda repeats a run that has failed, after one and two minutes: 0, 1 or 2. A run
   * that was killed keeps its lease until its deadline, and a repetition that finds it held must
   * fail to be repeated in its turn: wrap the handler with `whenHeld: 'throw'`. Without repetitions
   * the tick of a failed run is over; `catchUp: 'once'` makes up for it at the next.
   * @default 0
   */
  readonly retryAttempts?: number;
  /**
   * How late a run may begin, at most, for each of the two that may hold it up: EventBridge
   * Scheduler and Lambda's asynchronous queue. What could not begin until then goes to the queue of
   * dead letters.
   * @default Duration.minutes(5)
   */
  readonly maxEventAge?: Duration;
  /**
   * Where runs go that have failed, and ticks that could not be delivered. No FIFO queue.
   * @default - a queue that keeps them for 14 days
   */
  readonly deadLetterQueue?: IQueue;
}

/** Of a tick that Scheduler could not hand to Lambda. It says nothing of how the run went. */
const SCHEDULE_RETRIES = 3;

/** What the event of a schedule always has. */
const TICK = ['scheduledTime', 'scheduleArn'] as const;

/** Calls `fn` on a schedule, and settles what becomes of calls that fail. The queue for those. */
export function deliver(
  scope: Construct,
  fn: LambdaFunction,
  props: Delivery & {
    readonly schedule?: ScheduleExpression;
    readonly description?: string;
    readonly input?: Readonly<Record<string, unknown>>;
  },
): { deadLetterQueue: IQueue; schedule: Schedule | undefined } {
  const { retryAttempts = 0, maxEventAge = Duration.minutes(5), schedule: expression } = props;
  checkDelivery(scope, retryAttempts, maxEventAge);
  for (const name of TICK) {
    if (props.input?.[name] === undefined) continue;
    throw new Error(
      `${scope.node.path}: input has ${name}, which is where the schedule tells its tick. Choose ` +
        'another name.',
    );
  }
  if (fn.node.tryFindChild('EventInvokeConfig') !== undefined) {
    throw new Error(
      `${scope.node.path}: the function's asynchronous invocation is configured already. Leave ` +
        'onFailure, onSuccess, retryAttempts and maxEventAge to the singleton.',
    );
  }
  const deadLetterQueue = props.deadLetterQueue ?? makeQueue(scope);
  if (deadLetterQueue.fifo) {
    throw new Error(
      `${scope.node.path}: deadLetterQueue is a FIFO queue; neither Lambda nor EventBridge ` +
        'Scheduler sends to one. Give it a standard queue.',
    );
  }
  fn.configureAsyncInvoke({
    retryAttempts,
    maxEventAge,
    onFailure: new SqsDestination(deadLetterQueue),
  });
  acknowledge(
    fn,
    'The destination for failed asynchronous runs is that queue, with more to say than a message.',
    'Serverless-LambdaDLQ',
  );
  if (expression === undefined) return { deadLetterQueue, schedule: undefined };

  const role = schedulerRole(scope, fn, deadLetterQueue);
  const schedule = new Schedule(scope, 'Schedule', {
    schedule: expression,
    ...(props.description === undefined ? {} : { description: props.description }),
    target: new LambdaInvoke(fn, {
      // The target would allow itself every version of the function.
      role: role.withoutPolicyUpdates(),
      deadLetterQueue,
      retryAttempts: SCHEDULE_RETRIES,
      maxEventAge,
      input: ScheduleTargetInput.fromObject({
        scheduledTime: ContextAttribute.scheduledTime,
        scheduleArn: ContextAttribute.scheduleArn,
        ...props.input,
      }),
    }),
  });
  // A tick that comes before the permission is lost.
  schedule.node.addDependency(role);
  return { deadLetterQueue, schedule };
}

function checkDelivery(scope: Construct, retryAttempts: number, maxEventAge: Duration): void {
  if (!Token.isUnresolved(retryAttempts) && ![0, 1, 2].includes(retryAttempts)) {
    throw new Error(
      `${scope.node.path}: retryAttempts is ${retryAttempts}; Lambda repeats a failed run 0, ` +
        '1 or 2 times.',
    );
  }
  if (isUnknown(maxEventAge)) {
    throw new Error(
      `${scope.node.path}: maxEventAge is known only when the stack is deployed; it must be ` +
        'known at synth.',
    );
  }
  const seconds = secondsOf(maxEventAge);
  if (seconds < 60 || seconds > 21_600) {
    throw new Error(
      `${scope.node.path}: maxEventAge is ${seconds} s; it must be between 60 s and 6 hours, as ` +
        'Lambda keeps an event.',
    );
  }
}

function makeQueue(scope: Construct): Queue {
  const queue = new Queue(scope, 'DeadLetters', {
    encryption: QueueEncryption.SQS_MANAGED,
    enforceSSL: true,
    retentionPeriod: Duration.days(14),
  });
  const reason = 'It is itself the queue of dead letters: nobody consumes it but people.';
  acknowledge(queue, reason, 'AwsSolutions-SQS3', 'Serverless-SQSRedrivePolicy');
  return queue;
}

/** This function and no version of it, that queue, and only for schedules of this account. */
function schedulerRole(scope: Construct, fn: LambdaFunction, queue: IQueue): Role {
  const group = Stack.of(scope).formatArn({
    service: 'scheduler',
    resource: 'schedule-group',
    resourceName: 'default',
  });
  const role = new Role(scope, 'SchedulerRole', {
    assumedBy: new ServicePrincipal('scheduler.amazonaws.com', {
      conditions: {
        StringEquals: {
          'aws:SourceAccount': Stack.of(scope).account,
          'aws:SourceArn': group,
        },
      },
    }),
  });
  role.addToPolicy(
    new PolicyStatement({ actions: ['lambda:InvokeFunction'], resources: [fn.functionArn] }),
  );
  role.addToPolicy(
    new PolicyStatement({ actions: ['sqs:SendMessage'], resources: [queue.queueArn] }),
  );
  queue.encryptionMasterKey?.grant(role, 'kms:Decrypt', 'kms:GenerateDataKey');
  return role;
}
