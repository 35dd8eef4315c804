/**
 * A recorded step taken apart for a model's history: its calls, and their outcomes as a model reads them. Native
 * calls and calls in text have the same parts.
 */
import type { LanguageModelV4ToolResultPart } from '@ai-sdk/provider';
import {
  AWAIT_TOOL,
  type AwaitTask,
  atPointer,
  branchesOf,
  defined,
  type ErrorData,
  isJsonObject,
  isPlan,
  isPlanTool,
  isResultFile,
  isTaskTool,
  isWokenByTasks,
  type Json,
  type JsonObject,
  jsonText,
  type ModelOutput,
  type ModelOutputPart,
  mediaNote,
  type Outcome,
  type ReasoningReplay,
  reservedAct,
  SPAWN_TOOL,
  type SpawnTask,
  type Step,
  unescaped,
  type Verdict,
} from '#core';
import {
  enclose,
  encloseJson,
  frame,
  framedWords,
  jsonLine,
  note,
  quoted,
  quotedJson,
  type UserWords,
} from './frame.ts';
import { writtenBy } from './message-text.ts';
import { replayed } from './provider-parts.ts';

export interface StepCall {
  readonly tool: string;
  /** The arguments as the model gave them; they need not be an object. */
  readonly args: Json;
  /** The id as the planner made it, if it made one. */
  readonly callId: string | undefined;
  readonly outcome: Outcome | undefined;
}

/** The calls of a step with what became of each. None for a pause, an answer that waits, and a move that was not accepted. */
export function callsOf(step: Step): readonly StepCall[] {
  const { decision, calls } = step;
  // A rejected move: nothing of it was carried out, and its decision may have any shape.
  if (wasRefused(step) || isWaitingAnswer(step)) return [];
  const outcome = calls[0]?.outcome;
  switch (decision.kind) {
    case 'spawn_task':
      return [{ tool: SPAWN_TOOL, args: argsOf(step) ?? spawnArgs(decision), callId: decision.callId, outcome }];
    case 'await_task':
      return [{ tool: AWAIT_TOOL, args: argsOf(step) ?? awaitArgs(decision), callId: decision.callId, outcome }];
    case 'call_tool':
      return [{ tool: decision.tool, args: decision.args, callId: decision.callId, outcome }];
    default:
      // A model's own arguments stand in a parallel call with an escape where they look like a reference.
      return branchesOf(decision).map(({ tool, args, callId }, index) => {
        return { tool, args: unescaped(args), callId, outcome: calls[index]?.outcome };
      });
  }
}

const NONE: readonly never[] = [];

/**
 * The calls of a step as a model is shown them: those that it could make, and what else was done, which is told and not shown as a call.
 * A reserved call that was refused is the mistake of a model, and stands with its error.
 * @param tasks the model may start tasks and wait for them.
 */
export function shownCalls(
  step: Step,
  tasks: boolean,
): { readonly calls: readonly StepCall[]; readonly told: readonly StepCall[] } {
  const all = callsOf(step);
  if (!all.some(({ tool }) => isPlanTool(tool) || isTaskTool(tool))) return { calls: all, told: NONE };
  const branches = branchesOf(step.decision);
  const isTold = ({ tool }: StepCall, index: number): boolean => {
    if (isPlanTool(tool)) return isPlan(step.decision);
    return isTaskTool(tool) && !tasks && branches[index]?.refusal === undefined;
  };
  return { calls: all.filter((call, index) => !isTold(call, index)), told: all.filter(isTold) };
}

/** What was done in a step that no tool has done, as markup. @param maxChars of each text that Pilotage did not write. */
export function toldText(told: readonly StepCall[], maxChars?: number): string {
  const frames = told.map(({ tool, args, outcome }) => {
    const { value } = toolResultOf(outcome, maxChars);
    const asked = isTaskTool(tool) ? `${quotedJson(jsonLine(args))}\n` : '';
    return frame('also_done', `${asked}${value}`, { what: reservedAct(tool) ?? '' });
  });
  return [ALSO_DONE, ...frames].join('\n');
}

const ALSO_DONE = 'The program did this itself in that step. There is no tool for it:';

/**
 * The model answered in words while a task was under way, and the step waits for it: the planner noted that as `answered` in
 * the provenance. The model made no call, so it is shown none.
 */
export function isWaitingAnswer({ decision, provenance }: Step): boolean {
  return decision.kind === 'await_task' && provenance?.['answered'] === true;
}

/**
 * What the model reads after a step without calls, as markup.
 * @param write how a user's own words are written.
 * @param maxChars of each other text that Pilotage did not write.
 */
export function replyTo(step: Step, write: UserWords, maxChars?: number): string {
  const { error, calls, partial } = step;
  if (partial !== undefined) return note(partial === 'cut_off' ? GO_ON : RESUME);
  if (error !== undefined && wasRefused(step)) {
    return `Your last reply was not accepted:\n${enclose('reply_error', errorText(error), {}, maxChars)}`;
  }
  const outcome = calls[0]?.outcome;
  if (outcome?.kind !== 'verdict') return toolResultOf(outcome, maxChars).value;
  // What the tasks came to is told in the turns that follow.
  return isWokenByTasks(outcome)
    ? note('No message of the user. Tasks have ended.')
    : verdictText(outcome.verdict, outcome.payload, write);
}

const GO_ON =
  'Your reply has reached the limit of its length, and ends there. Go on exactly where it ends, in the middle of a word if need be: what you ' +
  'write now is put behind it as it is. Repeat nothing, and do not speak of the interruption.';
/** For whoever goes on with the paused turn of another provider's model. */
const RESUME = 'The reply was interrupted there. Go on with it.';

/** The texts of the assistant's turn beside its calls: what it said, then its reasoning if that is replayed. */
export function saidIn({ text = '', reasoning = '' }: Step, replay: ReasoningReplay): string[] {
  const said = text === '' ? [] : [text];
  return replay === 'text' && reasoning.trim() !== '' ? [...said, replayed(reasoning)] : said;
}

function wasRefused({ error, calls }: Step): boolean {
  return error !== undefined && calls.length === 0;
}

/** The arguments of a control as the model gave them, when its planner noted them as the `args` of the provenance. */
function argsOf({ provenance }: Step): JsonObject | undefined {
  const args = provenance?.['args'];
  return isJsonObject(args) ? args : undefined;
}

function spawnArgs({ task, spec, groupId }: SpawnTask): JsonObject {
  const { description, query, agent, priority, retainTurn, onCancel, limits, seal, failFast, quorum } = spec;
  const more = { agent, priority, retain_turn: retainTurn, on_cancel: onCancel, seal, fail_fast: failFast, quorum };
  return {
    kind: task,
    ...defined({ group_id: groupId }),
    spec: { description, query, ...defined(more), ...(limits === undefined ? {} : { limits: { ...limits } }) },
  };
}

function awaitArgs({ taskId, groupId, timeoutMs }: AwaitTask): JsonObject {
  return { task_id: taskId, ...defined({ group_id: groupId, timeout_ms: timeoutMs }) };
}

// What the model reads in place of an outcome. A value passes as it is, line breaks and tabs included; what the
// runtime says begins with a frame, which no value can.

type TextOutput = Extract<LanguageModelV4ToolResultPart['output'], { type: 'text' | 'error-text' }>;

const NEVER_STARTED: ErrorData = { code: 'branch_not_started', message: 'The call was never started.' };

/**
 * The result of a call, as markup. A call without an outcome was never started.
 * @param maxChars of each text that Pilotage did not write.
 */
export function toolResultOf(
  outcome: Outcome | undefined,
  maxChars?: number,
  tellFile: (file: FilePart) => string = fileNote,
): TextOutput {
  if (outcome === undefined) return errorOutput(NEVER_STARTED, '', maxChars);
  switch (outcome.kind) {
    case 'value': {
      const { modelOutput } = outcome;
      return modelOutput === undefined || modelOutput.type === 'failed'
        ? { type: 'text', value: plainValue(outcome, maxChars) }
        : outputText(modelOutput, outcome, maxChars, tellFile);
    }
    case 'error':
      return errorOutput(outcome.error, '', maxChars);
    case 'unknown':
      return errorOutput(
        outcome.error,
        'Do not make this call again unless you have found out that it did not happen.',
        maxChars,
      );
    case 'cancelled':
      return errorOutput(outcome.error, 'The call was stopped before it had a result.', maxChars);
    case 'skipped':
      return errorOutput(outcome.error, NEVER_STARTED.message, maxChars);
    case 'verdict':
      return { type: 'text', value: verdictText(outcome.verdict, outcome.payload, framedWords) };
    default:
      return outcome satisfies never;
  }
}

function errorOutput(error: ErrorData, meaning: string, maxChars: number | undefined): TextOutput {
  const framed = enclose('call_error', errorText(error), {}, maxChars);
  return { type: 'error-text', value: meaning === '' ? framed : `${framed}\n${meaning}` };
}

/** The error as data, since its message may hold anything. */
export function errorText({ code, message }: ErrorData): string {
  return `${code} — ${message}`;
}

/** The answer to a pause, as markup, with the user's own words if the answer has them. @param write how they are written. */
export function verdictText(verdict: Verdict, payload: JsonObject | undefined, write: UserWords): string {
  if (verdict === 'timeout') return note('No answer came in time.');
  if (verdict === 'superseded')
    return note(`Nobody answered: ${String(payload?.['reason'] ?? 'the question was withdrawn')}.`);
  if (verdict === 'resume' && typeof (payload?.['message'] ?? payload?.['reason']) === 'string')
    return writtenBy(payload ?? {}, write);
  const answer = { approve: 'Approved.', reject: 'Rejected.', resume: 'Go on.' }[verdict];
  return Object.keys(payload ?? {}).length === 0 ? note(answer) : `${note(answer)}\n${writtenBy(payload ?? {}, write)}`;
}

type ValueOutcome = Extract<Outcome, { kind: 'value' }>;
type FilePart = Extract<ModelOutputPart, { type: 'file' }>;

function plainValue({ value, artifact }: ValueOutcome, maxChars?: number): string {
  const text = valueText(value, maxChars);
  return artifact === undefined ? text : frame('stored_result', text);
}

/** What the tool has made of its value for a model, as markup. @param tellFile a file, as markup. */
function outputText(
  output: Exclude<ModelOutput, { type: 'failed' }>,
  of: ValueOutcome,
  maxChars: number | undefined,
  tellFile: (file: FilePart) => string,
): TextOutput {
  switch (output.type) {
    case 'json':
      return { type: 'text', value: valueText(output.value, maxChars) };
    case 'error-json':
    case 'error-text':
      return { type: 'error-text', value: enclose('call_error', jsonText(output.value), {}, maxChars) };
    case 'execution-denied':
      return {
        type: 'error-text',
        value: enclose('call_error', `The call was denied: ${output.reason ?? 'no reason was given'}`),
      };
    case 'content': {
      const said = output.value.map((part) => partText(part, of, maxChars, tellFile)).filter((text) => text !== '');
      return output.isError === true
        ? { type: 'error-text', value: frame('call_error', said.join('\n')) }
        : { type: 'text', value: said.join('\n') };
    }
    default:
      return output satisfies never;
  }
}

/** One part of what a model reads of a result, as markup. */
export function partText(
  part: ModelOutputPart,
  of: ValueOutcome,
  maxChars: number | undefined,
  tellFile: (file: FilePart) => string,
): string {
  switch (part.type) {
    case 'text':
      return quoted('text' in part ? part.text : jsonText(atPointer(of.value, part.at) ?? ''), maxChars);
    case 'value':
      return plainValue(of, maxChars);
    case 'file':
      return tellFile(part);
    default:
      return '';
  }
}

/** A file of a result that is not shown, as markup. */
export function fileNote(file: FilePart, words: string = 'A file of this result, by reference:'): string {
  const { fileName } = file;
  const named = defined({ file_name: fileName });
  if (isResultFile(file))
    return `${words}\n${encloseJson('attachment', JSON.stringify({ ...mediaNote(file), ...named }))}`;
  const where = 'url' in file ? { url: file.url } : { reference: file.reference };
  return `A file of this result:\n${encloseJson('attachment', JSON.stringify({ ...where, mime: file.mediaType, ...named }))}`;
}

function valueText(value: Json, maxChars: number | undefined): string {
  const text = jsonText(value);
  // JSON that is cut off is no JSON.
  return typeof value === 'string' || (maxChars !== undefined && text.length > maxChars)
    ? quoted(text, maxChars)
    : quotedJson(text);
}
