/**
 * The branch executor's judgement, pure: given what has ended and what is in flight, what may start, what must stop, and
 * what will never run. A single call is a graph of one branch.
 */
import { type Branch, branchesOf, branchId, type Decision, type Join } from '../core/decision.ts';
import type { ErrorData } from '../core/errors.ts';
import { type Json, jsonEquals } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import type { CallRecord } from '../core/step.ts';
import { dependenciesOf } from '../core/validate-decision.ts';
import { isJoinMet } from '../view/waits.ts';

/** At most this many branches of a call run at once. */
export const BRANCH_CONCURRENCY = 8;

export interface BranchGraph {
  readonly branches: readonly Branch[];
  /** For each branch, the indices it waits for. */
  readonly needs: readonly (readonly number[])[];
  readonly indexById: ReadonlyMap<string, number>;
  readonly join: Join | undefined;
  readonly concurrency: number;
}

export interface BranchPlan {
  readonly start: readonly number[];
  readonly stop: readonly number[];
  /** Branches that will never run, with the outcome to record. */
  readonly settle: readonly { readonly call: number; readonly outcome: Outcome }[];
}

export function branchGraph(decision: Decision): BranchGraph {
  const branches = branchesOf(decision);
  const indexById = new Map(branches.map((branch, index) => [branchId(branch, index), index]));
  const needs = branches.map((branch) => dependenciesOf(branch).map((id) => indexById.get(id) as number));
  const { join, concurrency = BRANCH_CONCURRENCY } = decision.kind === 'call_parallel' ? decision : {};
  return { branches, needs, indexById, join, concurrency: Math.min(concurrency, BRANCH_CONCURRENCY) };
}

/**
 * @param calls what has ended; `null` where nothing has.
 * @param inFlight the branches that run now.
 * @param isParked whether a branch waits for an answer or a task: it runs without taking a place.
 * @param hasWaited whether a branch has waited for a task, and is to have what that came to: it takes no place either.
 * @param mayStart whether the tool's own limit leaves room for this branch, beside those in flight and the `starting` ones.
 */
export function planBranches(
  graph: BranchGraph,
  calls: readonly (CallRecord | null)[],
  inFlight: ReadonlySet<number> | ReadonlyMap<number, unknown>,
  isParked: (call: number) => boolean,
  hasWaited: (call: number) => boolean,
  mayStart: (call: number, starting: readonly number[]) => boolean,
): BranchPlan {
  if (isJoinMet(graph.join, calls)) return stopAll(calls, inFlight);
  const start: number[] = [];
  const settle: { call: number; outcome: Outcome }[] = [];
  let room = graph.concurrency - inFlight.size;
  for (let call = 0; call < calls.length; call += 1) {
    if (calls[call] !== null || inFlight.has(call) || isParked(call)) continue;
    const readiness = readinessOf(graph, call, calls);
    if (readiness === 'wait') continue;
    if (readiness !== 'ready') settle.push({ call, outcome: { kind: 'skipped', error: readiness } });
    else if (hasWaited(call)) start.push(call);
    else if (room > 0 && mayStart(call, start)) {
      start.push(call);
      room -= 1;
    }
  }
  return { start, stop: [], settle };
}

function stopAll(calls: readonly (CallRecord | null)[], inFlight: { has(call: number): boolean }): BranchPlan {
  const error = { code: 'cancelled', message: 'The join had what it needed before this branch ended.' };
  const open = calls.flatMap((record, call) => (record === null ? [call] : []));
  return {
    start: [],
    stop: open.filter((call) => inFlight.has(call)),
    settle: open.filter((call) => !inFlight.has(call)).map((call) => ({ call, outcome: { kind: 'cancelled', error } })),
  };
}

/** Ready, still waiting, or the reason why the branch will never run. */
function readinessOf(
  graph: BranchGraph,
  call: number,
  calls: readonly (CallRecord | null)[],
): 'ready' | 'wait' | ErrorData {
  for (const need of graph.needs[call] ?? []) {
    const record = calls[need];
    if (record === null || record === undefined) return 'wait';
    if (record.outcome.kind !== 'value') {
      return skipped(`It needs branch ${need}, which did not end with a value.`, need);
    }
  }
  const when = graph.branches[call]?.when;
  if (when === undefined) return 'ready';
  const route = graph.indexById.get(when.branch) as number;
  return jsonEquals(valueIn(calls[route]), when.equals)
    ? 'ready'
    : skipped(`Its condition on branch ${route} does not hold.`, route);
}

function valueIn(record: CallRecord | null | undefined): Json | undefined {
  return record?.outcome.kind === 'value' ? record.outcome.value : undefined;
}

function skipped(message: string, branch: number): ErrorData {
  return { code: 'branch_not_started', message, data: { branch } };
}
