/** A step: a decision that was carried out, with its outcomes; and what planners and callers are told of it. */
import type { InputArtifact } from './artifact.ts';
import type { ArtifactRow } from './context.ts';
import { type Branch, branchesOf, type Decision, type FinishReason } from './decision.ts';
import type { ErrorData } from './errors.ts';
import { isJsonObject, type Json, type JsonObject } from './json.ts';
import type { Usage } from './limits.ts';
import { messageFiles, messageWords } from './message.ts';
import { isResultFile, type ResultFile } from './model-output.ts';
import { errorOf, isWokenByTasks, type Outcome } from './outcome.ts';
import type { Remark } from './remark.ts';
import type { StoreUse } from './store.ts';

/** The most calls of one step that may run at once. */
export const MAX_AT_ONCE = 50;

/**
 * Limits on how many calls of a step run at once, beside the limit in the decision. They are recorded with the move, so that
 * every process that goes on with the run keeps to them.
 */
export interface AtOnce {
  /** The limit of the runtime or of the agent, when it is lower than `MAX_AT_ONCE`. */
  readonly calls?: number;
  readonly by?: 'runtime' | 'agent';
  /** Limits of the tools of which the step has more calls than may be in flight. */
  readonly tools?: Readonly<Record<string, number>>;
}

/** Calls of a step that could run at once but are held back. */
export interface HeldBack {
  /** `cap`: `MAX_AT_ONCE`. */
  readonly by: 'cap' | 'decision' | 'agent' | 'runtime' | 'tool';
  /** By which it is. */
  readonly tool?: string;
  /** How many calls, of the tool or in all, run at once. */
  readonly limit: number;
  /** How many calls could run at once, since none of them waits for another. */
  readonly calls: number;
}

/** A note about a live handle in the end of a call: it was opened, or it was lost. The value itself is never recorded. */
export interface HandleNote {
  readonly name: string;
  /** The number of the opening: 1 for the first of the run. */
  readonly opening: number;
  /** True: the call was refused, because the value of that opening is gone. Absent: the call was the first to use it. */
  readonly lost?: true;
}

/** The last opening of a handle that is recorded. */
export interface HandleState {
  readonly name: string;
  readonly opening: number;
  /** The step whose calls were told that the value is gone. */
  readonly lostAt?: number;
}

/** Notes of a planner's move, beside the decision. */
export interface MoveNotes {
  /** Text of the model beside its calls. */
  readonly text?: string;
  readonly reasoning?: string;
  readonly usage?: Usage;
  /** Opaque to everyone but the provider that made it; sent back to it untouched. */
  readonly providerState?: Json;
  /** Where the move came from: model, prompt version, stop reason. */
  readonly provenance?: JsonObject;
  readonly remarks?: readonly Remark[];
}

/**
 * Why a reply is not whole. `cut_off`: its length has reached a limit. `paused`: its provider has interrupted its own work, and goes on when
 * it gets back what there is.
 */
export type PartialReply = 'cut_off' | 'paused';

export const PARTIAL_REPLIES: readonly PartialReply[] = ['cut_off', 'paused'];

/** The place of a call in its run. */
export interface CallPlace {
  readonly step: number;
  readonly call: number;
}

export interface CallRecord {
  readonly outcome: Outcome;
  /** Absent when the call never started. Milliseconds since the epoch, as `endedAt`. */
  readonly startedAt?: number;
  readonly endedAt: number;
  readonly attempts: number;
  /** The position of the entry that recorded the end of the call: a smaller one ended earlier. */
  readonly seq: number;
  /** Tools that the call made known; they are listed from the next step on. */
  readonly discovered?: readonly string[];
  /** What the tool stored on the way, beside its value. */
  readonly artifacts?: readonly ArtifactRow[];
  /** Live handles that the call used first, or found closed. */
  readonly handles?: readonly HandleNote[];
  /** What it used beside its own price: models that its tool asked, and what the tool said. */
  readonly usage?: Usage;
  /** An earlier call of the same tool with the same arguments. This call took its outcome, or was made under its idempotency key. */
  readonly reuses?: CallPlace;
  /** What it has read from the long-term store, and written to it. */
  readonly store?: StoreUse;
}

export interface Step extends MoveNotes {
  readonly index: number;
  readonly decision: Decision;
  /** Files that the model has made, as artifacts of the session. */
  readonly files?: readonly InputArtifact[];
  /** One record for each branch, in branch order; a pause, a spawn or an await has one record. */
  readonly calls: readonly CallRecord[];
  /** Arguments that somebody gave to calls in place of those that were decided, as in a plan: with references and escapes. */
  readonly given?: readonly { readonly call: number; readonly args: Json }[];
  /** Limits on how many of the calls ran at once, beside the limit in the decision. */
  readonly atOnce?: AtOnce;
  /** The error of the step as a whole: its join was not met, its set-up was refused, or the planner's reply was not a move. */
  readonly error?: ErrorData;
  /** Set when the step was taken to undo this call, as the run was to end. No planner has decided it. */
  readonly undoes?: CallPlace;
  /** The step is the beginning of a reply that goes on in the next step. */
  readonly partial?: PartialReply;
  readonly startedAt: number;
  readonly endedAt: number;
}

/** What a reply that has come in several steps is read from; a trajectory, or the state of a run. */
export interface ReplySteps {
  step(index: number): Step | undefined;
  readonly steering: readonly { readonly atStep: number }[];
  readonly background: readonly { readonly atStep: number }[];
}

/**
 * The steps of the reply that goes on in the step of this index, oldest first. What came in between, such as a message of the user, was
 * answered anew: what was said before it belongs to no reply any more.
 */
export function partsBefore(steps: ReplySteps, index: number): readonly Step[] {
  const last = steps.step(index - 1);
  if (last === undefined || !isBeforeRest(last)) return NO_PARTS;
  const isUpToHere = ({ atStep }: { readonly atStep: number }): boolean => atStep <= index;
  const { atStep: told = 0 } = steps.steering.findLast(isUpToHere) ?? {};
  const { atStep: came = 0 } = steps.background.findLast(isUpToHere) ?? {};
  const parts: Step[] = [];
  for (let at = index - 1; at >= Math.max(told, came); at -= 1) {
    const part = steps.step(at);
    if (part === undefined || !isBeforeRest(part)) break;
    if (part.partial !== undefined) parts.push(part);
  }
  return parts.reverse();
}

/** The next step has the rest of a reply. A model that refuses to go on leaves the rest to the next one. */
export function isBeforeRest(step: Step): boolean {
  return step.partial !== undefined || isRefusedReply(step);
}

/** The reply of a model that did not want to answer: no other model, nor this one later, is told of it. */
export function isRefusedReply({ error, calls }: Step): boolean {
  return error?.code === 'reply_refused' && calls.length === 0;
}

const NO_PARTS: readonly Step[] = Object.freeze([]);

/** What the parts of a reply say together. */
export function textOfParts(parts: readonly Step[]): string {
  return parts.map(({ text = '' }) => text).join('');
}

// The observation of a step, which the planner sees: the join applied to the outcomes of the branches. It is
// computed, never stored.

/** One branch's part of a parallel observation: exactly one of `value` and `error`. */
export type BranchObservation = {
  readonly call_id?: string;
  readonly tool: string;
  readonly index: number;
} & ({ readonly value: Json } | { readonly error: { readonly code: string; readonly message: string } });

/** The entries that count as a success, earliest first. */
function successes(calls: readonly CallRecord[]): { index: number; record: CallRecord }[] {
  return calls
    .flatMap((record, index) => (record.outcome.kind === 'value' ? [{ index, record }] : []))
    .sort((a, b) => a.record.seq - b.record.seq || a.index - b.index);
}

/**
 * The value of a step as its join gives it: the value of a single call; for a parallel call a list of branch
 * observations (all branches in index order; for `first_success` and `n` the successes in the order they came) or the
 * object of `keyed`; for a pause the verdict and its payload; for a decision that did not pass validation, its error.
 */
export function observe(step: Step): Json {
  const { decision, calls, error } = step;
  // A decision that did not pass validation has no calls: its observation is the error.
  if (calls.length === 0) return error === undefined ? null : { error: { code: error.code, message: error.message } };
  if (decision.kind !== 'call_parallel') {
    const outcome = calls[0]?.outcome;
    if (outcome === undefined) return null;
    if (outcome.kind === 'value') return outcome.value;
    if (outcome.kind === 'verdict') return { decision: outcome.verdict, payload: outcome.payload ?? null };
    return { error: { code: outcome.error.code, message: outcome.error.message } };
  }
  const one = (index: number): BranchObservation =>
    observeBranch(decision.branches[index] as Branch, index, calls[index]);
  const { join } = decision;
  switch (join?.kind) {
    case 'first_success':
      return successes(calls)
        .slice(0, 1)
        .map((found) => one(found.index));
    case 'n':
      return successes(calls)
        .slice(0, join.n)
        .map((found) => one(found.index));
    case 'keyed':
      return Object.fromEntries(
        join.keys.map((key, index) => {
          const observed = one(index);
          return [key, 'value' in observed ? observed.value : { error: observed.error }] as const;
        }),
      );
    default:
      return decision.branches.map((_, index) => one(index));
  }
}

/**
 * One observation for each branch, in index order, for every join: each call id gets exactly one answer. A decision that did not
 * pass validation has none.
 */
export function observeBranches(step: Step): readonly BranchObservation[] {
  if (step.calls.length === 0) return [];
  return branchesOf(step.decision).map((branch, index) => observeBranch(branch, index, step.calls[index]));
}

function observeBranch(branch: Branch, index: number, record: CallRecord | undefined): BranchObservation {
  const { tool, callId } = branch;
  const name = callId === undefined ? { tool, index } : { call_id: callId, tool, index };
  const outcome = record?.outcome;
  if (outcome?.kind === 'value') return { ...name, value: outcome.value };
  const error = outcome === undefined ? undefined : errorOf(outcome);
  return {
    ...name,
    error: { code: error?.code ?? 'branch_not_started', message: error?.message ?? 'The call was not started.' },
  };
}

/** The error of the step as a whole, if its join was not met or its set-up was refused. */
export function stepError(decision: Decision, calls: readonly CallRecord[]): ErrorData | undefined {
  if (decision.kind !== 'call_parallel') return undefined;
  if (decision.onInvalid !== 'per_branch') {
    const refused = calls.find((call) => call.startedAt === undefined && isSetUpError(errorOf(call.outcome)));
    if (refused !== undefined) return errorOf(refused.outcome);
  }
  const { join } = decision;
  const wanted = join?.kind === 'first_success' ? 1 : join?.kind === 'n' ? join.n : 0;
  const reached = wanted === 0 ? 0 : successes(calls).length;
  if (reached >= wanted) return undefined;
  const failures = decision.branches.flatMap((branch, index): JsonObject[] => {
    const error = calls[index] === undefined ? undefined : errorOf(calls[index].outcome);
    return error === undefined ? [] : [{ index, tool: branch.tool, code: error.code, message: error.message }];
  });
  return join?.kind === 'n'
    ? {
        code: 'parallel_threshold_unmet',
        message: `${reached} of the ${wanted} successes that the join asks for were reached.`,
        data: { wanted, reached, failures },
      }
    : { code: 'parallel_all_failed', message: `None of the ${calls.length} branches succeeded.`, data: { failures } };
}

function isSetUpError(error: ErrorData | undefined): boolean {
  return error?.data?.['setUp'] === true;
}

/** A string as it is; an object's string `answer`; anything else as JSON text. `undefined`: nothing was said. */
export function answerText(payload: Json | undefined): string | undefined {
  if (payload === undefined || payload === null) return undefined;
  if (typeof payload === 'string') return payload;
  if (isJsonObject(payload) && typeof payload['answer'] === 'string') return payload['answer'];
  return JSON.stringify(payload);
}

/**
 * The task result of a run that reached its goal, as JSON text with the keys in this order; `answer` only when something was said. `tool_calls_seen` counts
 * steps, as old readers expect; `tool_calls` counts calls.
 */
export function answerEnvelope(reason: FinishReason, payload: Json | undefined, steps: readonly Step[]): string {
  return JSON.stringify({
    answer: answerText(payload),
    finish_reason: reason,
    tool_calls_seen: steps.length,
    // A step without calls is a decision that did not pass.
    tool_calls: steps.reduce((sum, { calls, decision }) => sum + (calls.length && branchesOf(decision).length), 0),
  });
}

/** The files in the results of a step, in their order. */
export function resultFilesOf({ calls }: Step): readonly ResultFile[] {
  let files: ResultFile[] | undefined;
  for (const { outcome } of calls) {
    const output = outcome.kind === 'value' ? outcome.modelOutput : undefined;
    if (output?.type !== 'content') continue;
    const found = output.value.filter(isResultFile);
    if (found.length > 0) files = [...(files ?? []), ...found];
  }
  return files ?? NO_FILES;
}

const NO_FILES: readonly ResultFile[] = [];

/** What the user said to the question of the step; empty when it asked nothing, or nobody said anything. */
export function userAnswer({ decision, calls }: Step): string {
  if (decision.kind !== 'request_pause' || decision.reason !== 'await_input') return '';
  const outcome = calls[0]?.outcome;
  if (outcome?.kind !== 'verdict' || isWokenByTasks(outcome)) return '';
  const isUnanswered = outcome.verdict === 'timeout' || outcome.verdict === 'superseded';
  return isUnanswered ? '' : messageWords(outcome.payload ?? {});
}

/** The files of that answer. */
export function answerFiles({ decision, calls }: Step): readonly InputArtifact[] {
  const outcome = decision.kind === 'request_pause' ? calls[0]?.outcome : undefined;
  return outcome?.kind === 'verdict' ? messageFiles(outcome.payload) : [];
}
