/** What a journal records of a live handle: that it was opened, and that it was lost. The value itself is never recorded. */

/** A note about a handle in the end of a call. */
export interface HandleNote {
  readonly name: string;
  /** The number of the opening: 1 for the first of the run. */
  readonly opening: number;
  /** True: the call was refused, because the value of that opening is gone. Absent: the call was the first to use it. */
  readonly lost?: true;
}

/** The last opening of a handle that is recorded. */
export interface HandleState {
  readonly name: string;
  readonly opening: number;
  /** The step whose calls were told that the value is gone. */
  readonly lostAt?: number;
}
