/** A known fault: a text that stands exactly once in a file of the sources, and what it is replaced with. */
export interface Mutant {
  /** What the changed code does wrong. */
  readonly name: string;
  /** Below `src`. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}
