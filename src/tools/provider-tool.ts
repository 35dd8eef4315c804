/**
 * Tools that a provider defines, as its package gives them: `anthropic.tools.webSearch_20250305()`. What the provider carries out itself is
 * never called here; what its models call by a type of the provider's own runs here like any tool.
 */
import { defined, isJsonObject, type Json, knowKeysOf, PilotageError, type ProviderTool } from '#core';
import type { Tool } from './tool.ts';
import { OWN_OPTIONS, type UnnamedTool, withName } from './unnamed-tool.ts';

/** A tool with its name, and what its provider is told of it. */
export interface NamedTool {
  readonly tool: Tool;
  readonly provider: Omit<ProviderTool, 'costMicroUsd'>;
}

export function isProviderTool({ type }: UnnamedTool): boolean {
  return type === 'provider';
}

/** @throws PilotageError `invalid_config` for what no package of a provider makes; `tool_without_execute` for a tool that runs here. */
export function namedProviderTool(name: string, given: UnnamedTool): NamedTool {
  const { id, args = {} } = given;
  if (!isId(id) || typeof args !== 'object' || args === null) {
    const message = `The tool ${name} has the type provider, and no id and args. Take it from the provider's package, such as anthropic.tools.webSearch_20250305().`;
    throw new PilotageError('invalid_config', message);
  }
  if (Object.keys(given.providerOptions ?? {}).length > 0) {
    const message = `The tool ${name} (${id}) has providerOptions, which no package sends with a tool of its provider. Give what the provider is to know where the tool is made.`;
    throw new PilotageError('invalid_config', message);
  }
  for (const settings of [args, ...Object.values(args)]) knowKeysOf(textsOf(settings));
  const hosted = typeof given.execute !== 'function';
  if (hosted) assertHosted(name, id, given);
  const provider = { id, args: { ...args }, hosted, ...defined({ name: nameAtProvider(id) }) };
  const { description = isJsonObject(args) ? args['description'] : undefined } = given;
  const tool = withName(name, hosted ? permission(given) : { ...given, description, ...SHOWING[id] }) as Tool;
  return { tool, provider };
}

/** Headers and tokens of a remote server stand among the settings; a provider may repeat them in what it says of a failure. */
function textsOf(settings: unknown): Record<string, string> {
  const entries: [string, unknown][] =
    typeof settings === 'object' && settings !== null ? Object.entries(settings) : [];
  return Object.fromEntries(entries.filter((entry): entry is [string, string] => typeof entry[1] === 'string'));
}

/** The files that are in results of a provider's own form. They go back in that form, whatever else a model would be told. */
const SHOWING: Readonly<Record<string, Pick<UnnamedTool, 'toModelOutput'>>> = {
  'openai.computer': { toModelOutput: ({ output }: { readonly output: unknown }) => screenshotIn(output) },
};

function screenshotIn(output: unknown): object {
  const shot = isJsonObject(output) && isJsonObject(output['output']) ? output['output']['imageUrl'] : undefined;
  return typeof shot === 'string' && shot.startsWith('data:')
    ? { type: 'content', value: [{ type: 'file', mediaType: 'image/*', data: { type: 'url', url: shot } }] }
    : { type: 'json', value: output };
}

function isId(id: unknown): id is ProviderTool['id'] {
  return typeof id === 'string' && /^[^.]+\.[^.]+$/.test(id);
}

/** Tools whose packages say that they run elsewhere, and which OpenAI carries out all the same: a search unasked, a shell in a container of its own. */
const MAY_BE_HOSTED: Readonly<Record<string, (args: unknown) => boolean>> = {
  'openai.tool_search': (args) => !isJsonObject(args) || args['execution'] !== 'client',
  'openai.shell': (args) =>
    isJsonObject(args) && isJsonObject(args['environment']) && args['environment']['type'] !== 'local',
};

/** Providers that give their tools the names by which their models call them. */
const NAMING = /^(?:anthropic|openai|google|xai|groq|mistral)\./;
/** Tools of theirs that the program names, since it may have several of a type. */
const NAMED_BY_PROGRAM = /^(?:openai\.custom|\w+\.mcp(?:_server)?)$/;
const OTHER_NAMES: Readonly<Record<string, string>> = {
  'anthropic.text_editor_20241022': 'str_replace_editor',
  'anthropic.text_editor_20250124': 'str_replace_editor',
  'anthropic.text_editor_20250429': 'str_replace_based_edit_tool',
  'anthropic.text_editor_20250728': 'str_replace_based_edit_tool',
  'anthropic.computer_toolset_20260801': 'computer',
  'anthropic.tool_search_regex_20251119': 'tool_search_tool_regex',
  'anthropic.tool_search_bm25_20251119': 'tool_search_tool_bm25',
};

/** Mostly the type without its date. */
function nameAtProvider(id: ProviderTool['id']): string | undefined {
  if (!NAMING.test(id) || NAMED_BY_PROGRAM.test(id)) return undefined;
  return OTHER_NAMES[id] ?? id.slice(id.indexOf('.') + 1).replace(/_\d{8}$/, '');
}

const RUNS_HERE =
  /^(?:anthropic\.(?:bash|text_editor|computer|memory)_|openai\.(?:custom|local_shell|apply_patch|shell)$)/;

/** What a program may say of a tool that its provider carries out. */
const HOSTED_OPTIONS: readonly string[] = ['scopes', 'tags', 'costUsd'];

function assertHosted(name: string, id: string, given: UnnamedTool): void {
  const { isProviderExecuted, args } = given;
  // AI SDK 6 does not say who carries a tool out.
  const runsHere = isProviderExecuted === false || (isProviderExecuted === undefined && RUNS_HERE.test(id));
  if (runsHere && MAY_BE_HOSTED[id]?.(args) !== true) {
    throw new PilotageError(
      'tool_without_execute',
      `The tool ${name} (${id}) is called by the model and carried out here, and has no execute function. Give it where the tool is made: { execute }.`,
    );
  }
  const options = new Map<string, unknown>(Object.entries(given));
  const idle = Object.keys(OWN_OPTIONS).find((key) => options.get(key) !== undefined && !HOSTED_OPTIONS.includes(key));
  if (idle === undefined) return;
  throw new PilotageError(
    'invalid_config',
    `The tool ${name} (${id}) is carried out by its provider, where ${idle} says nothing. Leave it out; needsApproval, scopes and costUsd count.`,
  );
}

/** What a provider asks leave for: a call that it would carry out. */
const ASKED = {
  type: 'object',
  properties: { tool: { type: 'string' }, input: {} },
  required: ['tool', 'input'],
  additionalProperties: false,
} satisfies Json;

/** Where the provider asks, the question is a call like any other, with its gate. Once that has let it pass, carrying it out is to say yes. */
function permission(given: UnnamedTool): UnnamedTool {
  const { outputSchema: _, needsApproval = true, ...rest } = given;
  return { ...rest, inputSchema: ASKED, needsApproval, effect: 'pure', execute: () => ({ approved: true }) };
}
