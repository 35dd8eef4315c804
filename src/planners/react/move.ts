/** From a model's reply to the move that the runtime records. */

import {
  type AwaitTask,
  addUsage,
  calledName,
  captureForGood,
  defined,
  isJsonObject,
  type Json,
  type JsonObject,
  type Move,
  PilotageError,
  partsBefore,
  providerActs,
  type Remark,
  type RunView,
  type ToolView,
  type Usage,
  validateDecision,
} from '#core';
import type { AskOptions, ModelAnswer, ReadyModel, Reply, StopReason } from '#model';
import type { ModelPool } from '#planners';
import { isWaitingAnswer } from '#prompt';
import { type Decided, decideFromReply } from './decide.ts';
import type { MadeCalls } from './made-calls.ts';
import { DEFAULT_CONTINUATIONS, endsByCall, mayStartTasks, type ReactOptions } from './options.ts';
import { CUT_OFF, hostedAs, type ReadOptions } from './read-reply.ts';
import type { Requests } from './requests.ts';

export interface MoveMaking {
  readonly options: ReactOptions;
  readonly pool: ModelPool;
  readonly requests: Requests;
  readonly readAnswer: ReadOptions['readAnswer'];
  readonly madeCalls: MadeCalls;
  readonly plain: PlainProvenance;
}

/** The provenance that most moves have in common, the last for each way to stop: the same objects, which the JSON guard has seen. */
export class PlainProvenance {
  readonly #last = new Map<StopReason, JsonObject>();

  of(model: string, { finish, providerFinish }: Reply): JsonObject {
    const last = this.#last.get(finish);
    if (last?.['model'] === model && last['providerFinish'] === providerFinish) return last;
    const made = captureForGood({ model, finish, ...defined({ providerFinish }) }, 'provenance');
    this.#last.set(finish, made);
    return made;
  }
}

const NO_REMARKS: readonly Remark[] = [];

/** What was known when the reply was asked for. */
export interface AskedWith {
  readonly remarks: readonly Remark[];
  /** With the models that could be asked. */
  readonly asking: Pick<AskOptions, 'models'>;
}

export function moveOf(asked: ModelAnswer, turn: AskedWith, view: RunView, making: MoveMaking): Move {
  const { reply, model, remarks: tries, usage, latencyMs } = asked;
  const decided = decideWith(asked, turn, view, making);
  const { decision, fault, partial, text, remarks: repairs = NO_REMARKS } = decided;
  for (const tried of tries) if (tried.type === 'model.fallback') making.pool.record(tried.from, { succeeded: false });
  making.pool.record(model.name, { ...measured(decided), latencyMs });
  making.requests.noteTokens(view, model, reply.usage?.inputTokens);
  const move: { -readonly [K in keyof Move]: Move[K] } = { decision, provenance: provenanceOf(asked, decided, making) };
  if (fault !== undefined) move.fault = fault;
  if (partial !== undefined) move.partial = partial;
  const { remarks: before } = turn;
  if (before.length + tries.length + repairs.length > 0) move.remarks = [...before, ...tries, ...repairs];
  if (reply.reasoning !== '') move.reasoning = reply.reasoning;
  const paid = withHosted(usage, reply, view.tools);
  if (paid !== undefined) move.usage = paid;
  if (reply.files !== undefined && fault === undefined) move.made = reply.files;
  const isEnd = decision.kind === 'finish' && fault === undefined && partial === undefined;
  if (text !== '' && !isEnd) move.text = fault === undefined ? text : text.slice(0, MAX_FAULTY_CHARS);
  const { providerState: state } = reply;
  if (state !== undefined && (isEnd ? saysMore(state) : fault === undefined || isWhole(reply)))
    move.providerState = withOwnNames(state, view.tools);
  return move;
}

/** What ends a run is told to later runs of its session: its words are the answer, and what else its provider wants back stands in the state. */
function saysMore(state: Json): boolean {
  const parts = isJsonObject(state) && Array.isArray(state['parts']) ? state['parts'] : [];
  return parts.some(
    (part) =>
      isJsonObject(part) &&
      part['type'] !== 'call' &&
      (part['type'] !== 'text' || part['providerOptions'] !== undefined),
  );
}

/** Only what its provider did is replayed of a reply that was not accepted: it need not be done again. */
function hasActs(state: Json): boolean {
  return providerActs(state).length > 0;
}

function isWhole({ providerState, calls, finish }: Reply): boolean {
  return calls.length === 0 && !CUT_OFF.has(finish) && providerState !== undefined && hasActs(providerState);
}

/** With the program's names for what its provider calls otherwise. */
function withOwnNames(state: Json, { hosted }: ToolView): Json {
  if (hosted === undefined || !isJsonObject(state) || !Array.isArray(state['parts'])) return state;
  const parts = state['parts'].map((part) => {
    if (!isJsonObject(part) || typeof part['toolName'] !== 'string') return part;
    const own = hosted.find((tool) => calledName(tool) === part['toolName'])?.name ?? part['toolName'];
    return own === part['toolName'] ? part : { ...part, tool: own };
  });
  return { ...state, parts };
}

/** With the price of what the provider has carried out, as far as the program has told it. */
function withHosted(usage: Usage | undefined, { providerState }: Reply, { hosted }: ToolView): Usage | undefined {
  if (hosted === undefined || providerState === undefined) return usage;
  let costMicroUsd = 0;
  for (const { type, toolName } of providerActs(providerState)) {
    const tool = type === 'tool-call' ? hostedAs(hosted, toolName) : undefined;
    costMicroUsd += tool?.provider?.costMicroUsd ?? 0;
  }
  return costMicroUsd === 0 ? usage : addUsage(usage, { costMicroUsd });
}

/** How many characters of a reply that could not be used are kept and shown to the model again. */
const MAX_FAULTY_CHARS = 8_192;

/** How a reply of the model is read. */
export function readingOf(
  model: ReadyModel,
  view: RunView,
  { options, readAnswer, madeCalls }: MoveMaking,
): ReadOptions {
  return {
    mode: model.toolCalls,
    tools: view.tools,
    tasks: mayStartTasks(options, view),
    finish: endsByCall(options, view),
    madeBefore: (tool, args) => madeCalls.find(view, tool, args),
    // A text that goes to the user is not read as the answer, whatever it looks like.
    readAnswer: options.converse === true ? undefined : readAnswer,
  };
}

/** The move for a request that was refused before there was a reply. */
export function refusedMove(
  decided: Decided,
  remarks: readonly Remark[],
  usage: Usage | undefined,
  model: ReadyModel,
): Move {
  const { decision, fault } = decided;
  const provenance = { model: model.name, finish: 'content-filter' };
  return { decision, provenance, remarks, ...defined({ fault, usage }) };
}

function decideWith(
  { reply, model }: ModelAnswer,
  { asking: { models } }: AskedWith,
  view: RunView,
  making: MoveMaking,
): Decided {
  const { options, requests } = making;
  const { converse = false, parallelToolCalls = true, continuations = DEFAULT_CONTINUATIONS } = options;
  const isLast = view.lastMove !== undefined;
  const reading = readingOf(model, view, making);
  const decided = decideFromReply(reply, {
    reading,
    parts: partsBefore(view.trajectory, view.trajectory.count),
    continuations: isLast ? 0 : continuations,
    model,
    models,
    wait: reading.tasks && !isLast ? waitBeforeEnd(view) : undefined,
    callIds: (wanted) => requests.callIds(view, model, wanted),
    converse: converse && !isLast,
    readAnswer: making.readAnswer,
    oneByOne: !parallelToolCalls,
  });
  return decided.decision.kind === 'call_parallel' ? checked(decided) : decided;
}

/**
 * What an answer waits for: the oldest task whose result the model is still to get. A group that was left open would never
 * resolve, and is closed by waiting for all of it. When the last such wait came to an error, the answer stands.
 */
function waitBeforeEnd({ trajectory }: RunView): AwaitTask | undefined {
  const { tasks, groups } = trajectory;
  const last = trajectory.step(trajectory.count - 1);
  if (last !== undefined && isWaitingAnswer(last) && last.calls[0]?.outcome.kind !== 'value') return undefined;
  const isOpen = (group: string) => groups.get(group)?.status === 'open';
  const task = tasks.find(({ group, end }) => end === undefined || isOpen(group));
  if (task === undefined) return undefined;
  const wait = { kind: 'await_task', taskId: task.id } as const;
  return isOpen(task.group) ? { ...wait, groupId: task.group } : wait;
}

/** A parallel call that would not pass is the model's fault, and goes up the ladder like its others. */
function checked(decided: Decided): Decided {
  try {
    validateDecision(decided.decision);
    return decided;
  } catch (error) {
    if (!PilotageError.is(error)) throw error;
    const { code, message } = error;
    const decision = { kind: 'finish', reason: 'no_path', metadata: { via: 'react.reply' } } as const;
    return { ...decided, decision, fault: { code, message } };
  }
}

function provenanceOf(
  { reply, model }: ModelAnswer,
  { droppedCall, args, answered, again }: Decided,
  { plain }: MoveMaking,
): JsonObject {
  const { modelId: id, finish, providerFinish } = reply;
  const isPlain = droppedCall === undefined && args === undefined && answered === undefined && again === undefined;
  if (isPlain && model.name === id) return plain.of(id, reply);
  const made: { [key: string]: Json } = { model: id, finish, ...defined({ providerFinish }) };
  // A name of the user's own, or another version than the one that was asked for.
  if (model.name !== id) made['modelName'] = model.name;
  if (droppedCall !== undefined) made['droppedCall'] = droppedCall;
  // A decision of its own does not keep the arguments that it was made of.
  if (args !== undefined) made['args'] = args;
  // The model made no such call, and is not shown one.
  if (answered === true) made['answered'] = true;
  if (again !== undefined) made['again'] = again;
  return made;
}

function measured({ fault, decision }: Decided): { parsed: boolean; valid?: boolean; succeeded: boolean } {
  if (decision.kind === 'finish' && decision.reason === 'refused') return { parsed: true, succeeded: false };
  if (fault !== undefined) return { parsed: false, succeeded: false };
  const valid =
    decision.kind === 'call_tool'
      ? decision.refusal === undefined
      : decision.kind !== 'call_parallel' || decision.branches.every((branch) => branch.refusal === undefined);
  return { parsed: true, valid, succeeded: valid };
}
