/** What a model's reply decides. Every reply decides something: a call, an answer, or that there is no way on. */

import {
  type AwaitTask,
  type Branch,
  type CallTool,
  type Decision,
  defined,
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
  type PartialReply,
  PilotageError,
  type Remark,
  type Step,
  shownName,
  taskCall,
  textOfParts,
  validateDecision,
} from '#core';
import { type ModelRefusal, type ReadyModel, type Reply, refusalText } from '#model';
import { coerceToSchema } from '#parse';
import { ANY_CONTROL_TOOLS } from '#prompt';
import { type AnswerForm, misfitsIn } from './answer-form.ts';
import { faultData } from './ladder.ts';
import { CUT_OFF, type ReadCall, type ReadOptions, type ReadReply, readReply } from './read-reply.ts';

export interface DecideOptions {
  readonly reading: ReadOptions;
  /** The steps that have the beginning of the reply; mostly none. */
  readonly parts: readonly Step[];
  /** How often a text that was cut off goes on. */
  readonly continuations: number;
  /** The model whose reply it is, and those that can be asked. */
  readonly model: ReadyModel;
  readonly models: readonly ReadyModel[];
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
  /** The model is to be asked for the rest. */
  readonly partial?: PartialReply;
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
  if (given.refusal !== undefined) {
    const { refusal, text, providerFinish } = given;
    return refusedBy({ refusal, text, providerFinish, model: options.model, models: options.models });
  }
  const droppedCall = cutCall(given);
  // A reply that broke off in the middle of its last call has the calls before it.
  const reply = droppedCall === undefined ? given : { ...given, calls: given.calls.slice(0, -1) };
  const read = readWhole(reply, options);
  const decided: Mutable<Decided> = decideRead(read, reply, droppedCall, options);
  decided.remarks = read.remarks;
  if (droppedCall !== undefined) decided.droppedCall = droppedCall;
  for (const { again } of read.calls) if (again !== undefined) decided.again = [...(decided.again ?? []), again];
  return decided;
}

/** What was refused, in a reply or in place of one. */
export interface RefusedReply extends Pick<DecideOptions, 'model' | 'models'> {
  readonly refusal: ModelRefusal;
  /** What was said before it was refused, or in refusing. */
  readonly text: string;
  readonly providerFinish?: string | undefined;
}

/** Nothing of it is carried out, its calls neither. With nobody else to ask, that is how the run ends. */
export function refusedBy({ refusal, text, providerFinish: finish, model, models }: RefusedReply): Decided {
  const { name } = model;
  const about = { model: name, ...defined({ finish }), ...refusal };
  const metadata = { via: 'react.reply', stop_reason: 'content-filter', refusal: about };
  const decision = end('refused', metadata, text === '' ? undefined : text);
  if (models.every((other) => other === model)) return { decision, text };
  return { decision, text, fault: faultData('reply_refused', refusalText(refusal, name)) };
}

/** A reply that began in earlier steps is read as a whole. A call that it makes now has only the words of now beside it. */
function readWhole(reply: Reply, { parts, reading }: DecideOptions): ReadReply {
  if (parts.length === 0) return readReply(reply, reading);
  const whole = readReply({ ...reply, text: textOfParts(parts) + reply.text }, reading);
  if (whole.calls.length === 0) return whole;
  const now = readReply(reply, reading);
  return now.calls.length > 0 ? now : { ...whole, text: '' };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

function decideRead(
  { calls, text, unreadable }: ReadReply,
  reply: Reply,
  droppedCall: string | undefined,
  options: DecideOptions,
): Decided {
  if (calls.length > 0) return decideCalls(calls, reply, text, options);
  if (droppedCall !== undefined) return decideCut(reply, droppedCall);
  const decided = decideText({ ...reply, text }, reply.text, unreadable, options);
  if (options.parts.length === 0) return decided;
  // What was said before stands in the steps before.
  const { fault } = decided;
  return { ...decided, text: reply.text, ...(fault && { fault: { ...fault, message: `${fault.message} ${ANEW}` } }) };
}

/** After a fault no rest follows: the model does not know of which reply. */
const ANEW = 'Give the whole answer again, from its beginning.';

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

/** @param said the words of this reply alone, as they came; `reply` has the text of the whole. */
function decideText(reply: Reply, said: string, unreadable: string | undefined, options: DecideOptions): Decided {
  const { text, finish } = reply;
  const isNothing = said.trim() === '' && reply.providerState === undefined;
  if (finish === 'pause' && !isNothing) return decidePartial('paused', reply, said, options);
  if (CUT_OFF.has(finish)) {
    // Without a word, or with half of a call, there is nothing that could go on.
    if (finish === 'length' && said.trim() !== '' && text.trim() !== '' && unreadable === undefined) {
      return wholeAnswer(text, options) ?? decidePartial('cut_off', reply, said, options);
    }
    const message = 'The reply ended before it was complete. Answer again, and more briefly.';
    return { decision: stopped(reply), text, fault: faultData('reply_interrupted', message) };
  }
  const isFileAlone = text.trim() === '' && reply.files !== undefined;
  // A reply that was cut off at its very end has nothing more to say; a pause goes on.
  if ((text.trim() === '' && !isFileAlone) || finish === 'pause') {
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

/** How often in a row a provider may pause a reply: it does so after some ten calls of its own each time. */
const MAX_PAUSES = 16;

function decidePartial(partial: PartialReply, reply: Reply, said: string, options: DecideOptions): Decided {
  const { text } = reply;
  const most = partial === 'paused' ? MAX_PAUSES : options.continuations;
  const before = options.parts.filter((part) => part.partial === partial).length;
  if (before >= most) return { decision: stopped(reply), text };
  const { payload: _, ...decision } = stopped(reply);
  // Without the thoughts that it began with, but to its very end, where the rest is joined to it.
  const at = said.lastIndexOf(text);
  return { decision, partial, text: at === -1 ? text : said.slice(at) };
}

/** JSON that is whole and fits has no rest, whatever limit it has reached. */
function wholeAnswer(text: string, { reading, converse, wait }: DecideOptions): Decided | undefined {
  if (reading.readAnswer === undefined || converse || wait !== undefined) return undefined;
  if (!/^\s*[{[]/.test(text) || !isWhole(text)) return undefined;
  const read = reading.readAnswer(text);
  return 'answer' in read ? { decision: end('goal', { via: 'react.reply' }, read.answer), text } : undefined;
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
  const reason = finish === 'length' || finish === 'pause' ? 'length' : 'no_path';
  return end(reason, { via: 'react.reply', stop_reason: finish }, text === '' ? undefined : text);
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
  const schema = ANY_CONTROL_TOOLS.find(({ name }) => name === tool)?.inputSchema ?? {};
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
