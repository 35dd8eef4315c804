/** What a run has left, for whoever decides about its next call. */

/** What is left of the run's budget. An absent part is unlimited. */
export interface BudgetView {
  readonly stepsLeft: number;
  /** Calls of tools. With none left the run may still finish. */
  readonly callsLeft?: number;
  /** Milliseconds since the epoch. */
  readonly deadlineAt?: number;
  readonly costMicroUsdSpent: number;
  readonly costMicroUsdLeft?: number;
  readonly tokensLeft?: number;
}
