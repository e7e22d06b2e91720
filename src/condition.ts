// Conditions on a record, as data. What a conditional write asks for and what a scan filters by are
// the same language; DynamoDB evaluates it there, holds() evaluates it here.

import { asNumber, type Item, type Value } from './lease.ts';
import type { AttributeName, KEY_ATTRIBUTE } from './schema.ts';

/** The key, an attribute, or an entry of a map: of a verdict, of what somebody says. */
export type Path =
  | typeof KEY_ATTRIBUTE
  | AttributeName
  | `condition.${'status' | 'seen' | 'since' | 'token' | 'count' | 'event' | 'missed'}`
  | 'pass.at'
  | 'annotations.ready'
  | 'suspended.since'
  | 'stepDownRequested.since'
  | 'operator.count'
  | `labels.${string}`;

export type Condition =
  | { readonly absent: Path }
  | { readonly equals: readonly [Path, Value] }
  /** Two attributes have equal values. False when either is absent. */
  | { readonly same: readonly [Path, Path] }
  /** False when the attribute is absent or no number. */
  | { readonly below: readonly [Path, number] }
  /** A text that sorts after this one. False when the attribute is absent or no text. */
  | { readonly after: readonly [Path, string] }
  | { readonly isNumber: Path }
  | { readonly not: Condition }
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] };

export function holds(condition: Condition, item: Item): boolean {
  if ('absent' in condition) return at(item, condition.absent) === undefined;
  if ('equals' in condition) return sameValue(at(item, condition.equals[0]), condition.equals[1]);
  if ('same' in condition) {
    const [one, other] = condition.same.map((path) => at(item, path));
    return other !== undefined && sameValue(one, other);
  }
  if ('below' in condition) {
    const number = asNumber(at(item, condition.below[0]));
    return number !== undefined && number < condition.below[1];
  }
  if ('after' in condition) {
    const value = at(item, condition.after[0]);
    return value !== undefined && 'S' in value && value.S > condition.after[1];
  }
  if ('isNumber' in condition) return 'N' in (at(item, condition.isNumber) ?? {});
  if ('not' in condition) return !holds(condition.not, item);
  if ('all' in condition) return condition.all.every((part) => holds(part, item));
  return condition.any.some((part) => holds(part, item));
}

/** The attribute, and the entry where one is meant. The name of a label may contain dots. */
export function partsOf(path: Path): readonly [string] | readonly [string, string] {
  const dot = path.indexOf('.');
  return dot === -1 ? [path] : [path.slice(0, dot), path.slice(dot + 1)];
}

function at(item: Item, path: Path): Value | undefined {
  const [name, part] = partsOf(path);
  const value = item[name];
  if (part === undefined) return value;
  return value !== undefined && 'M' in value ? value.M[part] : undefined;
}

/** As DynamoDB compares: numbers by value, maps whatever the order of their entries. */
export function sameValue(a: Value | undefined, b: Value | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  if ('N' in a && 'N' in b) return Number(a.N) === Number(b.N);
  if ('M' in a && 'M' in b) {
    const names = Object.keys(a.M);
    const { M } = b;
    return (
      names.length === Object.keys(M).length && names.every((name) => sameValue(a.M[name], M[name]))
    );
  }
  return JSON.stringify(a) === JSON.stringify(b);
}
