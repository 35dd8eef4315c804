/** The agents of a runtime as tools of MCP. */
import {
  assertOptions,
  type Effect,
  isJsonObject,
  type Json,
  type JsonObject,
  type OptionShape,
  PilotageError,
} from '#core';
import type { AgentRecord, Runtime } from '#runtime';
import { explainSchemaError, firstIssues, schemaErrors } from '#schema';

/** How an agent is offered. */
export interface McpAgent {
  /** The name of one of the runtime's agents. */
  readonly agent: string;
  /** The name of the tool. Default: the agent's name, with `_` for characters that names of MCP tools cannot have. */
  readonly name?: string;
  /** Tells models what the agent does. */
  readonly description?: string;
  /** The JSON Schema of the arguments, which are an object. The run gets them as `context.args`. Default: an object with a text `input`, which is the query. */
  readonly inputSchema?: JsonObject;
  /** Makes the query of the run from the arguments. Default: the text `input` where that is the only argument; otherwise the arguments as JSON. */
  readonly query?: (args: JsonObject) => string;
}

export interface ServedTool extends Required<Pick<McpAgent, 'agent' | 'name' | 'inputSchema'>> {
  readonly isPlain: boolean;
  readonly query: (args: JsonObject) => string;
  /** The tool in the form in which clients list it. */
  readonly listed: JsonObject;
}

const AGENT: OptionShape<McpAgent> = {
  agent: 'text',
  name: 'text?',
  description: 'text?',
  inputSchema: 'object?',
  query: 'function?',
};
const INPUT: JsonObject = {
  type: 'object',
  properties: {
    input: { type: 'string', minLength: 1, description: 'What is to be done, with all that has to be known for it.' },
  },
  required: ['input'],
  additionalProperties: false,
};
const OUTPUT: JsonObject = {
  type: 'object',
  properties: {
    runId: { type: 'string' },
    status: { type: 'string', enum: ['finished', 'failed', 'cancelled', 'waiting'] },
    answer: { type: 'string', description: 'What the run has answered.' },
    reason: { type: 'string', description: 'How it has ended, when not by reaching its goal.' },
    waitsFor: {
      type: 'array',
      description: 'What somebody has to answer before the run goes on.',
      items: {
        type: 'object',
        properties: { token: { type: 'string' }, reason: { type: 'string' }, question: { type: 'string' } },
        required: ['token', 'reason', 'question'],
      },
    },
  },
  required: ['runId', 'status'],
};
/** The tool that gives the result of an earlier run, for clients that cannot be asked: they call it once somebody has answered elsewhere. */
export const RUN_RESULT = 'run_result';
const MAX_NAME_CHARS = 128;

/** @throws PilotageError `invalid_config`, `agent_unknown`. */
export function servedTools(
  runtime: Runtime,
  given: readonly (string | McpAgent)[] | undefined,
): readonly ServedTool[] {
  const known = runtime.agents;
  const wanted = given ?? known.map(({ name }) => name);
  const tools = wanted.map((each) => servedTool(typeof each === 'string' ? { agent: each } : each, known));
  const names = [RUN_RESULT, ...tools.map(({ name }) => name)];
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return tools;
  const message = `Two tools of mcp would have the name ${twice}. Give one of its agents another: { agent, name }.`;
  throw new PilotageError('invalid_config', message);
}

function servedTool(given: McpAgent, known: readonly AgentRecord[]): ServedTool {
  assertOptions('mcp.agents', given, AGENT);
  const { agent, name = agent.replaceAll(/[^\w.-]+/g, '_').slice(0, MAX_NAME_CHARS), inputSchema = INPUT } = given;
  const record = known.find((each) => each.name === agent);
  if (record === undefined) {
    const names = known.map((each) => each.name);
    const message = `mcp: the runtime has no agent ${JSON.stringify(agent)}, only ${names.join(', ')}.`;
    throw new PilotageError('agent_unknown', message, { data: { agent, known: names } });
  }
  if (!/^[\w.-]{1,128}$/.test(name) || inputSchema['type'] !== 'object') {
    const message = `mcp: a tool is named by 1 to ${MAX_NAME_CHARS} letters, digits, _, . and -, and its inputSchema is that of an object; ${JSON.stringify(name)} is not so.`;
    throw new PilotageError('invalid_config', message);
  }
  const { description = `Gives the agent ${agent} something to do, and its answer.`, query = askedOf } = given;
  const listed: JsonObject = {
    name,
    description,
    inputSchema,
    outputSchema: OUTPUT,
    annotations: hintsOf(record.effects),
  };
  return { agent, name, inputSchema, query, listed, isPlain: given.inputSchema === undefined };
}

/** The tool `run_result` in the form in which clients list it. */
export const LISTED_RUN_RESULT: JsonObject = {
  name: RUN_RESULT,
  description:
    'Waits for a run that was begun before and has asked somebody something, and gives its answer. Nothing is begun.',
  inputSchema: {
    type: 'object',
    properties: { runId: { type: 'string', minLength: 1 } },
    required: ['runId'],
    additionalProperties: false,
  },
  outputSchema: OUTPUT,
  annotations: { readOnlyHint: true, openWorldHint: false },
};

/** Calling twice starts two runs, so that only agents that change nothing are idempotent. */
function hintsOf(effects: readonly Effect[]): JsonObject {
  const isReading = effects.every((effect) => effect === 'pure' || effect === 'read');
  return { readOnlyHint: isReading, destructiveHint: !isReading, idempotentHint: isReading, openWorldHint: true };
}

function askedOf(args: JsonObject): string {
  const { input, ...others } = args;
  return typeof input === 'string' && Object.keys(others).length === 0 ? input : JSON.stringify(args);
}

/** Why the arguments do not fit, or `undefined` when they do. */
export function argsMisfit(schema: JsonObject, args: Json): string | undefined {
  const errors = isJsonObject(args) ? schemaErrors(schema, args) : undefined;
  if (errors === undefined) return 'the arguments are an object';
  return errors.length === 0 ? undefined : firstIssues(errors.map(explainSchemaError));
}
