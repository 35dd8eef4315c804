/**
 * Tools of a record, which have their names from it. Those of the AI SDK (`tool()`) are such tools: they are known by their shape, so
 * that the package is not needed, and `execute` gets what the AI SDK would give it beside the context of Pilotage.
 */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { defined, describeThrown, type JsonObject, PilotageError } from '#core';
import type { InputSchema, Tool, ToolContext } from './tool.ts';

/** A tool whose name is its key in a record: an AI SDK `tool()`, or a tool of Pilotage without `name`. Its effect is `once` unless it says so. */
export interface UnnamedTool
  extends Partial<Omit<Tool, 'name' | 'description' | 'inputSchema' | 'outputSchema' | 'needsApproval' | 'execute'>> {
  readonly name?: never;
  readonly description?: unknown;
  readonly inputSchema: unknown;
  readonly outputSchema?: unknown;
  readonly needsApproval?: unknown;
  readonly execute?: unknown;
}

const OWN = [
  ...(['effect', 'reconcile', 'inDoubt', 'handles', 'tags', 'loading', 'mimeTypes', 'scopes', 'examples'] as const),
  ...(['timeoutMs', 'retries', 'backoff', 'concurrency', 'costUsd'] as const),
];

/** @throws PilotageError `tool_without_execute` or `tool_schema_invalid`. */
export function withName(name: string, tool: UnnamedTool): Tool {
  const { execute, needsApproval } = tool;
  if (typeof execute !== 'function') {
    throw new PilotageError(
      'tool_without_execute',
      `The tool ${name} has no execute function. Give \`execute\`: Pilotage carries the calls out itself.`,
    );
  }
  const asked =
    typeof needsApproval === 'function'
      ? (input: unknown, context: object) => needsApproval.call(tool, input, { ...NO_CALL, ...context })
      : (needsApproval as Tool['needsApproval']);
  const { outputSchema } = tool;
  // What else an AI SDK tool has is for the AI SDK.
  const own: Partial<Tool> = Object.fromEntries(
    OWN.flatMap((option) => (tool[option] === undefined ? [] : [[option, tool[option]]])),
  );
  return {
    ...own,
    name,
    description: typeof tool.description === 'string' ? tool.description : '',
    inputSchema: schemaOf(name, 'inputSchema', tool.inputSchema),
    ...(outputSchema === undefined ? {} : { outputSchema: schemaOf(name, 'outputSchema', outputSchema) }),
    ...defined({ needsApproval: asked }),
    execute: async (input, context) => {
      const made: unknown = execute.call(tool, input, withCall(context));
      return isAsyncIterable(made) ? last(made) : made;
    },
  };
}

/** What the AI SDK tells a tool of its call, beside what is ours. */
const NO_CALL = { messages: [], context: {} };

function withCall(context: ToolContext): object {
  const {
    signal,
    idempotencyKey,
    identity,
    attempt,
    tools,
    meta,
    skills,
    handles,
    emit,
    discover,
    saveArtifact,
    artifact,
  } = context;
  const ours: ToolContext = {
    ...{ signal, idempotencyKey, identity, attempt, tools, meta, skills, handles },
    ...{ emit, discover, saveArtifact, artifact },
  };
  return { ...ours, ...NO_CALL, toolCallId: idempotencyKey, abortSignal: signal };
}

function schemaOf(name: string, field: string, schema: unknown): InputSchema {
  const given: unknown = typeof schema === 'function' && !('~standard' in schema) ? schema() : schema;
  if (typeof given === 'object' && given !== null) {
    if ('~standard' in given) return given as StandardSchemaV1;
    // What AI SDK's jsonSchema() and zodSchema() make.
    if ('jsonSchema' in given && typeof given.jsonSchema === 'object') {
      const json = given.jsonSchema as JsonObject;
      return 'validate' in given && typeof given.validate === 'function'
        ? judged(json, given.validate.bind(given))
        : json;
    }
    return given as JsonObject;
  }
  throw new PilotageError(
    'tool_schema_invalid',
    `The ${field} of the tool ${name} cannot be read. Give a Standard Schema (zod, valibot, arktype), JSON Schema, or jsonSchema() of the AI SDK.`,
  );
}

type Judgement =
  | { readonly success: true; readonly value: unknown }
  | { readonly success: false; readonly error: unknown };

/** A schema that brings its own check, with defaults and transforms: the JSON Schema is only what the model is shown. */
function judged(json: JsonObject, validate: (value: unknown) => Judgement | PromiseLike<Judgement>): InputSchema {
  const standard: StandardSchemaV1.Props & StandardJSONSchemaV1.Props = {
    version: 1,
    vendor: 'ai-sdk',
    jsonSchema: { input: () => ({ ...json }), output: () => ({ ...json }) },
    validate: async (value) => {
      const judgement = await validate(value);
      return judgement.success
        ? { value: judgement.value }
        : { issues: [{ message: describeThrown(judgement.error) }] };
    },
  };
  return { '~standard': standard };
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value;
}

/** A streaming tool's last value is its result. */
async function last(values: AsyncIterable<unknown>): Promise<unknown> {
  let value: unknown = null;
  for await (value of values);
  return value;
}
