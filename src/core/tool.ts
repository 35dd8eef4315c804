/** What a planner may know of a tool, never its function; and the names of tools that are always there. */
import type { JsonObject } from './json.ts';
import { wireName } from './names.ts';
import type { ToolPolicy } from './policy.ts';

/**
 * What a call may do to the world, which decides what happens after a crash in the middle of it.
 * - `pure`, `read`: the call runs again.
 * - `keyed`: the call runs again with the same idempotency key.
 * - `once`: the call never runs again by itself; the tool's `reconcile` is asked, and a person settles what it cannot tell.
 */
export type Effect = 'pure' | 'read' | 'keyed' | 'once';

export type Loading = 'always' | 'deferred';

export interface ToolSchema {
  readonly name: string;
  readonly description: string;
  /** JSON Schema of the arguments. */
  readonly inputSchema: JsonObject;
  readonly effect: Effect;
  readonly tags: readonly string[];
  /** A deferred tool is listed only once the run has found it; it may be called before. */
  readonly loading: Loading;
  /** Media types of artifacts that the tool reads, such as `text/*`. Absent: the tool reads none. */
  readonly mimeTypes?: readonly string[];
  /** Arguments that show how the tool is used, the plainest first. */
  readonly examples: readonly JsonObject[];
  /** Set for a tool that a provider defines: it is offered to that provider's models by its type, and not as a function. */
  readonly provider?: ProviderTool;
  /** True: whoever reads the run carries the calls out, and says what they came to. */
  readonly client?: true;
  /** Options that the provider gets with the tool, by the provider's name. */
  readonly providerOptions?: JsonObject;
}

/** True: a call has one text in place of arguments. Only tools that a provider defines have such a form. */
export function takesText(tool: ToolSchema | undefined): boolean {
  return tool?.provider !== undefined && tool.inputSchema['type'] === 'string';
}

/** What a provider has to be told to offer one of its own tools. */
export interface ProviderTool {
  /** The type of the tool, such as `anthropic.web_search_20250305`: the provider's name and its word for the tool. */
  readonly id: `${string}.${string}`;
  /** The name by which its models call it, whatever the program calls it; absent where the program names the tool. */
  readonly name?: string;
  /** Settings of the tool. They go to the provider alone, and are never recorded: they may hold keys. */
  readonly args: Readonly<Record<string, unknown>>;
  /** True: the provider carries the calls out itself. False: its models call the tool, and the runtime carries it out. */
  readonly hosted: boolean;
  /** What one call that the provider carries out costs, in millionths of a US dollar. */
  readonly costMicroUsd: number;
}

/** The name under which a model is offered the tool, and calls it. */
export function calledName({ name, provider }: Pick<ToolSchema, 'name' | 'provider'>): string {
  return provider?.name ?? wireName(name);
}

/** The same by the tool's own name, also of a tool that is not among these any more. */
export function calledNameIn({ get }: Pick<ToolView, 'get'>, name: string): string {
  const tool = get(name);
  return tool === undefined ? wireName(name) : calledName(tool);
}

/** The tools that this run's identity may use. Another tool's name gives the same answer as a name nobody knows. */
export interface ToolView {
  /**
   * The listed tools: first those that are always listed, sorted by name, then tools found during the run. The array stays the
   * same object as long as nothing changes.
   */
  list(): readonly ToolSchema[];
  /** All tools, deferred ones included, sorted by name. */
  all(): readonly ToolSchema[];
  get(name: string): ToolSchema | undefined;
  /** Tools that the provider of the model carries out itself, sorted by name; they are in no other list. Absent: there are none. */
  readonly hosted?: readonly ToolSchema[];
  /** The agents that a task may be given to, by name. Absent: there is one. */
  readonly agents?: readonly string[];
  /** The program's policy about calls, for planners that look ahead. The policy is asked again when a call is made. */
  readonly policy?: ToolPolicy;
}

// Names of the tools that a runtime brings along. Prompt, planner and runtime take them from here.

/** Finds tools by words and tags. There when a run may use a deferred tool. */
export const TOOL_SEARCH = 'tool_search';
/** Describes one tool by its name. There when `tool_search` is. */
export const TOOL_GET = 'tool_get';
/** Reads a stored value page by page. Listed once there is something to read. */
export const ARTIFACT_FETCH = 'artifact_fetch';

/** Finds skills by words, and gives one by its name. There when a run has more skills than it is shown. */
export const SKILL_SEARCH = 'skill_search';
export const SKILL_GET = 'skill_get';

/** Writes into the long-term memory of the user. There when the planner has memory. */
export const REMEMBER = 'remember';

/** Names that stand for decisions; as the tool of a branch they spawn or await a task beside other calls. */
export const SPAWN_TOOL = '_spawn_task';
export const AWAIT_TOOL = '_await_task';

/** The name of a plan's branch that is a message to the user; no tool carries it out. */
export const MESSAGE_TOOL = '_message';
/**
 * The name of a plan's branch that is its end and its result. Models know it as the way to end a run. It is declared only to the model
 * of a task that asks its user with its text.
 */
export const FINISH_TOOL = '_finish';

/** The name of the call by which a run has a task of its own undo what it did for one of its calls. Only the runtime decides it. */
export const UNDO_TASK = '_undo_task';

export function isPlanTool(tool: string): boolean {
  return tool === MESSAGE_TOOL || tool === FINISH_TOOL;
}

/** What calls under reserved names are. Models read these words, and never a name that they could take for a tool's. */
const RESERVED_ACTS: ReadonlyMap<string, string> = new Map([
  [MESSAGE_TOOL, 'message_to_user'],
  [FINISH_TOOL, 'result_of_plan'],
  [SPAWN_TOOL, 'start_of_task'],
  [AWAIT_TOOL, 'wait_for_task'],
  [UNDO_TASK, 'undo_of_task'],
]);

/** What a call under a reserved name is; `undefined` for a tool's name. */
export function reservedAct(tool: string): string | undefined {
  return RESERVED_ACTS.get(tool);
}

const BUILTINS: readonly string[] = [TOOL_SEARCH, TOOL_GET, ARTIFACT_FETCH, SKILL_SEARCH, SKILL_GET, REMEMBER];

/** A tool that a runtime brings along has this before its name when the program has a tool of that name: OpenAI's own is `tool_search` too. */
const GIVEN_WAY = 'pilotage_';

/** The name that the runtime's own tool gets when the program has one of its name. */
export function givenWay(builtin: string): string {
  return `${GIVEN_WAY}${builtin}`;
}

/** The name under which these tools have the one that the runtime brings along. */
export function builtinName({ get }: Pick<ToolView, 'get'>, builtin: string): string {
  return get(givenWay(builtin)) === undefined ? builtin : givenWay(builtin);
}

export function isBuiltinTool(tools: Pick<ToolView, 'get'>, name: string): boolean {
  return BUILTINS.some((builtin) => builtinName(tools, builtin) === name);
}
