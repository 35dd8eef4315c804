/** A recorded step taken apart for a model's history, in the same way for native calls and for calls in text. */
import type { ReasoningReplay } from '../core/context.ts';
import { branchesOf, type SpawnTask } from '../core/decision.ts';
import { isJsonObject, type Json, type JsonObject } from '../core/json.ts';
import type { Outcome } from '../core/outcome.ts';
import type { Step } from '../core/step.ts';
import { errorText, resultOf, verdictText } from './outcome-text.ts';
import { AWAIT_TOOL, SPAWN_TOOL } from './reserved-tools.ts';

export interface StepCall {
  readonly tool: string;
  /** As the model gave them; perhaps no object. */
  readonly args: Json;
  /** As the planner made it; perhaps none. */
  readonly callId: string | undefined;
  readonly outcome: Outcome | undefined;
}

/** The calls of a step with what became of each. None for a pause, and for a move that was not accepted. */
export function callsOf(step: Step): readonly StepCall[] {
  const { decision, calls } = step;
  // A rejected move: nothing of it was carried out, and its decision may have any shape.
  if (wasRefused(step)) return [];
  const outcome = calls[0]?.outcome;
  switch (decision.kind) {
    case 'spawn_task':
      return [{ tool: SPAWN_TOOL, args: argsOf(step) ?? spawnArgs(decision), callId: decision.callId, outcome }];
    case 'await_task':
      return [
        { tool: AWAIT_TOOL, args: argsOf(step) ?? { task_id: decision.taskId }, callId: decision.callId, outcome },
      ];
    case 'call_tool':
      return [{ tool: decision.tool, args: decision.args, callId: decision.callId, outcome }];
    default:
      return branchesOf(decision).map(({ tool, args, callId }, index) => {
        return { tool, args, callId, outcome: calls[index]?.outcome };
      });
  }
}

/** What the model reads after a step without calls. */
export function replyTo(step: Step): string {
  const { error, calls } = step;
  if (error !== undefined && wasRefused(step)) return `Your last reply was not accepted: ${errorText(error)}`;
  const outcome = calls[0]?.outcome;
  if (outcome?.kind === 'verdict') return verdictText(outcome.verdict, outcome.payload);
  return resultOf(outcome).value;
}

/** The texts of the assistant's turn beside its calls: what it said, then its reasoning if that is replayed. */
export function saidIn({ text = '', reasoning = '' }: Step, replay: ReasoningReplay): string[] {
  const said = text === '' ? [] : [text];
  return replay === 'text' && reasoning.trim() !== '' ? [...said, `My reasoning at this step:\n${reasoning}`] : said;
}

function wasRefused({ error, calls }: Step): boolean {
  return error !== undefined && calls.length === 0;
}

/** The arguments of a control as the model gave them, when its planner noted them as the `args` of the provenance. */
function argsOf({ provenance }: Step): JsonObject | undefined {
  const args = provenance?.['args'];
  return isJsonObject(args) ? args : undefined;
}

function spawnArgs({ task, spec, groupId }: SpawnTask): JsonObject {
  const { description, query, priority, retainTurn, failFast } = spec;
  return {
    kind: task,
    ...(groupId === undefined ? {} : { group_id: groupId }),
    spec: {
      description,
      query,
      ...(priority === undefined ? {} : { priority }),
      ...(retainTurn === undefined ? {} : { retain_turn: retainTurn }),
      ...(failFast === undefined ? {} : { fail_fast: failFast }),
    },
  };
}
