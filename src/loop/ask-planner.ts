/** Asks the planner for its move and turns the answer, good or bad, into entries. */
import {
  type Compacted,
  type CompactionAttempt,
  type CompactionFailed,
  captureDecision,
  captureObject,
  checkDecision,
  type Decision,
  type Delta,
  defined,
  describeThrown,
  type EntryBody,
  ERROR_CONSEQUENCES,
  type ErrorCode,
  type ErrorData,
  type Failed,
  type Finished,
  type InputArtifact,
  isJsonObject,
  isMove,
  type Json,
  type JsonObject,
  type Move,
  type Moved,
  type MoveSource,
  newRunId,
  type Paused,
  PilotageError,
  type Planner,
  type RunView,
  readUsage,
  Thrown,
  timeAfter,
  type Usage,
  usageIn,
} from '#core';
import { storeIfLarge } from '#journal';
import { compileSchema } from '#schema';
import { failedPlan, leftOn, nextStep, type RunState, viewOf } from '#state';
import type { Settled } from '../calls/attempt.ts';
import { errorData } from '../calls/outcome.ts';
import {
  type Ask,
  atOnceFor,
  lastWords,
  type MoveNeeds,
  type Mutable,
  offeredIn,
  partialIn,
  readMove,
  type StreamedText,
  say,
  takeNotes,
  usedBy,
  wrongUsage,
} from './ask.ts';
import { Growing, Growth } from './growth.ts';
import { assertFiles, storedFiles } from './inputs.ts';
import { modelAway } from './model-away.ts';
import { priceMissing, uncounted } from './prices.ts';
import { contextExhausted, shortened, tooLong } from './too-long.ts';

/**
 * The entries of the planner's move. Of one that was aborted, what it had said, if the run ends with that; why is found at
 * the boundary. `undefined`: there is nothing.
 */
export function askPlanner(ask: Ask): Made | Promise<Made> {
  const { deps, state } = ask;
  const step = nextStep(state);
  // The code may be other code than when the limit was given.
  if (state.limits.costMicroUsd !== undefined && deps.unpriced.length > 0) {
    return [plannerFailed(priceMissing(deps.agent, deps.unpriced), step)];
  }
  const startedAt = deps.clock.now();
  const { before } = ask;
  const view = viewOf(
    state,
    ask.tools,
    ask.tell !== undefined,
    ask.inputs,
    before?.history,
    ask.cache,
    ask.media,
    before?.earlier,
  );
  const isDue = state.compactedAt < step || state.contextLimits.length > 0;
  if (deps.planner.compact !== undefined && isDue) return compactFirst(ask, view, startedAt);
  return askForMove(ask, view, startedAt);
}

type Made = readonly EntryBody[] | undefined;

const NOTHING_SAID: StreamedText = { text: '', reasoning: '' };

function askForMove(ask: Ask, view: RunView, startedAt: number): Made | Promise<Made> {
  const { deps, attempt, signal } = ask;
  const step = nextStep(ask.state);
  const said: StreamedText = { text: '', reasoning: '' };
  const next = () => moveOf(deps.planner.next(view, signal.signal), ask, said);
  return attempt.run(
    () => (ask.tracing === undefined ? next() : ask.tracing.within({ step }, next)),
    (settled) => {
      if (ask.attempt.aborted) return stopped(said, step, startedAt, settled, ask);
      return answerOf(settled, step, startedAt, ask, said);
    },
    { signal },
  );
}

function stopped(said: StreamedText, step: number, startedAt: number, settled: Settled<unknown>, ask: Ask): Made {
  const told = ask.isEnding() ? brokenOff(said, step, startedAt, STOPPED, usedBy(settled)) : [];
  return told.length === 0 ? undefined : told;
}

/** The history is shortened by an entry of its own; the driver then asks again, with the shorter one. */
function compactFirst(ask: Ask, view: RunView, startedAt: number): Made | Promise<Made> {
  const { attempt, signal, state } = ask;
  const step = nextStep(state);
  return attempt.run(
    () => compact(ask, view, step),
    (settled): Made | Promise<Made> => {
      if (attempt.aborted) return stopped(NOTHING_SAID, step, startedAt, settled, ask);
      if (settled.kind === 'abandoned' || settled.kind === 'timeout') return undefined;
      if (settled.kind === 'thrown') return failedBy(settled.error, step, ask);
      return settled.value === undefined ? askForMove(ask, view, startedAt) : shorter(settled.value, step, ask);
    },
    { signal },
  );
}

function compact({ deps: { planner }, signal, tracing }: Ask, view: RunView, step: number) {
  const make = () => planner.compact?.(view, signal.signal);
  return tracing === undefined ? make() : tracing.within({ step }, make);
}

async function shorter(given: CompactionAttempt, step: number, ask: Ask): Promise<readonly EntryBody[]> {
  try {
    const attempt = captureObject<CompactionAttempt>(given, 'compaction').json;
    if ('shorten' in attempt) return [await shortened(attempt.shorten, attempt.tokenEstimate, ask)];
    const made = compactionEntry(attempt, step);
    return [uncountedIn(made, ask) ?? made];
  } catch (error) {
    return [plannerFailed(error, step)];
  }
}

function compactionEntry(
  attempt: Exclude<CompactionAttempt, { readonly shorten: unknown }>,
  step: number,
): Compacted | CompactionFailed {
  const { usage: used, wrong } = readUsage(attempt.usage ?? {});
  if (wrong !== undefined) throw wrongUsage('compaction', wrong);
  const usage = attempt.usage === undefined ? {} : { usage: used };
  if ('compaction' in attempt) {
    const { summary, before, tokenEstimate, earlier, made } = attempt.compaction;
    if (isJsonObject(summary) && Number.isInteger(before) && before >= 0 && before <= step) {
      return { kind: 'compacted', step, summary, before, tokenEstimate, ...defined({ earlier, made }), ...usage };
    }
    throw new Error(`the summary covers the steps before ${before}, and ${step} have been taken`);
  }
  const { failure: error, tokenEstimate } = attempt;
  if (typeof error?.code !== 'string' || typeof error.message !== 'string') {
    throw new Error('compact gave neither a compaction nor a failure');
  }
  return { kind: 'compaction_failed', step, error, tokenEstimate, ...usage };
}

function answerOf(
  settled: Settled<Decision | Move | Growing>,
  step: number,
  startedAt: number,
  ask: Ask,
  said: StreamedText,
): Made | Promise<Made> {
  if (settled.kind === 'abandoned' || settled.kind === 'timeout') return undefined;
  if (settled.kind === 'thrown') {
    const ended = failedBy(settled.error, step, ask);
    return ended?.[0]?.kind === 'failed' ? [...brokenOff(said, step, startedAt, FAILED), ...ended] : ended;
  }
  const made = settled.value;
  if (Growing.is(made)) return [startGrowth(made, step, startedAt, ask, said)];
  if (typeof made !== 'object' || made === null) {
    return [plannerFailed(new Error(`next() returned ${describeThrown(made)} in place of a decision`), step)];
  }
  let files: Move['made'];
  try {
    files = isMove(made) ? made.made : undefined;
    if (files !== undefined) assertFiles(files);
  } catch (thrown) {
    return [plannerFailed(thrown, step)];
  }
  if (files === undefined) return entriesOrFailure(made, step, startedAt, ask);
  // Stored before the entry that names them.
  const { identity } = ask.state;
  return storedFiles(files, identity, ask.deps.artifacts).then((stored) =>
    entriesOrFailure(made, step, startedAt, ask, stored),
  );
}

function entriesOrFailure(
  made: Decision | Move,
  step: number,
  startedAt: number,
  ask: Ask,
  files?: readonly InputArtifact[],
): Made | Promise<readonly EntryBody[]> {
  try {
    return entriesOf(readMove(made), step, startedAt, ask, files);
  } catch (thrown) {
    return [plannerFailed(thrown, step)];
  }
}

/** The beginning of the plan. The planner goes on when the driver knows of it. */
function startGrowth(growing: Growing, step: number, startedAt: number, ask: Ask, said: StreamedText): EntryBody {
  try {
    const growth = new Growth(ask, growing, step, startedAt);
    growth.goOn(growing, said);
    ask.grows(growth);
    return growth.moved;
  } catch (thrown) {
    // Its end is nobody's news any more.
    closeSource(growing).catch(ask.deps.onFault);
    return plannerFailed(thrown, step);
  }
}

async function closeSource({ source }: Growing): Promise<void> {
  await source.return(undefined as never);
}

/** Turns every form of a planner's answer into a move. */
function moveOf(
  source: MoveSource,
  ask: Ask,
  said: StreamedText,
): Exclude<MoveSource, AsyncGenerator<Delta>> | Promise<Decision | Move | Growing> {
  return isGenerator(source) ? drain(source, ask, said) : source;
}

function isGenerator(source: MoveSource): source is AsyncGenerator<Delta, Decision | Move> {
  return typeof source === 'object' && source !== null && Symbol.asyncIterator in source;
}

async function drain(
  source: AsyncGenerator<Delta, Decision | Move>,
  ask: Ask,
  said: StreamedText,
): Promise<Decision | Move | Growing> {
  for (;;) {
    const { value, done } = await source.next();
    if (done === true) return value;
    if (ask.attempt.aborted) {
      await lastWords(source);
      throw ask.signal.signal.reason;
    }
    if (value.type === 'branches') return new Growing(value, source);
    say(value, said, ask);
  }
}

const STOPPED = {
  decision: { kind: 'finish', reason: 'cancelled' },
  fault: { code: 'cancelled', message: 'The run was stopped while the planner was speaking.' },
} as const;
const FAILED = {
  decision: { kind: 'finish', reason: 'no_path' },
  fault: { code: 'planner_failed', message: 'The planner failed while it was speaking.' },
} as const;

/** What was said before the run was stopped, or the planner failed, is part of it: whoever watched has seen it. */
function brokenOff(
  { text, reasoning }: StreamedText,
  step: number,
  startedAt: number,
  how: typeof STOPPED | typeof FAILED,
  usage?: Usage,
): readonly EntryBody[] {
  if (text === '' && reasoning === '' && usage === undefined) return [];
  const moved: Mutable<Moved> = { kind: 'moved', step, startedAt, ...how };
  takeNotes(moved, { decision: moved.decision, text, reasoning, ...defined({ usage }) });
  return [moved];
}

function entriesOf(
  move: Move,
  step: number,
  startedAt: number,
  ask: Ask,
  files: readonly InputArtifact[] = NO_FILES,
): Made | Promise<readonly EntryBody[]> {
  const { decision: proposed } = move;
  const moved: Mutable<Moved> = { kind: 'moved', step, decision: proposed, startedAt };
  let captured: Decision | undefined;
  let decision: Decision;
  try {
    captured = captureDecision(proposed);
    takeNotes(moved, move);
    const offered = offeredIn(move);
    if (offered !== undefined) moved.offered = offered;
    if (move.fault !== undefined) moved.fault = captureObject<ErrorData>(move.fault, 'move.fault').json;
    const partial = partialIn(move);
    if (partial !== undefined) moved.partial = partial;
    decision = checkDecision(captured);
    assertMayContinue(decision, ask.state);
    if (decision.kind === 'request_pause' && decision.schema !== undefined) assertSchema(decision.schema);
  } catch (thrown) {
    if (!PilotageError.is(thrown)) throw thrown; // The planner has failed.
    // What the model said and used counts all the same.
    return [rejected(moved, captured, thrown, ask.deps.planner)];
  }
  const unpriced = uncountedIn(moved, ask);
  if (unpriced !== undefined) return [unpriced];
  moved.decision = decision;
  switch (moved.fault?.code) {
    case 'model_unavailable':
      return modelAway(ask, moved.fault, moved);
    case 'context_window_exceeded':
      return [tooLong(ask, moved.fault, moved)];
    case 'context_exhausted':
      return [contextExhausted(moved.fault, ask.deps)];
    case 'budget_exceeded': {
      // What becomes of the run is decided at the boundary: a limit may be raised, its reserve taken.
      const needs = needsIn(moved.fault.data ?? {}, moved.usage, step, ask);
      if (needs !== undefined) ask.lacks(needs);
      // It is asked again. A move that has used nothing is not recorded.
      return needs !== undefined && moved.usage === undefined ? undefined : [moved];
    }
    default:
      break;
  }
  if (moved.fault !== undefined) return [moved];
  if (decision.kind === 'finish' && moved.partial === undefined)
    return finished(decision, files, ask).then((ending) => [moved, ending]);
  if (files.length > 0) moved.files = files;
  if (moved.partial !== undefined) return [moved];
  if (decision.kind === 'request_pause') return [moved, paused(decision, step, ask)];
  const { atOnce } = atOnceFor(decision, ask.tools, ask.deps.limit);
  if (atOnce !== undefined) moved.atOnce = atOnce;
  return [moved];
}

/**
 * An invalid decision can be recorded in any shape, when it is a JSON object. A program's invalid decision is a fault of the
 * program; a model is told what was wrong, and asked again.
 */
function rejected(moved: Moved, decision: Decision | undefined, error: PilotageError, planner: Planner): EntryBody {
  const { step } = moved;
  if (planner.modelDriven === true && decision === undefined && PilotageError.is(error.cause, 'unserializable')) {
    // What cannot stand in a journal came from a model, which may say less.
    return { ...moved, decision: { kind: 'finish', reason: 'no_path' }, rejected: error.toJSON() };
  }
  if (planner.modelDriven !== true || decision === undefined) {
    const message = `Step ${step}: ${error.message}`;
    const { usage } = moved;
    const used = usage === undefined ? {} : { usage };
    return { kind: 'failed', error: { code: error.code, message, data: { ...error.data, step } }, ...used };
  }
  return { ...moved, decision, rejected: error.toJSON() };
}

/** A planner whose models are away has not failed. */
function failedBy(thrown: unknown, step: number, ask: Ask): Made {
  const { code, message, data, isOurs, isModelAway } = Thrown.of(thrown);
  if (isModelAway) {
    return modelAway(
      ask,
      { code: 'model_unavailable', message: `The model of the planner gave no reply: ${message}` },
      {},
    );
  }
  if (isOurs && code === 'model_refused') return refusedEnding(message, data ?? {}, step, ask);
  if (isOurs && code === 'budget_exceeded') {
    const needs = needsIn(data ?? {}, data?.['usage'], step, ask);
    if (needs !== undefined) return withoutRoom(needs, { code, message }, data?.['usage'], ask);
  }
  if (!isOurs || code !== 'model_unavailable') return [plannerEnded(thrown, step, ask)];
  const given = data?.['usage'];
  const error = { code, message, ...(data === undefined ? {} : { data }) };
  return modelAway(ask, error, given === undefined ? {} : { usage: readUsage(given).usage });
}

/** How much a request takes that has no room in the budget, behind what tries before it have used; `undefined`: no limit of the run says so. */
function needsIn({ axis, needs }: JsonObject, usage: unknown, step: number, { state }: Ask): MoveNeeds | undefined {
  if ((axis !== 'tokens' && axis !== 'cost') || typeof needs !== 'number') return undefined;
  const left = leftOn(state, axis === 'tokens' ? 'tokens' : 'costMicroUsd');
  const { inputTokens = 0, outputTokens = 0, costMicroUsd = 0 } = readUsage(usage ?? {}).usage;
  const used = axis === 'tokens' ? inputTokens + outputTokens : costMicroUsd;
  return left === undefined || left - used >= needs ? undefined : { step, axis, amount: needs };
}

/** As the fault of a move without room. What earlier tries have used counts. */
function withoutRoom(needs: MoveNeeds, fault: ErrorData, usage: unknown, ask: Ask): Made {
  ask.lacks(needs);
  if (usage === undefined) return undefined;
  const { step } = needs;
  const { decision } = FAILED;
  return [{ kind: 'moved', step, startedAt: ask.deps.clock.now(), decision, fault, usage: readUsage(usage).usage }];
}

/** Nor has a planner failed whose model refuses: that is how the run ends. */
function refusedEnding(message: string, data: JsonObject, step: number, { deps }: Ask): readonly EntryBody[] {
  const decision = refusedBy(message, data, deps.planner.name);
  const moved: Mutable<Moved> = { kind: 'moved', step, decision, startedAt: deps.clock.now() };
  const { usage } = data;
  if (usage !== undefined) moved.usage = readUsage(usage).usage;
  return [moved, { ...decision, kind: 'finished' }];
}

function refusedBy(message: string, { model, refusal }: JsonObject, via: string) {
  const about = { ...defined({ model }), message, ...(isJsonObject(refusal) ? refusal : {}) };
  const { json: metadata } = captureObject<JsonObject>({ via, refusal: about }, 'metadata');
  return Object.freeze({ kind: 'finish', reason: 'refused', metadata } as const);
}

/** What a planner that threw has decided by it, for whoever asks it without a run: the end of a run whose model refuses, or only how the run would fail. */
export function decidedByFailing(
  thrown: unknown,
  step: number,
  planner: string,
): { readonly decision?: Decision; readonly error?: ErrorData } {
  const { code, message, data = {}, isOurs } = Thrown.of(thrown);
  if (isOurs && code === 'model_refused') return { decision: refusedBy(message, data, planner) };
  return { error: { code: plannerFailed(thrown, step).error.code, message } };
}

/** The end of the run; or the pause in which somebody is asked what is to become of a plan that has failed. */
function plannerEnded(thrown: unknown, step: number, { deps, state }: Ask): Failed | Paused {
  const failed = plannerFailed(thrown, step);
  const asks = deps.planner.onFailedPlan === 'pause' && failed.error.code !== 'planner_failed';
  if (!asks || failedPlan(state) === undefined) return failed;
  const { code, message, data = {} } = failed.error;
  return { kind: 'paused', token: deps.newToken(), reason: 'plan_failed', payload: { code, message, ...data } };
}

/** The end of a run whose limit of cost would not count what was used. */
function uncountedIn({ step, usage }: Moved | Compacted | CompactionFailed, { deps, state }: Ask): Failed | undefined {
  const error = uncounted(deps.agent, usage, state.limits.costMicroUsd);
  return error && { ...plannerFailed(error, step), ...(usage === undefined ? {} : { usage }) };
}

/** With what the planner says that it has used, if it says so. */
function plannerFailed(thrown: unknown, step: number): Failed {
  // What a planner of ours says ends a run ends it under its own code.
  const said = Thrown.of(thrown);
  const { code, message, data, isOurs } = said;
  const used = usageIn(data);
  if (isOurs && code !== undefined && endsRun(code)) {
    return { kind: 'failed', error: { code, message, data: { ...data, step } }, ...used };
  }
  const cause = errorData(said, said.name);
  return {
    kind: 'failed',
    error: {
      code: 'planner_failed',
      message: `The planner failed at step ${step}: ${cause.message}`,
      data: { step, cause: { ...cause } },
    },
    ...used,
  };
}

function endsRun(code: string): boolean {
  return Object.hasOwn(ERROR_CONSEQUENCES, code) && ERROR_CONSEQUENCES[code as ErrorCode] === 'run';
}

/** Whoever waits for a task waits for that run. @throws PilotageError `invalid_decision`. */
function assertMayContinue(decision: Decision, { task }: RunState): void {
  if (task === null || decision.kind !== 'finish' || decision.reason !== 'continued') return;
  throw new PilotageError('invalid_decision', 'A task cannot be continued: give what it has so far as its result.');
}

const NO_FILES: readonly InputArtifact[] = [];

async function finished(
  decision: Extract<Decision, { kind: 'finish' }>,
  files: readonly InputArtifact[],
  ask: Ask,
): Promise<Finished> {
  const { reason, payload, stored, metadata, continued } = decision;
  const { agent } = ask.state;
  const ending = {
    kind: 'finished' as const,
    reason,
    ...(stored === undefined ? {} : { stored }),
    ...(metadata === undefined ? {} : { metadata }),
    ...(files.length === 0 ? {} : { files }),
    ...(continued === undefined ? {} : { carry: continued, successor: { run: newRunId(), agent } }),
  };
  if (payload === undefined) return ending;
  const answer = payload as Json;
  const about = { fileName: 'answer.json', source: 'run: answer' };
  const artifact = await storeIfLarge(answer, ask.state.identity, ask.deps.artifacts, about);
  return artifact === undefined
    ? { ...ending, payload: answer }
    : { ...ending, payload: { ...artifact }, stored: true };
}

/** Nobody could answer what no value fits. @throws PilotageError `invalid_decision`. */
function assertSchema(schema: JsonObject): void {
  const compiled = compileSchema(schema);
  if (!('cause' in compiled)) return;
  const message = `The planner's decision is invalid: the schema of the pause is no JSON Schema: ${describeThrown(compiled.cause)}`;
  throw new PilotageError('invalid_decision', message);
}

function paused(decision: Extract<Decision, { kind: 'request_pause' }>, step: number, ask: Ask): Paused {
  const { reason, payload, schema, expiresInMs } = decision;
  return {
    kind: 'paused',
    token: ask.deps.newToken(),
    reason,
    step,
    ...(payload === undefined ? {} : { payload }),
    ...(schema === undefined ? {} : { schema }),
    ...(expiresInMs === undefined ? {} : { expiresAt: timeAfter(ask.deps.clock.now(), expiresInMs) }),
  };
}
