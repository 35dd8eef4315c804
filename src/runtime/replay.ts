/**
 * Asks a planner what it would decide today, for each step that a run has taken. The outcomes of the steps are the
 * recorded ones: no tool is called, no approval is asked for, and nothing is written.
 */
import {
  type ClientToolSpec,
  captureObject,
  type Decision,
  deepFreeze,
  defined,
  describeThrown,
  type Entry,
  type ErrorData,
  type Failed,
  isMove,
  type LoadedInput,
  type Move,
  type Moved,
  type MoveSource,
  type PartialReply,
  PilotageError,
  type Planner,
  RunCache,
  type RunView,
  type ToolView,
  validateDecision,
} from '#core';
import type { ArtifactStore } from '#journal';
import { applyEntry, nextStep, openState, type RunState, sameDecision, viewOf, wholeMove, withheldTools } from '#state';
import { decidedByFailing } from '../loop/ask-planner.ts';
import type { Before } from '../loop/earlier-turns.ts';
import { NO_CALLS } from '../loop/last-move.ts';
import { ShownMedia } from '../loop/media.ts';

export interface ReplayRequest {
  /** The whole journal of the run. */
  readonly entries: readonly Entry[];
  /** The planner that is asked. A planner with a model asks the model, which costs money. */
  readonly planner: Pick<Planner, 'name' | 'next'>;
  /** The tools of a run with these scopes that has found these tools, and was started with these. */
  toolsOf(
    scopes: readonly string[],
    found: readonly string[],
    withheld?: readonly string[],
    clientTools?: readonly ClientToolSpec[] | null,
  ): ToolView;
  /** The attachments of the query, with their bytes. Default none. */
  readonly inputs?: readonly LoadedInput[];
  /** The turns before the query, when they had to be loaded. */
  readonly before?: Before;
  /** Has the files of the steps. Default: there are none. */
  readonly artifacts?: ArtifactStore;
  readonly signal?: AbortSignal;
}

export interface ReplayReport {
  readonly run: string;
  /** The first step that was compared; for a fork, the first step of its own. */
  readonly from: number;
  /** How many decisions were compared, including the one that ended the run, or the failure of the planner that did. */
  readonly compared: number;
  /** The first step that would be decided otherwise; nothing is asked after it. */
  readonly divergence?: Divergence;
}

export interface Divergence {
  readonly step: number;
  readonly recorded: ReplayedMove;
  readonly now: ReplayedMove;
}

/** What a planner returned: a decision, with the error if it could not be carried out; or only an error, when the planner failed. */
export interface ReplayedMove {
  readonly decision?: Decision;
  /** Set when the decision did not pass validation, or stands in for a reply that could not be used. */
  readonly error?: ErrorData;
  /** Set for the beginning of a reply that goes on in the next step. */
  readonly partial?: PartialReply;
}

/**
 * Stops at the first divergence. Decisions are compared as JSON without the ids of calls. An invalid decision, or one
 * that stands for a reply that could not be used, is the same only if its error has the same code; so is the failure of a planner that ended the run.
 * @throws the signal's reason when it is aborted; PilotageError `journal_corrupt`.
 */
export async function replayRun(request: ReplayRequest): Promise<ReplayReport> {
  const { entries, planner, toolsOf, inputs, before, artifacts, signal = new AbortController().signal } = request;
  const media = new ShownMedia();
  const [first, ...rest] = entries;
  if (first === undefined) throw new PilotageError('journal_corrupt', 'The journal of the run is empty.');
  const state = openState(deepFreeze(first));
  // A task of a fork has taken its steps itself.
  const from = state.task === null ? (state.fork?.step ?? 0) : 0;
  const report = { run: state.identity.run, from, compared: 0 };
  const cache = new RunCache();
  for (const [index, entry] of rest.entries()) {
    const decided = decidedIn(entry, rest, index, state);
    if (decided !== undefined && decided.step >= from) {
      if (artifacts !== undefined) await media.load(state, artifacts);
      const tools = toolsOf(state.scopes, state.found, withheldTools(state), state.clientTools);
      const view = viewOf(state, tools, false, inputs, before?.history, cache, media.view, before?.earlier);
      const now = asRecorded(state, await untilAborted(ask(planner, view, decided.step, signal), signal));
      report.compared += 1;
      const { step, recorded } = decided;
      if (!isSame(recorded, now)) return { ...report, divergence: { step, recorded, now } };
    }
    applyEntry(state, deepFreeze(entry));
  }
  return report;
}

/** What the entry says that the planner has decided at which step; `undefined`: it says nothing of that. */
function decidedIn(
  entry: Entry,
  rest: readonly Entry[],
  index: number,
  state: RunState,
): { readonly step: number; readonly recorded: ReplayedMove } | undefined {
  switch (entry.kind) {
    case 'moved':
      // No planner has decided what is undone, nor had one decided that was stopped while it spoke.
      if (entry.undoes !== undefined || entry.fault?.code === 'cancelled') return undefined;
      return { step: entry.step, recorded: recordedMove(wholeMove(entry, rest, index + 1)) };
    case 'unwinding':
      return entry.ending.kind === 'failed' ? failedIn(entry.ending, rest, index, state) : undefined;
    case 'failed':
      return state.unwinding === null ? failedIn(entry, rest, index, state) : undefined;
    default:
      return undefined;
  }
}

/** The planner has failed, so that nothing was decided at this step. A run that went on since has the move that it went on with. */
function failedIn(
  { error }: Failed,
  rest: readonly Entry[],
  index: number,
  state: RunState,
): ReturnType<typeof decidedIn> {
  const step = nextStep(state);
  const isPlanner = error.data?.['step'] === step && error.code !== 'price_missing';
  if (!isPlanner || rest.some(({ kind }, at) => at > index && kind === 'reopened')) return undefined;
  return { step, recorded: { error } };
}

/** At a limit the run has recorded of the last move what was left of it. */
function asRecorded(state: RunState, { decision, error, partial }: ReplayedMove): ReplayedMove {
  if (state.answering === null || decision === undefined || error !== undefined)
    return defined({ decision, error, partial });
  const isAnswer = decision.kind === 'finish' && partial === undefined;
  return { decision, ...defined({ partial, error: isAnswer ? undefined : NO_CALLS }) };
}

function recordedMove({ decision, rejected, fault, partial }: Moved): ReplayedMove {
  return { decision, ...defined({ error: rejected ?? fault, partial }) };
}

/** A planner that failed has decided nothing: how it failed is all that there is to compare. */
function isSame(recorded: ReplayedMove, now: ReplayedMove): boolean {
  if (recorded.error?.code !== now.error?.code || recorded.partial !== now.partial) return false;
  if (recorded.decision === undefined || now.decision === undefined) return now.error !== undefined;
  return sameDecision(recorded.decision, now.decision);
}

async function ask(
  planner: ReplayRequest['planner'],
  view: RunView,
  step: number,
  signal: AbortSignal,
): Promise<ReplayedMove> {
  let move: Decision | Move;
  try {
    signal.throwIfAborted();
    move = await drained(planner.next(view, signal));
  } catch (thrown) {
    return decidedByFailing(thrown, step, planner.name);
  }
  if (typeof move !== 'object' || move === null) {
    return {
      error: { code: 'planner_failed', message: `The planner returned ${String(move)} in place of a decision.` },
    };
  }
  return moveOf(isMove(move) ? move : { decision: move });
}

async function drained(source: MoveSource): Promise<Decision | Move> {
  if (typeof source !== 'object' || source === null || !(Symbol.asyncIterator in source)) return source;
  for (;;) {
    const { value, done } = await source.next();
    if (done === true) return value;
  }
}

function moveOf({ decision, fault, partial }: Move): ReplayedMove {
  try {
    return { decision: validateDecision(decision), ...defined({ error: fault, partial }) };
  } catch (thrown) {
    return { ...asFarAsJson(decision), error: errorOf(thrown) };
  }
}

/** An invalid decision is shown, and compared, in the shape that it has. */
function asFarAsJson(decision: Decision): ReplayedMove {
  try {
    return { decision: captureObject<Decision>(decision, 'decision').json };
  } catch {
    return {};
  }
}

function errorOf(thrown: unknown): ErrorData {
  if (PilotageError.is(thrown)) return thrown.toJSON();
  return { code: 'invalid_decision', message: describeThrown(thrown) };
}

/** A planner that does not listen to the signal is left alone. */
async function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const stop = (): void => reject(signal.reason);
  signal.addEventListener('abort', stop, { once: true });
  try {
    const done = await Promise.race([work, aborted]);
    signal.throwIfAborted();
    return done;
  } finally {
    signal.removeEventListener('abort', stop);
  }
}
