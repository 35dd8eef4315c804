/** The calls of a reply, whichever way the model wrote them: natively, as text of a model without native calls, or leaked. */

import { FINISH_TOOL } from '../../core/builtin-tools.ts';
import type { ErrorData } from '../../core/errors.ts';
import { isJsonObject, type Json } from '../../core/json.ts';
import type { Remark } from '../../core/remark.ts';
import { shownName } from '../../core/shown-name.ts';
import type { ToolSchema, ToolView } from '../../core/tool-schema.ts';
import type { ModelCall, Reply, StopReason } from '../../model/reply.ts';
import { type ParsedCall, type ParseIssue, type ParseTool, parseToolArgs, ToolCallStream } from '../../parse/index.ts';
import { CONTROL_TOOLS } from '../../prompt/reserved-tools.ts';
import { readTemplate } from './chat-template.ts';
import { faultData } from './faults.ts';

export interface ReadCall {
  readonly tool: string;
  /** As the provider gave it; empty when there was none. */
  readonly callId: string;
  readonly args: Json;
  /** Why the call cannot be made. */
  readonly refusal?: ErrorData;
}

export interface ReadReply {
  /** What was said beside the calls. */
  readonly text: string;
  readonly calls: readonly ReadCall[];
  readonly remarks: readonly Remark[];
  /** The text was meant to be a call, and this is why it is none. */
  readonly unreadable?: string;
}

/** The way to end, as the parser needs it. */
const FINISH: ParseTool = {
  name: FINISH_TOOL,
  inputSchema: { type: 'object', properties: { answer: {} }, required: ['answer'] },
};

const RESERVED: readonly ParseTool[] = [FINISH];
const RESERVED_WITH_TASKS: readonly ParseTool[] = [...CONTROL_TOOLS, FINISH];

/** What a reply may call. */
export interface Callable {
  readonly tools: ToolView;
  /** The run may give work to tasks. */
  readonly tasks: boolean;
}

/** All tools that a reply may name, as the parser needs them. */
export function parseTools({ tools, tasks }: Callable): readonly ParseTool[] {
  return [...tools.all(), ...(tasks ? RESERVED_WITH_TASKS : RESERVED)];
}

export interface ReadOptions extends Callable {
  readonly mode: 'native' | 'text';
  /** The answer has to fit a schema. */
  readonly hasAnswerSchema: boolean;
}

/** The reply ended before the model was done: its text is not an answer, and its last call may be half a call. */
export const CUT_OFF: ReadonlySet<StopReason> = new Set(['length', 'interrupted', 'error']);

export function readReply(reply: Reply, options: ReadOptions): ReadReply {
  if (reply.calls.length > 0) return readNative(reply, options);
  if (options.mode === 'text') return readText(reply.text, options);
  return readLeaked(reply, options);
}

function readNative({ text, calls }: Reply, callable: Callable): ReadReply {
  const issues: ParseIssue[] = [];
  const read = calls.map((call) => readNativeCall(call, callable, issues));
  return { text, calls: read, remarks: remarksOf(issues) };
}

function readNativeCall(
  { tool, callId, input }: ModelCall,
  { tools, tasks }: Callable,
  issues: ParseIssue[],
): ReadCall {
  // Some providers send nothing for a call without arguments.
  if (input.trim() === '') return { tool, callId, args: {} };
  const reserved = tasks ? RESERVED_WITH_TASKS : RESERVED;
  const known = reserved.find(({ name }) => name === tool) ?? tools.get(tool) ?? { name: tool };
  // What ends a run is not guessed from less than an object.
  const parsed = tool === FINISH_TOOL && !input.trimStart().startsWith('{') ? null : parseToolArgs(input, known);
  if (parsed === null) {
    const message = `The arguments of ${shownName(tool)} are no JSON object. Send one that fits its schema.`;
    return { tool, callId, args: input, refusal: faultData('tool_invalid_args', message) };
  }
  issues.push(...parsed.issues);
  if (parsed.issues.some(isCut)) return { tool, callId, args: parsed.args, refusal: cutRefusal(tool) };
  return { tool, callId, args: parsed.args };
}

function readText(text: string, callable: Callable): ReadReply {
  // The calls of the whole text, and what a listener would be shown beside them, in one reading.
  const stream = new ToolCallStream(parseTools(callable));
  const shown = stream.push(text).text;
  const { calls, issues, text: rest } = stream.end();
  const prose = (shown + rest).trim();
  const remarks = remarksOf(issues.filter(({ code }) => code !== 'unknown_tool'));
  if (calls.length === 0) {
    const unreadable = issues.find(({ code }) => code === 'unknown_tool' || code === 'truncated' || code === 'limit');
    // What listeners were not shown of an answer is no part of it either.
    return unreadable === undefined
      ? { text: OPENS_WITH_THOUGHT.test(text) ? prose : text, calls: [], remarks: [] }
      : { text, calls: [], remarks, unreadable: unreadable.message };
  }
  const cut = new Set(issues.flatMap((issue) => (isCut(issue) && issue.call !== undefined ? [issue.call] : [])));
  return { text: prose, calls: calls.map((call, index) => textCall(call, cut.has(index))), remarks };
}

const OPENS_WITH_THOUGHT = /^\s*<(?:think|thinking|reasoning|reflection|scratchpad)>/;

function textCall({ tool, args, callId = '' }: ParsedCall, cut: boolean): ReadCall {
  return cut ? { tool, callId, args, refusal: cutRefusal(tool) } : { tool, callId, args };
}

/**
 * What a model with native calls wrote in place of them. Words are an answer, whatever they look like; so is JSON. Only the
 * template of a call counts, and only when nothing of it is missing, to be mended, or of a tool that was not offered. One
 * that does not count is no answer either: nobody wants to read its tokens.
 */
function readLeaked({ text, finish }: Reply, options: ReadOptions): ReadReply {
  const words: ReadReply = { text, calls: [], remarks: [] };
  // Whatever is JSON may be that answer, and nothing else is asked for.
  if (options.hasAnswerSchema) return words;
  const reading = readTemplate(text, (tool, argument) => typeOf(options.tools.get(tool), argument));
  if (reading.kind === 'prose') return words;
  if (reading.kind === 'broken' || CUT_OFF.has(finish)) return { ...words, unreadable: BROKEN_TEMPLATE };
  const unknown = reading.calls.find(({ tool }) => !isOffered(tool, options));
  if (unknown !== undefined) return { ...words, unreadable: `There is no tool named "${shownName(unknown.tool)}".` };
  const issues: ParseIssue[] = [];
  const calls = reading.calls.map(({ tool, args }) =>
    readNativeCall({ tool, callId: '', input: JSON.stringify(args) }, options, issues),
  );
  if (issues.some(({ code }) => !HARMLESS.has(code))) return { ...words, unreadable: BROKEN_TEMPLATE };
  const leaked = { code: 'repaired', message: 'The calls were written as text in place of native calls.' };
  return { text: '', calls, remarks: [...remarksOf(issues), { type: 'planner.reply_repaired', issues: [leaked] }] };
}

const BROKEN_TEMPLATE =
  'It is a call that was written as text, and it is not whole and well formed. Make the call as a tool call, or answer in words.';

/** What is done to the arguments of a native call too, and leaves their meaning as it is. */
const HARMLESS: ReadonlySet<ParseIssue['code']> = new Set([
  'coerced',
  'default_filled',
  'argument_dropped',
  'mismatch',
]);

function isOffered(tool: string, { tools, tasks }: Callable): boolean {
  return tools.list().some(({ name }) => name === tool) || (tasks && CONTROL_TOOLS.some(({ name }) => name === tool));
}

function typeOf(tool: ToolSchema | undefined, argument: string): Json | undefined {
  const properties = tool?.inputSchema['properties'];
  const property = isJsonObject(properties) && Object.hasOwn(properties, argument) ? properties[argument] : undefined;
  return isJsonObject(property) ? property['type'] : undefined;
}

function isCut({ code }: ParseIssue): boolean {
  return code === 'truncated';
}

function cutRefusal(tool: string): ErrorData {
  return faultData(
    'tool_invalid_args',
    `The arguments of ${shownName(tool)} end in the middle. Send the whole call again.`,
  );
}

const NO_REMARKS: readonly Remark[] = [];
const MAX_ISSUES = 10;
const MAX_MESSAGE_CHARS = 256;

/** What was repaired, as one remark; each field that was left out as its own. */
function remarksOf(issues: readonly ParseIssue[]): readonly Remark[] {
  if (issues.length === 0) return NO_REMARKS;
  const dropped = new Set(
    issues.flatMap((issue) => (issue.code === 'extra_field_dropped' ? [issue.field ?? issue.message] : [])),
  );
  const remarks = [...dropped].map((field): Remark => ({ type: 'planner.action_extra_field_dropped', field }));
  const repaired = issues.filter(({ code }) => code !== 'extra_field_dropped' && code !== 'mismatch');
  if (repaired.length === 0) return remarks;
  const shown = repaired.slice(0, MAX_ISSUES).map(({ code, message }) => ({
    code,
    message: message.slice(0, MAX_MESSAGE_CHARS),
  }));
  return [...remarks, { type: 'planner.reply_repaired', issues: shown }];
}
