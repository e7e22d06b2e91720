// Conditions and writes in DynamoDB's expression language. Names are always placeholders:
// `condition` and others are reserved words.

import { partsOf, type Condition, type Path } from './condition.ts';
import type { Value } from './lease.ts';
import type { Increment, Write } from './writes.ts';

export interface Placeholders {
  readonly ExpressionAttributeNames: Record<string, string>;
  readonly ExpressionAttributeValues: Record<string, never>;
}

class Expressions {
  readonly #names = new Map<string, string>();
  readonly #values: Record<string, Value> = {};

  path(path: Path): string {
    return partsOf(path)
      .map((name) => {
        const placeholder = this.#names.get(name) ?? `#n${this.#names.size}`;
        this.#names.set(name, placeholder);
        return placeholder;
      })
      .join('.');
  }

  value(literal: Value): string {
    const placeholder = `:v${Object.keys(this.#values).length}`;
    this.#values[placeholder] = literal;
    return placeholder;
  }

  number(literal: number): string {
    return this.value({ N: String(literal) });
  }

  /** Parentheses only where they change something: some servers take long over nested ones. */
  condition(part: Condition, within?: 'all' | 'any' | 'not'): string {
    if ('absent' in part) return `attribute_not_exists(${this.path(part.absent)})`;
    if ('equals' in part) return `${this.path(part.equals[0])} = ${this.value(part.equals[1])}`;
    if ('same' in part) {
      // Some servers find two absent attributes equal.
      const [one, other] = part.same.map((path) => this.path(path));
      return `(attribute_exists(${one}) AND ${one} = ${other})`;
    }
    if ('below' in part) return `${this.path(part.below[0])} < ${this.number(part.below[1])}`;
    if ('after' in part) return `${this.path(part.after[0])} > ${this.value({ S: part.after[1] })}`;
    if ('isNumber' in part) {
      return `attribute_type(${this.path(part.isNumber)}, ${this.value({ S: 'N' })})`;
    }
    if ('not' in part) return `(NOT ${this.condition(part.not, 'not')})`;
    const [kind, parts, operator] =
      'all' in part ? (['all', part.all, ' AND '] as const) : (['any', part.any, ' OR '] as const);
    const joined = parts.map((each) => this.condition(each, kind)).join(operator);
    return within === undefined || within === kind ? joined : `(${joined})`;
  }

  effect(attribute: Path, set: Value | Increment): string {
    const target = this.path(attribute);
    if (!('incrementFrom' in set)) return `${target} = ${this.value(set)}`;
    const from = this.number(set.incrementFrom);
    return `${target} = if_not_exists(${target}, ${from}) + ${this.number(1)}`;
  }

  placeholders(): Partial<Placeholders> {
    return {
      ExpressionAttributeNames: Object.fromEntries(
        [...this.#names].map(([name, placeholder]) => [placeholder, name]),
      ),
      // An empty map is refused. The SDK's type of a value has members that no write uses.
      ...(Object.keys(this.#values).length > 0
        ? { ExpressionAttributeValues: this.#values as Record<string, never> }
        : {}),
    };
  }
}

export function conditionExpression(condition: Condition) {
  const expressions = new Expressions();
  const text = expressions.condition(condition);
  return { text, ...expressions.placeholders() };
}

export function writeExpressions({ condition, set, remove }: Write) {
  const expressions = new Expressions();
  const effects = Object.entries(set).map(([name, effect]) =>
    expressions.effect(name as Path, effect),
  );
  const removed = remove.map((name) => expressions.path(name));
  return {
    ConditionExpression: expressions.condition(condition),
    UpdateExpression:
      (effects.length > 0 ? `SET ${effects.join(', ')} ` : '') +
      (removed.length > 0 ? `REMOVE ${removed.join(', ')}` : ''),
    ...expressions.placeholders(),
  };
}
