/**
 * The observation of a step, which the planner sees: the join applied to the outcomes of the branches. It is computed, never
 * stored.
 */
import { type Branch, branchesOf, type Decision } from './decision.ts';
import type { ErrorData } from './errors.ts';
import type { Json, JsonObject } from './json.ts';
import { errorOf } from './outcome.ts';
import type { CallRecord, Step } from './step.ts';

/** One branch's part of a parallel observation: exactly one of `value` and `error`. */
export type BranchObservation = {
  readonly call_id?: string;
  readonly tool: string;
  readonly index: number;
} & ({ readonly value: Json } | { readonly error: { readonly code: string; readonly message: string } });

/** The entries that count as a success, earliest first. */
function successes(calls: readonly CallRecord[]): { index: number; record: CallRecord }[] {
  return calls
    .flatMap((record, index) => (record.outcome.kind === 'value' ? [{ index, record }] : []))
    .sort((a, b) => a.record.seq - b.record.seq || a.index - b.index);
}

/**
 * The value of a step as its join gives it: the value of a single call; for a parallel call a list of branch
 * observations (all branches in index order; for `first_success` and `n` the successes in the order they came) or the
 * object of `keyed`; for a pause the verdict and its payload; for a decision that did not pass validation, its error.
 */
export function observe(step: Step): Json {
  const { decision, calls, error } = step;
  // A decision that did not pass validation has no calls: its observation is the error.
  if (calls.length === 0) return error === undefined ? null : { error: { code: error.code, message: error.message } };
  if (decision.kind !== 'call_parallel') {
    const outcome = calls[0]?.outcome;
    if (outcome === undefined) return null;
    if (outcome.kind === 'value') return outcome.value;
    if (outcome.kind === 'verdict') return { decision: outcome.verdict, payload: outcome.payload ?? null };
    return { error: { code: outcome.error.code, message: outcome.error.message } };
  }
  const one = (index: number): BranchObservation =>
    observeBranch(decision.branches[index] as Branch, index, calls[index]);
  const { join } = decision;
  switch (join?.kind) {
    case 'first_success':
      return successes(calls)
        .slice(0, 1)
        .map((found) => one(found.index));
    case 'n':
      return successes(calls)
        .slice(0, join.n)
        .map((found) => one(found.index));
    case 'keyed':
      return Object.fromEntries(
        join.keys.map((key, index) => {
          const observed = one(index);
          return [key, 'value' in observed ? observed.value : { error: observed.error }] as const;
        }),
      );
    default:
      return decision.branches.map((_, index) => one(index));
  }
}

/**
 * One observation for each branch, in index order, for every join: each call id gets exactly one answer. A decision that did not
 * pass validation has none.
 */
export function observeBranches(step: Step): readonly BranchObservation[] {
  if (step.calls.length === 0) return [];
  return branchesOf(step.decision).map((branch, index) => observeBranch(branch, index, step.calls[index]));
}

function observeBranch(branch: Branch, index: number, record: CallRecord | undefined): BranchObservation {
  const { tool, callId } = branch;
  const name = callId === undefined ? { tool, index } : { call_id: callId, tool, index };
  const outcome = record?.outcome;
  if (outcome?.kind === 'value') return { ...name, value: outcome.value };
  const error = outcome === undefined ? undefined : errorOf(outcome);
  return {
    ...name,
    error: { code: error?.code ?? 'branch_not_started', message: error?.message ?? 'The call was not started.' },
  };
}

/** The error of the step as a whole, if its join was not met or its set-up was refused. */
export function stepError(decision: Decision, calls: readonly CallRecord[]): ErrorData | undefined {
  if (decision.kind !== 'call_parallel') return undefined;
  if (decision.onInvalid !== 'per_branch') {
    const refused = calls.find((call) => call.startedAt === undefined && isSetUpError(errorOf(call.outcome)));
    if (refused !== undefined) return errorOf(refused.outcome);
  }
  const { join } = decision;
  const wanted = join?.kind === 'first_success' ? 1 : join?.kind === 'n' ? join.n : 0;
  const reached = wanted === 0 ? 0 : successes(calls).length;
  if (reached >= wanted) return undefined;
  const failures = decision.branches.flatMap((branch, index): JsonObject[] => {
    const error = calls[index] === undefined ? undefined : errorOf(calls[index].outcome);
    return error === undefined ? [] : [{ index, tool: branch.tool, code: error.code, message: error.message }];
  });
  return join?.kind === 'n'
    ? {
        code: 'parallel_threshold_unmet',
        message: `${reached} of the ${wanted} successes that the join asks for were reached.`,
        data: { wanted, reached, failures },
      }
    : { code: 'parallel_all_failed', message: `None of the ${calls.length} branches succeeded.`, data: { failures } };
}

function isSetUpError(error: ErrorData | undefined): boolean {
  return error?.data?.['setUp'] === true;
}
