/**
 * The system prompt: sections in a fixed order, each left out when it has nothing to say. It is made of what does not
 * change during a run, so that the provider's cache holds: tools found on the way are not part of it.
 */
import {
  ARTIFACT_FETCH,
  AWAIT_TOOL,
  builtinName,
  FINISH_TOOL,
  type JsonObject,
  type PlanningHints,
  type RunView,
  reservedAct,
  SPAWN_TOOL,
  shownName,
  TOOL_GET,
  TOOL_SEARCH,
  type ToolView,
} from '#core';
import { aboutFrames, type CallMode, frame, jsonLine, quoted, type SectionName } from './frame.ts';
import { controlTools, type DeclaredTool, toolEntry } from './tool-text.ts';

export interface PromptParts {
  /** Replaces the sections on who the agent is and how it works. Blank: the default sections. */
  readonly systemPrompt?: string;
  /** Text that is added at the end. Blank: nothing is added. */
  readonly guidance?: string;
  /** True: an answer without tool calls waits for the user's next message, and does not end the run. */
  readonly converse: boolean;
  /** The call that ends the run, where an answer without tool calls is a question to the user. Default: there is none. */
  readonly finish?: DeclaredTool;
  /** True: the run may give work to tasks. Default false. */
  readonly tasks?: boolean;
  /** How many examples of a tool are shown, from 0. Default 3. Only the text mode has them in the prompt. */
  readonly maxExamples?: number;
  /** JSON Schema of the answer. Default: the answer is plain text. */
  readonly answerSchema?: JsonObject;
}

/** @param mode in text mode the prompt also says how to write a call, and has the schemas of the tools. */
export function systemPrompt(parts: PromptParts, view: RunView, mode: CallMode): string {
  const tools = startingTools(view, parts);
  // What the provider carries out is declared to its model, and helps it as any tool does.
  const hasTools = tools.length > 0 || view.tools.hosted !== undefined;
  const own = parts.systemPrompt?.trim() ? [parts.systemPrompt] : workingSections(parts, view, mode, hasTools);
  const sections = [
    ...own,
    section('framed_text', aboutFrames(mode)),
    mode === 'text' && hasTools ? section('tool_calling', toolCalling(parts, view)) : '',
    section('answer_format', answerFormat(parts)),
    section('available_tools', hasTools && tools.length === 0 ? '' : toolList(tools, parts, mode)),
    section('additional_guidance', parts.guidance?.trim() ?? ''),
    section('planning_constraints', quoted(hintLines(view.context.hints ?? {}).join('\n'))),
  ];
  return sections.filter((text) => text !== '').join('\n\n');
}

/** What can be called from the first step on; the controls come last. */
function startingTools({ tools }: RunView, { tasks, finish }: PromptParts): readonly DeclaredTool[] {
  const always = tools.all().filter((tool) => tool.loading === 'always');
  const controls = [...(tasks === true ? controlTools(tools.agents) : []), ...(finish === undefined ? [] : [finish])];
  return controls.length === 0 ? always : [...always, ...controls];
}

function workingSections(parts: PromptParts, view: RunView, mode: CallMode, hasTools: boolean): string[] {
  const { tools } = view;
  return [
    section('identity', identity(view.startedAt)),
    section('tool_discovery', discovery(tools, mode)),
    section('heavy_results', hasTools ? heavyResults(tools) : ''),
    section('tool_usage', hasTools ? toolUsage(parts) : ''),
    section('reasoning', hasTools ? `${REASONING}\n${REASONING_WITH_TOOLS}` : REASONING),
    section('tone', `${TONE}\n${speaking(parts)}`),
    section('error_handling', hasTools ? ERROR_HANDLING : ''),
  ];
}

/** Day and nothing finer, of the recorded start: the prompt stays the same over midnight and on replay. */
function identity(startedAt: number): string {
  const date = new Date(startedAt).toISOString().slice(0, 10);
  return `You are an agent that works on the user's request until it is done. Today is ${date} (UTC).`;
}

function discovery(tools: ToolView, mode: CallMode): string {
  const [search, get] = [builtinName(tools, TOOL_SEARCH), builtinName(tools, TOOL_GET)];
  if (tools.get(search) === undefined || !tools.all().some((tool) => tool.loading === 'deferred')) return '';
  const look = tools.get(get) === undefined ? '' : ` ${get} shows the arguments of one.`;
  const shown = mode === 'text' ? 'listed below' : 'declared to you';
  return `There are more tools than those ${shown}. When none of these fits, describe what you need to ${search}.${look}
A tool that was found can be called from your next reply on.`;
}

function heavyResults(tools: ToolView): string {
  const fetch = builtinName(tools, ARTIFACT_FETCH);
  const rest =
    tools.get(fetch) === undefined
      ? 'Work with the preview, or make a call with a smaller result.'
      : `Read on with ${fetch} when the preview does not answer your question; do not repeat the call.`;
  return `A result that is too large comes as a preview in <stored_result>, with an artifact_ref under which the whole is stored.
${rest}`;
}

function toolUsage({ tasks, converse }: PromptParts): string {
  if (tasks !== true) return TOOL_USAGE;
  return converse ? `${TOOL_USAGE}\n${TASK_USAGE}` : `${TOOL_USAGE}\n${TASK_USAGE}\n${ANSWER_AFTER_TASKS}`;
}

const TOOL_USAGE = `Call a tool when you need a fact that you do not have or an effect that only a tool can bring about.
Never make up what a tool would say.
Calls that do not need each other's results belong in one reply.`;

const TASK_USAGE = `Work that can go on by itself may be given to a task: ${SPAWN_TOOL} starts one and gives its id, ${AWAIT_TOOL}
waits for its result. What background tasks came to is told to you without a call, when their group has ended.`;

const ANSWER_AFTER_TASKS = `While a task is under way, a reply without a tool call waits for it: you get its result, and reply again.`;

const REASONING = `Before each reply, consider what is known, what is missing, and what brings the request furthest.`;

const REASONING_WITH_TOOLS = `When a result speaks against your plan, change the plan. Do not ask for what you know already.`;

const TONE = `Write plainly and briefly, in the language of the request.`;

function speaking({ converse, finish, answerSchema }: PromptParts): string {
  if (finish !== undefined) return ASKING;
  return converse ? CONVERSING : answering(answerSchema === undefined ? ' in plain text' : '');
}

function answering(form: string): string {
  return `When the request is done, answer${form} without a tool call: that answer ends the run.
Say plainly what you could not find out or do.`;
}

const CONVERSING = `When you have something to say or to ask, write it in plain text without a tool call: the user reads it
and may write again. Say plainly what you could not find out or do.`;

const ASKING = `When you need something that only the user can say, ask for it in plain text without a tool call: the user reads it and
answers. When the request is done, call ${FINISH_TOOL} with the answer: only that ends the run. Say plainly in it what you could not find out or do.`;

const ERROR_HANDLING = `A call that failed gives an error in place of a result. Read it: correct the arguments, take another way, or
say that it cannot be done. Do not repeat the same call unchanged.
A result outcome_unknown means that the call may have happened. Never repeat such a call blindly: find out first.`;

/** The taught form of a call. It holds no valid JSON, so that a model which repeats it has not made a call. */
const TAUGHT_FORM = `\`\`\`json
{"tool": "...", "args": {...}}
\`\`\``;

/** The taught form with a reason, which a call needs that was made before. */
const AGAIN_FORM = '{"tool": "...", "args": {...}, "again": "..."}';

function toolCalling({ converse, finish, tasks }: PromptParts, { tools }: RunView): string {
  const changes = tasks === true || tools.all().some(({ effect }) => effect === 'once' || effect === 'keyed');
  const spoken = finish === undefined ? 'goes to the user, who may write again' : 'asks the user, who answers';
  const end = converse ? spoken : 'is your answer, and ends the run';
  return `To call a tool, write a fenced block of JSON with the tool's name and its arguments:
${TAUGHT_FORM}
For several calls, write an array of such objects in one block. You may write text before the block, and nothing after it.
The results come in the next message, each in its frame. A reply without such a block ${end}.${changes ? `\n${REPEATING}` : ''}`;
}

const REPEATING = `A call that changes something is made in no other form, and the same call is not made twice. If it is to happen once more, say
why: ${AGAIN_FORM}`;

/** A call that ends the run has the form of the answer in its arguments. */
function answerFormat({ answerSchema, finish }: PromptParts): string {
  if (answerSchema === undefined || finish !== undefined) return '';
  return `Your answer is one JSON value that fits this schema, without a fence and without words around it:
${JSON.stringify(answerSchema)}`;
}

/** With native calls the request declares the tools: said once more, they would cost twice, and stand among the program's own words. */
function toolList(tools: readonly DeclaredTool[], { maxExamples }: PromptParts, mode: CallMode): string {
  if (tools.length === 0) return 'No tools are available.';
  return mode === 'native' ? '' : tools.map((tool) => toolEntry(tool, maxExamples)).join('\n');
}

function section(name: SectionName, text: string): string {
  return text === '' ? '' : frame(name, text);
}

/** The caller's advice for this run, a line for each thing that is set. */
export function hintLines(hints: PlanningHints): string[] {
  const { constraints, preferredOrder, parallelGroups, maxParallel, disallowedTools, preferredTools } = hints;
  const groups = (parallelGroups ?? []).filter((group) => group.length > 0).map((group) => names(group, ' + '));
  const budget = budgetParts(hints.budget);
  // A reserved name that is not allowed is not told of at all.
  const disallowed = (disallowedTools ?? []).filter((tool) => reservedAct(tool) === undefined);
  const lines: string[] = [];
  if (constraints?.trim()) lines.push(`Constraints: ${onOneLine(constraints.trim())}`);
  if (preferredOrder?.length) lines.push(`Preferred order: ${names(preferredOrder, ' -> ')}`);
  if (groups.length > 0) lines.push(`May be called together: ${groups.join('; ')}`);
  if (maxParallel !== undefined) lines.push(`At once: ${maxParallel} calls at most`);
  if (disallowed.length > 0) lines.push(`Do not use: ${names(disallowed, ', ')}`);
  if (preferredTools?.length) lines.push(`Preferred tools: ${names(preferredTools, ', ')}`);
  if (budget.length > 0) lines.push(`Budget: ${budget.join(', ')}`);
  return lines;
}

function budgetParts({ steps, costUsd, latencyMs }: NonNullable<PlanningHints['budget']> = {}): string[] {
  const parts: string[] = [];
  if (steps !== undefined) parts.push(`${steps} steps`);
  if (costUsd !== undefined) parts.push(`${costUsd} USD`);
  if (latencyMs !== undefined) parts.push(`${latencyMs} ms`);
  return parts;
}

/** No line of a text may look like a line that Pilotage wrote. */
function onOneLine(text: string): string {
  return /^"|[\p{Cc}\p{Zl}\p{Zp}]/u.test(text) ? jsonLine(text) : text;
}

function names(tools: readonly string[], separator: string): string {
  return tools.map(shownName).join(separator);
}

/** The refusal of a call that may change something, and was written in another form or only spoken of. @param tool safe to show. */
export function unsureCall(tool: string): string {
  return `The call of ${tool} was not made: it changes something, and such a call counts only in this form, as the end of your reply:
${TAUGHT_FORM}
Your reply had it in another form, or spoke of it. If you mean the call, reply with that block alone; if not, answer without it.`;
}

/** The refusal of a call that was made before. @param came its outcome, safe to show. */
export function repeatedCall(tool: string, step: number, came: string): string {
  return `The call of ${tool} was not made: the same call with the same arguments was made at step ${step + 1}. What came of it: ${came}
Go on with that. If it is to happen once more, reply with its block alone, and with the reason: ${AGAIN_FORM}`;
}
