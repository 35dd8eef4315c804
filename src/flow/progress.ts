/** The state of a flow's nodes, read from the steps of its run. */
import {
  type ArtifactRef,
  type Branch,
  branchesOf,
  branchId,
  type CallRecord,
  type ErrorData,
  errorOf,
  type Json,
  type JsonObject,
  type Outcome,
  type Step,
} from '#core';
import type { FlowGraph } from './graph.ts';

/** An instance of a node that has ended with a value. */
export interface Done {
  readonly kind: 'done';
  readonly step: number;
  readonly id: string;
  readonly value: Json;
  /** The whole value; `value` is a preview of it. */
  readonly artifact?: ArtifactRef;
}

/** The status of a node in a round. `open`: the node is still to be run or skipped. */
export type Status = Done | Passed | { readonly kind: 'open' };

interface Passed {
  readonly kind: 'passed';
  readonly removed?: ErrorData;
  /** Set when the instance failed. */
  readonly failure?: Failure;
}

/** What runs until a way back is taken or the end is reached: one step, or more when the goal is changed on the way. */
export interface Round {
  /** From 1. */
  readonly number: number;
  /** The nodes at which it begins, each with its arguments. */
  readonly heads: ReadonlyMap<string, Json>;
  readonly nodes: Map<string, Status>;
}

/** What was planned for a node last, in any round. */
export interface Last {
  readonly id: string;
  /** The value of its last instance, unless that was passed over. */
  readonly done?: Done;
  /** True: the instance did not begin, so that its name is free. */
  readonly isFree: boolean;
}

export interface Progress {
  readonly round: Round;
  readonly last: ReadonlyMap<string, Last>;
}

export interface Failure {
  readonly node: string;
  readonly id: string;
  readonly record: CallRecord;
  readonly error: ErrorData;
}

export const OPEN: Status = { kind: 'open' };
export const PASSED: Status = { kind: 'passed' };

export function hasOpen({ nodes }: Round): boolean {
  for (const { kind } of nodes.values()) if (kind === 'open') return true;
  return false;
}

/** For each node what was planned last, searched from the end and no further than needed. */
export function lastOf({ nodes }: FlowGraph, steps: Steps): ReadonlyMap<string, Last> {
  const last = new Map<string, Last>();
  for (let index = steps.count - 1; index >= 0 && last.size < nodes.size; index -= 1) {
    const { decision, calls = [] } = steps.step(index) ?? {};
    if (decision?.kind !== 'call_parallel') continue;
    for (const [call, branch] of decision.branches.entries()) {
      // Under other code than that with which it was planned, the graph may know it no more.
      if (last.has(branch.tool) || !nodes.has(branch.tool)) continue;
      const status = branchStatus(branch, call, calls, index);
      const found = { id: branchId(branch, call), isFree: status.kind === 'open' };
      last.set(branch.tool, status.kind === 'done' ? { ...found, done: status } : found);
    }
  }
  return last;
}

/** What of a trajectory it takes. */
export interface Steps {
  readonly count: number;
  step(index: number): Step | undefined;
}

/** What a move says of its round, for the moves after it. */
export function roundNotes({ number, heads }: Round): JsonObject {
  return { round: number, heads: [...heads.keys()] };
}

/** The round of the last step, with what all its steps have come to; `undefined`: nothing was planned yet. */
export function lastRound({ nodes }: FlowGraph, trajectory: Steps): Round | undefined {
  const steps: Step[] = [];
  for (let index = trajectory.count - 1; index >= 0; index -= 1) {
    const found = trajectory.step(index);
    if (found?.decision.kind !== 'call_parallel') continue;
    if (steps[0] !== undefined && numberOf(found) !== numberOf(steps[0])) break;
    steps.unshift(found);
  }
  const [first] = steps;
  if (first === undefined) return undefined;
  const round: Round = { number: numberOf(first), heads: headsOf(first), nodes: new Map() };
  for (const { tool } of branchesOf(first.decision)) if (nodes.has(tool)) round.nodes.set(tool, OPEN);
  for (const each of steps) takeStep(round, each);
  return round;
}

function numberOf({ provenance }: Step): number {
  const number = provenance?.['round'];
  return typeof number === 'number' ? number : 0;
}

function headsOf({ provenance, decision }: Step): ReadonlyMap<string, Json> {
  const names = provenance?.['heads'];
  const heads = new Map<string, Json>();
  for (const { tool, args } of branchesOf(decision)) {
    if (Array.isArray(names) && names.includes(tool)) heads.set(tool, args);
  }
  return heads;
}

function takeStep({ nodes }: Round, { decision, calls, index }: Step): void {
  const planned = new Set<string>();
  for (const [call, branch] of branchesOf(decision).entries()) {
    if (!nodes.has(branch.tool)) continue;
    planned.add(branch.tool);
    const failure = failureAt(branch, call, calls[call]);
    const status = branchStatus(branch, call, calls, index);
    nodes.set(branch.tool, failure === undefined ? status : { kind: 'passed', failure });
  }
  // What was not planned then comes to nothing now.
  for (const [node, { kind }] of nodes) if (kind === 'open' && !planned.has(node)) nodes.set(node, PASSED);
}

/** What a branch of a step has come to. */
export function branchStatus(branch: Branch, call: number, calls: Step['calls'], step: number): Status {
  const outcome = calls[call]?.outcome;
  if (outcome?.kind === 'value') {
    const { value, artifact } = outcome;
    const done = { kind: 'done' as const, step, id: branchId(branch, call), value };
    return artifact === undefined ? done : { ...done, artifact };
  }
  if (isBegunAgain(calls, call)) return OPEN;
  const error = outcome && errorOf(outcome);
  return error?.code === 'node_removed' ? { kind: 'passed', removed: error } : PASSED;
}

/**
 * Among the failed calls, the one that ended first. Calls that were stopped because of it are not the reason.
 * @param isTaken whether the failure leads to another node, so that the flow does not fail.
 */
export function failureOf(
  { decision, calls }: Pick<Step, 'decision' | 'calls'>,
  isTaken: (failure: Failure) => boolean = () => false,
): Failure | undefined {
  let first: Failure | undefined;
  for (const [call, branch] of branchesOf(decision).entries()) {
    const failure = failureAt(branch, call, calls[call]);
    if (failure === undefined || isTaken(failure)) continue;
    if (first === undefined || isBefore(failure.record, first.record)) first = failure;
  }
  return first;
}

/** The failures of the round, ordered by the time at which they ended. */
export function failuresOf({ nodes }: Round): readonly Failure[] {
  const failures = [...nodes.values()].flatMap((status) => (status.kind === 'passed' ? (status.failure ?? []) : []));
  return failures.sort((one, other) => one.record.seq - other.record.seq);
}

function failureAt(branch: Branch, call: number, record: CallRecord | undefined): Failure | undefined {
  const error = record === undefined ? undefined : failed(record.outcome);
  if (record === undefined || error === undefined) return undefined;
  return { node: branch.tool, id: branchId(branch, call), record, error };
}

/** Whether the call did not begin because of a new goal, or because of one that did not. */
function isBegunAgain(calls: Step['calls'], call: number): boolean {
  const seen = new Set<Json>();
  for (let at: Json = call; typeof at === 'number' && !seen.has(at); ) {
    seen.add(at);
    const outcome: Outcome | undefined = calls[at]?.outcome;
    const error: ErrorData | undefined = outcome && errorOf(outcome);
    if (isOfNewGoal(error)) return true;
    at = error?.code === 'branch_not_started' ? (error.data?.['branch'] ?? null) : null;
  }
  return false;
}

/** A new goal for the flow itself: what had not begun is begun again. */
function isOfNewGoal(error: ErrorData | undefined): boolean {
  if (error?.code === 'superseded') return error.data?.['control'] === 'REDIRECT';
  return error?.code === 'plan_redirected';
}

function failed(outcome: Outcome): ErrorData | undefined {
  if (outcome.kind === 'skipped' && outcome.error.code === 'superseded') {
    return isOfNewGoal(outcome.error) ? undefined : outcome.error;
  }
  return outcome.kind === 'error' || outcome.kind === 'unknown' || outcome.kind === 'cancelled'
    ? outcome.error
    : undefined;
}

function isBefore(record: CallRecord, other: CallRecord): boolean {
  const wasStopped = record.outcome.kind === 'cancelled';
  if (wasStopped !== (other.outcome.kind === 'cancelled')) return !wasStopped;
  return record.seq < other.seq;
}
