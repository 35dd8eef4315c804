/** What came of undoing the calls of a run, as it stands in what the run ends with. */
import {
  branchesOf,
  type CallPlace,
  type CallRecord,
  errorOf,
  type Failed,
  type Finished,
  isJsonObject,
  type Json,
  type JsonObject,
  type Outcome,
} from '#core';
import type { RunState } from './state.ts';
import type { UndoableCall } from './undo.ts';

/**
 * Why undoing was not done to its end. `cancelled`: somebody cancelled the run a second time. `timeout`: its time was over. `calls`: it may
 * make no more calls.
 */
export type UndoStop = 'cancelled' | 'timeout' | 'calls';

/** How many calls each list names. */
const MOST_NAMED = 100;

/**
 * @param left calls that were not undone, because it was stopped.
 * @param unsure calls that may have happened, and that nobody has undone.
 * @param ending outcomes of the open step that are written with the ending.
 */
export function undoReport(
  state: RunState,
  left: readonly UndoableCall[],
  stopped: UndoStop | undefined,
  unsure: readonly UndoableCall[],
  ending: readonly (CallPlace & { readonly outcome: Outcome })[] = [],
): JsonObject {
  const undone: JsonObject[] = [];
  const failed: JsonObject[] = [];
  const from = state.unwinding?.step ?? state.steps.length;
  const note = (tool: string, undoes: CallPlace, by: CallPlace, outcome: Outcome): void => {
    const call = { ...placed(undoes, toolAt(state, undoes)), by: placed(by, tool) };
    const error = outcome.kind === 'value' ? undefined : errorOf(outcome);
    if (outcome.kind === 'value') undone.push(call);
    else failed.push({ ...call, error: { code: error?.code ?? outcome.kind, message: error?.message ?? '' } });
  };
  for (let index = from; index < state.steps.length; index += 1) {
    const step = state.steps[index];
    const record: CallRecord | undefined = step?.calls[0];
    if (step?.undoes === undefined || record === undefined) continue;
    note(branchesOf(step.decision)[0]?.tool ?? '', step.undoes, { step: index, call: 0 }, record.outcome);
  }
  const { move } = state.open ?? {};
  for (const { step, call, outcome } of ending) {
    if (move?.undoes === undefined || move.step !== step) continue;
    note(branchesOf(move.decision)[0]?.tool ?? '', move.undoes, { step, call }, outcome);
  }
  const lists = {
    undone,
    ...(failed.length === 0 ? {} : { undo_failed: failed }),
    ...(left.length === 0 ? {} : { left: left.map((call) => placed(call, call.tool)) }),
    ...(unsure.length === 0 ? {} : { unsure: unsure.map((call) => placed(call, call.tool)) }),
  };
  const cut = Object.entries(lists).map(([name, calls]) => [name, calls.slice(0, MOST_NAMED)]);
  const isCut = Object.values(lists).some((calls) => calls.length > MOST_NAMED);
  const counts = {
    ...{ undone: undone.length, undo_failed: failed.length },
    ...{ left: left.length, unsure: unsure.length },
  };
  return {
    ...(Object.fromEntries(cut) as JsonObject),
    ...(stopped === undefined || left.length + failed.length === 0 ? {} : { stopped }),
    ...(isCut ? { counts } : {}),
  };
}

function placed({ step, call }: CallPlace, tool: string): JsonObject {
  return { tool, step, call };
}

function toolAt({ steps }: RunState, { step, call }: CallPlace): string {
  const decision = steps[step]?.decision;
  return decision === undefined ? '' : (branchesOf(decision)[call]?.tool ?? '');
}

/** The ending, with what came of undoing. */
export function withReport(ending: Finished | Failed, undo: JsonObject): Finished | Failed {
  if (ending.kind === 'finished') return { ...ending, metadata: { ...ending.metadata, undo } };
  return { ...ending, error: { ...ending.error, data: { ...ending.error.data, undo } } };
}

/** How many calls were undone, could not be, and were left; `undefined` for what has no report. */
export function undoCounts(
  told: JsonObject | undefined,
): { readonly undone: number; readonly failed: number; readonly left: number } | undefined {
  const report = told?.['undo'];
  if (!isJsonObject(report)) return undefined;
  const counts = isJsonObject(report['counts']) ? report['counts'] : {};
  const lengthOf = (name: string): number => {
    const list: Json | undefined = report[name];
    return Number(counts[name] ?? (Array.isArray(list) ? list.length : 0));
  };
  return { undone: lengthOf('undone'), failed: lengthOf('undo_failed'), left: lengthOf('left') + lengthOf('unsure') };
}
