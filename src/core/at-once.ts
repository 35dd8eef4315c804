/** How many calls of one step run at once. */

/** Nothing lets more of them run. */
export const MAX_AT_ONCE = 50;

/**
 * What keeps calls of a step from running all at once, beside what the decision says of itself. It is recorded with the move:
 * whoever goes on with the run keeps to it.
 */
export interface AtOnce {
  /** Fewer than `MAX_AT_ONCE`, as the runtime or the entry of its planner says. */
  readonly calls?: number;
  readonly by?: 'runtime' | 'agent';
  /** For tools of which the step has more calls than may be in flight. */
  readonly tools?: Readonly<Record<string, number>>;
}

/** Calls of a step that could run at once, and do not. */
export interface HeldBack {
  /** `cap`: `MAX_AT_ONCE`. */
  readonly by: 'cap' | 'decision' | 'agent' | 'runtime' | 'tool';
  /** By which it is. */
  readonly tool?: string;
  /** So many calls, of the tool or in all, run at once. */
  readonly limit: number;
  /** So many wait for no other call at some time. */
  readonly calls: number;
}
