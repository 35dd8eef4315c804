/**
 * Tools of a record, which have their names from it. Those of the AI SDK (`tool()`) are such tools: they are known by their shape, so
 * that the package is not needed, and `execute` gets what the AI SDK would give it beside the context of Pilotage.
 */
import type { StandardJSONSchemaV1, StandardSchemaV1 } from '@standard-schema/spec';
import { defined, describeThrown, fieldOf, type JsonObject, type OptionShape, PilotageError, shownAmount } from '#core';
import { isOfMcp, ofServer } from './mcp-outcome.ts';
import { resultOf } from './pieces.ts';
import { fitOf } from './schema.ts';
import type { ClientTool, GateContext, InputSchema, Tool, ToolContext } from './tool.ts';

type NamedApart =
  | 'type'
  | 'id'
  | 'args'
  | 'isProviderExecuted'
  | 'name'
  | 'description'
  | 'inputSchema'
  | 'outputSchema'
  | 'needsApproval'
  | 'execute'
  | 'toModelOutput'
  | 'contextSchema'
  | 'context';

/** A tool whose name is its key in a record: an AI SDK `tool()`, or a tool of Pilotage without `name`. Its effect is `once` unless it says so. */
export interface UnnamedTool extends Partial<Omit<Tool, NamedApart>> {
  readonly name?: never;
  /** True: the tool has no `execute`, and whoever reads the run carries its calls out. */
  readonly client?: unknown;
  /** `provider`: a tool that a provider defines, as its package makes it, with `id`, `args` and `isProviderExecuted`. */
  readonly type?: unknown;
  readonly id?: unknown;
  readonly args?: unknown;
  readonly isProviderExecuted?: unknown;
  /** A text, or a function of `{ context }` that gives one: it is asked once. */
  readonly description?: unknown;
  readonly inputSchema: unknown;
  readonly outputSchema?: unknown;
  readonly needsApproval?: unknown;
  readonly execute?: unknown;
  readonly toModelOutput?: unknown;
  /** What the context of an AI SDK tool has to be. */
  readonly contextSchema?: unknown;
  /** The context of an AI SDK tool, which `execute` and `needsApproval` get: an object for all calls, or a function that makes it for each call. */
  readonly context?: object | ((about: GateContext) => object | Promise<object>) | undefined;
}

/** Options of every tool beside its name, its schemas, its gate and its function. Their values are looked at where the tool is made ready. */
export const OWN_OPTIONS: OptionShape<Omit<UnnamedTool, NamedApart>> = {
  ...({
    effect: 'any?',
    poll: 'any?',
    reconcile: 'any?',
    inDoubt: 'any?',
    handles: 'any?',
    tags: 'any?',
    loading: 'any?',
  } as const),
  ...({ mimeTypes: 'any?', scopes: 'any?', examples: 'any?', timeoutMs: 'any?', retries: 'any?' } as const),
  ...({ backoff: 'any?', concurrency: 'any?', costUsd: 'any?', providerOptions: 'any?', handsOver: 'any?' } as const),
  ...({ background: 'any?', firstByteMs: 'any?', idleMs: 'any?' } as const),
  ...({ undo: 'any?', client: 'any?' } as const),
};
const OWN = Object.keys(OWN_OPTIONS) as (keyof typeof OWN_OPTIONS)[];

/** @throws PilotageError `tool_without_execute`, `tool_schema_invalid`, or `invalid_config` for its description or its context. */
export function withName(name: string, tool: UnnamedTool): Tool | ClientTool {
  const { execute, needsApproval, toModelOutput, client } = tool;
  if (typeof execute !== 'function' && (client !== true || execute !== undefined)) {
    throw new PilotageError(
      'tool_without_execute',
      `The tool ${name} has no execute function. Give \`execute\`, or say that whoever reads the run, such as a page, carries its calls out: withTools(tools, { ${name}: { client: true } }) of pilotage/tools.`,
    );
  }
  const contextOf = contextFor(name, tool);
  const asked =
    typeof needsApproval === 'function'
      ? (input: unknown, about: GateContext) =>
          chained(contextOf(about), (context) =>
            needsApproval.call(tool, input, { ...about, ...callOf(about, context) }),
          )
      : (needsApproval as Tool['needsApproval']);
  const { outputSchema } = tool;
  const own: Partial<Tool> = Object.fromEntries(
    OWN.flatMap((option) => (tool[option] === undefined ? [] : [[option, tool[option]]])),
  );
  const made = {
    ...saidByAiSdk(tool),
    ...own,
    name,
    description: descriptionOf(name, tool),
    inputSchema: schemaOf(name, 'inputSchema', tool.inputSchema),
    ...(outputSchema === undefined ? {} : { outputSchema: schemaOf(name, 'outputSchema', outputSchema) }),
    ...defined({ needsApproval: asked }),
    ...defined({ toModelOutput: modelOutputOf(toModelOutput, tool) }),
  };
  if (typeof execute !== 'function') return made as ClientTool;
  return {
    ...made,
    execute: (input, call) =>
      chained(contextOf(call), (context) => {
        const made: unknown = execute.call(tool, input, withCall(call, context));
        return resultOf(isOfMcp(tool) ? ofServer(made, call.signal, outputSchema !== undefined) : made, call);
      }),
  };
}

/** Another value than a function is refused where the tool is made ready. */
function modelOutputOf(given: unknown, tool: UnnamedTool): Tool['toModelOutput'] {
  return typeof given === 'function' ? given.bind(tool) : (given as undefined);
}

/** Options that the AI SDK has under other names. */
function saidByAiSdk(tool: object): Pick<Tool, 'examples' | 'loading'> {
  const { inputExamples, deferLoading }: { inputExamples?: unknown; deferLoading?: unknown } = tool;
  return {
    ...(Array.isArray(inputExamples) ? { examples: inputExamples.map((example) => ({ args: example?.input })) } : {}),
    ...(deferLoading === true ? { loading: 'deferred' } : {}),
  };
}

/** What the AI SDK tells a tool of its call, beside what is ours. */
function callOf({ idempotencyKey }: Pick<GateContext, 'idempotencyKey'>, context: unknown): object {
  return { messages: [], context, toolCallId: idempotencyKey };
}

function withCall(own: ToolContext, context: unknown): object {
  const {
    signal,
    idempotencyKey,
    identity,
    attempt,
    tools,
    meta,
    skills,
    traceparent,
    handles,
    emit,
    discover,
    saveArtifact,
    artifact,
    store,
    stream,
    model,
    spent,
    ask,
    sleep,
    event,
    once,
  } = own;
  const ours: ToolContext = {
    ...{ signal, idempotencyKey, identity, attempt, tools, meta, skills, traceparent, handles },
    ...{ emit, discover, saveArtifact, artifact, store, stream, model, spent, ask, sleep, event, once },
  };
  return { ...ours, ...callOf(own, context), abortSignal: signal };
}

function chained<V, T>(value: V | PromiseLike<V>, use: (value: V) => T): T | Promise<T> {
  return isThenable(value) ? Promise.resolve(value).then(use) : use(value);
}

function isThenable<V>(value: V | PromiseLike<V>): value is PromiseLike<V> {
  return typeof fieldOf(value, 'then') === 'function';
}

const NO_CONTEXT: unknown = Object.freeze({});

/** What gives a call its context. A context for all calls is checked here. */
function contextFor(name: string, { contextSchema, context }: UnnamedTool): (about: GateContext) => unknown {
  if (context === undefined && contextSchema === undefined) return () => NO_CONTEXT;
  if (context === undefined) {
    throw new PilotageError(
      'invalid_config',
      `The tool ${name} has a contextSchema and no context. Give the context, or a function of { identity, meta, idempotencyKey } that makes it: withTools(tools, { ${name}: { context } }) of pilotage/tools.`,
    );
  }
  const fitted = contextSchema === undefined ? (given: unknown) => given : fitting(name, contextSchema);
  if (typeof context === 'function') {
    return ({ identity, idempotencyKey, meta }) => chained(context({ identity, idempotencyKey, meta }), fitted);
  }
  const given = fitted(context);
  // The call hears of it.
  if (given instanceof Promise) given.catch(() => {});
  return () => given;
}

/** Gives what the schema makes of a context. @throws PilotageError `invalid_config`. */
function fitting(name: string, contextSchema: unknown): (given: unknown) => unknown {
  const owner = `The context of the tool ${name}`;
  const check = fitOf(schemaOf(name, 'contextSchema', contextSchema), owner);
  return (given) =>
    chained(check(given), (checked) => {
      if (checked.ok) return checked.value;
      throw new PilotageError('invalid_config', `${owner} does not fit its contextSchema: ${checked.why}.`);
    });
}

function descriptionOf(name: string, { description, context }: UnnamedTool): string {
  if (description === undefined || typeof description === 'string') return description ?? '';
  const refusal = (what: string, cause?: unknown): PilotageError =>
    new PilotageError(
      'invalid_config',
      `The tool ${name} has ${what}. All runs read the same text: give it, such as withTools(tools, { ${name}: { description: '…' } }) of pilotage/tools.`,
      { cause },
    );
  if (typeof description !== 'function') throw refusal(`the description ${shownAmount(description)}`);
  if (typeof context === 'function')
    throw refusal('a description that is made of a context, and a context for each call');
  let made: unknown;
  try {
    made = description({ context });
  } catch (cause) {
    throw refusal(`a description whose function threw: ${describeThrown(cause)}`, cause);
  }
  if (typeof made === 'string') return made;
  throw refusal('a description whose function gives no text');
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
