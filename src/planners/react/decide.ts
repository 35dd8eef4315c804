/** What a model's reply decides. Every reply decides something: a call, an answer, or that there is no way on. */

import {
  type AwaitTask,
  type Branch,
  type CallTool,
  type Decision,
  type ErrorData,
  FINISH_TOOL,
  type Finish,
  isJsonObject,
  isTaskTool,
  type Json,
  type JsonObject,
  literal,
  MAX_BRANCHES,
  MESSAGE_TOOL,
  PilotageError,
  type Remark,
  shownName,
  taskCall,
  validateDecision,
} from '#core';
import type { Reply } from '#model';
import { coerceToSchema } from '#parse';
import { CONTROL_TOOLS } from '#prompt';
import { type AnswerForm, misfitsIn } from './answer-form.ts';
import { faultData } from './ladder.ts';
import { CUT_OFF, type ReadCall, type ReadOptions, type ReadReply, readReply } from './read-reply.ts';

export interface DecideOptions {
  readonly reading: ReadOptions;
  /** What an answer in text waits for before it ends the run. */
  readonly wait: AwaitTask | undefined;
  /** Makes ids that are unique in the run, one for each given. */
  readonly callIds: (wanted: readonly string[]) => readonly string[];
  readonly converse: boolean;
  /** Fits the answer of a call that ends the run to the schema that was asked for. */
  readonly readAnswer: AnswerForm['read'] | undefined;
  /** Several calls of one reply run one after another, inside the one step. */
  readonly oneByOne: boolean;
}

export interface Decided {
  readonly decision: Decision;
  /** The model is to be asked again. */
  readonly fault?: ErrorData;
  /** What was said beside the calls; with a fault all that was said. */
  readonly text: string;
  /** What was repaired on the way. */
  readonly remarks?: readonly Remark[];
  /** The tool of a last call that the reply broke off in; it is not carried out. */
  readonly droppedCall?: string;
  /** The arguments of a reserved call, as the model gave them. */
  readonly args?: Json;
  /** The model answered, and a task is waited for in place of ending the run. */
  readonly answered?: true;
  /** Why calls are made once more, in the model's words. */
  readonly again?: readonly string[];
}

export function decideFromReply(given: Reply, options: DecideOptions): Decided {
  if (given.finish === 'content-filter') return { decision: stopped(given), text: '' };
  const droppedCall = cutCall(given);
  // A reply that broke off in the middle of its last call has the calls before it.
  const reply = droppedCall === undefined ? given : { ...given, calls: given.calls.slice(0, -1) };
  const read = readReply(reply, options.reading);
  const decided: Mutable<Decided> = decideRead(read, reply, droppedCall, options);
  decided.remarks = read.remarks;
  if (droppedCall !== undefined) decided.droppedCall = droppedCall;
  for (const { again } of read.calls) if (again !== undefined) decided.again = [...(decided.again ?? []), again];
  return decided;
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function decideRead(
  { calls, text, unreadable }: ReadReply,
  reply: Reply,
  droppedCall: string | undefined,
  options: DecideOptions,
): Decided {
  if (calls.length > 0) return decideCalls(calls, reply, text, options);
  return droppedCall === undefined
    ? decideText({ ...reply, text }, unreadable, options)
    : decideCut(reply, droppedCall);
}

/** The tool of a last call that ends in the middle. */
function cutCall({ calls, finish }: Reply): string | undefined {
  const last = calls.at(-1);
  return last === undefined || !CUT_OFF.has(finish) || isWhole(last.input) ? undefined : last.tool;
}

function isWhole(input: string): boolean {
  try {
    JSON.parse(input);
    return true;
  } catch {
    return false;
  }
}

function decideCut(reply: Reply, tool: string): Decided {
  const message = `The reply ended in the middle of its call of ${shownName(tool)}, which was not made. Send a shorter call.`;
  return { decision: stopped(reply), text: reply.text, fault: faultData('reply_truncated', message) };
}

function decideText(reply: Reply, unreadable: string | undefined, options: DecideOptions): Decided {
  const { text, finish } = reply;
  if (CUT_OFF.has(finish)) {
    // A text that is too long would be too long again; one that was torn off would not.
    if (finish === 'length' && text !== '' && unreadable === undefined) return { decision: stopped(reply), text };
    const message = 'The reply ended before it was complete. Answer again, and more briefly.';
    return { decision: stopped(reply), text, fault: faultData('reply_interrupted', message) };
  }
  const isFileAlone = text.trim() === '' && reply.files !== undefined;
  if (text.trim() === '' && !isFileAlone) {
    const message = 'The reply was empty: neither text nor a tool call.';
    const decision = end('no_path', { via: 'react.reply', followup: true });
    return { decision, text: '', fault: faultData('reply_empty', message) };
  }
  if (unreadable !== undefined) {
    const decision = end('no_path', { via: 'react.reply' }, text);
    return { decision, text, fault: faultData('reply_unreadable', unreadable) };
  }
  const { converse, wait } = options;
  if (converse) return { decision: { kind: 'request_pause', reason: 'await_input' }, text };
  if (wait !== undefined) return { decision: wait, text, answered: true };
  const read = options.reading.readAnswer?.(text) ?? { answer: isFileAlone ? undefined : text };
  if ('answer' in read) return { decision: end('goal', { via: 'react.reply' }, read.answer), text };
  const decision = end('no_path', { via: 'react.reply' }, text);
  return { decision, text, fault: faultData('answer_invalid', read.misfit) };
}

function decideCalls(calls: readonly ReadCall[], reply: Reply, text: string, options: DecideOptions): Decided {
  const { callIds, oneByOne } = options;
  if (calls.length > MAX_BRANCHES) {
    const message = `The reply has ${calls.length} calls; at most ${MAX_BRANCHES} are taken at once. None was made.`;
    return { decision: end('no_path', { via: 'react.reply' }), text, fault: faultData('too_many_calls', message) };
  }
  const [only] = calls;
  const alone = calls.length === 1 && only !== undefined ? decideAlone(only, reply, options) : undefined;
  if (alone !== undefined && 'decision' in alone) return { ...alone, text };
  if (calls.length === 1 && only !== undefined) {
    const { tool, args } = only;
    const refusal = alone?.refusal ?? only.refusal;
    const [callId] = callIds([only.callId]);
    const call: CallTool = { kind: 'call_tool', tool: tool || 'unnamed', args, callId: callId as string };
    return { decision: refusal === undefined ? call : { ...call, refusal }, text };
  }
  const ids = callIds(calls.map((call) => call.callId));
  const branches = calls.map((call, index): Branch => {
    const { tool, args, refusal } = beside(call, options);
    // Nobody has told a chat model of references: what looks like one is an argument.
    const branch = { tool: tool || 'unnamed', args: literal(args), callId: ids[index] as string };
    return refusal === undefined ? branch : { ...branch, refusal };
  });
  const parallel = { kind: 'call_parallel' as const, branches, onInvalid: 'per_branch' as const };
  return { decision: oneByOne ? { ...parallel, concurrency: 1 } : parallel, text };
}

/** A reserved call that is alone is a decision of its own, or is answered with what is wrong with it. */
function decideAlone(
  call: ReadCall,
  reply: Reply,
  { reading: { tasks, finish }, readAnswer, callIds }: DecideOptions,
): { readonly decision: Decision; readonly args?: Json } | { readonly refusal: ErrorData } | undefined {
  if (call.tool !== FINISH_TOOL) {
    if (call.refusal !== undefined) return undefined;
    if (call.tool === MESSAGE_TOOL) return { refusal: NO_MESSAGE };
    if (!isTaskTool(call.tool)) return undefined;
    const read = readTaskCall(call, tasks);
    if ('refusal' in read) return read;
    return { decision: taskCall(call.tool, read.args, callIds([call.callId])[0] as string), args: call.args };
  }
  const answer = isJsonObject(call.args) && call.refusal === undefined ? call.args['answer'] : undefined;
  if (answer === undefined) {
    return { refusal: faultData('finish_invalid', finish ? NO_ANSWER : `${NO_ANSWER} ${REPLY_ENDS}`) };
  }
  if (CUT_OFF.has(reply.finish)) return { decision: stopped({ ...reply, text: String(answer) }) };
  const read = readAnswer?.(answer) ?? { answer };
  if ('misfit' in read) return { refusal: faultData('finish_invalid', read.misfit) };
  return { decision: end('goal', { via: 'react.finish' }, read.answer) };
}

const NO_ANSWER =
  'The attempt to end was not accepted: its arguments must be an object with "answer", the whole answer.';
const REPLY_ENDS = 'No call is needed: a reply without one is the answer.';
/** A plan may say something with it; a model says it in its reply. */
const NO_MESSAGE = faultData(
  'tool_not_found',
  'There is no tool to say something with. Say it in the text of your reply.',
);

/** A call as it stands among others: tasks are started and awaited there, but nothing is finished. */
function beside(call: ReadCall, { reading: { tasks } }: DecideOptions): ReadCall {
  if (call.refusal !== undefined) return call;
  if (call.tool === MESSAGE_TOOL) return { ...call, refusal: NO_MESSAGE };
  if (isTaskTool(call.tool)) return { ...call, ...readTaskCall(call, tasks) };
  if (call.tool !== FINISH_TOOL) return call;
  const message = 'Not accepted: a run is ended alone, when the results of the other calls are known.';
  return { ...call, refusal: faultData('call_not_alone', message) };
}

/** What there is of the text is kept, but it is never called the goal. */
function stopped({ finish, text }: Reply): Finish {
  return end('no_path', { via: 'react.reply', stop_reason: finish }, text === '' ? undefined : text);
}

function end(reason: Finish['reason'], metadata: JsonObject, payload?: Json): Finish {
  return payload === undefined ? { kind: 'finish', reason, metadata } : { kind: 'finish', reason, payload, metadata };
}

// The reserved calls that start a task or wait for one.

/** The arguments of a call of `_spawn_task` or `_await_task` as its schema wants them, or why it cannot be made. */
function readTaskCall(
  { tool, args }: ReadCall,
  tasks: boolean,
): { readonly args: JsonObject } | { readonly refusal: ErrorData } {
  // The runtime would carry it out, whether it was declared or not.
  if (!tasks) return { refusal: faultData('tool_not_found', `There is no tool named "${tool}".`) };
  const schema = CONTROL_TOOLS.find(({ name }) => name === tool)?.inputSchema ?? {};
  const { value, issues } = coerceToSchema(args, schema);
  const misfits = misfitsIn(issues);
  if (misfits !== undefined || !isJsonObject(value))
    return misfit(tool, `${misfits ?? 'the arguments are not an object'}.`);
  const fitting = withoutEmptyGroup(value);
  // Ranges and empty texts, which the reading of the arguments does not look at.
  try {
    validateDecision(taskCall(tool, fitting));
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    return misfit(tool, error.message);
  }
  return { args: fitting };
}

/** Models fill in what they may leave out. */
function withoutEmptyGroup(args: JsonObject): JsonObject {
  if (args['group_id'] !== '') return args;
  const { group_id: _, ...rest } = args;
  return rest;
}

function misfit(tool: string, why: string): { readonly refusal: ErrorData } {
  return { refusal: faultData('tool_invalid_args', `The arguments of ${tool} do not fit its schema: ${why}`) };
}
