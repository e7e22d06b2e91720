// What every function here has of its own: a name that is known at synth, a log group that goes
// with it, and a role that may write into that log group and do nothing else yet.

import { Names, RemovalPolicy } from 'aws-cdk-lib';
import { ManagedPolicy, Role, ServicePrincipal, type IRole } from 'aws-cdk-lib/aws-iam';
import { Architecture, Code, Runtime } from 'aws-cdk-lib/aws-lambda';
import { LogGroup, RetentionDays, type ILogGroup } from 'aws-cdk-lib/aws-logs';
import type { Construct } from 'constructs';
import { acknowledge } from './acknowledge.ts';
import { bundleOf } from './bundle.ts';

export const RUNTIME = Runtime.NODEJS_24_X;
export const ARCHITECTURE = Architecture.ARM_64;

export interface FunctionParts {
  readonly functionName: string;
  readonly logGroup: ILogGroup;
  readonly role: IRole;
}

/**
 * Parts for one function, made in `scope` where they are not given. The log group is Lambda's usual
 * one, `/aws/lambda/<name>`: holders then need not spell it out in their records, and log streams
 * keep their short names. To name it, the function's name must be known.
 */
export function functionParts(
  scope: Construct,
  given: Partial<FunctionParts> & { readonly inVpc?: boolean } = {},
): FunctionParts {
  const functionName =
    given.functionName ?? Names.uniqueResourceName(scope, { maxLength: 64, separator: '-' });
  const logGroup =
    given.logGroup ??
    new LogGroup(scope, 'Logs', {
      logGroupName: `/aws/lambda/${functionName}`,
      retention: RetentionDays.ONE_MONTH,
      removalPolicy: RemovalPolicy.DESTROY,
    });
  return { functionName, logGroup, role: given.role ?? makeRole(scope, logGroup, given.inVpc) };
}

/** Parts and prebuilt code of a function of this library's own. */
export function bundledParts(scope: Construct, name: string) {
  return {
    ...functionParts(scope),
    code: Code.fromAsset(bundleOf(name)),
    handler: 'index.handler',
    runtime: RUNTIME,
    architecture: ARCHITECTURE,
  };
}

function makeRole(scope: Construct, logGroup: ILogGroup, inVpc = false): IRole {
  const role = new Role(scope, 'Role', { assumedBy: new ServicePrincipal('lambda.amazonaws.com') });
  logGroup.grantWrite(role);
  if (inVpc) {
    const policy = 'service-role/AWSLambdaVPCAccessExecutionRole';
    role.addManagedPolicy(ManagedPolicy.fromAwsManagedPolicyName(policy));
    acknowledge(
      role,
      'What it allows, network interfaces in a VPC, cannot be limited to resources known before.',
      `AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/${policy}]`,
    );
  }
  return role;
}
