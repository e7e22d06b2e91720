// Keys of leases as they stand in policies and environments, checked at synth by the rules that the
// library applies when it runs.

import { Token } from 'aws-cdk-lib';
import { BYTE_BUDGET, DEFAULT_NAMESPACE } from '../src/schema.ts';

/** What a condition on `dynamodb:LeadingKeys` is made of. */
export interface LeadingKeys {
  readonly operator: 'StringEquals' | 'StringLike';
  readonly keys: string[];
}

/** Exactly these keys; patterns where a name has a `*` in it, which stands for anything. */
export function keysOf(leases: readonly string[], namespace = DEFAULT_NAMESPACE): LeadingKeys {
  if (leases.length === 0) {
    throw new Error('leases is empty: name the leases that may be held, or a pattern such as "*".');
  }
  checkNamespace(namespace);
  if (namespace.includes('*')) {
    throw new Error(`namespace is "${namespace}"; it cannot be a pattern. Only leases can be.`);
  }
  const keys = leases.map((name) => {
    checkKey(namespace, name);
    return `${namespace}/${name}`;
  });
  return keys.some((key) => key.includes('*'))
    ? { operator: 'StringLike', keys: keys.map((key) => literally(key, true)) }
    : { operator: 'StringEquals', keys: keys.map((key) => literally(key, false)) };
}

/** The name of one lease: no pattern. */
export function checkLeaseName(namespace: string, name: string): void {
  checkNamespace(namespace);
  checkKey(namespace, name);
  for (const [option, value] of Object.entries({ namespace, leaseName: name })) {
    if (value.includes('*')) {
      throw new Error(
        `${option} is "${value}"; a "*" in it would be a pattern in the policy that limits the ` +
          'function to its lease. Choose a name without.',
      );
    }
  }
}

/** In a policy `${…}` is a variable, and in a pattern `?` stands for a character. */
function literally(key: string, pattern: boolean): string {
  const escaped = Token.isUnresolved(key) ? key : key.replaceAll('$', '${$}');
  return pattern ? escaped.replaceAll('?', '${?}') : escaped;
}

function checkNamespace(namespace: string): void {
  if (Token.isUnresolved(namespace)) return;
  checkText('namespace', namespace);
  if (namespace.includes('/')) {
    throw new Error(`namespace is "${namespace}"; it must not contain a slash.`);
  }
  const size = Buffer.byteLength(namespace);
  if (size > BYTE_BUDGET.namespace) {
    throw new Error(
      `namespace is ${size} bytes long; it must be at most ${BYTE_BUDGET.namespace}.`,
    );
  }
}

function checkKey(namespace: string, name: string): void {
  if (Token.isUnresolved(name) || Token.isUnresolved(namespace)) return;
  checkText('The name of a lease', name);
  const size = Buffer.byteLength(`${namespace}/${name}`);
  if (size > BYTE_BUDGET.lease) {
    throw new Error(
      `The name of a lease is too long: namespace and name, "${namespace}/${name}", are ${size} ` +
        `bytes of UTF-8; they must be at most ${BYTE_BUDGET.lease}.`,
    );
  }
}

function checkText(option: string, value: string): void {
  if (value === '' || value.trim() !== value || /[\p{C}\p{Zl}\p{Zp}]/u.test(value)) {
    throw new Error(
      `${option} is ${JSON.stringify(value)}; it must be printable text, without blanks at its ` +
        'ends.',
    );
  }
}
