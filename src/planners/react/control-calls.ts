/** The reserved calls that are decisions of their own: spawning a task, and waiting for one. */
import type { AwaitTask, SpawnTask } from '../../core/decision.ts';
import { PilotageError } from '../../core/errors.ts';
import { isJsonObject, type JsonObject } from '../../core/json.ts';
import { validateDecision } from '../../core/validate-decision.ts';
import { coerceToSchema } from '../../parse/index.ts';
import { AWAIT_TOOL, CONTROL_TOOLS, SPAWN_TOOL } from '../../prompt/reserved-tools.ts';
import { misfitsIn } from './misfits.ts';
import type { ReadCall } from './read-reply.ts';

export function isReserved(tool: string): boolean {
  return tool === SPAWN_TOOL || tool === AWAIT_TOOL;
}

/** The decision that a reserved call stands for, or what does not fit in its arguments. */
export function reservedDecision(
  call: ReadCall,
  callId: string,
): { readonly decision: SpawnTask | AwaitTask } | { readonly misfit: string } {
  const schema = CONTROL_TOOLS.find(({ name }) => name === call.tool)?.inputSchema ?? {};
  const { value, issues } = coerceToSchema(call.args, schema);
  const misfits = misfitsIn(issues);
  if (misfits !== undefined || !isJsonObject(value)) {
    return { misfit: `The arguments of ${call.tool} do not fit its schema: ${misfits ?? 'no object'}.` };
  }
  const decision = call.tool === AWAIT_TOOL ? awaitTask(value, callId) : spawnTask(value, callId);
  // Ranges and empty texts, which the reading of the arguments does not look at.
  try {
    validateDecision(decision);
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return { misfit: `The arguments of ${call.tool} do not fit its schema: ${error.message}` };
  }
  return { decision };
}

function awaitTask(args: JsonObject, callId: string): AwaitTask {
  return { kind: 'await_task', taskId: String(args['task_id']), callId };
}

function spawnTask(args: JsonObject, callId: string): SpawnTask {
  const spec = isJsonObject(args['spec']) ? args['spec'] : {};
  const { priority, retain_turn: retainTurn, fail_fast: failFast } = spec;
  return {
    kind: 'spawn_task',
    task: args['kind'] === 'foreground' ? 'foreground' : 'background',
    spec: {
      description: String(spec['description'] ?? ''),
      query: String(spec['query'] ?? ''),
      ...(typeof priority === 'number' ? { priority } : {}),
      ...(typeof retainTurn === 'boolean' ? { retainTurn } : {}),
      ...(typeof failFast === 'boolean' ? { failFast } : {}),
    },
    ...(typeof args['group_id'] === 'string' ? { groupId: args['group_id'] } : {}),
    callId,
  };
}
