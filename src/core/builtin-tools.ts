/** Names of the tools that a runtime brings along. Prompt, planner and runtime take them from here. */

/** Finds tools by words and tags. There when a run may use a deferred tool. */
export const TOOL_SEARCH = 'tool_search';
/** Describes one tool by its name. There when `tool_search` is. */
export const TOOL_GET = 'tool_get';
/** Reads a stored value page by page. Listed once there is something to read. */
export const ARTIFACT_FETCH = 'artifact_fetch';

/** Finds skills by words, and gives one by its name. There when a run has more skills than it is shown. */
export const SKILL_SEARCH = 'skill_search';
export const SKILL_GET = 'skill_get';

/** Names that stand for decisions; as the tool of a branch they spawn or await a task beside other calls. */
export const SPAWN_TOOL = '_spawn_task';
export const AWAIT_TOOL = '_await_task';

/** The name of a plan's branch that is a message to the user; no tool carries it out. */
export const MESSAGE_TOOL = '_message';
/**
 * The name of a plan's branch that is its end and its result. Models know it as the way to end a run; it is never declared as a
 * tool.
 */
export const FINISH_TOOL = '_finish';

export function isPlanTool(tool: string): boolean {
  return tool === MESSAGE_TOOL || tool === FINISH_TOOL;
}

const NAMES: readonly string[] = [TOOL_SEARCH, TOOL_GET, ARTIFACT_FETCH, SKILL_SEARCH, SKILL_GET];

export function isBuiltinTool(name: string): boolean {
  return NAMES.includes(name);
}
