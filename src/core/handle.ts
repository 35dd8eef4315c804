/** What a journal knows of a live handle: that it was opened, and that it is gone. The value itself is never in it. */

/** Stands in the end of a call. */
export interface HandleNote {
  readonly name: string;
  /** Which opening of it: 1 for the first of the run. */
  readonly opening: number;
  /** The call was refused, because that opening is gone. Absent: the call used it, and nothing had been recorded of it. */
  readonly lost?: true;
}

/** The last opening of a handle that is recorded. */
export interface HandleState {
  readonly name: string;
  readonly opening: number;
  /** It is gone, and calls of this step were told so. */
  readonly lostAt?: number;
}
