/** Steps and outcomes made by hand, as they come back from a journal. */
import {
  type BackgroundResult,
  type Branch,
  branchesOf,
  type CallRecord,
  type Decision,
  type ErrorData,
  type Json,
  type Move,
  type MoveNotes,
  type Outcome,
  type PartialReply,
  type SteeringTurn,
  type Step,
  type TaskEnd,
} from '#core';

export const value = (json: Json): Outcome => ({ kind: 'value', value: json });

export const failure = (code: string, message: string): Outcome => ({ kind: 'error', error: { code, message } });

export interface StepOptions extends MoveNotes {
  readonly outcomes?: readonly Outcome[];
  /** What stands beside the outcome in the record of the call with the same index. */
  readonly records?: readonly Partial<CallRecord>[];
  /** The step was not accepted, or its reply was no move. */
  readonly error?: ErrorData;
  /** The reply goes on in the next step. */
  readonly partial?: PartialReply;
}

/** A step as it comes back from a journal. Default: every call gave `"done"`. */
export function stepOf(index: number, decision: Decision, options: StepOptions = {}): Step {
  const { outcomes = [], records = [], error, ...notes } = options;
  const slots = error === undefined && notes.partial === undefined ? branchesOf(decision).length || 1 : 0;
  const calls = Array.from({ length: slots }, (_, call) => ({
    outcome: outcomes[call] ?? value('done'),
    startedAt: 0,
    endedAt: index,
    attempts: 1,
    seq: index * 10 + call,
    ...records[call],
  }));
  const step = {
    index,
    decision,
    ...notes,
    calls,
    startedAt: 0,
    endedAt: 1,
    ...(error === undefined ? {} : { error }),
  };
  return JSON.parse(JSON.stringify(step)) as Step;
}

/** The step that a move becomes. Default: every call that was not refused gave `"done"`. */
export function stepOfMove(index: number, made: Move, outcomes?: readonly Outcome[], rejected?: ErrorData): Step {
  const { fault, decision, ...notes } = made;
  const error = rejected ?? fault;
  const all = branchesOf(decision).map((branch, at) => refusalOf(branch) ?? outcomes?.[at] ?? value('done'));
  return stepOf(index, decision, {
    ...notes,
    outcomes: all.length === 0 && outcomes !== undefined ? outcomes : all,
    ...(error === undefined ? {} : { error }),
  });
}

function refusalOf(branch: Branch | undefined): Outcome | undefined {
  return branch?.refusal === undefined ? undefined : { kind: 'error', error: branch.refusal };
}

export function says(atStep: number, message: string): SteeringTurn {
  return { atStep, control: { id: `m${atStep}${message}`, type: 'USER_MESSAGE', payload: { message } } };
}

/** A group of one task, which has ended. */
export function group(id: string, atStep: number, end: Partial<TaskEnd> = { result: 'Oslo.' }): BackgroundResult {
  const usage = { steps: 1, inputTokens: 0, outputTokens: 0, costMicroUsd: 0 };
  const task = `${id}.task`;
  const made = { id: task, group: id, kind: 'background' as const, description: 'Find it.', step: 0, pauses: [] };
  const member = { ...made, end: { task, status: 'complete' as const, usage, ...end } };
  return { atStep, group: { id, status: 'completed', members: [member], endedAt: 1 } };
}
