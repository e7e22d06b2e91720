// What a user may set, resolved and checked before anything is sent. Explicit options win over the
// environment; every message names the option, the value and the rule, with the numbers.

import type { Environment } from './environment.ts';
import { LeaseError } from './errors.ts';
import { byteLength, mapBytes } from './holder.ts';
import { BYTE_BUDGET, DEFAULT_NAMESPACE, LONGEST_DURATION_SECONDS } from './schema.ts';

/** How long a lease lasts and how it is kept, in seconds; fractions count to the millisecond. */
export interface TimingOptions {
  /** How long a renewal lasts. Measured from before it was sent. Default 15. */
  readonly leaseDurationSeconds?: number;
  /**
   * The holder stops believing this long after it sent its last successful renewal. Default: two
   * thirds of the duration. What is left to the duration is the tolerance: how far any two clocks
   * may differ.
   */
  readonly renewDeadlineSeconds?: number;
  /**
   * Between two renewals of a holder, and between two looks of a contender. Default: a fifth of
   * the renew deadline.
   */
  readonly retryPeriodSeconds?: number;
  /**
   * When a call of the store that has not been answered counts as "cannot tell". Default: 3, or
   * less where two such calls would not fit between retryPeriod and renewDeadline.
   */
  readonly requestTimeoutSeconds?: number;
}

export const TIMING_OPTIONS = [
  'leaseDurationSeconds',
  'renewDeadlineSeconds',
  'retryPeriodSeconds',
  'requestTimeoutSeconds',
] as const satisfies readonly (keyof TimingOptions)[];

/** All in milliseconds. */
export interface Timing {
  readonly leaseDurationMs: number;
  readonly renewDeadlineMs: number;
  readonly retryPeriodMs: number;
  readonly requestTimeoutMs: number;
  /** leaseDuration less renewDeadline: holders stop that much before others may start. */
  readonly toleranceMs: number;
}

const DEFAULT_LEASE_DURATION_SECONDS = 15;
const LONGEST_REQUEST_TIMEOUT_SECONDS = 3;
const LONGEST_SHOWN = 200;

/** client-go's proportions, 15 / 10 / 2 s, where only some are given. */
export function resolveTiming(options: TimingOptions): Timing {
  const leaseDuration = seconds(options, 'leaseDurationSeconds') ?? DEFAULT_LEASE_DURATION_SECONDS;
  const renewDeadline = seconds(options, 'renewDeadlineSeconds') ?? (leaseDuration * 2) / 3;
  const retryPeriod = seconds(options, 'retryPeriodSeconds') ?? (renewDeadline * 2) / 10;
  const requestTimeout =
    seconds(options, 'requestTimeoutSeconds') ??
    Math.min(LONGEST_REQUEST_TIMEOUT_SECONDS, (renewDeadline - retryPeriod) / 2);

  if (leaseDuration <= renewDeadline) {
    throw invalid(
      `leaseDurationSeconds (${leaseDuration}) must be greater than renewDeadlineSeconds ` +
        `(${renewDeadline}): a holder must stop before others may start.`,
    );
  }
  if (renewDeadline <= retryPeriod || renewDeadline < retryPeriod + 2 * requestTimeout - 1e-9) {
    throw invalid(
      `renewDeadlineSeconds (${renewDeadline}) must leave room for two attempts to renew with ` +
        `their time-outs: at least retryPeriodSeconds (${retryPeriod}) + 2 x ` +
        `requestTimeoutSeconds (${requestTimeout}) = ${retryPeriod + 2 * requestTimeout}.`,
    );
  }
  const timing = {
    leaseDurationMs: milliseconds(leaseDuration),
    renewDeadlineMs: milliseconds(renewDeadline),
    retryPeriodMs: milliseconds(retryPeriod),
    requestTimeoutMs: milliseconds(requestTimeout),
  };
  const given = { leaseDuration, renewDeadline, retryPeriod, requestTimeout };
  for (const [name, value] of Object.entries(given)) {
    if (milliseconds(value) < 1) {
      throw invalid(`${name}Seconds (${value}) must be at least 0.001.`);
    }
  }
  const toleranceMs = timing.leaseDurationMs - timing.renewDeadlineMs;
  if (toleranceMs < 1) {
    throw invalid(
      `leaseDurationSeconds (${leaseDuration}) must be greater than renewDeadlineSeconds ` +
        `(${renewDeadline}) by at least 0.001.`,
    );
  }
  return { ...timing, toleranceMs };
}

/** A number of seconds that was given, in the range that every duration must be in. */
export function seconds<Name extends string>(
  options: Readonly<Partial<Record<Name, unknown>>>,
  name: Name,
): number | undefined {
  const value = options[name];
  if (value === undefined) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value) || value <= 0) {
    throw invalid(`${name} is ${show(value)}; it must be a number of seconds greater than 0.`);
  }
  if (value > LONGEST_DURATION_SECONDS) {
    throw invalid(
      `${name} is ${value}; it must be at most ${LONGEST_DURATION_SECONDS} (366 days). ` +
        'Is it in milliseconds?',
    );
  }
  return value;
}

export function milliseconds(value: number): number {
  return Math.round(value * 1_000);
}

/** `namespace/name`, the key of the record. There is no default name. */
export function leaseKey(name: unknown, namespace: unknown, environment: Environment): string {
  const space = namespace === undefined ? (environment.namespace ?? DEFAULT_NAMESPACE) : namespace;
  checkText('namespace', space);
  checkText('name', name);
  if (space.includes('/')) {
    throw invalid(`namespace is ${show(space)}; it must not contain a slash.`);
  }
  if (byteLength(space) > BYTE_BUDGET.namespace) {
    throw invalid(
      `namespace is ${byteLength(space)} bytes long; it must be at most ${BYTE_BUDGET.namespace}.`,
    );
  }
  const key = `${space}/${name}`;
  if (byteLength(key) > BYTE_BUDGET.lease) {
    throw invalid(
      `name is too long: namespace and name, ${show(key)}, are ${byteLength(key)} bytes of ` +
        `UTF-8; they must be at most ${BYTE_BUDGET.lease}.`,
    );
  }
  return key;
}

export function checkTexts(option: 'labels' | 'annotations', texts: unknown): void {
  if (texts === undefined) return;
  if (typeof texts !== 'object' || texts === null || Array.isArray(texts)) {
    throw invalid(`${option} is ${show(texts)}; it must be an object of strings.`);
  }
  for (const [name, value] of Object.entries(texts)) {
    if (typeof value !== 'string') {
      throw invalid(`${option}.${name} is ${show(value)}; it must be a string.`);
    }
  }
  const size = mapBytes(texts as Record<string, string>);
  const room = BYTE_BUDGET[option === 'labels' ? 'labels' : 'ownAnnotations'];
  if (size > room) {
    throw invalid(
      `${option} takes ${size} bytes of UTF-8, names and one for each included; it must be at ` +
        `most ${room}.`,
    );
  }
}

/** Plain JavaScript has no compiler to catch a typing error in an option's name. */
export function checkNames(what: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null) {
    throw invalid(`${what} needs an object of options, not ${show(options)}.`);
  }
  for (const name of Object.keys(options)) {
    if (!known.includes(name)) {
      throw invalid(`${what} has no option ${show(name)}. It has: ${known.join(', ')}.`);
    }
  }
}

/** By what it can do, not by its class: a program may carry two copies of a package. */
export function checkMethods(option: string, value: unknown, methods: readonly string[]): void {
  if (value === undefined) return;
  const able = (typeof value === 'object' && value !== null) || typeof value === 'function';
  if (able && methods.every((name) => typeof Reflect.get(value, name) === 'function')) return;
  const needed = `${methods.length > 1 ? 'methods' : 'method'} ${methods.join(', ')}`;
  throw invalid(`${option} is ${show(value)}; it must have the ${needed}.`);
}

export function checkFlag(option: string, value: unknown): void {
  if (value === undefined || typeof value === 'boolean') return;
  throw invalid(`${option} is ${show(value)}; it must be true or false.`);
}

export function invalid(message: string): LeaseError {
  return new LeaseError('invalid-configuration', message);
}

/** Any text at all. */
export function checkFilled(option: string, value: unknown): asserts value is string {
  if (typeof value !== 'string' || value === '') {
    throw invalid(`${option} is ${show(value)}; it must be a text of at least one character.`);
  }
}

function checkText(option: string, value: unknown): asserts value is string {
  checkFilled(option, value);
  // Control, unassigned, private, lone surrogate and format characters, and line separators; but
  // some scripts cannot do without the two joiners, where they join something.
  const unprintable = /(?![\u200c\u200d])[\p{C}\p{Zl}\p{Zp}]|^[\u200c\u200d]+$/u;
  if (unprintable.test(value) || value.trim() !== value) {
    throw invalid(`${option} is ${show(value)}; it must be printable, without blanks at its ends.`);
  }
}

/** A value for a message, on one line: what cannot be seen in a text is shown by its number. */
export function show(value: unknown): string {
  if (typeof value === 'string') {
    const short = value.length > LONGEST_SHOWN ? `${value.slice(0, LONGEST_SHOWN)}…` : value;
    return JSON.stringify(short).replace(
      /[\p{C}\p{Zl}\p{Zp}]/gu,
      (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`,
    );
  }
  if (typeof value === 'function') return 'a function';
  if (typeof value !== 'object' || value === null) return String(value);
  return Array.isArray(value) ? 'an array' : 'an object';
}
