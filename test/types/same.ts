// For tests that compile, and do nothing else.

/** True when both are exactly the same type; `any` is the same as nothing but itself. */
export type Same<A, B> =
  // Two such functions are compatible only when the compiler holds A and B for identical.
  // eslint-disable-next-line @typescript-eslint/no-unnecessary-type-parameters
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;

/** `same<A, B>(true)` compiles when A and B are the same type. */
export function same<A, B>(answer: Same<A, B>): Same<A, B> {
  return answer;
}

same<'a' | 'b', 'b' | 'a'>(true);
same<'a', 'a' | 'b'>(false);
same<{ a: string }, { a: string; b?: string }>(false);
same<unknown, string>(false);
// eslint-disable-next-line @typescript-eslint/no-explicit-any
same<any, string>(false);
// @ts-expect-error They differ.
same<'a', 'b'>(true);
