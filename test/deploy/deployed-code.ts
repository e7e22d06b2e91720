// Finds what to run for a deployed function: its settings as the emulator keeps them, and the
// folder in the CDK's output that was uploaded as its code.

import { join } from 'node:path';
import {
  type CloudFormationClient,
  DescribeStackResourcesCommand,
  GetTemplateCommand,
} from '@aws-sdk/client-cloudformation';
import { GetFunctionConfigurationCommand, type LambdaClient } from '@aws-sdk/client-lambda';
import type { DeployedFunction } from './lambda-host.ts';

export interface Deployment {
  readonly stackName: string;
  /** The folder of the CDK's output. */
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

/** By the template that is deployed: there may already be a newer one in the folder. */
async function codeOf(deployment: Deployment, functionName: string): Promise<string> {
  const { stackName, assembly, cloudFormation } = deployment;
  const stack = { StackName: stackName };
  const [{ StackResources = [] }, { TemplateBody = '{}' }] = await Promise.all([
    cloudFormation.send(new DescribeStackResourcesCommand(stack)),
    cloudFormation.send(new GetTemplateCommand(stack)),
  ]);
  const resource = StackResources.find(
    (each) =>
      each.ResourceType === 'AWS::Lambda::Function' && each.PhysicalResourceId === functionName,
  );
  const { Resources } = JSON.parse(TemplateBody) as Template;
  const key = Resources[resource?.LogicalResourceId ?? '']?.Properties?.Code?.S3Key;
  if (typeof key !== 'string') throw new Error(`${stackName} has no asset for ${functionName}.`);
  // The key in the bucket of assets is the name of the folder that was packed.
  return join(assembly, `asset.${key.replace(/\.zip$/, '')}`);
}
