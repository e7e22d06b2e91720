// What the demo says before and after its story.

import { styleText } from 'node:util';
import type { Timing } from '../../src/options.ts';
import { realRuntimeAvailable } from '../support/lambda-runtime/index.ts';
import type { Verdict } from './sections.ts';
import type { Summary } from './summary.ts';

const INSTALLER = 'test/support/lambda-runtime/install.sh';

export function introduction(timing: Timing, engine: string, environments: number): string[] {
  const dynamodb = engine === 'environment' ? "the environment's endpoint" : engine;
  const runtime = realRuntimeAvailable()
    ? ['the real Lambda runtime client']
    : ['a stand-in for the Lambda runtime; the real one is installed by', INSTALLER];
  return [
    '',
    styleText('bold', 'lambda-lease: one worker at a time'),
    '',
    `${environments} execution environments of one Lambda function are invoked again and again.`,
    'All want to do the same work; a lease in a DynamoDB table lets one at a time.',
    '',
    `  DynamoDB         ${dynamodb}`,
    `  Lambda           ${runtime.join(`\n${' '.repeat(19)}`)}`,
    `  lease duration   ${seconds(timing.leaseDurationMs)}, from each renewal; then others may take it`,
    `  renewed every    ${seconds(timing.retryPeriodMs)}`,
    `  renew deadline   ${seconds(timing.renewDeadlineMs)} without a renewal, and its holder stops by itself`,
    `  tolerance        ${seconds(timing.toleranceMs)} between the two: how far clocks may differ`,
    '',
  ];
}

export function summaryLines(summary: Summary, verdict: Verdict, timing: Timing): string[] {
  const { takeoverMs, overlaps, stepsAfterThaw, tokensIncreasing } = summary;
  const steps = verdict.sections.reduce((sum, { stepTokens }) => sum + stepTokens.length, 0);
  const tokens = verdict.sections.map(({ token }) => token).join(' ');
  const times = (label: string, ms: readonly number[], why: string) =>
    ms.length === 0
      ? []
      : [`  ${label.padEnd(16)} ${ms.map(secondsOrMs).join(', ').padEnd(14)} ${why}`];
  return [
    '',
    styleText('bold', 'What the witness saw, a process of its own that knows nothing of leases'),
    `  tenures          ${summary.tenures}, with ${steps} steps of work`,
    `  overlaps         ${overlaps}`,
    `  fencing tokens   ${tokens}${tokensIncreasing ? '' : ' (not strictly increasing)'}`,
    `  steps after thaw ${stepsAfterThaw}`,
    ...(Object.values(takeoverMs).flat().length === 0
      ? []
      : ['', styleText('bold', 'How long nobody worked')]),
    ...times(
      'after a crash',
      takeoverMs.crash,
      `what was left of the lease duration, ${seconds(timing.leaseDurationMs)}`,
    ),
    ...times(
      'after a freeze',
      takeoverMs.freeze,
      `what was left of the lease duration, ${seconds(timing.leaseDurationMs)}`,
    ),
    ...times(
      'after a time-out',
      takeoverMs.timeOut,
      `deadline + tolerance, ${seconds(timing.toleranceMs)}`,
    ),
    ...times('after a release', takeoverMs.release, 'until somebody is invoked'),
    '',
    ...(summary.ok
      ? [styleText('green', 'All promises were kept.')]
      : [
          styleText('red', 'Broken promises:'),
          ...summary.broken.map((each) => styleText('red', `  ${each}`)),
        ]),
  ];
}

export function secondsOrMs(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : seconds(ms);
}

export function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}
