/** Whether a call can be made at all: its tool in the authorised view, and arguments that fit. */
import { type ErrorData, type Json, shownName } from '#core';
import type { AuthorisedTools, ReadyTool } from '#tools';

/** Arguments that are ready to be handed to a tool. */
export type PreparedCall = { readonly tool: ReadyTool; readonly args: unknown } | { readonly error: ErrorData };

/** Resolves the tool and checks the arguments. Nothing has been started when this gives an error. */
export function prepareCall(tools: AuthorisedTools, name: string, args: Json): PreparedCall | Promise<PreparedCall> {
  const tool = tools.ready(name);
  if (tool === undefined) return { error: unknownTool(tools, name) };
  const checked = tool.checkArgs(args);
  const finish = (result: Awaited<typeof checked>): PreparedCall =>
    result.ok
      ? { tool, args: result.value }
      : {
          error: {
            code: 'tool_invalid_args',
            message: `The arguments of ${name} do not fit its schema: ${result.why}.`,
          },
        };
  return checked instanceof Promise ? checked.then(finish) : finish(checked);
}

const MAX_NAMES = 50;

/** The error for an unknown tool. The words are the same when the tool exists but this run may not use it. */
function unknownTool(tools: AuthorisedTools, name: string): ErrorData {
  const known = tools.list().map((tool) => tool.name);
  const names = known.slice(0, MAX_NAMES).join(', ') || 'none';
  const more = known.length > MAX_NAMES ? `, and ${known.length - MAX_NAMES} more` : '';
  return {
    code: 'tool_not_found',
    message: `There is no tool named ${JSON.stringify(shownName(name))}. The tools are: ${names}${more}.`,
  };
}
