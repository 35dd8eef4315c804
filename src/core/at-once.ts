/** How many calls of one step run at once. */

/** The most calls of one step that may run at once. */
export const MAX_AT_ONCE = 50;

/**
 * Limits on how many calls of a step run at once, beside the limit in the decision. They are recorded with the move, so that
 * every process that goes on with the run keeps to them.
 */
export interface AtOnce {
  /** The limit of the runtime or of the agent, when it is lower than `MAX_AT_ONCE`. */
  readonly calls?: number;
  readonly by?: 'runtime' | 'agent';
  /** Limits of the tools of which the step has more calls than may be in flight. */
  readonly tools?: Readonly<Record<string, number>>;
}

/** Calls of a step that could run at once but are held back. */
export interface HeldBack {
  /** `cap`: `MAX_AT_ONCE`. */
  readonly by: 'cap' | 'decision' | 'agent' | 'runtime' | 'tool';
  /** By which it is. */
  readonly tool?: string;
  /** How many calls, of the tool or in all, run at once. */
  readonly limit: number;
  /** How many calls could run at once, since none of them waits for another. */
  readonly calls: number;
}
