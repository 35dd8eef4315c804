/** The calls of a plan that has failed, as they are carried out once more: which they are, and what the state becomes. */
import {
  branchesOf,
  branchId,
  deepFreeze,
  type Entry,
  failureKindOf,
  isPassedOver,
  isPlan,
  type Moved,
  PilotageError,
  type Retries,
  type Step,
  stepError,
} from '#core';
import type { OpenStep, RunState } from './state.ts';
import { withoutLastStep } from './steps.ts';
import { goOnWithTasks } from './task-state.ts';

/** The last step of the run, when it is a plan of which a node has failed and nothing is under way; otherwise `undefined`. */
export function failedPlan({ steps, open }: Pick<RunState, 'steps' | 'open'>): Step | undefined {
  const last = steps.at(-1);
  if (open !== null || last === undefined || !isPlan(last.decision)) return undefined;
  return failedCalls(last).length === 0 ? undefined : last;
}

/** Calls that did not end with a value, and whose failure the plan does not allow for. */
function failedCalls({ decision, calls }: Step): readonly number[] {
  return branchesOf(decision).flatMap((branch, call) => {
    const outcome = calls[call]?.outcome;
    if (outcome === undefined || outcome.kind === 'value' || outcome.kind === 'skipped') return [];
    const kind = failureKindOf(outcome);
    return kind !== undefined && branch.tolerates?.includes(kind) === true ? [] : [call];
  });
}

/** Calls that were skipped because another had failed. */
function skippedCalls({ decision, calls }: Step): readonly number[] {
  const known = new Map<number, boolean>();
  return branchesOf(decision).flatMap((_, call) => {
    const isSkipped = calls[call]?.outcome.kind === 'skipped';
    return isSkipped && !isPassedOver(call, (other) => calls[other]?.outcome, known) ? [call] : [];
  });
}

/**
 * The calls of the plan that are carried out once more: the named nodes, or all that failed, and whatever was skipped. What was skipped
 * for a node that is not among them is skipped again.
 * @param nodes ids of nodes that have failed. Default: all of them.
 * @throws PilotageError `payload_invalid` for a node that the plan does not have, or that has not failed.
 */
export function callsToRetry(plan: Step, nodes: readonly string[] | undefined): readonly number[] {
  const failed = failedCalls(plan);
  const chosen = nodes === undefined ? failed : nodes.map((node) => failedNode(plan, node, failed));
  const { decision } = plan;
  const left = decision.kind === 'call_parallel' && decision.failFast === true ? without(failed, chosen) : [];
  const stopped = left.filter((call) => plan.calls[call]?.outcome.kind === 'cancelled');
  if (left.length > stopped.length) {
    const names = without(left, stopped).map((call) => idOf(plan, call));
    throw cannotRetry(`a failure stops the whole plan, so that these must be named too: ${names.join(', ')}`);
  }
  return [...new Set([...chosen, ...stopped, ...skippedCalls(plan)])].sort((one, other) => one - other);
}

/**
 * The ids that a retry names, as a list of its own.
 * @returns `undefined` when it names none, so that all that failed is meant.
 * @throws PilotageError `payload_invalid` for an empty list, or one with anything but texts.
 */
export function namedNodes(given: unknown): readonly string[] | undefined {
  if (given === undefined) return undefined;
  const nodes: readonly unknown[] = Array.isArray(given) ? Array.from(given) : [];
  if (nodes.length > 0 && nodes.every((node) => typeof node === 'string')) return nodes;
  throw cannotRetry('nodes must be a list of ids, with at least one; leave it out to retry all that have failed');
}

/**
 * A run that goes on has nothing to retry, unless it carries out these nodes once more already.
 * @throws PilotageError `payload_invalid`.
 */
export function assertRetrying({ open }: Pick<RunState, 'open'>, nodes: readonly string[] | undefined): void {
  if (open?.again === undefined)
    throw cannotRetry(
      'the run goes on, and its plan has not failed. Wait for its result; when its process is gone, resume it',
    );
  const branches = branchesOf(open.move.decision);
  const again = branches.flatMap((branch, call) => (open.again?.includes(call) ? [branchId(branch, call)] : []));
  const other = nodes?.find((node) => !again.includes(node));
  if (other === undefined) return;
  throw cannotRetry(`a retry is under way, and ${JSON.stringify(other)} is not one of its nodes: ${again.join(', ')}`);
}

function without(calls: readonly number[], others: readonly number[]): readonly number[] {
  return calls.filter((call) => !others.includes(call));
}

function failedNode(plan: Step, node: string, failed: readonly number[]): number {
  const call = branchesOf(plan.decision).findIndex((branch, index) => branchId(branch, index) === node);
  if (call === -1) throw cannotRetry(`the plan has no node ${JSON.stringify(node)}`);
  if (failed.includes(call)) return call;
  const { kind } = plan.calls[call]?.outcome ?? { kind: 'skipped' };
  const why = kind === 'value' ? 'has a value, which it keeps' : 'has not failed itself';
  throw cannotRetry(`the node ${JSON.stringify(node)} ${why}`);
}

function idOf({ decision }: Step, call: number): string {
  const branch = branchesOf(decision)[call];
  return branch === undefined ? String(call) : branchId(branch, call);
}

export function cannotRetry(why: string): PilotageError {
  return new PilotageError('payload_invalid', `Nothing was retried: ${why}.`);
}

/** Errors of calls that have happened, and whose value was lost. */
const VALUE_LOST: ReadonlySet<string> = new Set(['tool_invalid_output', 'unserializable']);

/** Those of the calls that may have happened. @param began the `once` calls of the step that the journal says to have begun. */
export function begunBefore(plan: Step, calls: readonly number[], began: ReadonlySet<number>): readonly number[] {
  return calls.filter((call) => {
    const outcome = began.has(call) ? plan.calls[call]?.outcome : undefined;
    return outcome?.kind === 'unknown' || (outcome?.kind === 'error' && VALUE_LOST.has(outcome.error.code));
  });
}

/** The `once` calls of the step that these entries say to have begun. */
export function onceBegun(entries: readonly Entry[], step: number): ReadonlySet<number> {
  return new Set(
    entries.flatMap((entry) =>
      entry.kind === 'call_began' && entry.step === step && entry.repeatable !== true ? [entry.call] : [],
    ),
  );
}

/** Opens the last step again, with the calls that are carried out once more. */
export function reopenStep(state: RunState, retries: Retries, at: number): void {
  const last = state.steps.at(-1);
  if (last === undefined) return;
  // A planner may have been shown the list.
  state.steps = withoutLastStep(state.steps);
  state.open = openedAgain(last, retries, at);
  goOnWithTasks(state, state.open, last, retries.tasks ?? []);
}

/** The step without what these calls came to. */
export function openedAgain(step: Step, { calls: again, begun = [] }: Retries, at: number): OpenStep {
  const calls = step.calls.map((record, call) => (again.includes(call) ? null : record));
  return {
    move: moveOf(step),
    calls,
    began: begun.map((call) => ({ call, at: step.calls[call]?.startedAt ?? at, once: true })),
    promised: [],
    approvals: [],
    waits: [],
    away: [],
    waiting: [],
    edits: [...(step.given ?? [])],
    pending: again.length,
    again,
  };
}

function moveOf(step: Step): Moved {
  const { index, decision, calls, error, given: _, endedAt: __, ...notes } = step;
  const fault = error !== undefined && stepError(decision, calls) === undefined ? { fault: error } : {};
  return deepFreeze({ kind: 'moved', step: index, decision, ...notes, ...fault });
}
