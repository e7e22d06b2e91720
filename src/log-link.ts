// Where a holder's logs are in the CloudWatch console, from what the record says of it. Pure.
//
// The record is written by whoever may hold the lease, so nothing in it is trusted: its Region
// becomes a host name only if it is one that could be, and all else is encoded.

import { byteLength } from './holder.ts';
import { BYTE_BUDGET } from './schema.ts';

const REGION = /^[a-z]{2,4}(?:-[a-z]+)+-\d{1,2}$/;

/**
 * The log stream's page; the log group's, where the stream is unknown or may have been cut to fit
 * into the record; undefined where the group or the Region is not known for certain.
 */
export function logLink(annotations: Readonly<Record<string, string>>): string | undefined {
  const { region, logStream = '', function: functionName } = annotations;
  // Lambda's usual log group is not written to the record: it follows from the function.
  const logGroup =
    annotations['logGroup'] ??
    (functionName === undefined ? undefined : `/aws/lambda/${functionName}`);
  if (region === undefined || !REGION.test(region) || logGroup === undefined) return undefined;
  const most = BYTE_BUDGET.annotation;
  if (annotations['logGroup'] !== undefined && byteLength(logGroup) >= most.logGroup) {
    return undefined;
  }
  const group = `log-groups/log-group/${encode(logGroup)}`;
  const whole = logStream !== '' && byteLength(logStream) < most.logStream;
  const page = whole ? `${group}/log-events/${encode(logStream)}` : group;
  const host = [region, 'console', domain(region)].join('.');
  return `https://${host}/cloudwatch/home?region=${region}#logsV2:${page}`;
}

function domain(region: string): string {
  if (region.startsWith('cn-')) return 'amazonaws.cn';
  if (region.startsWith('us-gov-')) return 'amazonaws-us-gov.com';
  return 'aws.amazon.com';
}

/** As the console has it behind the #: encoded twice, with $ for %. */
function encode(text: string): string {
  // A lone half of a surrogate pair cannot be encoded.
  const whole = text.replace(/\p{Surrogate}/gu, '\ufffd');
  return encodeURIComponent(encodeURIComponent(whole)).replaceAll('%', '$');
}
