/** Tool names that a planner takes as decisions; they never reach a tool. */
import type { ToolSchema } from '../core/tool-schema.ts';

/** The tool that models know as the way to end; it is understood when it is called, and never declared. */
export const FINISH_TOOL = '_finish';
export const SPAWN_TOOL = '_spawn_task';
export const AWAIT_TOOL = '_await_task';

/** What a model is told of a tool that it may call. */
export type DeclaredTool = Pick<ToolSchema, 'name' | 'description' | 'inputSchema' | 'examples'>;

/** Declared, in this order, to a run that can spawn tasks. */
export const CONTROL_TOOLS: readonly DeclaredTool[] = [
  {
    name: SPAWN_TOOL,
    description: 'Starts a task that works on its own. Gives its task id.',
    inputSchema: {
      type: 'object',
      properties: {
        kind: {
          type: 'string',
          enum: ['foreground', 'background'],
          description: 'Whether this run waits for the task. Default: background.',
        },
        group_id: { type: 'string', description: 'Tasks with the same group id belong together.' },
        spec: {
          type: 'object',
          properties: {
            description: { type: 'string', description: 'What the task is, in a few words.' },
            query: { type: 'string', description: 'The whole request: the task knows nothing else of this run.' },
            priority: {
              type: 'integer',
              minimum: -1000,
              maximum: 1000,
              description: 'Higher runs first. Default: 0.',
            },
            retain_turn: { type: 'boolean', description: 'Whether this run stays with the task until it has ended.' },
            fail_fast: { type: 'boolean', description: 'Whether a failure of the task stops the others of its group.' },
          },
          required: ['description', 'query'],
          additionalProperties: false,
        },
      },
      required: ['spec'],
      additionalProperties: false,
    },
    examples: [],
  },
  {
    name: AWAIT_TOOL,
    description: 'Waits until a task has ended, and gives its result.',
    inputSchema: {
      type: 'object',
      properties: { task_id: { type: 'string', minLength: 1, description: 'As it was given when the task started.' } },
      required: ['task_id'],
      additionalProperties: false,
    },
    examples: [],
  },
];
