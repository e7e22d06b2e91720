// Reads the expressions of a user's own request, as far as something is to be added to them.
//
// Words are told apart as DynamoDB does; whether the whole is valid stays for DynamoDB to say. What
// is added never makes a wrong expression right.

/** What an UpdateExpression writes to, and where its SET clause takes more. */
export interface UpdateOutline {
  /** The first part of each path that is written to: a name, or a placeholder of one. */
  readonly targets: readonly string[];
  /** Behind the word SET; undefined when there is no such clause. */
  readonly afterSet: number | undefined;
}

const TOKEN = /[#:]?[^\s#:,.()[\]=+-]+|[#:,.()[\]=+-]/g;
const CLAUSE = /^(?:set|remove|add|delete)$/i;
/** Behind these follows an operand or the next part of a path, never a clause. */
const CONTINUES = [',', '.', '=', '+', '-', '('];

export function outlineUpdate(expression: string): UpdateOutline {
  const targets: string[] = [];
  let afterSet: number | undefined;
  let depth = 0;
  let previous = '';
  let targetIsNext = false;
  for (const match of expression.matchAll(TOKEN)) {
    const token = match[0];
    if (CLAUSE.test(token) && !targetIsNext && !CONTINUES.includes(previous)) {
      if (token.toLowerCase() === 'set') afterSet ??= match.index + token.length;
      targetIsNext = true;
    } else {
      if (targetIsNext) targets.push(token);
      if (token === '(') depth += 1;
      if (token === ')') depth -= 1;
      // The commas of a function's operands stand within its parentheses.
      targetIsNext = token === ',' && depth === 0;
    }
    previous = token;
  }
  return { targets, afterSet };
}

/** Adds an assignment to the SET clause, or such a clause. */
export function withAssignment(expression: string | undefined, assignment: string): string {
  if (expression === undefined) return `SET ${assignment}`;
  const { afterSet } = outlineUpdate(expression);
  if (afterSet === undefined) return `${expression} SET ${assignment}`;
  return `${expression.slice(0, afterSet)} ${assignment},${expression.slice(afterSet)}`;
}

/**
 * The condition within one pair of parentheses, and not within two, which DynamoDB refuses.
 * Undefined when its own do not match: then more parentheses would change what it means.
 */
export function inParentheses(condition: string): string | undefined {
  const text = condition.trim();
  let depth = 0;
  let enclosed = text.startsWith('(');
  for (let index = 0; index < text.length; index++) {
    if (text[index] === '(') depth += 1;
    if (text[index] === ')') depth -= 1;
    if (depth < 0) return undefined;
    if (depth === 0 && index < text.length - 1) enclosed = false;
  }
  if (depth !== 0) return undefined;
  return enclosed ? text : `(${text})`;
}

/** The parts of a request that its placeholders stand in. */
export interface Expressions {
  readonly UpdateExpression?: string;
  readonly ConditionExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, unknown>>;
}

/** The user's placeholders, and others that neither they nor their expressions mention. */
export class UserPlaceholders {
  readonly #names: Record<string, string>;
  readonly #values: Record<string, unknown>;
  readonly #taken: readonly string[];

  constructor(own: Expressions) {
    this.#names = { ...own.ExpressionAttributeNames };
    this.#values = { ...own.ExpressionAttributeValues };
    this.#taken = [
      ...Object.keys(this.#names),
      ...Object.keys(this.#values),
      own.ConditionExpression ?? '',
      own.UpdateExpression ?? '',
    ];
  }

  /** A placeholder for the attribute: `base`, or with a number behind it. */
  name(base: `#${string}`, attribute: string): string {
    const placeholder = this.#unused(base);
    this.#names[placeholder] = attribute;
    return placeholder;
  }

  value(base: `:${string}`, value: unknown): string {
    const placeholder = this.#unused(base);
    this.#values[placeholder] = value;
    return placeholder;
  }

  merged() {
    return { ExpressionAttributeNames: this.#names, ExpressionAttributeValues: this.#values };
  }

  #unused(base: string): string {
    let placeholder = base;
    for (let count = 2; this.#taken.some((text) => text.includes(placeholder)); count++) {
      placeholder = `${base}${count}`;
    }
    return placeholder;
  }
}
