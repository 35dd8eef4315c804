/** The built-in tool that describes one tool by its name. */
import { TOOL_GET } from '#core';
import { type ToolOptions, tool } from './tool.ts';

/** Value: `{ name, description, args_schema, found: true }`, or `{ name, found: false, error }`. */
export const toolGet: ToolOptions = tool({
  name: TOOL_GET,
  description:
    'Describes one tool: what it does and the schema of its arguments. It can be called from your next turn on.',
  effect: 'read',
  inputSchema: {
    type: 'object',
    properties: { name: { type: 'string', description: 'The name of the tool, as tool_search gives it.' } },
    required: ['name'],
    additionalProperties: false,
  },
  execute: ({ name }, { tools, discover }) => {
    const wanted = String(name);
    const schema = tools.get(wanted);
    // The same words for a tool that this run may not use.
    if (schema === undefined) return { name: wanted, found: false, error: 'There is no tool of this name.' };
    discover([wanted]);
    return { name: wanted, description: schema.description, args_schema: schema.inputSchema, found: true };
  },
});
