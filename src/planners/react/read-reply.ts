/**
 * What a reply says: its calls, whichever way the model wrote them (natively, as text of a model without native calls, or leaked), and
 * an answer that has to fit a schema.
 */
import {
  calledName,
  type ErrorData,
  FINISH_TOOL,
  isJsonObject,
  type Json,
  type Remark,
  shownName,
  type ToolSchema,
  type ToolView,
  takesText,
} from '#core';
import type { ModelCall, Reply, StopReason } from '#model';
import {
  answerStart,
  type ParsedCall,
  type ParseIssue,
  type ParseTool,
  parseToolArgs,
  ToolCallStream,
  withoutThoughts,
} from '#parse';
import { CONTROL_TOOLS, cameOf, isAct, repeatedCall, unsureCall } from '#prompt';
import type { AnswerForm } from './answer-form.ts';
import { readTemplate } from './chat-template.ts';
import { faultData } from './ladder.ts';
import type { MadeCall } from './made-calls.ts';

export interface ReadCall {
  readonly tool: string;
  /** The id as the provider gave it; empty when the provider gave none. */
  readonly callId: string;
  readonly args: Json;
  /** Why the call cannot be made. */
  readonly refusal?: ErrorData;
  /** Why it is made once more, in the model's words. */
  readonly again?: string;
}

export interface ReadReply {
  /** What was said beside the calls. */
  readonly text: string;
  readonly calls: readonly ReadCall[];
  readonly remarks: readonly Remark[];
  /** Set when the text was meant to be a call: why it is not a call. */
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
interface Callable {
  readonly tools: ToolView;
  /** The run may give work to tasks. */
  readonly tasks: boolean;
  /** A call of `_finish` was declared to the model. */
  readonly finish: boolean;
}

function reservedTools(tasks: boolean): readonly ParseTool[] {
  return tasks ? RESERVED_WITH_TASKS : RESERVED;
}

/** All tools that a reply may name, as the parser needs them. */
export function parseTools({ tools, tasks }: Callable): readonly ParseTool[] {
  return [...tools.all(), ...reservedTools(tasks)];
}

export interface ReadOptions extends Callable {
  readonly mode: 'native' | 'text';
  /** Fits an answer in text to the schema that was asked for. Absent: any text will do, or goes to the user. */
  readonly readAnswer: AnswerForm['read'] | undefined;
  /** The last equal call that the run has made already, if it may have changed something. */
  readonly madeBefore: (tool: string, args: Json) => MadeCall | undefined;
}

/** The reply ended before the model was done: its text is not an answer, and its last call may be half a call. */
export const CUT_OFF: ReadonlySet<StopReason> = new Set(['length', 'interrupted', 'error']);

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

export function readReply(reply: Reply, options: ReadOptions): ReadReply {
  if (reply.calls.length > 0) return readNative(reply, options);
  if (options.mode === 'text') return readReplyText(reply, options);
  return readLeaked(reply, options);
}

function readNative({ text, calls, finish }: Reply, callable: Callable): ReadReply {
  const issues: ParseIssue[] = [];
  const read = calls.map((call) =>
    call.asksLeave === true
      ? readQuestion(call, calls, callable)
      : readNativeCall(call, callable, issues, call === calls.at(-1) && CUT_OFF.has(finish)),
  );
  return { text, calls: read, remarks: remarksOf(issues) };
}

/** The provider asks leave for a call that it would carry out itself: the question is a call of the tool that was offered. */
function readQuestion(call: ModelCall, all: readonly ModelCall[], { tools: { hosted = [] } }: Callable): ReadCall {
  const { tool: name, callId, input } = call;
  const read = jsonIn(input);
  const args = { tool: name, input: read === undefined ? input : read };
  const asking = hostedAs(hosted, name);
  const refused = (message: string): ReadCall => {
    return { tool: asking?.name ?? name, callId, args, refusal: faultData('tool_not_offered', message) };
  };
  if (name === '') return refused('The provider asked leave for a call of which it did not tell.');
  if (asking === undefined) return refused(`No tool was offered that could ask leave for ${shownName(name)}.`);
  // One yes would hold for what another was told no.
  const isOneOfTwo = all.some((other) => other !== call && other.asksLeave === true && other.callId === callId);
  if (isOneOfTwo) return refused('The provider asked leave for several calls under one id, so that none is given.');
  return { tool: asking.name, callId, args };
}

/** The tool that was offered to the provider, of which it calls one under this name: servers of MCP have names of their own for what they do. */
export function hostedAs(hosted: readonly ToolSchema[], name: string): ToolSchema | undefined {
  return (
    hosted.find((tool) => calledName(tool) === name) ??
    hosted.find(({ provider }) => provider?.id.endsWith('.mcp') === true)
  );
}

function jsonIn(input: string): Json | undefined {
  try {
    return JSON.parse(input) as Json;
  } catch {
    return undefined;
  }
}

/** @param mayBeCut the reply ended before the model was done, and this is its last call. */
function readNativeCall(
  { tool: name, callId, input }: ModelCall,
  callable: Callable,
  issues: ParseIssue[],
  mayBeCut: boolean,
): ReadCall {
  const { tools, tasks } = callable;
  const tool = ownName(name, callable);
  if (takesText(tools.get(tool))) {
    const text = jsonIn(input);
    const args = typeof text === 'string' ? text : input;
    // Where a text ends nobody can see.
    return mayBeCut ? { tool, callId, args, refusal: cutRefusal(tool) } : { tool, callId, args };
  }
  // Some providers send nothing for a call without arguments.
  if (input.trim() === '') return { tool, callId, args: {} };
  const known = reservedTools(tasks).find(({ name }) => name === tool) ?? tools.get(tool) ?? { name: tool };
  // What ends a run is not guessed from less than an object.
  const parsed = tool === FINISH_TOOL && !input.trimStart().startsWith('{') ? null : parseToolArgs(input, known);
  if (parsed === null) {
    const message = `The arguments of ${shownName(tool)} are not a JSON object. Send an object that fits the schema of the tool.`;
    return { tool, callId, args: input, refusal: faultData('tool_invalid_args', message) };
  }
  if (parsed.issues.length > 0) issues.push(...parsed.issues);
  if (parsed.issues.some(isCut)) return { tool, callId, args: parsed.args, refusal: cutRefusal(tool) };
  return { tool, callId, args: parsed.args };
}

/**
 * What a model with native calls wrote in place of them. Words are always an answer, and so is JSON. Only the
 * template of a call counts, and only when nothing of it is missing, to be mended, or of a tool that was not offered. One
 * that does not count is not an answer either: nobody wants to read its tokens.
 */
function readLeaked({ text, finish }: Reply, options: ReadOptions): ReadReply {
  const words: ReadReply = { text, calls: [], remarks: [] };
  // Any JSON may be that answer, and nothing else is asked for. Servers that do not know a model's thoughts give them before it.
  if (options.readAnswer !== undefined) return { ...words, text: wordsOf(text) };
  const reading = readTemplate(text, (tool, argument) => typeOf(options.tools.get(tool), argument));
  if (reading.kind === 'prose') return words;
  if (reading.kind === 'broken' || CUT_OFF.has(finish)) return { ...words, unreadable: BROKEN_TEMPLATE };
  const unknown = reading.calls.find(({ tool }) => !isOffered(ownName(tool, options), options));
  if (unknown !== undefined) return { ...words, unreadable: `There is no tool named "${shownName(unknown.tool)}".` };
  const issues: ParseIssue[] = [];
  const calls = reading.calls.map(({ tool, args }) =>
    readNativeCall({ tool, callId: '', input: JSON.stringify(args) }, options, issues, false),
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

/** The tool's own name for that by which the model knows it. */
export function ownName(name: string, { tools }: Callable): string {
  const known = tools.get(name);
  if (known !== undefined && calledName(known) === name) return name;
  return tools.all().find((tool) => calledName(tool) === name)?.name ?? name;
}

function isOffered(tool: string, { tools, tasks, finish }: Callable): boolean {
  if (tool === FINISH_TOOL) return finish;
  return tools.list().some(({ name }) => name === tool) || (tasks && CONTROL_TOOLS.some(({ name }) => name === tool));
}

function typeOf(tool: ToolSchema | undefined, argument: string): Json | undefined {
  const properties = tool?.inputSchema['properties'];
  const property = isJsonObject(properties) && Object.hasOwn(properties, argument) ? properties[argument] : undefined;
  return isJsonObject(property) ? property['type'] : undefined;
}

/**
 * The calls of a model that writes them as text. What only looks things up is taken from whatever form the model wrote it in;
 * what may change something only from the form that it was taught, and not a second time without a reason.
 */
function readReplyText({ text, finish }: Reply, options: ReadOptions): ReadReply {
  // The calls of the whole text, and the words beside them, in one reading.
  const stream = new ToolCallStream(parseTools(options));
  const shown = stream.push(text).text;
  const { calls: parsed, issues, text: rest } = stream.end();
  const remarks = remarksOf(issues.filter(({ code }) => code !== 'unknown_tool'));
  const answer: ReadReply = { text: wordsOf(text), calls: [], remarks: [] };
  if (parsed.length === 0) {
    const unreadable = issues.find(({ code }) => code === 'unknown_tool' || code === 'truncated' || code === 'limit');
    return unreadable === undefined ? answer : { text, calls: [], remarks, unreadable: unreadable.message };
  }
  const isTaught = parsed.some(({ form }) => form === 'exact');
  if (!isTaught && isFittingAnswer(answer.text, parsed, options)) return answer;
  const cut = new Set(issues.flatMap((issue) => (isCut(issue) && issue.call !== undefined ? [issue.call] : [])));
  const calls = parsed.flatMap((call, index) => {
    if (call.form === 'loose' && !mayBeBare(call, options)) return [];
    return cut.has(index) ? [refused(call, cutRefusal(call.tool))] : [takeCall(call, finish, options)];
  });
  if (calls.length === 0) return answer;
  for (const { code, message } of issues) if (code === 'unknown_tool') calls.push(unknownTool(message));
  const prose = (shown + rest).trim();
  // Words about what was done are an answer, and no call however they name it; but whoever gives a reason means it.
  const hasReason = issues.some(({ code, field }) => code === 'extra_field_dropped' && field === 'again');
  if (!isTaught && !hasReason && prose !== '' && calls.every(({ refusal }) => refusal?.code === 'call_repeated'))
    return answer;
  return { text: prose, calls, remarks };
}

/** The text without the thoughts that it begins with. */
function wordsOf(text: string): string {
  const isThought = OPENS_WITH_THOUGHT.test(text) || answerStart(text) > 0;
  return isThought ? (withoutThoughts(text) ?? '').trim() : text;
}

const OPENS_WITH_THOUGHT = /^\s*<(?:think|thinking|reasoning|reflection|scratchpad)>/;

/**
 * JSON that has the form of the answer is the answer, though a tool would take it too. What names a tool must have that form as it
 * is: where all keys of the answer are optional, anything fits once its keys are left out.
 */
function isFittingAnswer(words: string, calls: readonly ParsedCall[], { readAnswer }: ReadOptions): boolean {
  if (readAnswer === undefined || !/^\s*(?:```\w*\s*)?[{[]/.test(words)) return false;
  const read = readAnswer(words);
  if (!('answer' in read)) return false;
  return read.exact || calls.every(({ form }) => form === 'loose');
}

/** Arguments without a name may as well be an answer: where one of a certain form is asked for, and for the way to end. */
function mayBeBare({ tool }: ParsedCall, { readAnswer }: ReadOptions): boolean {
  return readAnswer === undefined && tool !== FINISH_TOOL;
}

function takeCall(call: ParsedCall, finish: Reply['finish'], { tools, madeBefore }: ReadOptions): ReadCall {
  const { tool, args, form, again, callId = '' } = call;
  if (!isAct(tool, tools)) return { tool, callId, args };
  const made = madeBefore(tool, args);
  const isSure = form === 'exact' && !CUT_OFF.has(finish);
  if (made !== undefined && (!isSure || again === undefined)) {
    return refused(call, faultData('call_repeated', repeatedCall(shownName(tool), made.step, cameOf(made.outcome))));
  }
  if (!isSure) return refused(call, faultData('call_unsure', unsureCall(shownName(tool))));
  return made === undefined || again === undefined ? { tool, callId, args } : { tool, callId, args, again };
}

/** A call in one list with others, of a tool that is not there. */
function unknownTool(message: string): ReadCall {
  return { tool: 'unnamed', callId: '', args: {}, refusal: faultData('tool_not_found', message) };
}

function refused({ tool, args, callId = '' }: ParsedCall, refusal: ErrorData): ReadCall {
  return { tool, callId, args, refusal };
}
