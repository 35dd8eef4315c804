/** The atomic set-up of a parallel call: unless the call says otherwise, one bad branch means that nothing is started. */
import {
  allReferencesIn,
  type Branch,
  branchesOf,
  type CallEnded,
  type CallResult,
  callEnded,
  type Decision,
  type ErrorData,
  isPlanTool,
  isTaskTool,
  type JsonObject,
  unescaped,
  waysOf,
} from '#core';
import type { OpenStep } from '#state';
import { prepareCall } from './arguments.ts';
import { newlyFound } from './call.ts';
import type { Call, DispatchPorts } from './call-ports.ts';

/** The outcomes of all branches when the set-up refuses the call; none when it may start. */
export async function setUpParallel(
  open: OpenStep,
  decision: Decision,
  { tools, offered }: Pick<Call, 'tools' | 'offered'>,
  ports: Pick<DispatchPorts, 'found'>,
): Promise<CallEnded[]> {
  const { step } = open.move;
  if (decision.kind !== 'call_parallel' || decision.onInvalid === 'per_branch') return [];
  // Some of it ran before a crash: it had passed.
  if (open.began.length > 0 || open.calls.some((call) => call !== null)) return [];
  if (open.approvals.length > 0 || open.waits.length > 0) return [];
  const errors = new Map<number, ErrorData>();
  for (const [index, branch] of branchesOf(decision).entries()) {
    const error = await refusalOf({ tools, offered }, branch, index);
    if (error !== undefined) errors.set(index, error);
  }
  if (errors.size === 0) return [];
  const first = Math.min(...errors.keys());
  const notStarted = {
    code: 'branch_not_started',
    message: `Nothing was started, because branch ${first} is invalid.`,
  };
  return decision.branches.map((branch, call): CallEnded => {
    const error = errors.get(call);
    const at = { step, call };
    if (error === undefined) return callEnded(at, { outcome: { kind: 'skipped', error: notStarted }, attempts: 0 });
    const result: CallResult = { outcome: { kind: 'error', error }, attempts: 0 };
    const discovered = branch.refusal === undefined ? newlyFound({ branch, tools }, ports, []) : [];
    return callEnded(at, discovered.length === 0 ? result : { ...result, discovered });
  });
}

async function refusalOf(
  { tools, offered }: Pick<Call, 'tools' | 'offered'>,
  branch: Branch,
  index: number,
): Promise<ErrorData | undefined> {
  const { tool, refusal } = branch;
  const data = { branch: index, setUp: true };
  if (refusal !== undefined) return { ...refusal, data: { ...refusal.data, ...data } };
  if (isTaskTool(tool) || isPlanTool(tool)) return undefined;
  for (const { args } of waysOf(branch)) {
    // Arguments that refer to another branch are known, and checked, only when that branch has ended.
    if (tools.get(tool) !== undefined && allReferencesIn(args).length > 0) continue;
    const prepared = await prepareCall(tools, tool, unescaped(args), offered);
    if ('error' in prepared) return refusalFor(prepared.error, index, data);
  }
  return undefined;
}

function refusalFor({ code, message }: ErrorData, index: number, data: JsonObject): ErrorData {
  return code === 'tool_invalid_args'
    ? { code: 'parallel_branch_invalid_args', message: `Branch ${index}: ${message}`, data }
    : { code, message: `Branch ${index}: ${message}`, data };
}
