/**
 * Tools in the background: a task carries out the call, and the run goes on with the task's id. That of a function is a run of an agent with this
 * tool alone, whose planner makes the one call: so crash recovery, effects, the idempotency key and approvals hold for it as for any call.
 */

import { PilotageError, type Planner, type RunView } from '#core';
import { type Agent, checkedAgent } from './agent.ts';
import type { Tool } from './tool.ts';

const AGENTS = new WeakMap<object, Agent>();
const PLANNERS = new WeakSet<Planner>();

/** Whether calls of the tool are made in the background by a function of its own. */
export function isBackgroundFunction(tool: unknown): tool is Tool {
  return (
    typeof tool === 'object' && tool !== null && !('agent' in tool) && 'background' in tool && tool.background === true
  );
}

/** The agent whose runs make the calls of the tool. The same tool gives the same agent. */
export function agentOfCall(tool: Tool): Agent {
  const known = AGENTS.get(tool);
  if (known !== undefined) return known;
  const { background: _, ...rest } = tool;
  const own = { ...rest, execute: (...given: Parameters<Tool['execute']>) => tool.execute(...given) };
  const inner: Tool =
    tool.reconcile === undefined
      ? own
      : { ...own, reconcile: (args, context) => tool.reconcile?.(args, context) ?? UNKNOWN };
  const planner = oneCall(tool.name);
  const made = checkedAgent({ name: `tool:${tool.name}`, planner, tools: [inner] });
  AGENTS.set(tool, made);
  PLANNERS.add(planner);
  return made;
}

const UNKNOWN = { status: 'unknown' } as const;

/** Whether the agent makes one call that a run has asked for, and nobody gives it other work. */
export function carriesOneCall({ planner }: Pick<Agent, 'planner'>): boolean {
  return PLANNERS.has(planner);
}

/** Makes the call with the arguments of the run, and ends with what that comes to. */
function oneCall(tool: string): Planner {
  const next: Planner['next'] = ({ trajectory, context }: RunView) => {
    if (trajectory.count === 0) return { kind: 'call_tool', tool, args: context.args ?? {} };
    const outcome = trajectory.step(0)?.calls[0]?.outcome;
    if (outcome?.kind === 'value') {
      if (outcome.artifact === undefined) return { kind: 'finish', reason: 'goal', payload: outcome.value };
      return { kind: 'finish', reason: 'goal', payload: outcome.artifact, stored: true };
    }
    const cause = outcome !== undefined && 'error' in outcome ? outcome.error : undefined;
    const why = cause === undefined ? 'it came to nothing' : `${cause.message} (${cause.code})`;
    const data = cause === undefined ? undefined : { cause: { ...cause } };
    throw new PilotageError('call_failed', `The call of ${tool} has failed: ${why}`, { data });
  };
  return { name: 'one_call', version: '1', costless: true, next };
}
