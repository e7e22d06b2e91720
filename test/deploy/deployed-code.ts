// Finds what to run for a deployed function: its settings as the emulator keeps them, and the
// folder in the CDK's output that was uploaded as its code.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CloudFormationClient } from '@aws-sdk/client-cloudformation';
import { DescribeStackResourcesCommand } from '@aws-sdk/client-cloudformation';
import { GetFunctionConfigurationCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import type { DeployedFunction } from './lambda-host.ts';

export interface Deployment {
  readonly stackName: string;
  /** The folder of the synthesis that was deployed. */
  readonly assembly: string;
  readonly lambda: LambdaClient;
  readonly cloudFormation: CloudFormationClient;
  /** What a function needs to reach the emulator. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Reads anew at each call: a deployment may have changed code or settings. */
export async function describeFunction(
  deployment: Deployment,
  functionName: string,
): Promise<DeployedFunction> {
  const { lambda, environment } = deployment;
  const [settings, taskRoot] = await Promise.all([
    lambda.send(new GetFunctionConfigurationCommand({ FunctionName: functionName })),
    codeOf(deployment, functionName),
  ]);
  return {
    taskRoot,
    handler: settings.Handler ?? 'index.handler',
    timeoutMs: (settings.Timeout ?? 3) * 1_000,
    env: { ...settings.Environment?.Variables, ...environment },
  };
}

interface Template {
  readonly Resources: Readonly<
    Record<string, { readonly Properties?: { readonly Code?: { readonly S3Key?: unknown } } }>
  >;
}

async function codeOf(deployment: Deployment, functionName: string): Promise<string> {
  const { stackName, assembly, cloudFormation } = deployment;
  const { StackResources = [] } = await cloudFormation.send(
    new DescribeStackResourcesCommand({ StackName: stackName }),
  );
  const resource = StackResources.find(
    (each) =>
      each.ResourceType === 'AWS::Lambda::Function' && each.PhysicalResourceId === functionName,
  );
  const file = join(assembly, `${stackName}.template.json`);
  const template = JSON.parse(await readFile(file, 'utf8')) as Template;
  const key = template.Resources[resource?.LogicalResourceId ?? '']?.Properties?.Code?.S3Key;
  if (typeof key !== 'string') throw new Error(`${file} has no asset for ${functionName}.`);
  // The key in the bucket of assets is the name of the folder that was packed.
  return join(assembly, `asset.${key.replace(/\.zip$/, '')}`);
}
