/** The part of the fold that is about undo: which calls a run has made that can be undone, and what changes while it unwinds. */
import {
  branchesOf,
  type CallPlace,
  type CallRecord,
  type Control,
  type ControlTaken,
  type Entry,
  isDismissal,
  isJsonObject,
  isPlanTool,
  isSecondCancel,
  isTaskTool,
  type Resumed,
  type Step,
  timeAfter,
  UNDO_TASK,
  type Unwinding,
} from '#core';
import { setAsideFor } from './budget.ts';
import { itemIn } from './places.ts';
import { nextStep, type OpenStep, type RunState } from './state.ts';
import { replaceTask } from './task-state.ts';

/** From here on the limits are those of the undoing, and whatever waited waits no more. The step of the last move has ended. */
export function applyUnwinding(state: RunState, { ending, until }: Unwinding): void {
  const { limits, undo, totals } = state;
  const { calls = 0, costMicroUsd } = undo ?? {};
  state.unwinding = Object.freeze({ ending, limits, step: nextStep(state), late: NONE });
  state.limits = Object.freeze({
    calls: totals.calls + totals.taskCalls + setAsideFor(state, 'calls') + calls,
    ...(costMicroUsd === undefined
      ? {}
      : { costMicroUsd: totals.costMicroUsd + setAsideFor(state, 'costMicroUsd') + costMicroUsd }),
    deadlineAt: until,
  });
  // A task that had reached its goal, which the run above it did not.
  if (state.ending !== null) state.reopenings += 1;
  state.ending = null;
  state.pauses = [];
  state.modelAway = null;
  state.rejectedCall = null;
  state.handsOver = null;
}

const NONE: readonly never[] = Object.freeze([]);

/** The run has ended: its limits are its own again. */
export function applyUnwound(state: RunState): void {
  if (state.unwinding !== null) state.limits = state.unwinding.limits;
}

/** The time in which a person was asked does not count. */
export function giveTimeBack(state: RunState, { token, at }: Resumed & Pick<Entry, 'at'>): void {
  const pause = state.pauses.find((one) => one.token === token);
  const { deadlineAt } = state.limits;
  if (pause === undefined || deadlineAt === undefined) return;
  state.limits = Object.freeze({
    ...state.limits,
    deadlineAt: timeAfter(deadlineAt, Math.max(0, at - pause.requestedAt)),
  });
}

/** A message of the session that comes while the run unwinds is for the next turn. */
export function noteControl(state: RunState, { control, undelivered }: ControlTaken): void {
  const { unwinding } = state;
  if (unwinding === null || undelivered !== true || control.turnMessage === undefined) return;
  state.unwinding = Object.freeze({ ...unwinding, late: Object.freeze([...unwinding.late, control]) });
}

/** Whether a cancel that is given now is a second one: the run undoes its calls, or was cancelled and waits (for a doubt, for a task that undoes its own). */
export function isUndoUnderWay({ undo, unwinding, cancel }: RunState, isParked: boolean): boolean {
  if (undo === null) return false;
  return unwinding !== null || (isParked && cancel !== null && !isDismissal(cancel));
}

/** Whoever cancels a run that is cancelled, or that unwinds, does not want to wait for it. */
export function noteSecondCancel(state: RunState, control: Control): void {
  const { cancel, unwinding } = state;
  const isCancelled = unwinding !== null || (cancel !== null && !isDismissal(cancel));
  if (isCancelled && isSecondCancel(control)) state.undoStopped = true;
}

/** The task goes on, to undo what it did for an earlier call; the call that has it do so waits for its end. */
export function beginUndoOfTask(state: RunState, open: OpenStep, at: number): void {
  const id = taskToUndo(open);
  const task = id === undefined ? undefined : itemIn(state.tasks, id);
  if (task?.end === undefined) return;
  const { end, ...rest } = task;
  replaceTask(state, { ...rest, consumed: false, counted: end.usage, reserved: {} });
  open.waits.push({ call: 0, task: task.id, agentCall: { startedAt: at } });
}

/** The task that is to undo what it did, of the step that has it do so. */
export function taskToUndo({ move }: Pick<OpenStep, 'move'>): string | undefined {
  const { decision, undoes } = move;
  if (undoes === undefined || decision.kind !== 'call_tool' || decision.tool !== UNDO_TASK) return undefined;
  const id = isJsonObject(decision.args) ? decision.args['task'] : undefined;
  return typeof id === 'string' ? id : undefined;
}

/** A call that has ended with a value, made by this run itself. */
export interface UndoableCall extends CallPlace {
  /** The name by which it was recorded. */
  readonly tool: string;
  readonly record: CallRecord;
}

/**
 * The calls of the run that have a value and were not undone, the one that ended last first: none that undid another, none that took the outcome
 * of another, and none that a fork has copied.
 */
export function callsToUndo(state: RunState): UndoableCall[] {
  return madeCalls(state, ({ outcome }) => outcome.kind === 'value');
}

/** Calls that were stopped, or had run out of time, so that they may have happened: of a `keyed` tool nobody is asked about them. */
export function unsureCalls(state: RunState): UndoableCall[] {
  return madeCalls(state, ({ outcome }) => {
    if (outcome.kind === 'error') return outcome.error.code === 'tool_timeout';
    return outcome.kind === 'cancelled' || outcome.kind === 'unknown';
  });
}

/** @param counts whether what a call came to makes it one of them. */
function madeCalls(state: RunState, counts: (record: CallRecord) => boolean): UndoableCall[] {
  const { steps, open, task, fork } = state;
  const copied = task === null ? (fork?.entries ?? 0) : 0;
  const made: UndoableCall[] = [];
  const undone = new Set<string>();
  const look = ({ index, decision, calls, undoes }: Looked): void => {
    if (undoes !== undefined) {
      undone.add(placeText(undoes));
      return;
    }
    for (const [call, { tool }] of branchesOf(decision).entries()) {
      const record = calls[call];
      if (record == null || !counts(record) || record.seq <= copied) continue;
      // Without an attempt nothing was done: somebody gave the value, or it was that of an earlier call.
      if (record.attempts === 0 || isPlanTool(tool) || isTaskTool(tool)) continue;
      made.push({ step: index, call, tool, record });
    }
  };
  // A decision that did not pass may have any shape, and has no calls.
  for (const step of steps) if (step.calls.length > 0) look(step);
  if (open !== null)
    look({ index: open.move.step, decision: open.move.decision, calls: open.calls, undoes: open.move.undoes });
  const left = made.filter((one) => !undone.has(placeText(one)));
  return left.sort((one, other) => other.record.seq - one.record.seq);
}

interface Looked {
  readonly index: number;
  readonly decision: Step['decision'];
  readonly calls: readonly (CallRecord | null)[];
  readonly undoes?: CallPlace | undefined;
}

function placeText({ step, call }: CallPlace): string {
  return `${step}.${call}`;
}
