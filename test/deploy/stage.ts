// Everything that the deployment test stands on, opened in order and closed in reverse, also when
// one of it does not open: the emulator, the host of its functions, the witness, clients.

import { mkdtempDisposable } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { type AttributeValue, DynamoDBClient, ScanCommand } from '@aws-sdk/client-dynamodb';
import {
  GetFunctionConfigurationCommand,
  InvokeCommand,
  LambdaClient,
} from '@aws-sdk/client-lambda';
import { DeleteMessageCommand, ReceiveMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { type LeaseRecord, readLease } from '../../src/lease.ts';
import { CommandLine, type Context } from './cdk.ts';
import { describeFunction } from './deployed-code.ts';
import { type Emulator, REGION, startEmulator } from './emulator.ts';
import { LambdaHost } from './lambda-host.ts';
import { startWorkWitness, type WorkWitness } from './work-witness.ts';

export const STACK = 'LeaderElectionStack';

/** The outputs that are used here: the stack's own, and those that `app.ts` adds. */
export type OutputName =
  | 'TableName'
  | 'WorkerFunctionName'
  | 'MonitorFunctionName'
  | 'WidgetFunctionName'
  | 'DeadLetterQueueUrl'
  | 'HeardQueueUrl';

export interface Answer {
  /** Undefined when the function did not fail. */
  readonly functionError: string | undefined;
  readonly payload: unknown;
}

export interface DeployStage extends AsyncDisposable {
  readonly host: LambdaHost;
  readonly witness: WorkWitness;
  /** `context` is added to the settings of the test's app. */
  synthesise(context: Context): Promise<void>;
  bootstrap(): Promise<void>;
  /** Creates or updates the stack, as it was synthesised last. */
  deploy(): Promise<void>;
  output(name: OutputName): string;
  /** Waits for the answer. */
  invoke(functionName: string, event: unknown): Promise<Answer>;
  /** Leaves the event with Lambda. */
  invokeLater(functionName: string, event: unknown): Promise<void>;
  settings(functionName: string): Promise<Readonly<Record<string, string>>>;
  /** Takes messages out of a queue until one is wanted, and resolves to it. */
  receive<T>(queueUrl: string, wanted: (message: T) => boolean, forMs: number): Promise<T>;
  /** All records of the table, by the keys of their leases. */
  leases(): Promise<ReadonlyMap<string, LeaseRecord>>;
  /** The last words of everything, for when a test has failed. */
  report(): string;
}

export async function openStage(): Promise<DeployStage> {
  await using opening = new AsyncDisposableStack();
  const folder = opening.use(await mkdtempDisposable(join(tmpdir(), 'deploy-')));
  const host = opening.use(await LambdaHost.start());
  const witness = opening.use(await startWorkWitness());
  const emulator = opening.use(await startEmulator());
  const cdk = opening.use(new CommandLine(emulator, folder.path));

  const { lambda, cloudFormation, dynamoDB, sqs } = clients(emulator, opening);
  host.serve((name) =>
    describeFunction(
      {
        stackName: STACK,
        assembly: cdk.assembly,
        lambda,
        cloudFormation,
        environment: { AWS_ENDPOINT_URL: emulator.endpoint },
      },
      name,
    ),
  );

  let outputs: Readonly<Record<string, string>> = {};
  const output = (name: OutputName): string => {
    const value = outputs[name];
    if (value === undefined) throw new Error(`No output ${name}: ${JSON.stringify(outputs)}`);
    return value;
  };
  const send = (functionName: string, event: unknown, type: 'Event' | 'RequestResponse') =>
    lambda.send(
      new InvokeCommand({
        FunctionName: functionName,
        InvocationType: type,
        Payload: JSON.stringify(event),
      }),
    );

  const cleanUp = opening.move();
  return {
    host,
    witness,
    synthesise: (context) =>
      cdk.synthesise({ proxyUrl: host.url, workUrl: witness.url, ...context }),
    bootstrap: () => cdk.bootstrap(),
    deploy: async () => {
      outputs = await cdk.deploy(STACK);
    },
    output,
    invoke: async (functionName, event) => {
      const { FunctionError, Payload } = await send(functionName, event, 'RequestResponse');
      const text = Payload === undefined ? '' : Buffer.from(Payload).toString();
      return {
        functionError: FunctionError,
        payload: text === '' ? undefined : (JSON.parse(text) as unknown),
      };
    },
    invokeLater: async (functionName, event) => {
      await send(functionName, event, 'Event');
    },
    settings: async (functionName) => {
      const command = new GetFunctionConfigurationCommand({ FunctionName: functionName });
      return (await lambda.send(command)).Environment?.Variables ?? {};
    },
    receive: (queueUrl, wanted, forMs) => receive(sqs, queueUrl, wanted, forMs),
    leases: async () => {
      const { Items = [] } = await dynamoDB.send(
        new ScanCommand({ TableName: output('TableName'), ConsistentRead: true }),
      );
      return new Map(Items.map((item) => [keyOf(item), readLease(keyOf(item), item as never)]));
    },
    report: () =>
      [
        ...['--- Emulator', ...emulator.output().split('\n').slice(-60)],
        ...['--- Functions', ...host.output.slice(-60)],
        ...['--- Witness', ...witness.deeds.slice(-20).map((deed) => JSON.stringify(deed))],
      ].join('\n'),
    [Symbol.asyncDispose]: () => cleanUp.disposeAsync(),
  };
}

function clients(emulator: Emulator, cleanUp: AsyncDisposableStack) {
  const config = {
    endpoint: emulator.endpoint,
    region: REGION,
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
  };
  const destroy = (client: { destroy(): void }): void => client.destroy();
  return {
    lambda: cleanUp.adopt(new LambdaClient(config), destroy),
    cloudFormation: cleanUp.adopt(new CloudFormationClient(config), destroy),
    dynamoDB: cleanUp.adopt(new DynamoDBClient(config), destroy),
    sqs: cleanUp.adopt(new SQSClient(config), destroy),
  };
}

async function receive<T>(
  sqs: SQSClient,
  queueUrl: string,
  wanted: (message: T) => boolean,
  forMs: number,
): Promise<T> {
  const deadline = performance.now() + forMs;
  const others: T[] = [];
  while (performance.now() < deadline) {
    const { Messages = [] } = await sqs.send(
      new ReceiveMessageCommand({ QueueUrl: queueUrl, WaitTimeSeconds: 1 }),
    );
    for (const { Body = '', ReceiptHandle } of Messages) {
      await sqs.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle }));
      const message = JSON.parse(Body) as T;
      if (wanted(message)) return message;
      others.push(message);
    }
  }
  throw new Error(`Waited ${forMs} ms in vain; received: ${JSON.stringify(others)}`);
}

function keyOf(item: Readonly<Record<string, AttributeValue>>): string {
  return item['lease']?.S ?? '';
}
