/** AI SDK `tool()` objects as tools, unchanged. Known by their shape, so that the package is not needed. */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { describeThrown, type JsonObject, PilotageError } from '#core';
import type { AnyTool, InputSchema, Tool } from './tool.ts';

/** The parts of an AI SDK tool that matter here. Its effect is taken as `once`, because it does not say. */
export interface AiSdkTool {
  readonly description?: unknown;
  readonly inputSchema: unknown;
  readonly execute?: unknown;
  readonly needsApproval?: unknown;
}

export function isAiSdkTool(tool: AnyTool | AiSdkTool): tool is AiSdkTool {
  return typeof tool === 'object' && tool !== null && 'inputSchema' in tool;
}

/** @throws PilotageError `tool_without_run`, `tool_schema_invalid`, or `invalid_config` for a tool that asks for approval. */
export function fromAiSdk(name: string, tool: AiSdkTool): Tool {
  const { execute } = tool;
  if (typeof execute !== 'function') {
    throw new PilotageError('tool_without_run', `The AI SDK tool ${name} has no execute function: it cannot run here.`);
  }
  if (tool.needsApproval !== undefined && tool.needsApproval !== false) {
    throw new PilotageError(
      'invalid_config',
      `The AI SDK tool ${name} asks for approval (needsApproval), which is not supported yet.`,
    );
  }
  return {
    name,
    description: typeof tool.description === 'string' ? tool.description : '',
    input: inputOf(name, tool.inputSchema),
    run: async (input, { signal, idempotencyKey }) => {
      const made: unknown = execute.call(tool, input, {
        toolCallId: idempotencyKey,
        messages: [],
        abortSignal: signal,
        context: {},
      });
      return isAsyncIterable(made) ? last(made) : made;
    },
  };
}

function inputOf(name: string, schema: unknown): InputSchema {
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
  }
  throw new PilotageError(
    'tool_schema_invalid',
    `The AI SDK tool ${name} has an inputSchema that is neither a Standard Schema nor jsonSchema().`,
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
