/** Whether somebody may change these nodes of the plan that the run is in the middle of. */
import {
  allReferencesIn,
  type Branch,
  branchesOf,
  branchId,
  type ErrorData,
  isJsonObject,
  isPlan,
  isPlanTool,
  type Json,
  needsOf,
  PilotageError,
  type Reference,
  referenceFault,
  unescaped,
  waysOf,
} from '#core';
import { hasBegun, type OpenStep, type RunState } from '#state';

interface EditPorts {
  misfit(tool: string, args: Json): Promise<ErrorData | undefined>;
  /** The call is taken out of the plan already, though the state does not say so yet. */
  isTakenOut(call: number): boolean;
}

/**
 * Why an edit is refused; `undefined` when the edit may be made, or no edit was given. Only nodes that have not begun can be changed:
 * other arguments, which may refer to what the node came after all along, or out of the plan. Those of a node with routes stand
 * in for the arguments of whichever route is open.
 * @param nodes by the id of the node, `{ args }` or `{ skip: true }`.
 */
export async function editRefusal(
  { open, pauses }: RunState,
  nodes: Json | undefined,
  { misfit, isTakenOut }: EditPorts,
): Promise<PilotageError | undefined> {
  if (!isJsonObject(nodes) || open === null || !isPlan(open.move.decision)) return undefined;
  const branches = branchesOf(open.move.decision);
  const indexById = new Map(branches.map((branch, index) => [branchId(branch, index), index]));
  for (const [id, edit] of Object.entries(nodes)) {
    const index = indexById.get(id);
    const branch = index === undefined ? undefined : branches[index];
    if (index === undefined || branch === undefined) return refuse(`the plan has no node ${JSON.stringify(id)}`);
    const isAsked = pauses.some(({ call }) => call === index);
    if (isUnderWay(open, index) || isTakenOut(index) || isAsked) {
      return refuse(`the node ${JSON.stringify(id)} has begun, or has ended, and cannot be changed any more`);
    }
    if (isJsonObject(edit) && edit['skip'] === true) continue;
    const args = isJsonObject(edit) ? edit['args'] : undefined;
    if (args === undefined) return refuse(`the edit of ${JSON.stringify(id)} is neither { args } nor { skip: true }`);
    const fault = referenceFault(args);
    if (fault !== undefined) return refuse(`the arguments for ${JSON.stringify(id)}: ${fault}`);
    const foreign = foreignReference(branch, open.move.step, args);
    if (foreign !== undefined) {
      return refuse(`${JSON.stringify(id)} would refer to ${JSON.stringify(foreign)}, which it does not come after`);
    }
    // What refers to other nodes is checked when they have ended.
    const error =
      allReferencesIn(args).length === 0 && !isPlanTool(branch.tool)
        ? await misfit(branch.tool, unescaped(args))
        : undefined;
    if (error !== undefined) return refuse(`the arguments for ${JSON.stringify(id)} do not fit: ${error.message}`);
  }
  return undefined;
}

/** A branch that the edited branch does not need on any of its routes: the new arguments replace the arguments of all routes. */
function foreignReference(branch: Branch, now: number, args: Json): string | undefined {
  const needs = waysOf(branch).map(needsOf);
  const isKnown = ({ $from, step }: Reference): boolean =>
    step === undefined ? needs.every((ids) => ids.has($from)) : step < now;
  return allReferencesIn(args).find((reference) => !isKnown(reference))?.$from;
}

function isUnderWay(open: OpenStep, index: number): boolean {
  const { calls, waits } = open;
  return calls[index] !== null || hasBegun(open, index) || waits.some(({ call }) => call === index);
}

function refuse(why: string): PilotageError {
  return new PilotageError('payload_invalid', `The plan was not changed, and stays paused: ${why}.`);
}
