/**
 * The port to what keeps runs moving over many machines, such as a workflow engine. The journal holds the truth about a run, and `advance` decides
 * from it alone: a driver says when a run is looked at, and nothing else.
 */

/**
 * What is next for a run. `again`: it is due. `wait`: until `at`, or without it until somebody tells the run something, and wakes it. `busy`:
 * somebody else has it, or it cannot go on here now; it may be asked for again at `until`. `done`: it has ended, or is not there. Times are
 * milliseconds since the epoch, by the clock of the process that says them.
 */
export type Advanced =
  | { readonly next: 'again' }
  | { readonly next: 'wait'; readonly at?: number }
  | { readonly next: 'busy'; readonly until: number }
  | { readonly next: 'done' };

/** Claims the run, carries out a slice of it, and gives it back. It never rejects, and may be called at any time, as often as one likes. */
export type Advance = (run: string) => Promise<Advanced>;

export interface Driver {
  /**
   * From now on this process carries out runs: the driver calls `advance` for each run that is woken, here or elsewhere, and again as its answer
   * says. Of one run it need not call it once at a time: a second call is told that the run is busy.
   */
  start(advance: Advance): void | Promise<void>;
  /**
   * The run is due, or is at this time. Resolves when the engine has taken the wake over; it may still repeat it, come late, or lose it. Works
   * in every process, also before `start` and after `stop`.
   * @throws when the engine does not take it over, soon: processes that carry out runs then do so without it.
   */
  wake(run: string, at?: number): Promise<void>;
  /** Calls `advance` no more, and resolves when what it has called has been answered, and the answers are where they belong. */
  stop(): Promise<void>;
}
