// The CDK app. Everything it can be told comes from the context: `-c name=value`, or cdk.json.

import { App } from 'aws-cdk-lib';
import { readContext } from './context.ts';
import { LeaderElectionStack } from './leader-election-stack.ts';

const app = new App();
const { stackName, ...props } = readContext(app);
new LeaderElectionStack(app, stackName, props);
app.synth();
