/**
 * Tools in words, and the declarations of the controls: names that a planner takes as decisions, and that never
 * reach a tool.
 */
import { AWAIT_TOOL, FINISH_TOOL, type JsonObject, SPAWN_TOOL, shownName, type ToolSchema } from '#core';
import { jsonLine, quoted, quotedJson } from './frame.ts';

/** How many examples of arguments are shown for a tool unless the caller says otherwise. */
const MAX_EXAMPLES = 3;

/** What a model is told of a tool that it calls natively: the description, and arguments that show its use. */
export function toolDescription(
  { description, examples }: Pick<DeclaredTool, 'description' | 'examples'>,
  maxExamples: number = MAX_EXAMPLES,
): string {
  const text = quoted(description);
  const lines = examples.slice(0, maxExamples).map((example) => quotedJson(jsonLine(example)));
  return lines.length === 0 ? text : [text, 'Examples of arguments:', ...lines].join('\n');
}

/** `- name: description` on one line, as markup. */
function toolLine({ name, description }: Pick<DeclaredTool, 'name' | 'description'>): string {
  const lines = description.split(/[\r\n\v\f\u0085\u2028\u2029]/).map((line) => line.trim());
  return quoted(`- ${shownName(name)}: ${lines.filter((line) => line !== '').join(' ')}`);
}

/** The line of a tool, its arguments' schema and its examples: all that a model knows of it without native calls. */
export function toolEntry(tool: DeclaredTool, maxExamples: number = MAX_EXAMPLES): string {
  const lines = [toolLine(tool), `  arguments: ${quotedJson(jsonLine(tool.inputSchema))}`];
  for (const example of tool.examples.slice(0, maxExamples)) lines.push(`  example: ${quotedJson(jsonLine(example))}`);
  return lines.join('\n');
}

/** The declaration of a tool that a model may call. */
export type DeclaredTool = Pick<ToolSchema, 'name' | 'description' | 'inputSchema' | 'examples'> &
  Partial<Pick<ToolSchema, 'provider' | 'providerOptions'>>;

const spawnTool = (agent: JsonObject): DeclaredTool => ({
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
      group_id: {
        type: 'string',
        description: 'Tasks with the same group id belong together. Default: the task is alone in its group.',
      },
      spec: {
        type: 'object',
        properties: {
          description: { type: 'string', description: 'What the task is, in a few words.' },
          query: { type: 'string', description: 'The whole request: the task knows nothing else of this run.' },
          ...agent,
          priority: {
            type: 'integer',
            minimum: -1000,
            maximum: 1000,
            description: 'Higher runs first. Default: 0.',
          },
          retain_turn: { type: 'boolean', description: 'Whether this run stays with the task until it has ended.' },
          seal: {
            type: 'boolean',
            description: 'Set on the last task of a group: the results of the group come when all of it has ended.',
          },
          fail_fast: {
            type: 'boolean',
            description: 'Set on the first task of a group: a failure of one stops the others.',
          },
        },
        required: ['description', 'query'],
        additionalProperties: false,
      },
    },
    required: ['spec'],
    additionalProperties: false,
  },
  examples: [],
});

const AWAIT: DeclaredTool = {
  name: AWAIT_TOOL,
  description: 'Waits until a task has ended, and gives its result.',
  inputSchema: {
    type: 'object',
    properties: {
      task_id: { type: 'string', minLength: 1, description: 'As it was given when the task started.' },
      group_id: {
        type: 'string',
        description: 'The group of the task, to wait for all of it. It takes no more tasks then.',
      },
      timeout_ms: { type: 'integer', minimum: 1, description: 'Waits no longer than so many milliseconds.' },
    },
    required: ['task_id'],
    additionalProperties: false,
  },
  examples: [],
};

/** Declared, in this order, to a run that is to give work to tasks. */
export const CONTROL_TOOLS: readonly DeclaredTool[] = [spawnTool({}), AWAIT];
/** What a call of one is read with: whether an agent of that name is there, the runtime finds out. */
export const ANY_CONTROL_TOOLS: readonly DeclaredTool[] = [spawnTool({ agent: { type: 'string' } }), AWAIT];

const WITH_AGENTS = new WeakMap<readonly string[], readonly DeclaredTool[]>();

/** The same, where a task may be given to one of several agents. The same list gives the same tools. */
export function controlTools(agents: readonly string[] | undefined): readonly DeclaredTool[] {
  if (agents === undefined) return CONTROL_TOOLS;
  const known = WITH_AGENTS.get(agents);
  if (known !== undefined) return known;
  const agent = { type: 'string', enum: agents, description: 'Which agent does it. Default: one like this run.' };
  const made = [spawnTool({ agent }), AWAIT];
  WITH_AGENTS.set(agents, made);
  return made;
}

const ANSWER: JsonObject = {
  type: 'object',
  properties: { answer: { type: 'string', description: 'The whole answer to the request.' } },
  required: ['answer'],
  additionalProperties: false,
};

/** Declared to a task whose replies in text ask the user. @param inputSchema of its arguments. Default: a text `answer`. */
export function finishTool(inputSchema: JsonObject = ANSWER): DeclaredTool {
  const description = 'Ends your work and gives its result. A reply without a call does not end it: it asks the user.';
  return { name: FINISH_TOOL, description, inputSchema, examples: [] };
}
