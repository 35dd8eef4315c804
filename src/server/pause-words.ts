/** The questions of runs as every protocol puts them to a person: in words, and what is shown beside them. */
import {
  asksForBudget,
  asksOpenly,
  defined,
  isForOperators,
  isJsonObject,
  type Json,
  type JsonObject,
  type OperatorReason,
  type PauseReason,
  type TaskPause,
} from '#core';

/** The fields of a pause that make its words. */
type Question = Pick<TaskPause, 'reason' | 'payload' | 'schema' | 'wait' | 'text'>;

/** Arguments that are longer as JSON are cut off. In characters. */
const MAX_SHOWN_ARGS = 2_000;

/** What the runtime itself asks, by its reason. */
const OF_RUNTIME: Readonly<Record<OperatorReason, (call: string) => string>> = {
  in_doubt: (call) => `Nobody knows whether the call of ${call} has happened.`,
  model_unavailable: () => 'The run has no model that answers.',
  context_exhausted: () => 'The run has more to send than its models take.',
  plan_failed: () => 'A part of the plan of the run has failed.',
};

/** What may be shown of what a pause has recorded: all of a question of an agent, and of the runtime's own only the call that it is about. */
export function shownOf({ reason, payload = {} }: Question): JsonObject {
  if (!isForOperators(reason)) return payload;
  const { tool, args } = payload;
  return defined({ tool, args });
}

/** The address at which somebody has to log in before the run can go on. */
export function loginOf({ reason, payload, wait }: Question): string | undefined {
  const url = payload?.['url'];
  if (isForOperators(reason) || reason === 'approval_required' || wait !== undefined) return undefined;
  return typeof url === 'string' ? url : undefined;
}

/** The arguments of the call that the pause is about. None when they are too long to be shown whole. */
export function shownArgsOf({ payload }: Question): JsonObject {
  const args = payload?.['args'];
  return args !== undefined && isJsonObject(args) && JSON.stringify(args).length <= MAX_SHOWN_ARGS ? args : {};
}

/**
 * The question in words, for a person.
 * @param isUrlBeside true: the address of a login is told beside the words, and is left out of them.
 */
export function questionOf(pause: Question, isUrlBeside = false): string {
  const { reason, payload = {}, wait } = pause;
  const { tool, args, budget, limit } = payload;
  const shown = args === undefined ? '' : ` with ${shortJson(args)}`;
  if (asksForBudget(pause)) return `The run has reached its limit of ${String(budget)}, which is ${String(limit)}.`;
  if (isForOperators(reason)) return OF_RUNTIME[reason](`${String(tool)}${shown}`);
  if (reason === 'client_tool') return `What does ${String(tool)}${shown} come to? It is carried out by you.`;
  const said = saidIn(pause);
  const url = loginOf(pause);
  if (url !== undefined) {
    const place = isUrlBeside ? '' : ` at ${url}`;
    return typeof tool === 'string'
      ? `${tool} needs somebody to log in${place}. ${said}`.trim()
      : `Somebody has to log in${place}. ${said}`.trim();
  }
  const isOpen = wait !== undefined || asksOpenly(pause);
  if (typeof tool === 'string' && !isOpen) return `May ${tool} be called${shown}? ${said}`.trim();
  return said === '' ? waitsFor(reason, payload) : said;
}

/** What the agent itself has said about its question. */
function saidIn({ payload = {}, text = '' }: Question): string {
  const { question, message, reason } = payload;
  const said = [question, message, reason].find((each) => typeof each === 'string' && each !== '');
  return typeof said === 'string' ? said : text;
}

function waitsFor(reason: PauseReason, { by, no_progress: isGoingRound }: JsonObject): string {
  if (by === 'operator') return 'The run was paused by whoever runs the agent.';
  if (isGoingRound === true) return 'The run goes round in circles.';
  return `The run waits (${reason.replaceAll('_', ' ')}).`;
}

/** Whoever approves knows when they do not see all of it. */
function shortJson(args: Json): string {
  const json = JSON.stringify(args);
  const more = json.length - MAX_SHOWN_ARGS;
  return more > 0 ? `${json.slice(0, MAX_SHOWN_ARGS)}… (${more} characters more, which are not shown here)` : json;
}
