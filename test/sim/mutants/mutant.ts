// What a mutant is: deliberately broken, by searches and replacements in the source of the core.

export interface Mutant {
  readonly name: string;
  readonly patches: readonly Patch[];
}

export interface Patch {
  /** From the root of the repository. */
  readonly file: string;
  /** Must occur exactly once. */
  readonly search: string;
  readonly replace: string;
}
