/** Which call of a run somebody means who cancels it. */
import { assertOptions, branchesOf, branchId, type CallPlace, type OptionShape, PilotageError } from '#core';
import { type RunState, unfitToCancel } from '#state';
import type { SteerOptions } from './run-options.ts';

export interface CancelCallOptions extends SteerOptions {
  /** What the planner, and whoever reads the run, is told. */
  readonly reason?: string;
}

export const CANCEL_CALL: OptionShape<CancelCallOptions> = { until: 'text?', id: 'text?', reason: 'text?' };
const PLACE: OptionShape<CallPlace> = { step: 'whole', call: 'whole' };

/**
 * @param which the place of the call, or the id of its branch, of its plan's node, or of the call as its model has named it.
 * @throws PilotageError `call_not_found`, `call_ended`, `call_in_doubt`, `invalid_config`.
 */
export function callMeant(state: RunState, which: CallPlace | string): CallPlace {
  if (state.ending !== null) throw new PilotageError('run_ended', `Run ${state.identity.run} has ended.`);
  const place = typeof which === 'string' ? placeOfId(state, which) : placeGiven(which);
  const unfit = unfitToCancel(state, place);
  if (unfit !== undefined) throw unfit;
  return place;
}

function placeGiven(given: CallPlace): CallPlace {
  assertOptions('cancelCall', given, PLACE);
  return { step: given.step, call: given.call };
}

/** In the open step, or in the last one that has ended: a call of that came to its end meanwhile. */
function placeOfId({ open, steps }: RunState, id: string): CallPlace {
  const last = steps.at(-1);
  const looked = [
    ...(open === null ? [] : [{ step: open.move.step, decision: open.move.decision }]),
    ...(last === undefined ? [] : [{ step: last.index, decision: last.decision }]),
  ];
  for (const { step, decision } of looked) {
    const branches = branchesOf(decision);
    const byId = branches.findIndex((branch, call) => branchId(branch, call) === id);
    const call = byId === -1 ? branches.findIndex(({ callId }) => callId === id) : byId;
    if (call !== -1) return { step, call };
  }
  const message = `No call of the step under way has the id ${JSON.stringify(id)}. Give the id of a branch, a node or a call, or { step, call }.`;
  throw new PilotageError('call_not_found', message);
}
