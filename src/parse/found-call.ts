/** A call with the place in the text where it was found. */
import type { WrittenCall } from './call-shapes.ts';

/** How a call was written. `args` is an object of arguments without a name. */
export type CallForm = 'object' | 'named' | 'python' | 'react' | 'tag' | 'args';

export interface FoundCall extends WrittenCall {
  readonly form: CallForm;
  readonly start: number;
  readonly end: number;
  /** What was read is not strict JSON, where JSON was meant. */
  readonly isLoose: boolean;
  readonly isTruncated: boolean;
  readonly sources: ReadonlyMap<object, string>;
}
