/** The reserved calls that start a task or wait for one. */
import { type ErrorData, isJsonObject, type JsonObject, PilotageError, taskCall, validateDecision } from '#core';
import { coerceToSchema } from '#parse';
import { CONTROL_TOOLS } from '#prompt';
import { faultData } from './faults.ts';
import { misfitsIn } from './misfits.ts';
import type { ReadCall } from './reading.ts';

/** The arguments of a call of `_spawn_task` or `_await_task` as its schema wants them, or why it cannot be made. */
export function readTaskCall(
  { tool, args }: ReadCall,
  tasks: boolean,
): { readonly args: JsonObject } | { readonly refusal: ErrorData } {
  // The runtime would carry it out, whether it was declared or not.
  if (!tasks) return { refusal: faultData('tool_not_found', `There is no tool named "${tool}".`) };
  const schema = CONTROL_TOOLS.find(({ name }) => name === tool)?.inputSchema ?? {};
  const { value, issues } = coerceToSchema(args, schema);
  const misfits = misfitsIn(issues);
  if (misfits !== undefined || !isJsonObject(value))
    return misfit(tool, `${misfits ?? 'the arguments are not an object'}.`);
  const fitting = withoutEmptyGroup(value);
  // Ranges and empty texts, which the reading of the arguments does not look at.
  try {
    validateDecision(taskCall(tool, fitting));
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return misfit(tool, error.message);
  }
  return { args: fitting };
}

/** Models fill in what they may leave out. */
function withoutEmptyGroup(args: JsonObject): JsonObject {
  if (args['group_id'] !== '') return args;
  const { group_id: _, ...rest } = args;
  return rest;
}

function misfit(tool: string, why: string): { readonly refusal: ErrorData } {
  return { refusal: faultData('tool_invalid_args', `The arguments of ${tool} do not fit its schema: ${why}`) };
}
