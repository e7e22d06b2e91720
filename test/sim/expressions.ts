// Reads the expressions that a transaction carries, back into the data they were made of: what is
// carried out is what was sent.

import type { Condition, Path } from '../../src/condition.ts';
import type { Value } from '../../src/lease.ts';
import type { AttributeName } from '../../src/schema.ts';
import type { Increment, Write } from '../../src/writes.ts';

/** An operation of a TransactWriteItemsCommand, as far as a lease's own has it. */
export interface Operation {
  readonly Key: Readonly<Record<string, Value>>;
  readonly ConditionExpression: string;
  readonly UpdateExpression?: string;
  readonly ExpressionAttributeNames?: Readonly<Record<string, string>>;
  readonly ExpressionAttributeValues?: Readonly<Record<string, Value>>;
}

/** @throws Error when it says what no lease says. */
export function writeOf(operation: Operation): Write {
  const reader = new Reader(operation);
  const { set, remove } = reader.update();
  return { condition: reader.condition(), set, remove };
}

const TOKENS = /[#:]\w+|[()=<,+]|\w+/g;
const ASSIGNMENT = /^(#\w+) = (?:if_not_exists\(\1, (:\w+)\) \+ (:\w+)|(:\w+))$/;

class Reader {
  readonly #operation: Operation;
  readonly #tokens: string[];

  constructor(operation: Operation) {
    this.#operation = operation;
    this.#tokens = operation.ConditionExpression.match(TOKENS) ?? [];
  }

  condition(): Condition {
    const condition = this.#any();
    if (this.#tokens.length > 0) throw this.#unknown(this.#tokens[0]);
    return condition;
  }

  update(): Pick<Write, 'set' | 'remove'> {
    const { UpdateExpression: text = '' } = this.#operation;
    const [, assignments = '', removals = ''] =
      /^(?:SET (.*?))?\s*(?:REMOVE (.*))?$/.exec(text) ?? [];
    const set: Partial<Record<AttributeName, Value | Increment>> = {};
    // A comma inside of a function is followed by a value, one between assignments by a name.
    for (const assignment of assignments.split(/, (?=#)/).filter((part) => part !== '')) {
      const match = ASSIGNMENT.exec(assignment);
      if (match === null) throw this.#unknown(assignment);
      const [, name = '', from, by, value = ''] = match;
      if (by !== undefined && this.#number(by) !== 1) throw this.#unknown(assignment);
      set[this.#path(name) as AttributeName] =
        from === undefined ? this.#value(value) : { incrementFrom: this.#number(from) };
    }
    const removed = removals.split(', ').filter((part) => part !== '');
    return { set, remove: removed.map((name) => this.#path(name) as AttributeName) };
  }

  #any(): Condition {
    const parts = [this.#all()];
    while (this.#take('OR')) parts.push(this.#all());
    return parts.length === 1 ? parts[0]! : { any: parts };
  }

  #all(): Condition {
    const parts = [this.#one()];
    while (this.#take('AND')) parts.push(this.#one());
    return parts.length === 1 ? parts[0]! : { all: parts };
  }

  #one(): Condition {
    if (this.#take('NOT')) return { not: this.#one() };
    if (this.#take('(')) {
      const inside = this.#any();
      this.#expect(')');
      return inside;
    }
    const first = this.#tokens.shift() ?? '';
    if (first === 'attribute_not_exists' || first === 'attribute_type') {
      this.#expect('(');
      const path = this.#path(this.#tokens.shift());
      if (first === 'attribute_type') {
        this.#expect(',');
        const { S: type } = this.#value(this.#tokens.shift()) as { S?: string };
        if (type !== 'N') throw this.#unknown(type);
      }
      this.#expect(')');
      return first === 'attribute_type' ? { isNumber: path } : { absent: path };
    }
    const path = this.#path(first);
    const operator = this.#tokens.shift();
    const operand = this.#tokens.shift();
    if (operator === '=') return { equals: [path, this.#value(operand)] };
    if (operator === '<') return { below: [path, this.#number(operand)] };
    throw this.#unknown(operator);
  }

  #take(token: string): boolean {
    if (this.#tokens[0] !== token) return false;
    this.#tokens.shift();
    return true;
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw this.#unknown(this.#tokens[0]);
  }

  #path(placeholder = ''): Path {
    const name = this.#operation.ExpressionAttributeNames?.[placeholder];
    if (name === undefined) throw this.#unknown(placeholder);
    return name as Path;
  }

  #value(placeholder = ''): Value {
    const value = this.#operation.ExpressionAttributeValues?.[placeholder];
    if (value === undefined) throw this.#unknown(placeholder);
    return value;
  }

  #number(placeholder: string | undefined): number {
    return Number((this.#value(placeholder) as { N?: string }).N);
  }

  #unknown(part: string | undefined): Error {
    const { ConditionExpression, UpdateExpression } = this.#operation;
    return new Error(`"${part ?? ''}" of ${ConditionExpression}; ${UpdateExpression ?? ''}`);
  }
}
