// As much of IAM as the policies here use: whether a role may do something to a resource, by the
// statements of a template. What it does not know it refuses, so that nothing passes unread.

import type { Template } from 'aws-cdk-lib/assertions';
import { plain, resourcesOf } from './stage.ts';

export interface Statement {
  readonly Effect: 'Allow' | 'Deny';
  readonly Action: string | readonly string[];
  readonly Resource: string | readonly string[];
  readonly Condition?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

export interface Request {
  readonly action: string;
  readonly resource: string;
  /** Values of condition keys; a key that is not here is not in the request. */
  readonly context?: Readonly<Record<string, readonly string[]>>;
}

/** All statements of all policies that are attached to roles whose name begins like this. */
export function statementsOf(template: Template, role = ''): Statement[] {
  return resourcesOf(template, 'AWS::IAM::Policy').flatMap(([, { Properties }]) => {
    const roles = plain(Properties['Roles']) as string[];
    if (!roles.some((name) => name.startsWith(`<${role}`))) return [];
    return (plain(Properties['PolicyDocument']) as { Statement: Statement[] }).Statement;
  });
}

export function allows(statements: readonly Statement[], request: Request): boolean {
  const matching = statements.filter((statement) => matches(statement, request));
  return matching.length > 0 && matching.every(({ Effect }) => Effect === 'Allow');
}

function matches({ Action, Resource, Condition = {} }: Statement, request: Request): boolean {
  return (
    list(Action).some((action) => like(action, request.action)) &&
    list(Resource).some((resource) => like(resource, request.resource)) &&
    Object.entries(Condition).every(([operator, keys]) =>
      Object.entries(keys).every(([key, wanted]) =>
        holds(operator, list(wanted), request.context?.[key]),
      ),
    )
  );
}

function holds(operator: string, wanted: readonly string[], actual?: readonly string[]): boolean {
  const any = (value: string) => wanted.some((each) => like(each, value));
  const same = (value: string) => wanted.some((each) => literal(each) === value);
  switch (operator) {
    case 'Null':
      return wanted.includes(String(actual === undefined));
    case 'StringEquals':
      return actual?.length === 1 && actual.every(same);
    case 'ForAllValues:StringEquals':
      return (actual ?? []).every(same);
    case 'ForAllValues:StringLike':
      return (actual ?? []).every(any);
    default:
      throw new Error(`This evaluator does not know the operator ${operator}.`);
  }
}

/** `*` and `?` are wildcards; `${*}`, `${?}` and `${$}` stand for themselves. */
function like(pattern: string, value: string): boolean {
  const source = pattern.replace(/\$\{([*?$])\}|\*|\?|[^*?$]+|\$/g, (part, escaped?: string) => {
    if (escaped !== undefined) return `\\${escaped}`;
    if (part === '*') return '.*';
    if (part === '?') return '.';
    return part.replace(/[\\^$.|+()[\]{}]/g, '\\$&');
  });
  return new RegExp(`^${source}$`, 'su').test(value);
}

function literal(text: string): string {
  return text.replace(/\$\{([*?$])\}/g, '$1');
}

function list(value: unknown): readonly string[] {
  return Array.isArray(value) ? (value as string[]) : [value as string];
}
