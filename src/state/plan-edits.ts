/** What somebody has changed of the plan that a run was paused in: it stands in the answer to the pause. */
import { type Branch, branchId, isJsonObject, isPlan, type Json, type JsonObject, type Outcome } from '#core';
import type { OpenStep } from './state.ts';

export interface NodeEdit {
  readonly call: number;
  readonly branch: Branch;
  /** The arguments in place of its own. Absent: it was taken out. */
  readonly args?: Json;
}

/** The edits of an answer, in the order of the branches. Only of a plan; the runtime has judged them. */
export function nodeEdits(open: Pick<OpenStep, 'move'> | null, nodes: JsonObject | undefined): readonly NodeEdit[] {
  if (nodes === undefined || open === null || !isPlan(open.move.decision)) return [];
  return open.move.decision.branches.flatMap((branch, call): NodeEdit[] => {
    const edit = nodes[branchId(branch, call)];
    if (!isJsonObject(edit)) return [];
    if (edit['skip'] === true) return [{ call, branch }];
    return edit['args'] === undefined ? [] : [{ call, branch, args: edit['args'] }];
  });
}

export const REMOVED: Outcome = {
  kind: 'skipped',
  error: { code: 'node_removed', message: 'Somebody took it out of the plan.' },
};
