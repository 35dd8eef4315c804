/** A call with the place in the text where it was found. */
import type { CallForm } from './call-form.ts';
import type { WrittenCall } from './call-shapes.ts';

/** How a call was written. `args` is an object of arguments without a name. */
export type CallSyntax = 'object' | 'named' | 'python' | 'react' | 'tag' | 'args';

export interface FoundCall extends WrittenCall {
  readonly syntax: CallSyntax;
  readonly form: CallForm;
  readonly start: number;
  readonly end: number;
  /** What was read is not strict JSON, where JSON was meant. */
  readonly isLoose: boolean;
  readonly isTruncated: boolean;
  /** Why it is made although it was made before, in the model's words. */
  readonly again?: string;
  readonly sources: ReadonlyMap<object, string>;
}
