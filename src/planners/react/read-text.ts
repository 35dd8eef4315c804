/**
 * The calls of a model that writes them as text. What only looks things up is taken from whatever form the model wrote it in;
 * what may change something only from the form that it was taught, and not a second time without a reason.
 */
import { type ErrorData, FINISH_TOOL, jsonEquals, shownName } from '#core';
import type { Reply } from '#model';
import {
  answerStart,
  DEFAULT_PARSE_LIMITS,
  type ParsedCall,
  readStrictJson,
  ToolCallStream,
  withoutThoughts,
} from '#parse';
import { cameOf, isAct, repeatedCall, unsureCall } from '#prompt';
import { withoutFence } from './answer.ts';
import { faultData } from './faults.ts';
import {
  CUT_OFF,
  cutRefusal,
  isCut,
  parseTools,
  type ReadCall,
  type ReadOptions,
  type ReadReply,
  remarksOf,
} from './reading.ts';

export function readReplyText({ text, finish }: Reply, options: ReadOptions): ReadReply {
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
  if (calls.every(({ form }) => form === 'loose')) return true;
  const written = readStrictJson(withoutFence(words), DEFAULT_PARSE_LIMITS.maxDepth);
  return written !== undefined && jsonEquals(written, read.answer);
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
