/**
 * The tools of a runtime, checked once. A run sees them through an authorised view, and the same view is used for
 * listing and for dispatch: a tool outside it does not exist for that run.
 */
import { PilotageError } from '../core/errors.ts';
import { isJsonObject, type JsonObject } from '../core/json.ts';
import type { Effect, ToolSchema, ToolView } from '../core/tool-schema.ts';
import { type AiSdkTool, fromAiSdk, isAiSdkTool } from './ai-sdk.ts';
import { type Check, checkOf, jsonSchemaOf } from './schema.ts';
import type { Tool } from './tool.ts';

export const DEFAULT_TIMEOUT_MS = 30_000;
export const DEFAULT_RETRIES = 3;

/** A tool made ready: defaults filled in, checks prepared. */
export interface ReadyTool {
  readonly schema: ToolSchema;
  readonly checkArgs: Check;
  readonly checkValue: Check | undefined;
  readonly effect: Effect;
  readonly timeoutMs: number;
  readonly retries: number;
  readonly concurrency: number;
  readonly costMicroUsd: number;
  readonly scopes: readonly string[];
  readonly source: Tool;
}

/** What dispatch may use; planners get it as a `ToolView`, which has no callable in it. */
export interface AuthorisedTools extends ToolView {
  ready(name: string): ReadyTool | undefined;
}

export interface Catalogue {
  /**
   * The view of a run that holds these scopes. Equal arguments share one view.
   * @param found deferred tools that are listed now, after the others, so that the list only grows at its end.
   */
  view(scopes: readonly string[], found?: readonly string[]): AuthorisedTools;
}

/** A list of tools, or a record by name, whose values may be AI SDK `tool()` objects. */
export type ToolSet = readonly Tool[] | Readonly<Record<string, Tool | AiSdkTool>>;

/**
 * @param deferred names of tools that may be called but are not listed until they are found.
 * @throws PilotageError `tool_name_empty`, `tool_without_run`, `tool_name_taken`, `tool_schema_invalid`,
 * `tool_example_invalid` or `invalid_config`.
 */
export function createCatalogue(tools: ToolSet, deferred: readonly string[] = []): Catalogue {
  const ready = new Map<string, ReadyTool>();
  for (const tool of listOf(tools)) {
    const made = prepare(tool);
    if (ready.has(tool.name)) {
      throw new PilotageError('tool_name_taken', `Two tools are named ${JSON.stringify(tool.name)}. Rename one.`);
    }
    ready.set(tool.name, made);
  }
  const sorted = [...ready.values()].sort((a, b) => (a.schema.name < b.schema.name ? -1 : 1));
  const views = new Map<string, AuthorisedTools>();
  return {
    view(scopes, found = []) {
      const key = JSON.stringify([[...scopes].sort(), found]);
      const known = views.get(key);
      if (known !== undefined) return known;
      const made = authorise(sorted, scopes, deferred, found);
      views.set(key, made);
      return made;
    },
  };
}

function listOf(tools: ToolSet): readonly Tool[] {
  if (Array.isArray(tools)) return tools as readonly Tool[];
  return Object.entries(tools as Readonly<Record<string, Tool | AiSdkTool>>).map(([name, tool]) => {
    if (isAiSdkTool(tool)) return fromAiSdk(name, tool);
    if (tool?.name === name) return tool;
    throw new PilotageError(
      'invalid_config',
      `The tool at ${JSON.stringify(name)} is named ${JSON.stringify(tool?.name)}.`,
    );
  });
}

function authorise(
  tools: readonly ReadyTool[],
  scopes: readonly string[],
  deferred: readonly string[],
  found: readonly string[],
): AuthorisedTools {
  const held = new Set(scopes);
  const allowed = tools.filter((tool) => tool.scopes.every((scope) => held.has(scope)));
  const byName = new Map(allowed.map((tool) => [tool.schema.name, tool]));
  const always = allowed.filter((tool) => !deferred.includes(tool.schema.name));
  const later = found.flatMap((name) => byName.get(name) ?? []);
  const list = Object.freeze([...always, ...later].map((tool) => tool.schema));
  return Object.freeze({
    list: () => list,
    get: (name: string) => byName.get(name)?.schema,
    ready: (name: string) => byName.get(name),
  });
}

function prepare(tool: Tool): ReadyTool {
  if (typeof tool?.name !== 'string' || tool.name.trim() === '') {
    throw new PilotageError('tool_name_empty', 'A tool has no name. Give it one that the model can call.');
  }
  const owner = `The tool ${tool.name}`;
  if (typeof tool.run !== 'function') {
    throw new PilotageError('tool_without_run', `${owner} has no run function.`);
  }
  if (typeof tool.description !== 'string') {
    throw new PilotageError('invalid_config', `${owner} has no description. Say what it does; the model reads it.`);
  }
  const { effect = 'once', timeoutMs = DEFAULT_TIMEOUT_MS, retries = DEFAULT_RETRIES } = tool;
  assertWhole(owner, { timeoutMs, retries, concurrency: tool.concurrency ?? 1, costMicroUsd: tool.costMicroUsd ?? 0 });
  assertEffect(owner, effect);
  const inputSchema = jsonSchemaOf(tool.input, owner);
  const checkArgs = checkOf(tool.input, owner);
  assertExamples(tool, inputSchema, checkArgs);
  const { name, description } = tool;
  return {
    schema: Object.freeze({ name, description, inputSchema, effect, tags: Object.freeze([...(tool.tags ?? [])]) }),
    checkArgs,
    checkValue: tool.output === undefined ? undefined : checkOf(tool.output, `${owner}'s output`),
    effect,
    timeoutMs,
    retries: effect === 'once' ? 0 : retries,
    concurrency: tool.concurrency ?? Number.POSITIVE_INFINITY,
    costMicroUsd: tool.costMicroUsd ?? 0,
    scopes: tool.scopes ?? [],
    source: tool,
  };
}

function assertEffect(owner: string, effect: string): void {
  if (effect === 'pure' || effect === 'read' || effect === 'keyed' || effect === 'once') return;
  throw new PilotageError(
    'invalid_config',
    `${owner} has the effect ${JSON.stringify(effect)}; use pure, read, keyed or once.`,
  );
}

function assertWhole(owner: string, values: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(values)) {
    const least = name === 'timeoutMs' || name === 'concurrency' ? 1 : 0;
    if (Number.isInteger(value) && value >= least) continue;
    throw new PilotageError('invalid_config', `${owner} has ${name} ${value}; give a whole number from ${least} up.`);
  }
}

function assertExamples(tool: Tool, schema: JsonObject, check: Check): void {
  for (const [index, example] of (tool.examples ?? []).entries()) {
    const checked = check(example);
    // An asynchronous schema cannot be asked here: only the names of such an example are checked.
    const misfit = checked instanceof Promise || checked.ok ? undefined : checked.why;
    const why = misfit ?? unnamedArgument(schema, example);
    if (why === undefined) continue;
    throw new PilotageError(
      'tool_example_invalid',
      `Example ${index} of the tool ${tool.name} does not fit its schema: ${why}.`,
    );
  }
}

/** These let a schema name arguments elsewhere than in its own `properties`. */
const OPEN_KEYWORDS = ['additionalProperties', 'patternProperties', 'allOf', 'anyOf', 'oneOf', 'if', '$ref'];

/** Most schemas let unknown arguments pass, but an example that has one shows a mistake. */
function unnamedArgument(schema: JsonObject, example: JsonObject): string | undefined {
  const { properties } = schema;
  if (!isJsonObject(properties) || OPEN_KEYWORDS.some((keyword) => keyword in schema)) return undefined;
  const unnamed = Object.keys(example).find((key) => !Object.hasOwn(properties, key));
  return unnamed === undefined ? undefined : `it has no argument ${JSON.stringify(unnamed)}`;
}
