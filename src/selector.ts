// Label selectors as kubectl has them, equality-based: `app=api,tier!=cache,zone,!draining`.

import type { Condition } from './condition.ts';
import { invalid } from './options.ts';

/** @throws LeaseError `invalid-configuration` for what is no selector. */
export function parseSelector(selector: string): Condition[] {
  if (selector.trim() === '') return [];
  return selector.split(',').map((part) => parsePart(part.trim(), selector));
}

function parsePart(part: string, selector: string): Condition {
  const [, not, name = '', operator, value = ''] =
    /^(!?)\s*([^\s=!,]+)\s*(?:(==?|!=)\s*([^\s=!,]*))?$/.exec(part) ?? [];
  if (name === '' || (not === '!' && operator !== undefined)) {
    throw invalid(
      `selector is "${selector}"; "${part}" is not understood. Requirements are a=b, a!=b, a and ` +
        '!a, with commas between them.',
    );
  }
  const path = `labels.${name}` as const;
  if (operator === undefined) return not === '!' ? { absent: path } : { not: { absent: path } };
  const equals: Condition = { equals: [path, { S: value }] };
  // As kubectl's, a label that is absent is not equal to anything.
  return operator === '!=' ? { not: equals } : equals;
}
