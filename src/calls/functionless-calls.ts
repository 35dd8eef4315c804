/** Calls that no tool's own function carries out: those of agents, which tasks carry out, and the messages and the end of a plan. */
import {
  ARTIFACT_FETCH,
  type Branch,
  branchesOf,
  type CallResult,
  callEnded,
  capture,
  type EntryBody,
  type Json,
  type TaskEnd,
} from '#core';
import type { OpenStep, RunState, TaskWait } from '#state';
import type { AuthorisedTools } from '#tools';
import type { DriverDeps } from '../loop/driver-deps.ts';
import { newlyFound } from './call.ts';
import type { Call } from './call-ports.ts';
import { storeLargeValue } from './large-values.ts';
import { errorData, failed, outcomeOfTask } from './outcome.ts';
import { renamed } from './step-schedule.ts';

export interface OwnPorts {
  readonly deps: Pick<DriverDeps, 'clock' | 'artifacts'>;
  readonly state: RunState;
  tools(): AuthorisedTools;
  found(): readonly string[];
  resolveArgs(call: Pick<Call, 'open' | 'index' | 'branch'>): Json | Promise<Json>;
  /** What the planner is told of a call that somebody has cancelled. */
  told(open: OpenStep, call: number, result: CallResult): CallResult;
}

/** How the task that carries out the call has ended; `undefined` while it is under way. */
export function endOfTask({ tasks }: RunState, { task }: TaskWait): TaskEnd | undefined {
  return tasks.findLast(({ id }) => id === task)?.end;
}

/** Ends a call that a task has carried out. Its arguments, approval and policy were checked before the task was started. */
export async function endAgentCall(
  open: OpenStep,
  branch: Branch,
  { call, agentCall }: TaskWait,
  end: TaskEnd,
  ports: OwnPorts,
): Promise<EntryBody[]> {
  const { deps, state, tools } = ports;
  const { identity } = state;
  const { tool } = branch;
  const outcome = await outcomeOfTask(end, tool, tools().ready(tool), { identity, artifacts: deps.artifacts });
  const startedAt = agentCall?.startedAt ?? deps.clock.now();
  const result = ports.told(open, call, { outcome, startedAt, attempts: 1 });
  return [callEnded({ step: open.move.step, call }, readOn(branch, result, ports))];
}

/** What these calls come to, whose tasks have ended, where nothing else of the step is carried out. */
export async function endAgentCalls(calls: readonly number[], ports: OwnPorts): Promise<EntryBody[]> {
  const { state } = ports;
  const { open } = state;
  if (open === null) return [];
  const ends = open.waits.map(async (wait) => {
    const end = calls.includes(wait.call) ? endOfTask(state, wait) : undefined;
    const branch = branchesOf(open.move.decision)[wait.call];
    return end && branch ? endAgentCall(open, renamed(state, branch), wait, end, ports) : [];
  });
  return (await Promise.all(ends)).flat();
}

/** Carries out a message, or the end of the plan: its arguments are its value. */
export async function givenCall(open: OpenStep, index: number, branch: Branch, ports: OwnPorts): Promise<EntryBody[]> {
  const { deps, state } = ports;
  const at = { step: open.move.step, call: index };
  if (branch.refusal !== undefined) return failed(at, branch.refusal);
  const startedAt = deps.clock.now();
  try {
    const args = capture(await ports.resolveArgs({ open, index, branch }), 'args');
    const outcome = await storeLargeValue(args, branch.tool, state.identity, deps.artifacts);
    return [callEnded(at, readOn(branch, { outcome, startedAt, attempts: 1 }, ports))];
  } catch (thrown) {
    return failed(at, errorData(thrown));
  }
}

/** Adds to the result how to read on in the value that was stored. */
function readOn(branch: Branch, result: CallResult, { tools, found }: OwnPorts): CallResult {
  const { outcome } = result;
  if (outcome.kind !== 'value') return result;
  const names = outcome.artifact === undefined ? [] : [ARTIFACT_FETCH];
  const discovered = newlyFound({ branch, tools: tools() }, { found }, names);
  return discovered.length === 0 ? result : { ...result, discovered };
}
